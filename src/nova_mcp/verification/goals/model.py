"""The nouns of goals: what is registered, what is kept, and how a change to a goal can end."""

from dataclasses import dataclass, field
from typing import Literal

from nova_mcp.verification.goals.rules import GoalMode, GoalState, Lease, Ownership, StepStatus, current_step
from nova_mcp.verification.model import SetVerdict, VerificationStatus

EventKind = Literal["created", "annotation", "step", "revived", "closed"]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step as the plan names it; the contract is JSON text."""

    action_desc: str
    contract: str | None = None


@dataclass(frozen=True, slots=True)
class NewGoal:
    """A goal at the moment it is registered."""

    goal_id: str
    principal: str
    created_by: str
    summary: str
    created_at_ms: int
    lease_ms: int
    mode: GoalMode = "agent_driven"
    target_id: str | None = None
    owner: Ownership = field(default_factory=Ownership)
    preconditions: str | None = None
    precondition_verdict: SetVerdict | None = None
    steps: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredStep:
    step_no: int
    action_desc: str
    status: StepStatus
    contract: str | None = None
    verification_status: VerificationStatus | None = None
    lease_token: str | None = None
    lease_expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GoalEvent:
    event_id: str
    at_ms: int
    kind: EventKind
    source: str
    content: str


@dataclass(frozen=True, slots=True)
class StoredGoal:
    """A goal as it stands; `state` counts a lease that ran out."""

    goal_id: str
    principal: str
    summary: str
    mode: GoalMode
    state: GoalState
    target_id: str | None
    owner: Ownership
    preconditions: str | None
    precondition_verdict: SetVerdict | None
    lease: Lease
    created_at_ms: int
    ended_at_ms: int | None
    steps: tuple[StoredStep, ...] = ()
    events: tuple[GoalEvent, ...] = ()

    @property
    def current_step(self) -> int:
        return current_step([step.status for step in self.steps])

    @property
    def step(self) -> StoredStep | None:
        return self.steps[self.current_step - 1] if self.steps else None

    @property
    def open_step(self) -> StoredStep | None:
        """The step the next act runs as."""
        return self.step if self.step is not None and self.step.status != "done" else None


@dataclass(frozen=True, slots=True)
class Entry:
    at_ms: int
    kind: EventKind
    source: str
    content: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No such goal for that principal."""


@dataclass(frozen=True, slots=True)
class Closed:
    previous: GoalState


@dataclass(frozen=True, slots=True)
class Annotated:
    event_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wants to write down about a goal."""

    content: str
    source: str
