"""Puts knowledge to use: finds the entry that is meant, and notes in its books what was seen of it."""

from dataclasses import replace

from sqlalchemy import Connection

from nova_mcp.clock import Clock
from nova_mcp.knowledge import store
from nova_mcp.knowledge.drift import after_sighting
from nova_mcp.knowledge.model import Phenomenon, Platform, ScopeName
from nova_mcp.knowledge.platforms import built_in
from nova_mcp.knowledge.store import Shelved
from nova_mcp.observation.model import CallRecord, Link
from nova_mcp.observation.recorder import Also
from nova_mcp.storage.engine import Database
from nova_mcp.verification.switch_store import KillScope, apply_kill


def meant(revisions: tuple[Shelved, ...], *, trial: bool) -> Shelved | None:
    """The revision a caller gets: the one that counts, or for a trial the one that has still to earn its place."""
    known = {one.slot: one for one in revisions if isinstance(one.kept, Phenomenon)}
    return (known.get("pending") if trial else None) or known.get("current")


def moved_by(conn: Connection, entry_id: int, distance: float, at_ms: int) -> None:
    """An entry was seen this far from what it was learned on; its scope is locked first, as by all writers."""
    found = store.by_ids(conn, [entry_id])
    if not found:
        return
    store.touch_scope(conn, found[0].scope, at_ms, visible=False)
    for one in store.by_ids(conn, [entry_id], lock=True):
        if isinstance(one.kept, Phenomenon):
            debt = after_sighting(one.kept.drift_debt, distance)
            store.save(conn, replace(one, kept=replace(one.kept, drift_debt=debt)), visible=False)


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

    async def platforms(self) -> tuple[Platform, ...]:
        return built_in()

    def sighting(self, entry_id: int, distance: float) -> Also:
        """For the transaction of the call that has seen the entry."""

        def note(conn: Connection, record: CallRecord, link: Link) -> None:
            moved_by(conn, entry_id, distance, record.started_at_ms + record.duration_ms)

        return note
