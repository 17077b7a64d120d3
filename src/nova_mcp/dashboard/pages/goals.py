"""Goals of the operator's agents: what each is to reach, and what its steps came to."""

import json
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.keywords import cut
from nova_mcp.verification.goals import store
from nova_mcp.verification.goals.model import GoalEvent, StoredGoal, StoredStep

EVENTS: Final = 50
CONTRACT_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class StepView:
    step_no: int
    action: str
    status: str
    verification: str | None
    current: bool
    contract: str


@dataclass(frozen=True, slots=True)
class GoalRow:
    goal: StoredGoal
    done: int
    steps: int
    percent: int


@dataclass(frozen=True, slots=True)
class GoalsView:
    goals: tuple[GoalRow, ...]
    # As many as are listed; older ones are not shown.
    full: bool


@dataclass(frozen=True, slots=True)
class GoalView:
    row: GoalRow
    steps: tuple[StepView, ...]
    preconditions: str
    events: tuple[GoalEvent, ...]


def goals(conn: Connection, principal: str, now_ms: int) -> GoalsView:
    found = store.list_goals(conn, principal, None, now_ms)
    return GoalsView(tuple(_row(one) for one in found), len(found) == store.LISTED)


def goal(conn: Connection, principal: str, goal_id: str, now_ms: int) -> GoalView | None:
    found = store.find_goal(conn, principal, goal_id, now_ms)
    if found is None:
        return None
    ended = found.state in ("completed", "failed", "aborted")
    steps = tuple(_step(one, current=not ended and one.step_no == found.current_step) for one in found.steps)
    events = tuple(reversed(store.goal_events(conn, goal_id, EVENTS)))
    return GoalView(_row(found), steps, laid_out(found.preconditions), events)


def _row(one: StoredGoal) -> GoalRow:
    done = sum(step.status == "done" for step in one.steps)
    return GoalRow(one, done, len(one.steps), round(100 * done / len(one.steps)) if one.steps else 0)


def _step(one: StoredStep, *, current: bool) -> StepView:
    return StepView(one.step_no, one.action_desc, one.status, one.verification_status, current, laid_out(one.contract))


def laid_out(contract: str | None) -> str:
    """A contract as people read it; what is not JSON stays as it is."""
    if contract is None:
        return ""
    try:
        text = json.dumps(json.loads(contract), indent=2, ensure_ascii=False)
    except ValueError:
        text = contract
    return cut(text, CONTRACT_CHARS)
