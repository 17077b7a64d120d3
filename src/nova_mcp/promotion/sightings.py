"""What a call has seen of stored entries, for the transaction of that call: how far the page has moved away from them,
and selectors that nobody had seen before."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, select

from nova_mcp.journal.observing import context_host, ended_at_ms
from nova_mcp.journal.store import observation
from nova_mcp.knowledge import store
from nova_mcp.knowledge.drift import after_sighting
from nova_mcp.knowledge.model import Content, ElementPrint, Phenomenon, ScopeName
from nova_mcp.knowledge.store import Shelved
from nova_mcp.observation.model import CallRecord, Link
from nova_mcp.promotion import steps_store


@dataclass(slots=True)
class EntrySighting:
    """One entry as it was seen; `seen` are selectors with what they find, for those that were still waiting for it."""

    shelved: Shelved
    moved: float | None = None
    seen: Mapping[str, ElementPrint | None] = field(default_factory=dict)


@dataclass(slots=True)
class Sightings:
    """Hand `also` to the call's evidence, behind which stands what the journal took down of the call."""

    scope: ScopeName
    entries: tuple[EntrySighting, ...] = ()
    # Known once the call is recorded: entries that an observation speaks of, and whether the page could be trusted.
    recorded: frozenset[str] = frozenset()
    scripted: bool = False

    def also(self, conn: Connection, record: CallRecord, link: Link) -> None:
        at_ms = ended_at_ms(record)
        self.recorded = _recorded(conn, record)
        self.scripted = record.signals.scripted
        noted = {one.shelved.entry_id: one for one in self.entries if one.moved is not None or one.seen}
        if not noted or self.scripted:
            return
        # Writers of a scope take its row first, then entries by number.
        store.touch_scope(conn, self.scope, at_ms, visible=False)
        for shelved in store.by_ids(conn, noted, lock=True):
            _note(conn, shelved, noted[shelved.entry_id], at_ms)


def _recorded(conn: Connection, record: CallRecord) -> frozenset[str]:
    kept = observation.c
    here = (kept.context_host == context_host(record), kept.created_at_ms >= record.started_at_ms)
    rows = conn.execute(select(kept.target_stable_id).where(*here, kept.call_id == record.call_id))
    return frozenset(name for name in rows.scalars() if name is not None)


def _note(conn: Connection, shelved: Shelved, sighting: EntrySighting, at_ms: int) -> None:
    entry = shelved.kept
    if not isinstance(entry, Phenomenon) or entry.revision != sighting.shelved.kept.revision:
        return
    if sighting.moved is not None:
        entry = replace(entry, drift_debt=after_sighting(entry.drift_debt, sighting.moved))
        shelved = replace(shelved, kept=entry)
        store.save(conn, shelved, visible=False)
    if any(one in sighting.seen for one in entry.unconfirmed):
        left = tuple(one for one in entry.unconfirmed if one not in sighting.seen)
        known = replace(entry, unconfirmed=left, content=described(entry.content, sighting.seen))
        steps_store.confirmed(conn, shelved, replace(shelved, kept=known), at_ms)


def described(content: Content, seen: Mapping[str, ElementPrint | None]) -> Content:
    """Actions whose element nobody had met get to know what it looks like; one that is known stays as learned."""
    playbook = content.playbook
    if playbook is None:
        return content
    actions = tuple(
        replace(one, element=seen[one.selector])
        if one.element is None and one.selector is not None and seen.get(one.selector) is not None
        else one
        for one in playbook.actions
    )
    return replace(content, playbook=replace(playbook, actions=actions))
