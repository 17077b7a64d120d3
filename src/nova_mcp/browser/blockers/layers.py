"""Whether a layer over the page is really gone."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nova_mcp.browser.act.action import Acted
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.scan_values import answer
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

# `covered`: gone, but something else lies where it was. `left`: its document went with it.
Whereabouts: TypeAlias = Literal["there", "covered", "clear", "left"]

# A layer that came back within this time was never gone.
HOLD_MS: Final = 500
_MOVING_MS: Final = 1000
_ANSWER_MS: Final = 3000


async def seen_out(tab: "Tab", acted: Acted) -> Acted:
    """After a press inside a layer: note when that layer is gone. One that stays costs no time, unless it is moving."""
    layer, observation = acted.prepared.layer, acted.observation
    if layer is None or observation is None or observation.dispatch_proof == "none":
        return acted
    gone = await is_gone(tab, layer.node, layer.frame_id, start_ms=0, moving_ms=_MOVING_MS)
    if gone == "clear":
        tab.blockers.note(-1, ())
    return replace(acted, layer_gone=gone == "clear")


async def is_gone(
    tab: "Tab", node: int, frame_id: str | None = None, *, start_ms: int, moving_ms: int = 0, hold_ms: int = HOLD_MS
) -> Whereabouts:
    """Whether a layer stays away, and whether the points it took reach the page then."""
    question: Json = {"node": node, "startMs": start_ms, "movingMs": moving_ms, "holdMs": hold_ms}
    longest = start_ms + moving_ms + 4 * hold_ms + _ANSWER_MS
    try:
        told = answer(await tab.channel.ask("layerGone", question, frame_id=frame_id, timeout_ms=longest))
    except DocumentChanged:
        return "left"
    except (PageScriptError, Unavailable, NotFound):
        return "there"
    if not told["gone"]:
        return "there"
    return "clear" if told["clear"] else "covered"
