"""The operator's demands: which class of tools needs which capability on which service."""

import logging
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nova_mcp.errors import CapabilityMissing, Fix
from nova_mcp.evidence.model import Effect
from nova_mcp.memory.facts.services import well_known

log = logging.getLogger(__name__)

FILE: Final = "policies.toml"
ToolClass = Literal["navigate", "act", "commit", "write"]
PolicyDecision = Literal["allow", "warn", "block"]
EVERY_SERVICE: Final = "*"


class Policy(BaseModel):
    """One demand; of several that fit the first decides, and `allow` asks for nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    service: str = Field(min_length=1, max_length=253)
    tools: tuple[ToolClass, ...] = Field(min_length=1, strict=False)
    needs: str = Field(pattern=r"^[a-z][a-z0-9_.]{0,127}$")
    decision: PolicyDecision = "block"

    @field_validator("service")
    @classmethod
    def _key(cls, service: str) -> str:
        """A service may be named by its host as well; a demand that silently fits nothing helps nobody."""
        known = well_known().get(service.lower())
        return service.lower() if known is None else known.key


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: tuple[Policy, ...] = ()


@dataclass(frozen=True, slots=True)
class Lacking:
    """A capability that a call needs and nothing proves."""

    service_key: str
    capability: str
    decision: Literal["warn", "block"]


def demanded(policies: Sequence[Policy], effect: Effect, service_key: str) -> Policy | None:
    """The demand on a call of that class there; reading is never refused anything.

    Whether an action commits shows only at its control, so `commit` is asked there, once more.
    """
    for policy in policies:
        if effect in policy.tools and policy.service in (EVERY_SERVICE, service_key):
            return policy
    return None


def lacking(policy: Policy, service_key: str, capabilities: Mapping[str, bool]) -> Lacking | None:
    if policy.decision == "allow" or capabilities.get(policy.needs) is True:
        return None
    return Lacking(service_key, policy.needs, policy.decision)


def capability_missing(lacking: Lacking, agent_id: str, target_id: str) -> CapabilityMissing:
    """The refusal of a call that lacks it, with the look that could change that."""
    return CapabilityMissing(
        "policy.capability_missing",
        f"The operator demands {lacking.capability} on {lacking.service_key}, and no current fact shows it.",
        stage="gate",
        fix=Fix("nova.perceive", {"agentId": agent_id, "targetId": target_id}),
        details={"capability": lacking.capability, "serviceKey": lacking.service_key},
    )


def load_policies(data_dir: Path) -> tuple[Policy, ...]:
    """What the operator wrote down; a file that can't be read is told in the log and demands nothing."""
    path = data_dir / FILE
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).policy
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        log.warning("%s is not in force: %s", path, str(error).replace("\n", "; "))
        return ()
