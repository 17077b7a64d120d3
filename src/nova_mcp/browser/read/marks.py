"""Which elements a picture frames: the one it is about, or everything that can be acted on, with its ref."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nova_mcp.browser.act.locate import Locator, find
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating, on_one_document
from nova_mcp.browser.perceive.element_ranking import by_score, in_viewport
from nova_mcp.browser.perceive.look import LookRequest, look
from nova_mcp.browser.read.screenshot import Region

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

# More frames than this hide the page behind them.
MOST_MARKS: Final = 80
AROUND_PX: Final = 60.0

Marks = Mapping[str, Sequence[tuple[int, str]]]


async def one_mark(tab: "Tab", locator: Locator) -> Marks:
    """The frame around one element; a ref is written beside it."""
    try:
        element, frame_id = await find(tab, locator)
    except DocumentChanged:
        raise navigating() from None
    return {frame_id or "": [(element.node, locator.ref or "")]}


async def every_mark(tab: "Tab", *, whole: bool) -> Marks:
    """The best of what can be acted on, on the screen or on the whole page; each gets a ref that tools take."""
    scan, _ = await on_one_document(tab, lambda: look(tab, LookRequest()))
    shown = [one for one in scan.elements if whole or in_viewport(one.box, scan.page.viewport)]
    chosen = by_score(shown, scan.page.viewport)[:MOST_MARKS]
    marks: dict[str, list[tuple[int, str]]] = {}
    for frame in {one.facts.frame: None for one in chosen}:
        inside = [one for one in chosen if one.facts.frame == frame]
        live = [one for one in scan.elements if one.facts.frame == frame]
        names = tab.perception.assign(inside, scan.url_of(frame), tab.page_epoch, live)
        marks[frame] = [(one.node, name) for one, name in zip(inside, names, strict=True)]
    return marks


def widened_area(area: Region) -> Region:
    return Region(area.x - AROUND_PX, area.y - AROUND_PX, area.width + 2 * AROUND_PX, area.height + 2 * AROUND_PX)
