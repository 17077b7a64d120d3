"""The operator's demands: which class of tools needs which capability on which service."""

import logging
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nova_mcp.observation.model import Effect

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
    """The demand on a call of that class there; reading is never refused anything."""
    for policy in policies:
        if effect in policy.tools and policy.service in (EVERY_SERVICE, service_key):
            return policy
    return None


def lacking(policy: Policy, service_key: str, capabilities: Mapping[str, bool]) -> Lacking | None:
    if policy.decision == "allow" or capabilities.get(policy.needs) is True:
        return None
    return Lacking(service_key, policy.needs, policy.decision)


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
