"""What a call has seen of stored entries, for the transaction of that call: how far the page has moved away from them,
and selectors that nobody had seen before."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, select

from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.memory.journal.evidence import ObservationKind
from nova_mcp.memory.journal.observations import bare_name, context_host, ended_at_ms, verdict_of
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.drift import after_sighting
from nova_mcp.memory.knowledge.matching.routes import Route, any_covers
from nova_mcp.memory.knowledge.model import Content, DomainHint, ElementPrint, Phenomenon, ScopeName
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.drafts import track_store
from nova_mcp.memory.promotion.gates.evidence_rules import speaks_for


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
            _note(conn, shelved, noted[shelved.entry_id], at_ms, proven=verdict_of(record) == "success")


def _recorded(conn: Connection, record: CallRecord) -> frozenset[str]:
    kept = observation.c
    here = (kept.context_host == context_host(record), kept.created_at_ms >= record.started_at_ms)
    rows = conn.execute(select(kept.target_stable_id).where(*here, kept.call_id == record.call_id))
    return frozenset(name for name in rows.scalars() if name is not None)


def _note(conn: Connection, shelved: Shelved, sighting: EntrySighting, at_ms: int, *, proven: bool) -> None:
    entry = shelved.kept
    if not isinstance(entry, Phenomenon) or entry.revision != sighting.shelved.kept.revision:
        return
    if sighting.moved is not None:
        entry = replace(entry, drift_debt=after_sighting(entry.drift_debt, sighting.moved))
        shelved = replace(shelved, kept=entry)
        store.save(conn, shelved, visible=False)
    known = seen_of(entry, sighting.seen, proven=proven)
    if known != entry:
        steps_store.confirmed(conn, shelved, replace(shelved, kept=known), at_ms)


def seen_of(entry: Phenomenon, seen: Mapping[str, ElementPrint | None], *, proven: bool) -> Phenomenon:
    """An entry after some of its selectors were seen. A use that proves the whole of it leaves nothing to be confirmed
    but controls that were not among them: other signs and second choices were not needed."""
    first = () if entry.content.playbook is None else (one.selector for one in entry.content.playbook.actions)
    needed = frozenset(first)
    left = tuple(one for one in entry.unconfirmed if one not in seen and (not proven or one in needed))
    return replace(entry, unconfirmed=left, content=described(entry.content, seen))


# -- uses of single controls


@dataclass(frozen=True, slots=True)
class Unseen:
    """What learning has yet to see of a control that is about to be used. `raises` when one more success may raise a
    candidate for it, `lists` are the site's hints at lists that it may stand in."""

    selectors: tuple[str, ...] = ()
    raises: bool = False
    lists: tuple[DomainHint, ...] = ()


def unseen_at(conn: Connection, scope: ScopeName, selector: str, route: Route) -> Unseen:
    """Asked before a control is used, so that its entries get to know what their controls look like."""
    known = store.by_ids(conn, store.holders(conn, scope, selector))
    found = [name for one in known for name in _waiting(one, route)]
    acted_through = any(isinstance(one.kept, Phenomenon) for one in known)
    raises = not acted_through and track_store.is_due(conn, scope, selector)
    hints = (one.kept for one in store.hints(conn, scope))
    lists = tuple(one for one in hints if isinstance(one, DomainHint) and one.kind == "result_item")
    return Unseen(
        tuple(dict.fromkeys((*found, *((selector,) if raises else ())))),
        raises,
        tuple(one for one in lists if not one.deprecated),
    )


def _waiting(shelved: Shelved, route: Route) -> tuple[str, ...]:
    kept = shelved.kept
    if not isinstance(kept, Phenomenon) or kept.deprecated or not any_covers(kept.content.context.routes, route):
        return ()
    return kept.unseen


@dataclass(slots=True)
class UseSighting:
    """What the page showed of such selectors right before the control was used. It counts once the use is verified;
    hand `also` to the call's evidence."""

    scope: ScopeName
    selector: str
    route: Route
    seen: Mapping[str, ElementPrint | None]
    around: tuple[ElementPrint, ...] = ()

    def also(self, conn: Connection, record: CallRecord, link: Link) -> None:
        if verdict_of(record) != "success":
            return
        at_ms = ended_at_ms(record)
        store.touch_scope(conn, self.scope, at_ms, visible=False)
        for shelved in store.by_ids(conn, store.holders(conn, self.scope, self.selector), lock=True):
            entry = shelved.kept
            if not isinstance(entry, Phenomenon) or not _waiting(shelved, self.route):
                continue
            kind: ObservationKind = (
                "blocker_dismissed" if bare_name(record.tool_name) == "dismiss_blockers" else "action_success"
            )
            whole = speaks_for(entry.content, record.tool_name, kind)
            known = seen_of(entry, self.seen, proven=whole)
            if known == entry:
                continue
            steps_store.confirmed(conn, shelved, replace(shelved, kept=known), at_ms)
            if self.around and store.surroundings(conn, shelved.entry_id) is None:
                store.keep_surroundings(conn, shelved.entry_id, self.around, at_ms)


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
