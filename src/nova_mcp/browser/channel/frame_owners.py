"""The elements that hold a frame, up to the page: where its points lie, and whether they can be reached."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element
from nova_mcp.core.values import Json

if TYPE_CHECKING:
    from nova_mcp.browser.channel.page_channel import PageChannel

MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Placed:
    """A point of a frame in the page's own coordinates; `holders` are the frames that had to be asked."""

    x: float
    y: float
    holders: tuple[str, ...] = ()
    covered: bool = False
    blocker: SeenElement | None = None
    # The layer of the page that the frame stands in, and the frame whose document that is.
    layer: tuple[str, Answer] | None = None


async def place(channel: "PageChannel", frame_id: str | None, x: float, y: float, *, arm: bool = False) -> Placed:
    """Follow a point out of its frame; each holder says what covers it and, when armed, lets nothing else be hit."""
    holders: list[str] = []
    layer: tuple[str, Answer] | None = None
    inner = frame_id
    while inner is not None and inner != channel.frame_id and len(holders) < MAX_DEPTH:
        question: Json = {"x": x, "y": y, "arm": arm}
        inner, raw = await channel.ask_holder(inner, "holder", question)
        told = answer(raw)
        x, y = told["x"], told["y"]
        holders.append(inner)
        if told.get("layer") is not None:
            layer = (inner, told["layer"])
        if told["covered"]:
            blocker = None if told["blocker"] is None else read_element(told["blocker"], _spelled(channel, inner))
            return Placed(x, y, tuple(holders), covered=True, blocker=blocker)
    return Placed(x, y, tuple(holders), layer=layer)


def _spelled(channel: "PageChannel", frame_id: str) -> str:
    """Elements of the page itself carry no frame."""
    return "" if frame_id == channel.frame_id else frame_id
