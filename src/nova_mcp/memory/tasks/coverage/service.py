"""What tools ask about runs while a call is made."""

from typing import Final

from sqlalchemy import Connection, bindparam, select

from nova_mcp.core.values import Owner
from nova_mcp.memory.tasks.model import URL_KINDS
from nova_mcp.memory.tasks.tables import task_instance, task_instance_member
from nova_mcp.storage.engine import Database
from nova_mcp.storage.prepared import Prepared

# Only looked at: a reader may hold nothing, and a call that reads a page must not wait for one that reports.
_KINDS: Final = Prepared(
    select(task_instance.c.unit_kind)
    .join(task_instance_member, task_instance.c.instance_id == task_instance_member.c.instance_id)
    .where(
        task_instance_member.c.principal == bindparam("owner_principal"),
        task_instance_member.c.agent_id == bindparam("owner_agent"),
        task_instance_member.c.ended_at_ms.is_(None),
    )
)


class CoverageKeeper:
    """Answers from the store; what a page shows is recorded with the call that looked at it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def counts_pages(self, owner: Owner) -> bool:
        """Whether an agent works on a run whose pages have to be covered."""
        return await self._db.read(_counts_pages, owner)


def _counts_pages(conn: Connection, owner: Owner) -> bool:
    rows = _KINDS.run(conn, {"owner_principal": owner[0], "owner_agent": owner[1]}).fetchall()
    return any(row[0] in URL_KINDS for row in rows)
