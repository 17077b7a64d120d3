"""Keeps notes about hosts: what applies on a page, what has to be heard before a call, who has answered for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.hosts import normalize_host, site
from nova_mcp.core.urls import page_host
from nova_mcp.core.values import Owner
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.evidence.outage import Also
from nova_mcp.memory.notes import domain_store as store
from nova_mcp.memory.notes.domain_deliveries import Deliveries
from nova_mcp.memory.notes.domain_model import DomainNote, Due, Enforcement, Form, NoteScope, Repeat, Wish
from nova_mcp.memory.notes.domain_refusals import refusal
from nova_mcp.memory.notes.domain_rules import (
    HINT_CHARS,
    MINUTE_MS,
    Delete,
    Moment,
    NoSuchNote,
    RevConflict,
    in_order,
    level_of,
    pending_notes,
    repeat_of,
    scope_of,
)
from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY
from nova_mcp.settings import NoteSettings
from nova_mcp.storage.engine import Database

MOST_QUOTED_HINTS: Final = 10


@dataclass(frozen=True, slots=True)
class Place:
    """A host, and the registrable domain above it where that is another."""

    host: str
    parent: str | None

    @property
    def domains(self) -> tuple[str, ...]:
        return (self.host,) if self.parent is None else (self.host, self.parent)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A note as instructions quote it."""

    note: DomainNote
    enforcement: Enforcement
    scope: NoteScope
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class QuotedNotes:
    """The notes of a host for instructions: enforced ones in full, some hints, and how many more there are."""

    host: str
    enforced: tuple[Quoted, ...]
    hints: tuple[Quoted, ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    note: DomainNote
    valid_until_ms: int | None
    calls_left: int | None


@dataclass(frozen=True, slots=True)
class Acknowledging:
    """What a caller answers for, what then still stops it, and what it has not been told in full."""

    found: bool
    accepted: tuple[Acknowledged, ...] = ()
    undelivered: tuple[DomainNote, ...] = ()
    pending: int = 0
    owner: Owner = ("", "")
    target_id: str = ""
    now_ms: int = 0


class DomainNotes:
    """One per server."""

    def __init__(self, db: Database, ports: Ports, settings: NoteSettings) -> None:
        self._db = db
        self._ports = ports
        self._tenants = frozenset(settings.multi_tenant_domains)
        self.mode = settings.domain_note_mode
        self.usual = Repeat(settings.repeat_minutes, settings.repeat_tool_calls)
        self.deliveries = Deliveries()

    # -- where

    def place(self, url: str) -> Place | None:
        """Where a page stands as notes see it; None outside the web."""
        host = page_host(url)
        return None if host is None else self.place_of(host)

    def place_of(self, domain: str) -> Place | None:
        """The same for a host as people write it; None when it names none."""
        host = normalize_host(domain)
        return None if host is None else self.place_at(host)

    def place_at(self, host: str) -> Place:
        """The same for a host in its one spelling."""
        parent = site(host, self._tenants)
        return Place(host, None if parent == host else parent)

    # -- what applies

    async def whole(self, principal: str, domains: Sequence[str], key: str | None = None) -> tuple[DomainNote, ...]:
        return await self._db.read(store.notes_of, principal, domains, key)

    async def here(self, principal: str, place: Place) -> tuple[DomainNote, ...]:
        """Every note that reaches a page, what is enforced first; long texts by their beginning."""
        found = await self._db.read(store.briefs, principal, place.domains)
        return tuple(in_order(found, place.host, self.mode))

    def level(self, note: DomainNote, host: str) -> Enforcement:
        return level_of(note, host, self.mode)

    def blocking(
        self, notes: Sequence[DomainNote], connection: AgentConnection, target_id: str, host: str
    ) -> tuple[DomainNote, ...]:
        """Which of these would stop that connection on that target now."""
        return pending_notes(
            notes,
            "block",
            lambda note: self.deliveries.ack(connection, target_id, note),
            self._moment(host, target_id),
        )

    async def due(self, connection: AgentConnection, target_id: str, url: str) -> Due | None:
        """What has to be heard before an interaction; one indexed read."""
        place = None if self.mode == "off" else self.place(url)
        if place is None:
            return None
        notes = await self._db.read(store.enforced, connection.owner[0], place.host)
        if not notes:
            return None
        moment = self._moment(place.host, target_id)
        warnings = pending_notes(
            notes, "warn", lambda note: self.deliveries.last_warning(connection, target_id, note), moment
        )
        return Due(
            connection,
            target_id,
            place.host,
            self.usual,
            self.blocking(notes, connection, target_id, place.host),
            tuple((note, self.deliveries.form(connection, note)) for note in warnings),
        )

    def _moment(self, host: str, target_id: str) -> Moment:
        return Moment(host, self.mode, self._ports.clock.now_ms(), self.deliveries.calls(target_id), self.usual)

    async def for_instructions(self, principal: str, host: str) -> QuotedNotes | None:
        """What instructions quote for a host; None where nothing is noted or the host is none."""
        place = self.place_of(host)
        notes = () if place is None else await self.here(principal, place)
        if place is None or not notes:
            return None
        quoted = [self._quoted(note, place.host) for note in notes]
        enforced = tuple(one for one in quoted if one.enforcement != "none")
        hints = [one for one in quoted if one.enforcement == "none"]
        shown = tuple(hints[:MOST_QUOTED_HINTS])
        return QuotedNotes(place.host, enforced, shown, len(hints) - len(shown))

    def _quoted(self, note: DomainNote, host: str) -> Quoted:
        level = self.level(note, host)
        text = note.value if level != "none" else hint_text(note)
        return Quoted(note, level, scope_of(note, host), text, truncated=len(text) < note.chars)

    # -- what was told

    def told(self, connection: AgentConnection, forms: Sequence[tuple[DomainNote, Form]]) -> None:
        """An answer with these notes is on its way; cut texts are not among them."""
        for note, form in forms:
            self.deliveries.sent(connection, note, form)

    def told_instructions(self, connection: AgentConnection, quoted: QuotedNotes) -> None:
        """The same for notes that instructions have quoted."""
        self.told(connection, [(one.note, "full") for one in (*quoted.enforced, *quoted.hints) if not one.truncated])

    def told_refusal(self, due: Due) -> None:
        self.told(due.connection, [(note, "full") for note in due.blocking])

    def told_warning(self, due: Due) -> None:
        now = self._ports.clock.now_ms()
        self.told(due.connection, due.warning)
        for note, _ in due.warning:
            self.deliveries.warned(due.connection, due.target_id, note, now)

    def delivering(self, notes: Sequence[DomainNote]) -> Also | None:
        """Writes down in the call's own transaction that these stood in its answer; None when that is known."""
        now = self._ports.clock.now_ms()
        ids = store.stale_deliveries(notes, now)
        if not ids:
            return None

        def also(conn: Connection, record: CallRecord, link: Link) -> None:
            store.delivered(conn, ids, now)

        return also

    def target_ended(self, conn: Connection, target_id: str, at_ms: int, reason: str) -> None:
        """Whatever was answered for on a target goes with it."""
        self.deliveries.closed(target_id)

    # -- answering for them

    async def acknowledging(self, connection: AgentConnection, target_id: str, place: Place, key: str) -> Acknowledging:
        """What answering for a key comes to, `*` for every delivered note that is due; `acknowledge` makes it so."""
        owner = connection.owner
        enforced = await self._db.read(store.enforced, owner[0], place.host)
        pending = self.blocking(enforced, connection, target_id, place.host)
        if key == "*":
            wanted = tuple(note for note in pending if self.deliveries.is_delivered(connection, note))
        else:
            wanted = await self.whole(owner[0], (place.host,), key)
        undelivered = tuple(note for note in wanted if not self.deliveries.is_delivered(connection, note))
        now = self._ports.clock.now_ms()
        answered = {note.note_id for note in wanted}
        return Acknowledging(
            found=bool(wanted) or key == "*",
            accepted=() if undelivered else tuple(self._acknowledged(note, now) for note in wanted),
            undelivered=undelivered,
            pending=sum(note.note_id not in answered for note in pending),
            owner=owner,
            target_id=target_id,
            now_ms=now,
        )

    def acknowledge(self, answer: Acknowledging) -> None:
        for one in answer.accepted:
            self.deliveries.acknowledge(answer.owner, answer.target_id, one.note, answer.now_ms)

    def _acknowledged(self, note: DomainNote, now_ms: int) -> Acknowledged:
        repeat = repeat_of(note, self.usual)
        until = None if repeat.minutes == 0 else now_ms + repeat.minutes * MINUTE_MS
        return Acknowledged(note, until, repeat.calls or None)

    # -- writing

    def put(self, conn: Connection, wish: Wish, now_ms: int) -> store.Written | RevConflict:
        done = store.put(conn, wish, now_ms, self._ports.ids.token)
        if isinstance(done, store.Written | RevConflict):
            return done
        raise refusal(done, wish.domain, wish.key)

    def remove(
        self, conn: Connection, principal: str, domain: str, key: str, expected_rev: int | None
    ) -> Delete | NoSuchNote | RevConflict:
        done = store.remove(conn, (principal, False), domain, key, expected_rev)
        if isinstance(done, Delete | NoSuchNote | RevConflict):
            return done
        raise refusal(done, domain, key)


def hint_text(note: DomainNote) -> str:
    """The beginning of a hint; a playbook is only named, it has an address of its own."""
    return "" if note.key == PLAYBOOK_KEY else note.value[:HINT_CHARS]
