"""What revalidation has spent: one row for each entry that was looked at in the last hour, whoever looked."""

from typing import Final

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy import text as sql

from nova_mcp.memory.knowledge.drift import HOUR_MS, Budget, PastCheck, budget
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.promotion.tables import revalidation_check

_LOCK: Final = sql("LOCK TABLE revalidation_check IN SHARE ROW EXCLUSIVE MODE")


def spend(conn: Connection, scope: ScopeName, target_id: str, wanted: int, now_ms: int) -> Budget:
    """Take as many checks as the budgets allow. Spenders queue: SQLite has one writer, others wait for the table."""
    if conn.dialect.name == "postgresql":
        conn.execute(_LOCK)
    table = revalidation_check
    conn.execute(delete(table).where(table.c.at_ms <= now_ms - HOUR_MS))
    rows = conn.execute(select(table.c.at_ms, table.c.scope, table.c.target_id)).all()
    allowed = budget([PastCheck(at, ScopeName(name), tab) for at, name, tab in rows], scope, target_id, wanted, now_ms)
    spent = {"at_ms": now_ms, "scope": scope, "target_id": target_id}
    if allowed.allowed:
        conn.execute(insert(table), [spent] * allowed.allowed)
    return allowed
