"""Candidates that agents write themselves, always inside a work context of their own."""

from dataclasses import dataclass

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.memory.journal import candidate_store, store
from nova_mcp.memory.journal.candidates import SOURCE_AGE_MS, Candidate, Place, Raise
from nova_mcp.memory.journal.collector import counted
from nova_mcp.memory.journal.model import CandidateStatus, WorkContext
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class Claimed:
    """What an agent claims to have learned, and on which host."""

    component: str
    claim: str
    status: CandidateStatus
    confidence: float
    host: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The candidate as it stands now, and whether it is new."""

    candidate: Candidate
    created: bool


class Journal:
    """The way into the journal for those who speak to it directly."""

    def __init__(self, db: Database, ports: Ports) -> None:
        self._db = db
        self._ports = ports

    async def add(self, context: WorkContext, claimed: Claimed) -> Kept:
        """Raise a candidate or add to the open one; its source is what was last done on that host in this context."""
        return await self._db.write(add_candidate, context, claimed, self._ports.clock.now_ms())


def add_candidate(conn: Connection, context: WorkContext, claimed: Claimed, now_ms: int) -> Kept:
    place = Place(context.principal, context.agent_id, claimed.host, context.task_id, context.target_id)
    wish = Raise(place, claimed.component, claimed.claim, claimed.status, claimed.confidence)
    source = store.newest_page_event(conn, context.task_id, claimed.host, now_ms - SOURCE_AGE_MS)
    change = candidate_store.put(conn, wish, source, now_ms)
    bump(conn, context.task_id, counted([change], now_ms), principal=context.principal)
    return Kept(change.after, change.before is None)
