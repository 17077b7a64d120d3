"""What a look brings to mind: things the user wants remembered about the site, told once in a while and only quoted."""

import json
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.tokens import fit_tokens, line_tokens
from nova_mcp.memory.notes.model import MemoryType, Source
from nova_mcp.memory.notes.service import SurfacedItem, SurfacedMemory
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.hint import Look
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


@dataclass(slots=True)
class MemoryHint:
    """What this connection has not heard yet about the site its tab shows; without a line it found no room."""

    ctx: ToolContext
    found: SurfacedMemory | None = None
    lines: str = ""
    reserved: int = 0

    async def read(self) -> None:
        notes, principal = self.ctx.notes, self.ctx.caller.principal
        if not notes.remembers_for(principal) or (here := page_place(self.ctx.tab)) is None:
            return
        found = await notes.surfaced_memory(principal, *here, limit=MOST_ITEMS, chars=ITEM_CHARS)
        if found is not None and notes.is_news(self.ctx.connection, found):
            self.found = found

    def take(self, room: int) -> int:
        if self.found is None or room <= LEAST_LINE:
            return 0
        line = f"remembered ({self.found.count}): {' · '.join(map(_quoted, self.found.items))}"
        self.lines = fit_tokens(line, room - 1)
        return line_tokens(self.lines)

    async def settle(self, look: Look) -> None:
        if self.found is None:
            return
        here = page_place(self.ctx.tab)
        if here is None or here[0] != self.found.host:
            self.found, self.lines = None, ""
        elif self.lines:
            # What found no room in the text is said again when there is some.
            self.ctx.notes.told(self.ctx.connection, self.found)

    def fields(self) -> dict[str, object]:
        return {"browser_memory": None if self.found is None else memory_part(self.found)}

    @property
    def omitted(self) -> tuple[str, ...]:
        return ("browserMemory",) if self.found is not None and not self.lines else ()


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


def _quoted(one: SurfacedItem) -> str:
    """The text stands in quotes that it can't end itself."""
    text = json.dumps(one_line(" ".join(one.content.split()), ITEM_CHARS), ensure_ascii=False)
    return f"{one.memory_type} #{one.memory_id} by {one.source} {text}"
