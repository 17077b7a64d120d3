"""What a look brings to mind fits the room it is given, and is told again where it found none."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from nova_mcp.core.tokens import line_tokens
from nova_mcp.memory.notes.service import SurfacedItem, SurfacedMemory
from nova_mcp.tools.read.hint import Look
from nova_mcp.tools.read.memory_hints import LEAST_LINE, MemoryHint, page_place

FOUND = SurfacedMemory(
    "shop.test",
    3,
    (SurfacedItem(1, "note", "word " * 20, "user"), SurfacedItem(2, "context", "b", "agent")),
    frozenset(),
)


@dataclass
class Notes:
    on: bool = True
    news: bool = True
    heard: list[Any] = field(default_factory=list)

    def remembers_for(self, principal: str) -> bool:
        return self.on

    async def surfaced_memory(self, principal: str, host: str, path: str, limit: int, chars: int) -> SurfacedMemory:
        assert (principal, host, path, limit, chars) == ("local", "shop.test", "/cart", 2, 120)
        return FOUND

    def is_news(self, connection: str, found: SurfacedMemory) -> bool:
        return self.news

    def told(self, connection: str, found: SurfacedMemory) -> None:
        self.heard.append((connection, found))


def context(url: str = "https://www.shop.test/cart?x=1", **more: bool) -> Any:
    caller = SimpleNamespace(principal="local", owner=("local", "ada"))
    return SimpleNamespace(notes=Notes(**more), caller=caller, connection="here", tab=SimpleNamespace(url=url))


LOOK = Look(moved=False, sighted={}, held=None)


async def hint(ctx: Any, room: int) -> MemoryHint:
    """What is remembered, with its share of the text taken."""
    found = MemoryHint(ctx)
    await found.read()
    assert found.take(room) == line_tokens(found.lines) <= room
    return found


async def test_a_line_takes_no_more_than_its_room():
    for room in range(LEAST_LINE + 1, 91):
        found = await hint(context(), room)
        assert found.lines
    assert found.lines.startswith('remembered (3): note #1 by user "word')


async def test_without_room_it_is_left_out_by_name_and_not_taken_for_told():
    ctx = context()
    found = await hint(ctx, LEAST_LINE)
    assert (found.lines, found.omitted) == ("", ("browserMemory",))
    await found.settle(LOOK)
    assert found.fields()["browser_memory"] is not None
    assert ctx.notes.heard == []


async def test_with_room_it_is_taken_for_told():
    ctx = context()
    found = await hint(ctx, 80)
    await found.settle(LOOK)
    assert (found.omitted, ctx.notes.heard) == ((), [("here", FOUND)])


async def test_nothing_is_said_of_a_site_that_was_left():
    ctx = context()
    found = await hint(ctx, 80)
    ctx.tab.url = "https://other.test/"
    await found.settle(Look(moved=True, sighted={}, held=None))
    assert (found.fields(), found.lines, found.omitted) == ({"browser_memory": None}, "", ())
    assert ctx.notes.heard == []


async def test_nothing_comes_to_mind_when_off_or_heard_or_outside_the_web():
    for ctx in (context(on=False), context(news=False), context("about:blank"), context("chrome-error://x/")):
        found = await hint(ctx, 80)
        assert (found.fields(), found.lines, found.omitted) == ({"browser_memory": None}, "", ())


def test_a_page_is_known_by_host_and_path():
    assert page_place(SimpleNamespace(url="https://www.shop.test")) == ("shop.test", "/")
    assert page_place(SimpleNamespace(url="file:///etc/hosts")) is None
