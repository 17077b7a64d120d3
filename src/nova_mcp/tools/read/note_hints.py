"""What notes about a site say beside a look at one of its pages, and when a page of it is opened."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from pydantic import Field

from nova_mcp.core.keywords import some
from nova_mcp.core.tokens import estimate_tokens, fit_tokens, line_tokens
from nova_mcp.memory.notes.domain_model import DomainNote, Enforcement, Form, NoteScope
from nova_mcp.memory.notes.domain_rules import notes_hash, scope_of
from nova_mcp.memory.notes.domain_service import Place, hint_text
from nova_mcp.memory.notes.model import Source
from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.notes.note_lines import head, note_line, said, stub_line
from nova_mcp.tools.read.hint import Look
from nova_mcp.tools.spec import Part

BLOCK: Final = "domainNotes"
MOST_KEYS: Final = 20
# A text shorter than this says nothing any more.
LEAST_TEXT: Final = 8
KEYS_TOKENS: Final = 30


class SurfacedNote(Part):
    """A note; a cut text does not count as delivered."""

    key: str
    rev: int
    enforcement: Enforcement
    source: Source
    scope: NoteScope
    text: str
    truncated: bool


class NamedPlaybook(Part):
    """A playbook by its name and size; it has an address of its own."""

    key: str
    rev: int
    enforcement: Enforcement
    source: Source
    scope: NoteScope
    size: int


class NoteStub(Part):
    """A note whose text the caller already has."""

    key: str
    rev: int
    unchanged: Literal[True] = True


class DomainNotesPart(Part):
    host: str
    hash: str
    notes: list[SurfacedNote | NamedPlaybook | NoteStub]
    omitted: int


class SameNotesPart(Part):
    """The notes are those whose hash the caller sent."""

    hash: str
    unchanged: Literal[True] = True
    count: int


class NotesAvailablePart(Part):
    count: int
    keys: list[str] = Field(max_length=MOST_KEYS)
    blocking: int

    def line(self) -> str:
        blocks = f", {self.blocking} to acknowledge before acting here" if self.blocking else ""
        return fit_tokens(f"{some(self.count, 'site note')}: {', '.join(self.keys)}", KEYS_TOKENS) + blocks


@dataclass(slots=True)
class NoteHint:
    """Notes that reach the page of the tab, told within the room that is given, what is enforced first."""

    ctx: ToolContext
    known_hash: str | None
    place: Place | None = None
    notes: tuple[DomainNote, ...] = ()
    parts: list[SurfacedNote | NamedPlaybook | NoteStub] = field(default_factory=list)
    told: list[tuple[DomainNote, Form]] = field(default_factory=list)
    shown: list[DomainNote] = field(default_factory=list)
    told_lines: list[str] = field(default_factory=list)
    left_out: int = 0
    cut: bool = False
    reserved: int = 0

    async def read(self) -> None:
        self.place = self.ctx.domain_notes.place(self.ctx.tab.site_url)
        if self.place is not None:
            self.notes = await self.ctx.domain_notes.here(self.ctx.caller.principal, self.place)

    def take(self, room: int) -> int:
        return self._tell([note for note in self.notes if self._level(note) != "none"], room)

    def take_unenforced(self, room: int) -> int:
        return self._tell([note for note in self.notes if self._level(note) == "none"], room)

    async def settle(self, look: Look) -> None:
        if look.moved and self.ctx.domain_notes.place(self.ctx.tab.site_url) != self.place:
            self.notes = ()

    def fields(self) -> dict[str, object]:
        return {"domain_notes": self._part() if self.notes and self.place is not None else None}

    @property
    def lines(self) -> str:
        return "\n".join(self.told_lines) if self.notes else ""

    @property
    def omitted(self) -> tuple[str, ...]:
        return (BLOCK,) if self.notes and (self.left_out or self.cut) else ()

    @property
    def _hash(self) -> str:
        return notes_hash(self.notes)

    @property
    def _same(self) -> bool:
        return self.known_hash == self._hash

    @property
    def _host(self) -> str:
        return "" if self.place is None else self.place.host

    def _part(self) -> DomainNotesPart | SameNotesPart:
        if self._same:
            return SameNotesPart(hash=self._hash, count=len(self.notes))
        ctx = self.ctx
        ctx.evidence.told.append(partial(ctx.domain_notes.told, ctx.connection, tuple(self.told)))
        if (also := ctx.domain_notes.delivering(self.shown)) is not None:
            ctx.evidence.also.append(also)
        return DomainNotesPart(host=self._host, hash=self._hash, notes=self.parts, omitted=self.left_out)

    def _level(self, note: DomainNote) -> Enforcement:
        return self.ctx.domain_notes.level(note, self._host)

    def _tell(self, notes: list[DomainNote], room: int) -> int:
        if not notes or self._same:
            return 0
        given = room
        if not self.told_lines:
            first = f"site notes {self._hash}"
            room -= line_tokens(first)
            self.told_lines.append(first)
        least = [self._least(note) for note in notes]
        for number, note in enumerate(notes):
            # However long one is, those behind it are at least begun.
            free = room - sum(least[number + 1 :])
            line = self._told(note, min(room, max(free, least[number])))
            if line is None:
                self.left_out += 1
                continue
            self.shown.append(note)
            self.told_lines.append(line)
            room -= line_tokens(line)
        return given - room

    def _least(self, note: DomainNote) -> int:
        level = self._level(note)
        return 0 if level == "none" else estimate_tokens(head(note, level)) + LEAST_TEXT + 3

    def _told(self, note: DomainNote, room: int) -> str | None:
        """The line that tells a note, once its part is written; None when there is no room."""
        if note.key == PLAYBOOK_KEY:
            return self._named(note, room)
        if self.ctx.domain_notes.deliveries.form(self.ctx.connection, note) == "stub":
            return self._stub(note, room)
        level = self._level(note)
        text = note.value if level != "none" else hint_text(note)
        line = note_line(note, level, text)
        if estimate_tokens(line) >= room:
            left = room - estimate_tokens(head(note, level)) - 2
            if level == "none" or left < LEAST_TEXT:
                return None
            text = fit_tokens(said(text), left)
            line, self.cut = note_line(note, level, text), True
        truncated = text != note.value or note.chars > len(note.value)
        if not truncated:
            self.told.append((note, "full"))
        self.parts.append(
            SurfacedNote(
                key=note.key,
                rev=note.rev,
                enforcement=level,
                source=note.source,
                scope=scope_of(note, self._host),
                text=text,
                truncated=truncated,
            )
        )
        return line

    def _stub(self, note: DomainNote, room: int) -> str | None:
        line = stub_line(note)
        if estimate_tokens(line) >= room:
            return None
        self.told.append((note, "stub"))
        self.parts.append(NoteStub(key=note.key, rev=note.rev))
        return line

    def _named(self, note: DomainNote, room: int) -> str | None:
        level = self._level(note)
        line = f"{head(note, level)} {note.chars} characters at nova://playbook/{note.domain}"
        if estimate_tokens(line) >= room:
            return None
        self.parts.append(
            NamedPlaybook(
                key=note.key,
                rev=note.rev,
                enforcement=level,
                source=note.source,
                scope=scope_of(note, self._host),
                size=note.chars,
            )
        )
        return line


async def notes_available(ctx: ToolContext) -> NotesAvailablePart | None:
    """That there are notes about where a tab has arrived; silent where the store can't be asked."""
    tab, keeper = ctx.tab, ctx.domain_notes
    if (place := keeper.place(tab.site_url)) is None:
        return None
    try:
        notes = await keeper.here(ctx.caller.principal, place)
    except StoreUnavailable:
        return None
    if not notes:
        return None
    keys = list(dict.fromkeys(note.key for note in notes))[:MOST_KEYS]
    blocking = keeper.blocking(notes, ctx.connection, tab.target_id, place.host)
    return NotesAvailablePart(count=len(notes), keys=keys, blocking=len(blocking))
