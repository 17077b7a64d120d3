"""Puts knowledge to use: finds the entry that is meant, and notes in its books what was seen of it."""

from dataclasses import replace

from sqlalchemy import Connection

from nova_mcp.clock import Clock
from nova_mcp.journal.observing import ended_at_ms
from nova_mcp.knowledge import store
from nova_mcp.knowledge.drift import after_sighting
from nova_mcp.knowledge.model import Phenomenon, ScopeName
from nova_mcp.knowledge.store import Shelved
from nova_mcp.observation.model import CallRecord, Link
from nova_mcp.observation.recorder import Also
from nova_mcp.storage.engine import Database
from nova_mcp.verification.switch_store import KillScope, apply_kill


def meant(revisions: tuple[Shelved, ...], *, trial: bool) -> Shelved | None:
    """The revision a caller gets: the one that counts, or for a trial the one that has still to earn its place."""
    known = {one.slot: one for one in revisions if isinstance(one.kept, Phenomenon)}
    return (known.get("pending") if trial else None) or known.get("current")


def drifted(shelved: Shelved, distance: float) -> Shelved:
    """An entry that was seen this far from what it was learned on."""
    entry = shelved.kept
    if not isinstance(entry, Phenomenon):
        return shelved
    return replace(shelved, kept=replace(entry, drift_debt=after_sighting(entry.drift_debt, distance)))


def _moved(conn: Connection, scope: ScopeName, entry_id: int, distance: float, at_ms: int) -> None:
    store.touch_scope(conn, scope, at_ms, visible=False)
    for one in store.by_ids(conn, [entry_id], lock=True):
        store.save(conn, drifted(one, distance), visible=False)


class Practice:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def revisions(self, scope: ScopeName, stable_id: str) -> tuple[Shelved, ...]:
        return await self._db.read(store.find, scope, stable_id)

    async def knows(self, scope: ScopeName) -> bool:
        return await self._db.read(store.count, scope) > 0

    async def killed(self, host: str | None) -> KillScope | None:
        """Whether the operator has switched applying off there."""
        return await self._db.read(apply_kill, host)

    def sighting(self, shelved: Shelved, distance: float) -> Also:
        """For the transaction of the call that has seen the entry."""

        def note(conn: Connection, record: CallRecord, link: Link) -> None:
            if not record.signals.scripted:
                _moved(conn, shelved.scope, shelved.entry_id, distance, ended_at_ms(record))

        return note
