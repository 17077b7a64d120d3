"""Which claims stand and which are over, for those who decide what to keep; and forgetting old ones."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, select

from nova_mcp.browser.claim_store import claim_journal

STEP: Final = 500


@dataclass(frozen=True, slots=True)
class ClaimStates:
    """Work contexts by whether they are over."""

    open: frozenset[str]
    ended: frozenset[str]


def claim_states(conn: Connection) -> ClaimStates:
    """All that are still remembered; forgetting keeps this short."""
    rows = conn.execute(select(claim_journal.c.task_id, claim_journal.c.ended_at_ms)).all()
    return ClaimStates(
        open=frozenset(row.task_id for row in rows if row.ended_at_ms is None),
        ended=frozenset(row.task_id for row in rows if row.ended_at_ms is not None),
    )


def forget_claims(conn: Connection, older_than_ms: int) -> int:
    """Forget some of the claims that ended before that time; says how many went."""
    old = (
        select(claim_journal.c.task_id)
        .where(claim_journal.c.ended_at_ms < older_than_ms)
        .order_by(claim_journal.c.ended_at_ms)
        .limit(STEP)
    )
    return conn.execute(delete(claim_journal).where(claim_journal.c.task_id.in_(old))).rowcount
