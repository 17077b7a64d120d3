"""Acts as steps of a goal: one act takes the current step, and its end moves the goal on."""

from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection, select, update

from nova_mcp.verification.goals.model import Entry
from nova_mcp.verification.goals.rules import (
    Refuse,
    Start,
    StepHold,
    StepOutcome,
    StepStatus,
    Why,
    may_move,
    start_step,
)
from nova_mcp.verification.goals.store import (
    NOVA,
    active_goal,
    add_event,
    find_goal,
    goal,
    goal_step,
    held_goal,
    renew_lease,
    set_step,
    with_steps,
)
from nova_mcp.verification.model import VerificationStatus


@dataclass(frozen=True, slots=True)
class Prepared:
    """The act runs as this step; without a number the goal has no step left to run."""

    goal_id: str
    step_no: int | None
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """The act must not be dispatched."""

    goal_id: str
    step_no: int | None
    why: Why


StepPreparation: TypeAlias = Prepared | Rejected


@dataclass(frozen=True, slots=True)
class Taker:
    """Who wants to act as a step: the id of the transition or call, and until when it is taken to be alive.

    `goal_id` and `step_no` name what the caller decided by; a goal that has moved on since then refuses.
    """

    token: str
    agent_id: str
    expires_at_ms: int
    session_id: str | None = None
    goal_id: str | None = None
    step_no: int | None = None


def prepare_step(conn: Connection, principal: str, target_id: str, taker: Taker, now_ms: int) -> StepPreparation | None:
    """Take the current step of the goal that counts on a target, in the transaction that records the intent.

    None when no goal is active there. The goal's row stays locked, so of two acts that come together one gets the
    step and the other one sees it taken.
    """
    found = active_goal(conn, principal, target_id, now_ms)
    if found is None or held_goal(conn, principal, found.goal_id) is None:
        # Whoever decided by a goal must not act without it.
        return None if taker.goal_id is None else Rejected(taker.goal_id, taker.step_no, "not_active")
    # Read again under the lock: the first look may be older than what its holder wrote.
    known = find_goal(conn, principal, found.goal_id, now_ms)
    if known is None or known.state != "active":
        return Rejected(found.goal_id, None, "not_active")
    if not known.owner.admits(taker.agent_id, taker.session_id):
        return Rejected(known.goal_id, known.current_step or None, "other_owner")
    step = known.open_step
    if taker.goal_id is not None and (taker.goal_id, taker.step_no) != (known.goal_id, step and step.step_no):
        return Rejected(known.goal_id, known.current_step or None, "not_current")
    if step is None:
        renew_lease(conn, known.goal_id, now_ms)
        return Prepared(known.goal_id, None)
    match start_step(StepHold(step.status, step.lease_expires_at_ms), now_ms):
        case Refuse(why):
            return Rejected(known.goal_id, step.step_no, why)
        case Start(retry):
            conn.execute(
                update(goal_step)
                .where(goal_step.c.goal_id == known.goal_id, goal_step.c.step_no == step.step_no)
                .values(
                    status="dispatched",
                    verification_status=None,
                    lease_token=taker.token,
                    lease_expires_at_ms=taker.expires_at_ms,
                    changed_at_ms=now_ms,
                )
            )
            # A goal is not given up while its own step is being carried out.
            renew_lease(conn, known.goal_id, now_ms, at_least_until_ms=taker.expires_at_ms)
            add_event(conn, known.goal_id, _step_entry(step.step_no, "dispatched", now_ms, retry=retry))
            return Prepared(known.goal_id, step.step_no, retry)


def verifying_step(conn: Connection, goal_id: str, step_no: int, token: str, now_ms: int) -> bool:
    """The input went out; what came of it is being observed."""
    moved = conn.execute(
        update(goal_step)
        .where(goal_step.c.goal_id == goal_id, goal_step.c.step_no == step_no)
        .where(goal_step.c.status == "dispatched", goal_step.c.lease_token == token)
        .values(status="verifying", changed_at_ms=now_ms)
    )
    return moved.rowcount == 1


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How an act as a step ended, and by which proof."""

    outcome: StepOutcome
    at_ms: int
    verification_status: VerificationStatus | None = None


def settle_step(conn: Connection, goal_id: str, step_no: int, token: str, end: StepEnd) -> bool:
    """End the act that holds a step; False when the step is no longer its own, and then nothing changes.

    The token stays with the step afterwards, so that a later look at an ambiguous outcome can still settle it.
    """
    principal = conn.execute(select(goal.c.principal).where(goal.c.goal_id == goal_id)).scalar()
    if principal is None or (row := held_goal(conn, principal, goal_id)) is None:
        return False
    known = with_steps(conn, [row], end.at_ms)[0]
    step = next((one for one in known.steps if one.step_no == step_no), None)
    if step is None or step.lease_token != token or not may_move(step.status, end.outcome):
        return False
    set_step(conn, goal_id, step_no, end.outcome, end.at_ms, end.verification_status)
    renew_lease(conn, goal_id, end.at_ms)
    add_event(conn, goal_id, _step_entry(step_no, end.outcome, end.at_ms))
    if end.outcome == "done" and step_no < len(known.steps) and known.steps[step_no].status == "planned":
        set_step(conn, goal_id, step_no + 1, "ready", end.at_ms)
    return True


def block_step(conn: Connection, goal_id: str, step_no: int, now_ms: int) -> bool:
    """The page is not ready for the step that was about to run; nothing was sent."""
    moved = conn.execute(
        update(goal_step)
        .where(goal_step.c.goal_id == goal_id, goal_step.c.step_no == step_no, goal_step.c.status == "ready")
        .values(status="blocked", changed_at_ms=now_ms)
    )
    return moved.rowcount == 1


def _step_entry(step_no: int, status: StepStatus, at_ms: int, *, retry: bool = False) -> Entry:
    return Entry(at_ms, "step", NOVA, f"step {step_no} {status}" + (" again" if retry else ""))
