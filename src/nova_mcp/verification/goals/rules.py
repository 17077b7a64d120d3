"""Which way goals and their steps may go; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GoalMode = Literal["agent_driven", "runtime_assisted", "fully_autonomous"]
TerminalState = Literal["completed", "failed", "aborted"]
StoredState = Literal["active", "completed", "failed", "aborted"]
GoalState = Literal["active", "completed", "failed", "aborted", "orphaned"]
StepStatus = Literal["planned", "ready", "blocked", "dispatched", "verifying", "done", "ambiguous", "failed", "aborted"]
# How one act as a step ended. `ready` says that nothing reached the page, `blocked` that the page has to change first.
StepOutcome = Literal["done", "ambiguous", "failed", "ready", "blocked"]

LEASE_MS: Final = 120_000
REVIVAL_MS: Final = 24 * 3_600_000
IN_FLIGHT: Final[frozenset[StepStatus]] = frozenset({"dispatched", "verifying"})
FINISHED: Final[frozenset[StepStatus]] = frozenset({"done", "failed", "aborted"})
# From these an act of the owner may start: the step's first one, or a retry of the same step.
STARTABLE: Final[frozenset[StepStatus]] = frozenset({"ready", "blocked", "ambiguous", "failed"})

_MOVES: Final[dict[StepStatus, frozenset[StepStatus]]] = {
    "planned": frozenset({"ready"}),
    "ready": frozenset({"blocked", "dispatched"}),
    "blocked": frozenset({"ready"}),
    "dispatched": frozenset({"verifying", "done", "ambiguous", "failed", "ready", "blocked"}),
    "verifying": frozenset({"done", "ambiguous", "failed"}),
    # A retry, or what a later look at the page told about the earlier dispatch.
    "ambiguous": frozenset({"ready", "done", "failed"}),
    "failed": frozenset({"ready"}),
    "done": frozenset(),
    "aborted": frozenset(),
}


def may_move(before: StepStatus, after: StepStatus) -> bool:
    """Whether a step may go from one status to another in one move."""
    if after == "aborted":
        return before not in FINISHED
    return after in _MOVES[before]


def goal_state(stored: StoredState, lease_expires_at_ms: int, now_ms: int) -> GoalState:
    """An active goal whose lease ran out is orphaned; nobody has to write that down."""
    return "orphaned" if stored == "active" and now_ms >= lease_expires_at_ms else stored


@dataclass(frozen=True, slots=True)
class Continues:
    """The goal is alive afterwards; `revived` when it had been orphaned."""

    lease_expires_at_ms: int
    revived: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The goal takes nothing more."""

    state: GoalState


@dataclass(frozen=True, slots=True)
class Lease:
    """How long a goal lives without a sign of progress, and until when it does now."""

    lease_ms: int
    expires_at_ms: int


def annotated(stored: StoredState, lease: Lease, now_ms: int) -> Continues | Ended:
    """An annotation keeps a goal alive, and brings an orphaned one back for a day."""
    match goal_state(stored, lease.expires_at_ms, now_ms):
        case "active":
            return Continues(now_ms + lease.lease_ms)
        case "orphaned" if now_ms - lease.expires_at_ms < REVIVAL_MS:
            return Continues(now_ms + lease.lease_ms, revived=True)
        case state:
            return Ended(state)


def closable(state: GoalState) -> bool:
    """An orphaned goal may still be put away; an ended one has ended."""
    return state in ("active", "orphaned")


def after_close(status: StepStatus, state: TerminalState) -> StepStatus:
    """A goal that is given up gives up its open steps; one called complete keeps what its steps really came to."""
    return status if state == "completed" or status in FINISHED else "aborted"


def current_step(statuses: Sequence[StepStatus]) -> int:
    """Counted from 1: the first step that is not done, else the last one; 0 without steps."""
    for number, status in enumerate(statuses, start=1):
        if status != "done":
            return number
    return len(statuses)


@dataclass(frozen=True, slots=True)
class Ownership:
    """To whom a goal is bound; what is None binds nobody."""

    agent_id: str | None = None
    session_id: str | None = None

    def admits(self, agent_id: str, session_id: str | None) -> bool:
        return self.agent_id in (None, agent_id) and self.session_id in (None, session_id)


Why = Literal["not_active", "other_owner", "in_flight", "not_current"]


@dataclass(frozen=True, slots=True)
class Start:
    """The act may run as this step; `retry` when an earlier act of the step came to nothing sure."""

    retry: bool


@dataclass(frozen=True, slots=True)
class Refuse:
    why: Why


StepVerdict: TypeAlias = Start | Refuse


@dataclass(frozen=True, slots=True)
class StepHold:
    """A step and who holds it."""

    status: StepStatus
    lease_expires_at_ms: int | None = None


def start_step(step: StepHold, now_ms: int) -> StepVerdict:
    """Whether an act may begin a step now: a step in somebody's hands is not begun a second time."""
    if step.status in IN_FLIGHT:
        if step.lease_expires_at_ms is not None and now_ms < step.lease_expires_at_ms:
            return Refuse("in_flight")
        # Whoever held it is gone without a word, which leaves the step ambiguous.
        return Start(retry=True)
    if step.status not in STARTABLE:
        return Refuse("not_current")
    return Start(retry=step.status in ("ambiguous", "failed"))
