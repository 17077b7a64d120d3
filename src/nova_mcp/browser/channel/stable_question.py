"""Asking a page that may move on while it is being asked."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.errors import Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

T = TypeVar("T")


def navigating() -> Unavailable:
    return Unavailable(
        "page.navigating",
        "The page was replaced while it was being read.",
        retry_after_ms=500,
    )


async def on_one_document(tab: "Tab", read: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
    """The answer of one document, and whether another one came in between: asked again once, then given up."""
    moved = False
    for _ in range(2):
        epoch = tab.page_epoch
        try:
            value = await read()
        except DocumentChanged:
            moved = True
            continue
        if tab.page_epoch == epoch:
            # Whoever has read a page has to know whether it was one; most answers have told it by now.
            await tab.read_status()
            return value, moved
        moved = True
    raise navigating()
