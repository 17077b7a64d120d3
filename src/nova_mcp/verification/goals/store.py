"""Goals, their steps and what happened to them, as the store keeps them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    Index,
    Integer,
    Row,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from nova_mcp.evidence.model import ACTING, CallRecord, Link
from nova_mcp.storage.schema import metadata
from nova_mcp.verification.goals.model import (
    Annotated,
    Closed,
    Entry,
    GoalEvent,
    NewGoal,
    Note,
    StoredGoal,
    StoredStep,
    Unknown,
)
from nova_mcp.verification.goals.rules import (
    IN_FLIGHT,
    REVIVAL_MS,
    Continues,
    Ended,
    Lease,
    Ownership,
    StepStatus,
    StoredState,
    TerminalState,
    after_close,
    annotated,
    closable,
    goal_state,
)
from nova_mcp.verification.model import VerificationStatus

NOVA = "nova"
LISTED = 50

goal = Table(
    "goal",
    metadata,
    Column("goal_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("target_id", Text),
    Column("summary", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner_agent_id", Text),
    Column("session_id", Text),
    Column("preconditions", Text),
    Column("precondition_verdict", Text),
    Column("lease_ms", BigInteger, nullable=False),
    Column("lease_expires_at_ms", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("event_count", BigInteger, nullable=False),
    Index(None, "principal", "target_id", "created_at_ms"),
    Index(None, "principal", "created_at_ms"),
)

goal_step = Table(
    "goal_step",
    metadata,
    Column("goal_id", Text, ForeignKey("goal.goal_id"), primary_key=True),
    Column("step_no", Integer, primary_key=True, autoincrement=False),
    Column("action_desc", Text, nullable=False),
    Column("contract", Text),
    Column("status", Text, nullable=False),
    Column("verification_status", Text),
    Column("lease_token", Text),
    Column("lease_expires_at_ms", BigInteger),
    Column("changed_at_ms", BigInteger, nullable=False),
)

goal_event = Table(
    "goal_event",
    metadata,
    Column("goal_id", Text, ForeignKey("goal.goal_id"), primary_key=True),
    Column("event_no", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("content", Text, nullable=False),
)


# -- making and reading ----------------------------------------------------------------------------------------------


def create_goal(conn: Connection, new: NewGoal) -> None:
    conn.execute(
        insert(goal),
        {
            "goal_id": new.goal_id,
            "principal": new.principal,
            "created_by": new.created_by,
            "target_id": new.target_id,
            "summary": new.summary,
            "mode": new.mode,
            "state": "active",
            "owner_agent_id": new.owner.agent_id,
            "session_id": new.owner.session_id,
            "preconditions": new.preconditions,
            "precondition_verdict": new.precondition_verdict,
            "lease_ms": new.lease_ms,
            "lease_expires_at_ms": new.created_at_ms + new.lease_ms,
            "created_at_ms": new.created_at_ms,
            "event_count": 0,
        },
    )
    rows = [
        {
            "goal_id": new.goal_id,
            "step_no": number,
            "action_desc": step.action_desc,
            "contract": step.contract,
            "status": "ready" if number == 1 else "planned",
            "changed_at_ms": new.created_at_ms,
        }
        for number, step in enumerate(new.steps, start=1)
    ]
    if rows:
        conn.execute(insert(goal_step), rows)
    add_event(conn, new.goal_id, Entry(new.created_at_ms, "created", new.created_by, new.summary))


def find_goal(conn: Connection, principal: str, goal_id: str, now_ms: int) -> StoredGoal | None:
    """A goal with its steps; another principal's is as unknown as one that never was."""
    row = conn.execute(select(goal).where(goal.c.goal_id == goal_id, goal.c.principal == principal)).one_or_none()
    return None if row is None else with_steps(conn, [row], now_ms)[0]


def list_goals(conn: Connection, principal: str, target_id: str | None, now_ms: int) -> list[StoredGoal]:
    """Goals with their steps, newest first."""
    wanted = select(goal).where(goal.c.principal == principal)
    if target_id is not None:
        wanted = wanted.where(goal.c.target_id == target_id)
    newest = wanted.order_by(goal.c.created_at_ms.desc(), goal.c.goal_id.desc()).limit(LISTED)
    return with_steps(conn, conn.execute(newest).all(), now_ms)


