"""What becomes of runs with time: idle ones end, and the units, findings and events of ended ones go."""

from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, func, or_, select

from nova_mcp.evidence.rules import DAY_MS, Holds, storable_text
from nova_mcp.memory.tasks.answers import Aborted
from nova_mcp.memory.tasks.coverage import evidence_store
from nova_mcp.memory.tasks.model import BEFORE_JOINING_MS
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.rules import Delta
from nova_mcp.memory.tasks.runs.store import held_run
from nova_mcp.memory.tasks.runs.transactions import Occasion, Runs
from nova_mcp.memory.tasks.runs.writes import Happening
from nova_mcp.memory.tasks.tables import (
    task_finding,
    task_instance,
    task_instance_event,
    task_instance_member,
    task_unit,
)

IDLE_DAYS: Final = 90
KEPT_DAYS: Final = 180
IDLE: Final = "idle_expired"
NOVA: Final = "nova"
AT_ONCE: Final = 50
# Begins with a blank, which no caller's id does.
_EVENT_ID: Final = f" {IDLE}"
_DETAILS: Final = (task_unit, task_finding, task_instance_event)


def forgetting(conn: Connection, now_ms: int) -> int:
    """The chore: end what nobody has worked on for long, forget the details of what ended long ago."""
    return expire(conn, now_ms) + forget(conn, now_ms)


def expire(conn: Connection, now_ms: int) -> int:
    """End open runs that have been idle too long, each by an event like any other; says how many."""
    due = conn.execute(
        select(task_instance.c.principal, task_instance.c.instance_id)
        .where(*_idle(now_ms))
        .order_by(task_instance.c.instance_id)
        .limit(AT_ONCE)
    ).all()
    # No gate and no page matters to a run that nobody completes.
    runs = Runs("off", evidence_store)
    return sum(_expired(conn, runs, row.principal, row.instance_id, now_ms) for row in due)


def _expired(conn: Connection, runs: Runs, principal: str, instance_id: str, now_ms: int) -> bool:
    run = held_run(conn, principal, instance_id)
    if run is None or not run.open or run.last_activity_at_ms >= now_ms - IDLE_DAYS * DAY_MS:
        return False
    happening = Happening("expire", _EVENT_ID, NOVA, payload_hash("expire", {}), now_ms)
    delta = Delta(status="aborted", ended_reason=IDLE)
    return isinstance(runs.ended(conn, Occasion((principal, NOVA), now_ms), run, happening, delta), Aborted)


def forget(conn: Connection, now_ms: int) -> int:
    """Drop units, findings and events of runs that ended long ago; the run with its proof stays. Says how many runs."""
    old = list(conn.execute(_old(now_ms).order_by(task_instance.c.instance_id).limit(AT_ONCE)).scalars())
    for table in _DETAILS:
        conn.execute(delete(table).where(table.c.instance_id.in_(old)))
    return len(old)


def due_to_go(conn: Connection, now_ms: int) -> int:
    """How many runs a chore would end or empty."""
    idle = conn.execute(select(func.count()).select_from(task_instance).where(*_idle(now_ms))).scalar_one()
    return idle + conn.execute(select(func.count()).select_from(_old(now_ms).subquery())).scalar_one()


def run_holds(conn: Connection, held: Holds) -> Holds:
    """What runs mean for the ledger, beside what is held already."""
    rows = conn.execute(
        select(task_instance.c.instance_id, task_instance.c.ended_at_ms, task_instance.c.ledger_gap)
    ).all()
    ended = frozenset(row.instance_id for row in rows if row.ended_at_ms is not None)
    member = task_instance_member.c
    joined = conn.execute(
        select(member.principal, member.agent_id, func.min(member.joined_at_ms).label("at_ms"))
        .where(member.ended_at_ms.is_(None))
        .group_by(member.principal, member.agent_id)
    )
    return replace(
        held,
        open=held.open | frozenset(row.instance_id for row in rows if row.ended_at_ms is None),
        ended=held.ended | ended,
        with_gaps=held.with_gaps | frozenset(row.instance_id for row in rows if row.ledger_gap) & ended,
        members={
            (storable_text(row.principal), storable_text(row.agent_id)): row.at_ms - BEFORE_JOINING_MS for row in joined
        },
    )


def _idle(now_ms: int) -> tuple[ColumnElement[bool], ...]:
    return (
        task_instance.c.status.in_(("pending", "active")),
        task_instance.c.last_activity_at_ms < now_ms - IDLE_DAYS * DAY_MS,
    )


def _old(now_ms: int) -> Select[tuple[str]]:
    kept = [exists().where(table.c.instance_id == task_instance.c.instance_id) for table in _DETAILS]
    return select(task_instance.c.instance_id).where(
        task_instance.c.ended_at_ms < now_ms - KEPT_DAYS * DAY_MS, or_(*kept)
    )
