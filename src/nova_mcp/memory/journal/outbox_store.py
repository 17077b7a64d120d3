"""The queue of follow-up jobs: leases, retries and ends; two workers never hold one job."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, or_, select, update

from nova_mcp.core.values import Json
from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.journal.model import JobType
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import of_job_done

TRIES: Final = 8
FIRST_PAUSE_MS: Final = 1_000
LAST_PAUSE_MS: Final = 300_000
LEASE_MS: Final = 60_000
ERROR_LIMIT: Final = 220
_RAN_OUT: Final = "its worker was gone before it was done"
_UNREADABLE: Final = "its payload is no JSON object"


@dataclass(frozen=True, slots=True)
class Job:
    """A job in the hands of a worker; `attempt` counts from one and is part of the lease."""

    job_id: str
    job_key: str
    job_type: JobType
    task_id: str
    target_id: str
    principal: str
    agent_id: str
    payload: Mapping[str, Json]
    attempt: int
    leased_by: str


def pause_ms(attempt: int) -> int:
    """How long a job rests after that failed attempt: from a second to five minutes, evenly by factor."""
    step = (min(max(attempt, 1), TRIES - 1) - 1) / (TRIES - 2)
    spread: float = (LAST_PAUSE_MS / FIRST_PAUSE_MS) ** step
    return round(FIRST_PAUSE_MS * spread)


def _over(until: Column[Any], now_ms: int, longest_ms: int) -> ColumnElement[bool]:
    """Whether a pause or a lease has ended; one that lasts longer than any was begun before the clock was set back.

    Twice the longest, because the clocks of servers differ a little.
    """
    return or_(until <= now_ms, until > now_ms + 2 * longest_ms)


def _takeable(now_ms: int, types: Collection[JobType]) -> Select[Any]:
    job = outbox_job.c
    return (
        select(outbox_job)
        .where(
            or_(
                (job.state == "pending") & _over(job.due_at_ms, now_ms, LAST_PAUSE_MS),
                (job.state == "leased") & _over(job.lease_until_ms, now_ms, LEASE_MS),
            ),
            # What nobody here can do waits untouched and keeps its tries.
            job.job_type.in_(sorted(types)),
        )
        .order_by(job.due_at_ms, job.job_id)
        .limit(1)
    )


def has_work(conn: Connection, now_ms: int, types: Collection[JobType]) -> bool:
    return conn.execute(_takeable(now_ms, types)).first() is not None


def take(conn: Connection, worker: str, now_ms: int, types: Collection[JobType]) -> Job | None:
    """Lease the next job that is due; one that used up its tries without an end is parked on the way."""
    while (row := conn.execute(_takeable(now_ms, types).with_for_update(skip_locked=True)).one_or_none()) is not None:
        if row.attempts >= TRIES:
            _end(conn, row.job_id, "failed", now_ms, row.last_error or _RAN_OUT)
        elif (payload := _payload(row.payload)) is None:
            # Left where it is, it would be the next job for ever.
            _end(conn, row.job_id, "failed", now_ms, _UNREADABLE)
        else:
            return _leased(conn, row, payload, worker, now_ms)
    return None


def _payload(text: str) -> Mapping[str, Json] | None:
    try:
        payload = json.loads(text)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


def _leased(conn: Connection, row: Row[Any], payload: Mapping[str, Json], worker: str, now_ms: int) -> Job:
    conn.execute(
        update(outbox_job)
        .where(outbox_job.c.job_id == row.job_id)
        .values(state="leased", attempts=row.attempts + 1, leased_by=worker, lease_until_ms=now_ms + LEASE_MS)
    )
    return Job(
        job_id=row.job_id,
        job_key=row.job_key,
        job_type=row.job_type,
        task_id=row.task_id,
        target_id=row.target_id,
        principal=row.principal,
        agent_id=row.agent_id,
        payload=payload,
        attempt=row.attempts + 1,
        leased_by=worker,
    )


def still_held(conn: Connection, job: Job) -> bool:
    """Whether the lease stands; the row stays locked, so that nobody takes it before the transaction ends."""
    found = conn.execute(
        select(outbox_job.c.job_id)
        .where(
            outbox_job.c.job_id == job.job_id,
            outbox_job.c.state == "leased",
            outbox_job.c.leased_by == job.leased_by,
            outbox_job.c.attempts == job.attempt,
        )
        .with_for_update()
    ).one_or_none()
    return found is not None


def finish(conn: Connection, job: Job, now_ms: int) -> None:
    """Done, in the transaction of what the job did."""
    _end(conn, job.job_id, "done", now_ms, None)
    bump(conn, job.task_id, of_job_done(now_ms))


def fail(conn: Connection, job: Job, now_ms: int, why: str) -> None:
    """Rest and try again, or park; a job that another worker holds by now is left alone."""
    if not still_held(conn, job):
        return
    if job.attempt >= TRIES:
        _end(conn, job.job_id, "failed", now_ms, why)
        return
    conn.execute(
        update(outbox_job)
        .where(outbox_job.c.job_id == job.job_id)
        .values(
            state="pending",
            due_at_ms=now_ms + pause_ms(job.attempt),
            leased_by=None,
            lease_until_ms=None,
            last_error=why[:ERROR_LIMIT],
        )
    )


def _end(conn: Connection, job_id: str, state: str, now_ms: int, why: str | None) -> None:
    conn.execute(
        update(outbox_job)
        .where(outbox_job.c.job_id == job_id)
        .values(
            state=state,
            settled_at_ms=now_ms,
            leased_by=None,
            lease_until_ms=None,
            last_error=None if why is None else why[:ERROR_LIMIT],
        )
    )
