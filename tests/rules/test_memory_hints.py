"""What a look brings to mind fits the room it is given, and is told again where it found none."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.memory.notes.service import SurfacedItem, SurfacedMemory
from nova_mcp.tools.read.memory_hints import LEAST_LINE, memory_hints, page_place

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


async def test_a_line_takes_no_more_than_its_room():
    for room in range(LEAST_LINE, 90):
        told = await memory_hints(context(), room)
        assert told.line
        assert estimate_tokens(told.line) <= room
    assert told.line.startswith('remembered (3): note #1 by user "word')


async def test_without_room_it_is_left_out_by_name_and_not_taken_for_told():
    ctx = context()
    told = await memory_hints(ctx, LEAST_LINE - 1)
    assert (told.line, told.omitted) == ("", ("browserMemory",))
    assert told.settled(ctx).part is not None
    assert ctx.notes.heard == []


async def test_with_room_it_is_taken_for_told():
    ctx = context()
    told = (await memory_hints(ctx, 80)).settled(ctx)
    assert (told.omitted, ctx.notes.heard) == ((), [("here", FOUND)])


async def test_nothing_is_said_of_a_site_that_was_left():
    ctx = context()
    told = await memory_hints(ctx, 80)
    ctx.tab.url = "https://other.test/"
    left = told.settled(ctx)
    assert (left.part, left.line, left.omitted, ctx.notes.heard) == (None, "", (), [])


async def test_nothing_comes_to_mind_when_off_or_heard_or_outside_the_web():
    for ctx in (context(on=False), context(news=False), context("about:blank"), context("chrome-error://x/")):
        told = await memory_hints(ctx, 80)
        assert (told.part, told.line, told.omitted) == (None, "", ())


def test_a_page_is_known_by_host_and_path():
    assert page_place(SimpleNamespace(url="https://www.shop.test")) == ("shop.test", "/")
    assert page_place(SimpleNamespace(url="file:///etc/hosts")) is None
