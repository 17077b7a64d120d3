"""Where an element can be pictured: seen, not covered, and placed on the screen also when it lies in a frame."""

from typing import TYPE_CHECKING

from nova_mcp.browser.act.locate import Locator, find
from nova_mcp.browser.channel.frame_owners import place
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.perceive.scan_values import answer
from nova_mcp.browser.read.screenshot import Region
from nova_mcp.errors import NotFound

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


async def element_area(tab: "Tab", locator: Locator) -> Region:
    """The element's rectangle in the window; refused when it is hidden or something lies over it."""
    try:
        element, frame_id = await find(tab, locator)
        told = answer(await tab.channel.ask("uncovered", {"node": element.node}, frame_id=frame_id))
        if not told["there"]:
            raise _not_capturable("That element is not visible.", "Open what hides it, then call again.")
        left, top, width, height = told["box"]
        first = await place(tab.channel, frame_id, left, top)
        last = await place(tab.channel, frame_id, left + width, top + height)
        middle = await place(tab.channel, frame_id, left + width / 2, top + height / 2)
    except DocumentChanged:
        raise navigating() from None
    if not told["free"] or middle.covered:
        raise _not_capturable("Something lies over that element.", "Deal with what covers it, then call again.")
    return Region(first.x, first.y, last.x - first.x, last.y - first.y)


def _not_capturable(message: str, hint: str) -> NotFound:
    return NotFound("screenshot.not_capturable", message, hint)
