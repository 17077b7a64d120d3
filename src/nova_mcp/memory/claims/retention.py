"""What is forgotten of tabs, sandboxes and claims that ended long ago, and what claims mean for the ledger."""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, exists, func, select

from nova_mcp.evidence.rules import DAY_MS, Holds
from nova_mcp.evidence.store import ledger_body
from nova_mcp.evidence.targets.store import target_journal
from nova_mcp.memory.claims.store import claim_journal
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job

_UNSETTLED: Final = ("pending", "leased")


def claim_holds(conn: Connection) -> Holds:
    """Which claims stand, which have ended, and which of those lost something on the way."""
    rows = conn.execute(select(claim_journal.c.task_id, claim_journal.c.end_reason, claim_journal.c.ended_at_ms)).all()
    ended = frozenset(row.task_id for row in rows if row.ended_at_ms is not None)
    crashed = select(ledger_body.c.task_id).where(ledger_body.c.outcome_kind == "crashed").distinct()
    broken = frozenset(task for task in conn.execute(crashed).scalars() if task is not None)
    cut_off = frozenset(row.task_id for row in rows if row.end_reason == "server_restart")
    return Holds(
        open=frozenset(row.task_id for row in rows if row.ended_at_ms is None),
        ended=ended,
        with_gaps=ended & (broken | cut_off),
    )


def _old_claims(older_than_ms: int) -> Select[Any]:
    """Claims whose decision nobody has to act on any more."""
    waits = exists().where(outbox_job.c.task_id == claim_journal.c.task_id, outbox_job.c.state.in_(_UNSETTLED))
    return select(claim_journal.c.task_id).where(claim_journal.c.ended_at_ms < older_than_ms, ~waits)


def forget_claims(conn: Connection, older_than_ms: int) -> int:
    """Forget claims that ended before that time, with their decisions; says how many went."""
    old = list(conn.execute(_old_claims(older_than_ms).order_by(claim_journal.c.task_id)).scalars())
    for task_id in old:
        conn.execute(delete(outbox_job).where(outbox_job.c.task_id == task_id))
        conn.execute(delete(finalize_decision).where(finalize_decision.c.task_id == task_id))
        conn.execute(delete(claim_journal).where(claim_journal.c.task_id == task_id))
    return len(old)


def forget_targets(conn: Connection, older_than_ms: int) -> int:
    """Forget tabs and sandboxes that ended before that time; their numbers are never given again all the same."""
    return conn.execute(delete(target_journal).where(target_journal.c.ended_at_ms < older_than_ms)).rowcount


def forgetting(days: int) -> Callable[[Connection, int], int]:
    """The chore that keeps the memory of claims and targets within its retention, given the time."""

    def chore(conn: Connection, now_ms: int) -> int:
        horizon = now_ms - days * DAY_MS
        return forget_claims(conn, horizon) + forget_targets(conn, horizon)

    return chore


def due_to_go(conn: Connection, older_than_ms: int) -> int:
    """How many claims and targets a run would forget."""
    claims = select(func.count()).select_from(_old_claims(older_than_ms).subquery())
    targets = select(func.count()).where(target_journal.c.ended_at_ms < older_than_ms)
    return int(conn.execute(claims).scalar_one()) + int(conn.execute(targets).scalar_one())
