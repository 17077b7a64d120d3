"""Keeps keys and text out of every frame but the one that was judged: the focus may be taken while they are sent."""

from contextlib import suppress
from typing import TYPE_CHECKING

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


async def fence_off(tab: "Tab", frame_id: str | None) -> tuple[str | None, ...]:
    """Raise the shield in all other frames; what is returned has to be lowered again. Without frames it is free."""
    if len(tab.page.frames) <= 1:
        return ()
    fenced: list[str | None] = []
    own = frame_id or tab.channel.frame_id
    for other in await tab.channel.frame_ids():
        if other == own:
            continue
        with suppress(DocumentChanged, PageScriptError, Unavailable, NotFound):
            await tab.channel.ask("fence", frame_id=other, timeout_ms=1000)
            fenced.append(other)
    return tuple(fenced)
