"""What tools ask about runs while a call is made."""

from sqlalchemy import Connection

from nova_mcp.storage.engine import Database
from nova_mcp.tasks import evidence_store
from nova_mcp.tasks.visit_store import Owner


class CoverageKeeper:
    """Answers from the store; what a page shows is recorded with the call that looked at it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def counts_pages(self, owner: Owner) -> bool:
        """Whether an agent works on a run whose pages have to be covered."""
        return await self._db.read(_counts_pages, owner)


def _counts_pages(conn: Connection, owner: Owner) -> bool:
    return any(run.counts_urls for run in evidence_store.open_runs(conn, owner))
