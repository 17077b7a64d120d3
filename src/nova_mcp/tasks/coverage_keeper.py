"""What tools and records ask about runs while a call is made."""

from sqlalchemy import Connection

from nova_mcp.hosts import normalize_host
from nova_mcp.observation.rules import host_of
from nova_mcp.storage.engine import Database
from nova_mcp.tasks import evidence_store
from nova_mcp.tasks.evidence_collector import EvidenceCollector
from nova_mcp.tasks.visit_store import Owner


class CoverageKeeper:
    """Answers from the store; what a page shows is recorded with the call that looked at it."""

    def __init__(self, db: Database, collector: EvidenceCollector) -> None:
        self._db = db
        self._collector = collector

    async def counts_pages(self, owner: Owner) -> bool:
        """Whether an agent works on a run whose pages have to be covered."""
        return await self._db.read(_counts_pages, owner)

    def label(self, owner: Owner, url: str | None) -> str | None:
        """The run that a record on a page is labelled with, as far as this server knows the agent's runs."""
        host = host_of(url)
        return None if host is None else self._collector.label(owner, normalize_host(host))


def _counts_pages(conn: Connection, owner: Owner) -> bool:
    return any(run.counts_urls for run in evidence_store.open_runs(conn, owner))
