"""The nouns of evidence: what is kept of every call, what a call showed, and what it says about a candidate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Link

# A sighting, likely or unclear, is an `action_success` with outcome 0: the control was there and took the input.
ObservationKind = Literal[
    "perceive_signature",
    "action_success",
    "action_failure",
    "blocker_dismissed",
    "selector_drift",
    "telemetry_confirmed",
    "tob_verified",
]
Direction = Literal[-1, 0, 1]
Severity = Literal[0, 1, 2]
EventVerdict = Literal["success", "failure", "neutral"]


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """One call as the journal keeps it; its id is the call's."""

    event_id: str
    principal: str
    owner_agent_id: str
    task_id: str | None
    target_id: str | None
    tool_name: str
    success: bool
    duration_ms: int
    error: str | None
    context_host: str | None
    arguments: str
    created_at_ms: int
    # Set for calls that were carried out on a page: what later calls have in common with this one.
    event_key: str | None = None
    verdict: EventVerdict = "neutral"


@dataclass(frozen=True, slots=True)
class Observation:
    """A learning signal of one call on a page.

    `outcome` says for or against, `severity` how hard a drift is, `source_scope` where inherited knowledge came from.
    """

    kind: ObservationKind
    outcome: Direction
    severity: Severity = 0
    target_stable_id: str | None = None
    candidate_key: str | None = None
    fingerprint_hash: str | None = None
    selector_norm: str | None = None
    source_scope: str | None = None
    payload: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageEvent:
    """A call that was carried out on a page, as candidates look at it."""

    call_id: str
    event_key: str
    verdict: EventVerdict
    session_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Occasion:
    """The call behind an observation: where it happened, who made it, and which session it belongs to."""

    event: ToolEvent
    host: str
    target_id: str
    session_id: str
    link: Link


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation that was written. A proof may take the place of a mere sighting, that of the call it names."""

    observation_id: int
    observation: Observation
    occasion: Occasion
    replaced_call_id: str | None = None

    @property
    def upgraded(self) -> bool:
        return self.replaced_call_id is not None
