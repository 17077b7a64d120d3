"""What instructions quote of notes: about the site, across tasks, and what the user wants remembered of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.memory.notes.domain_service import Quoted, QuotedNotes
from nova_mcp.memory.notes.model import Ranked, Source
from nova_mcp.memory.notes.service import SurfacedMemory
from nova_mcp.memory.tasks.instructions.text import Quote
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.memory_hints import BrowserMemoryPart, memory_part, page_place
from nova_mcp.tools.read.note_hints import SurfacedNote
from nova_mcp.tools.spec import Part

MOST_MEMORIES: Final = 3
MEMORY_CHARS: Final = 200
MOST_OPERATOR_NOTES: Final = 5
OPERATOR_CHARS: Final = 180
MIN_SCORE: Final = 0.3


class QuotedNotePart(SurfacedNote):
    # How long the whole text is.
    size: int


class QuotedNotesPart(Part):
    host: str
    notes: list[QuotedNotePart]
    omitted: int


class OperatorNotePart(Part):
    id: str
    content: str
    truncated: bool
    tags: list[str]
    category: str | None
    source: Source
    rev: int
    score: float


@dataclass(frozen=True, slots=True)
class StoredNotes:
    site: QuotedNotes | None = None
    operator: tuple[Ranked, ...] = ()
    memory: SurfacedMemory | None = None

    @property
    def site_part(self) -> QuotedNotesPart | None:
        found = self.site
        if found is None:
            return None
        notes = [_site_note(one) for one in (*found.enforced, *found.hints)]
        return QuotedNotesPart(host=found.host, notes=notes, omitted=found.omitted)

    @property
    def operator_part(self) -> list[OperatorNotePart] | None:
        return [_operator_note(one) for one in self.operator] or None

    @property
    def memory_part(self) -> BrowserMemoryPart | None:
        return None if self.memory is None else memory_part(self.memory)

    def quotes(self, omitted: Sequence[str]) -> Iterator[Quote]:
        """Everything that is told, as the text quotes it; a playbook is only named by its block."""
        if self.site is not None:
            yield from (_site_quote(one) for one in (*self.site.enforced, *self.site.hints) if one.text)
        if "operatorNotes" not in omitted:
            yield from map(_operator_quote, self.operator)
        if self.memory is not None and "browserMemory" not in omitted:
            for one in self.memory.items:
                label = f"site={self.memory.host} memory={one.memory_id} type={one.memory_type}"
                yield Quote(one.source, label, one.content, f"memory {one.memory_id}")


async def stored_notes(ctx: ToolContext, host: str | None, keywords: Sequence[str]) -> StoredNotes:
    principal = ctx.caller.principal
    site = None if host is None else await ctx.domain_notes.for_instructions(principal, host)
    operator = await ctx.notes.for_keywords(principal, keywords, MOST_OPERATOR_NOTES, MIN_SCORE) if keywords else []
    memory = None
    if host is not None:
        memory = await ctx.notes.surfaced_memory(principal, host, _path(ctx, host), MOST_MEMORIES, MEMORY_CHARS)
    return StoredNotes(site, tuple(operator), memory)


def tell(ctx: ToolContext, notes: StoredNotes) -> None:
    """What stands in full in this answer has reached the caller."""
    found, connection = notes.site, ctx.connection
    if found is None:
        return
    keeper = ctx.domain_notes
    ctx.evidence.told.append(lambda: keeper.told_instructions(connection, found))
    also = keeper.delivering([one.note for one in (*found.enforced, *found.hints) if not one.truncated])
    if also is not None:
        ctx.evidence.also.append(also)


def _path(ctx: ToolContext, host: str) -> str:
    """The path of the page where the tab shows the site; memories of single paths are about nothing else."""
    here = None if ctx.evidence.tab is None else page_place(ctx.evidence.tab)
    return here[1] if here is not None and here[0] == host else ""


def _site_note(one: Quoted) -> QuotedNotePart:
    return QuotedNotePart(
        key=one.note.key,
        rev=one.note.rev,
        enforcement=one.enforcement,
        source=one.note.source,
        scope=one.scope,
        text=one.text,
        truncated=one.truncated,
        size=one.note.chars,
    )


def _site_quote(one: Quoted) -> Quote:
    return Quote(
        one.note.source,
        f"site={one.note.domain} note={one.note.key} enforcement={one.enforcement}",
        f"{one.text}…" if one.truncated else one.text,
        f"site note {one.note.key}",
        enforced=one.enforcement != "none",
    )


def _operator_note(one: Ranked) -> OperatorNotePart:
    note = one.note
    return OperatorNotePart(
        id=note.note_id,
        content=note.content[:OPERATOR_CHARS],
        truncated=len(note.content) > OPERATOR_CHARS,
        tags=list(note.tags),
        category=note.category,
        source=note.source,
        rev=note.rev,
        score=round(one.score.score, 3),
    )


def _operator_quote(one: Ranked) -> Quote:
    text = one.note.content
    cut = text if len(text) <= OPERATOR_CHARS else f"{text[:OPERATOR_CHARS]}…"
    return Quote(one.note.source, f"operator-note={one.note.note_id}", cut, f"operator note {one.note.note_id}")
