"""What a look brings to mind: things the user wants remembered about the site, told once in a while and only quoted."""

import json
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.tokens import fit_tokens
from nova_mcp.memory.notes.model import MemoryType, Source
from nova_mcp.memory.notes.service import SurfacedItem, SurfacedMemory
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Part

MOST_ITEMS: Final = 2
ITEM_CHARS: Final = 120
# A line shorter than this says nothing any more.
LEAST_LINE: Final = 12


class BrowserMemoryItem(Part):
    memory_id: int
    memory_type: MemoryType
    content: str
    source: Source


class BrowserMemoryPart(Part):
    count: int
    items: list[BrowserMemoryItem]


@dataclass(frozen=True, slots=True)
class ToldMemory:
    """What is remembered, in both forms; without a line it found no room in the text."""

    found: SurfacedMemory | None = None
    line: str = ""

    @property
    def part(self) -> BrowserMemoryPart | None:
        return None if self.found is None else memory_part(self.found)

    @property
    def omitted(self) -> tuple[str, ...]:
        return ("browserMemory",) if self.found is not None and not self.line else ()

    def settled(self, ctx: ToolContext) -> "ToldMemory":
        """What is said in the end: nothing about a site that the tab has left meanwhile."""
        if self.found is None:
            return self
        here = page_place(ctx.tab)
        if here is None or here[0] != self.found.host:
            return NOTHING_TO_MIND
        if self.line:
            # What found no room in the text is said again when there is some.
            ctx.notes.told(ctx.connection, self.found)
        return self


NOTHING_TO_MIND: Final = ToldMemory()


def page_place(tab: Tab) -> tuple[str, str] | None:
    """Host and path by which notes know the page a tab shows; None outside the web."""
    if not tab.url.startswith(("http://", "https://")):
        return None
    host = normalize_host(tab.url)
    return None if host is None else (host, urlsplit(tab.url).path or "/")


def memory_part(found: SurfacedMemory) -> BrowserMemoryPart:
    return BrowserMemoryPart(
        count=found.count,
        items=[
            BrowserMemoryItem(
                memory_id=one.memory_id, memory_type=one.memory_type, content=one.content, source=one.source
            )
            for one in found.items
        ],
    )


async def memory_hints(ctx: ToolContext, room: int) -> ToldMemory:
    """What this connection has not heard yet about the site its tab shows; `room` is what the text may take."""
    principal = ctx.caller.principal
    if not ctx.notes.remembers_for(principal) or (here := page_place(ctx.tab)) is None:
        return NOTHING_TO_MIND
    found = await ctx.notes.surfaced_memory(principal, *here, limit=MOST_ITEMS, chars=ITEM_CHARS)
    if found is None or not ctx.notes.is_news(ctx.connection, found):
        return NOTHING_TO_MIND
    line = f"remembered ({found.count}): {' · '.join(map(_quoted, found.items))}"
    return ToldMemory(found, fit_tokens(line, room) if room >= LEAST_LINE else "")


def _quoted(one: SurfacedItem) -> str:
    """The text stands in quotes that it can't end itself."""
    text = json.dumps(one_line(" ".join(one.content.split()), ITEM_CHARS), ensure_ascii=False)
    return f"{one.memory_type} #{one.memory_id} by {one.source} {text}"
