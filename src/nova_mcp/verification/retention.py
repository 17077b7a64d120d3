"""What closed-loop memory forgets once it is old enough: transitions that ended, and goals."""

from collections.abc import Callable

from sqlalchemy import Connection, delete, func, select

from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.verification.goals.store import old_goals, prune_goals
from nova_mcp.verification.store import transition


def prune_transitions(conn: Connection, older_than_ms: int, limit: int | None = None) -> int:
    """Forget transitions that ended before that time; says how many went. What is open stays."""
    old = (
        select(transition.c.transition_id)
        .where(transition.c.state != "open", transition.c.completed_at_ms < older_than_ms)
        .order_by(transition.c.transition_id)
        .limit(limit)
    )
    return conn.execute(delete(transition).where(transition.c.transition_id.in_(old))).rowcount


def forgetting(days: int) -> Callable[[Connection, int], int]:
    """The chore that keeps closed-loop memory within its retention, given the time."""

    def chore(conn: Connection, now_ms: int) -> int:
        horizon = now_ms - days * DAY_MS
        return prune_transitions(conn, horizon) + prune_goals(conn, horizon)

    return chore


def due_to_go(conn: Connection, older_than_ms: int) -> int:
    """How many transitions and goals a run would forget."""
    old = select(func.count()).where(transition.c.state != "open", transition.c.completed_at_ms < older_than_ms)
    return int(conn.execute(old).scalar_one()) + old_goals(conn, older_than_ms)
