"""What the journal forgets, a small step at a time; candidates and curated entries stay."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, delete, func, select, tuple_

from nova_mcp.memory.journal.candidate_store import candidate
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job
from nova_mcp.memory.journal.statistics.counters import forget_hours
from nova_mcp.memory.journal.store import activity_session, observation, observation_throttle, tool_event

# Rows of each table per transaction: a call that wants to write waits for one such step.
STEP: Final = 500
DAY_MS: Final = 86_400_000
# The longest time that a throttle looks back is a minute.
_THROTTLE_DAYS: Final = 1


@dataclass(frozen=True, slots=True)
class JournalRetention:
    """Days that observations and what was decided are kept, and days for the events they were drawn from."""

    journal_days: int
    event_days: int


@dataclass(frozen=True, slots=True)
class _Old:
    """Rows whose time is over, oldest first."""

    table: Table
    at: Column[Any]
    days: int
    only: ColumnElement[bool] | None = None

    def where(self, now_ms: int) -> list[ColumnElement[bool]]:
        old: list[ColumnElement[bool]] = [self.at < now_ms - self.days * DAY_MS]
        return old if self.only is None else [*old, self.only]


def _kinds(kept: JournalRetention) -> Iterator[_Old]:
    """In the order in which a call touches them, so that the two never wait for each other."""
    job = outbox_job.c
    yield _Old(activity_session, activity_session.c.last_at_ms, kept.journal_days)
    yield _Old(tool_event, tool_event.c.created_at_ms, kept.event_days)
    yield _Old(observation_throttle, observation_throttle.c.at_ms, _THROTTLE_DAYS)
    yield _Old(observation, observation.c.created_at_ms, kept.journal_days)
    yield _Old(finalize_decision, finalize_decision.c.decided_at_ms, kept.journal_days)
    yield _Old(outbox_job, job.settled_at_ms, kept.event_days, job.state == "done")
    yield _Old(outbox_job, job.settled_at_ms, kept.journal_days, job.state == "failed")


def forget(conn: Connection, now_ms: int, kept: JournalRetention) -> int:
    """One step; says how many rows went, nothing once all is done."""
    gone = 0
    for old in _kinds(kept):
        key = tuple(old.table.primary_key.columns)
        chosen = select(*key).where(*old.where(now_ms)).order_by(old.at).limit(STEP)
        # Asked again of the row itself: a call may have made it young while this waited for it.
        gone += conn.execute(delete(old.table).where(tuple_(*key).in_(chosen), *old.where(now_ms))).rowcount
    hours = forget_hours(conn, now_ms)
    return gone + hours.hours + hours.latencies


def forgettable(conn: Connection, now_ms: int, kept: JournalRetention) -> int:
    """How many rows of evidence and decisions all steps together would take."""
    counts = (select(func.count()).select_from(old.table).where(*old.where(now_ms)) for old in _kinds(kept))
    return sum(int(conn.execute(count).scalar_one()) for count in counts)


def referenced_calls(conn: Connection) -> frozenset[str]:
    """The calls that an open candidate rests on."""
    found = candidate.c
    rows = conn.execute(select(found.source_event_id, found.resolution_event_id).where(found.status != "disproven"))
    return frozenset(call_id for row in rows for call_id in row if call_id is not None)
