"""The documents a page consists of: its own, and the frames inside it that may be read as part of it."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.scan_values import Answer, answer
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_FRAMES: Final = 50


async def frames_of(tab: "Tab") -> list[str | None]:
    """The page's own document, then its frames that run beside it; None stands for the page's own.

    Frames of other sites run in processes of their own and are not listed here.
    """
    if len(tab.page.frames) <= 1:
        return [None]
    tree = await tab.channel.send("Page.getFrameTree")
    found: list[str | None] = [None]
    open_nodes: list[dict[str, Any]] = list(tree["frameTree"].get("childFrames", ()))
    while open_nodes and len(found) <= MAX_FRAMES:
        node = open_nodes.pop(0)
        found.append(str(node["frame"]["id"]))
        open_nodes = [*node.get("childFrames", ()), *open_nodes]
    return found


async def ask_inline(
    tab: "Tab", question: str, args: Json, timeout_ms: int
) -> AsyncIterator[tuple[str | None, Answer]]:
    """Put a question to every document of the page, in the page's order; a frame that is gone meanwhile is left out."""
    for frame_id in await frames_of(tab):
        try:
            told = answer(await tab.channel.ask(question, args, frame_id=frame_id, timeout_ms=timeout_ms))
        except (DocumentChanged, NotFound, PageScriptError):
            if frame_id is None:
                raise
            continue
        if told["inline"]:
            yield frame_id, told