def active_goal(conn: Connection, principal: str, target_id: str, now_ms: int) -> StoredGoal | None:
    """The goal that counts on a target: the newest active one, whoever owns it."""
    row = conn.execute(
        select(goal)
        .where(goal.c.principal == principal, goal.c.target_id == target_id)
        .where(goal.c.state == "active", goal.c.lease_expires_at_ms > now_ms)
        .order_by(goal.c.created_at_ms.desc(), goal.c.goal_id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else with_steps(conn, [row], now_ms)[0]


def goal_events(conn: Connection, goal_id: str, limit: int) -> list[GoalEvent]:
    """The last events, oldest of them first."""
    rows = conn.execute(
        select(goal_event).where(goal_event.c.goal_id == goal_id).order_by(goal_event.c.event_no.desc()).limit(limit)
    ).all()
    return [
        GoalEvent(event_id(goal_id, row.event_no), row.at_ms, row.kind, row.source, row.content)
        for row in reversed(rows)
    ]


def with_steps(conn: Connection, rows: Sequence[Row[Any]], now_ms: int) -> list[StoredGoal]:
    ids = [row.goal_id for row in rows]
    steps: dict[str, list[StoredStep]] = {goal_id: [] for goal_id in ids}
    for step in conn.execute(
        select(goal_step).where(goal_step.c.goal_id.in_(ids)).order_by(goal_step.c.goal_id, goal_step.c.step_no)
    ):
        steps[step.goal_id].append(_step(step))
    return [replace(_goal(row, now_ms), steps=tuple(steps[row.goal_id])) for row in rows]


def _goal(row: Row[Any], now_ms: int) -> StoredGoal:
    stored: StoredState = row.state
    return StoredGoal(
        goal_id=row.goal_id,
        principal=row.principal,
        summary=row.summary,
        mode=row.mode,
        state=goal_state(stored, row.lease_expires_at_ms, now_ms),
        target_id=row.target_id,
        owner=Ownership(row.owner_agent_id, row.session_id),
        preconditions=row.preconditions,
        precondition_verdict=row.precondition_verdict,
        lease=Lease(row.lease_ms, row.lease_expires_at_ms),
        created_at_ms=row.created_at_ms,
        ended_at_ms=row.ended_at_ms,
    )


def _step(row: Row[Any]) -> StoredStep:
    return StoredStep(
        step_no=row.step_no,
        action_desc=row.action_desc,
        status=row.status,
        contract=row.contract,
        verification_status="pending" if row.status in IN_FLIGHT else row.verification_status,
        lease_token=row.lease_token,
        lease_expires_at_ms=row.lease_expires_at_ms,
    )


# -- events ----------------------------------------------------------------------------------------------------------


# One statement: two writers never get the same number, and the second one waits for the first.
_NUMBER = text("UPDATE goal SET event_count = event_count + 1 WHERE goal_id = :goal RETURNING event_count")


def event_id(goal_id: str, event_no: int) -> str:
    return f"{goal_id}.{event_no}"


def add_event(conn: Connection, goal_id: str, entry: Entry) -> str:
    number = int(conn.execute(_NUMBER, {"goal": goal_id}).scalar_one())
    conn.execute(
        insert(goal_event),
        {
            "goal_id": goal_id,
            "event_no": number,
            "at_ms": entry.at_ms,
            "kind": entry.kind,
            "source": entry.source,
            "content": entry.content,
        },
    )
    return event_id(goal_id, number)


# -- the goal's own ways ---------------------------------------------------------------------------------------------


def held_goal(conn: Connection, principal: str, goal_id: str) -> Row[Any] | None:
    """The goal's row, locked until the transaction ends."""
    return conn.execute(
        select(goal).where(goal.c.goal_id == goal_id, goal.c.principal == principal).with_for_update()
    ).one_or_none()


def close_goal(
    conn: Connection, principal: str, goal_id: str, state: TerminalState, now_ms: int
) -> Closed | Ended | Unknown:
    if (row := held_goal(conn, principal, goal_id)) is None:
        return Unknown()
    known = with_steps(conn, [row], now_ms)[0]
    if not closable(known.state):
        return Ended(known.state)
    conn.execute(update(goal).where(goal.c.goal_id == goal_id).values(state=state, ended_at_ms=now_ms))
    for step in known.steps:
        if (status := after_close(step.status, state)) != step.status:
            set_step(conn, goal_id, step.step_no, status, now_ms)
    add_event(conn, goal_id, Entry(now_ms, "closed", NOVA, state))
    return Closed(known.state)


def annotate_goal(
    conn: Connection, principal: str, goal_id: str, note: Note, now_ms: int
) -> Annotated | Ended | Unknown:
    if (row := held_goal(conn, principal, goal_id)) is None:
        return Unknown()
    match annotated(row.state, Lease(row.lease_ms, row.lease_expires_at_ms), now_ms):
        case Ended() as ended:
            return ended
        case Continues(expires_at_ms, revived):
            conn.execute(update(goal).where(goal.c.goal_id == goal_id).values(lease_expires_at_ms=expires_at_ms))
            if revived:
                add_event(conn, goal_id, Entry(now_ms, "revived", NOVA, "the lease had run out"))
            return Annotated(add_event(conn, goal_id, Entry(now_ms, "annotation", note.source, note.content)))


def renew_lease(conn: Connection, goal_id: str, now_ms: int, *, at_least_until_ms: int = 0) -> bool:
    """An act of the owner keeps the goal alive; only an annotation brings an orphaned one back."""
    renewed_ms = goal.c.lease_ms + now_ms
    renewed = conn.execute(
        update(goal)
        .where(goal.c.goal_id == goal_id, goal.c.state == "active", goal.c.lease_expires_at_ms > now_ms)
        .values(lease_expires_at_ms=case((renewed_ms < at_least_until_ms, at_least_until_ms), else_=renewed_ms))
    )
    return renewed.rowcount == 1


def renew_after_act(conn: Connection, record: CallRecord, link: Link) -> None:
    """In the transaction of an act's record: what its agent did on a target keeps the goals there alive."""
    target_id = record.before.target_id or record.after.target_id
    if record.kind != "call" or record.effect not in ACTING or not record.outcome.action_dispatched:
        return
    if target_id is None:
        return
    now_ms = record.started_at_ms + record.duration_ms
    conn.execute(
        update(goal)
        .where(goal.c.principal == record.caller.principal, goal.c.target_id == target_id)
        .where(goal.c.state == "active", goal.c.lease_expires_at_ms > now_ms)
        .where(or_(goal.c.owner_agent_id.is_(None), goal.c.owner_agent_id == record.caller.agent_id))
        .values(lease_expires_at_ms=goal.c.lease_ms + now_ms)
    )


def set_step(
    conn: Connection,
    goal_id: str,
    step_no: int,
    status: StepStatus,
    now_ms: int,
    verification_status: VerificationStatus | None = None,
) -> None:
    conn.execute(
        update(goal_step)
        .where(goal_step.c.goal_id == goal_id, goal_step.c.step_no == step_no)
        .values(
            status=status,
            verification_status=verification_status,
            lease_expires_at_ms=None,
            changed_at_ms=now_ms,
        )
    )


def _is_old(older_than_ms: int) -> ColumnElement[bool]:
    return or_(goal.c.ended_at_ms < older_than_ms, goal.c.lease_expires_at_ms < older_than_ms - REVIVAL_MS)


def old_goals(conn: Connection, older_than_ms: int) -> int:
    """How many goals a run would forget."""
    return int(conn.execute(select(func.count()).where(_is_old(older_than_ms))).scalar_one())


def prune_goals(conn: Connection, older_than_ms: int) -> int:
    """Forget goals that ended, or were left alone, before that time; says how many went."""
    old = select(goal.c.goal_id).where(_is_old(older_than_ms)).order_by(goal.c.goal_id)
    gone = list(conn.execute(old.with_for_update(skip_locked=True)).scalars())
    for start in range(0, len(gone), 200):
        chunk = gone[start : start + 200]
        for table in (goal_event, goal_step, goal):
            conn.execute(delete(table).where(table.c.goal_id.in_(chunk)))
    return len(gone)
