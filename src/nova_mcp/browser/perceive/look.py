"""One look at a page: its own document first, then the frames in it, under one limit of time and number."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from nova_mcp.browser.channel.frame_owners import place
from nova_mcp.browser.channel.page_channel import STALL_MS, DocumentChanged, PageChannel, PageScriptError
from nova_mcp.browser.perceive.scan_values import Found, Scan, SeenElement, answer, read_found
from nova_mcp.browser.perceive.scans import frames_in, origin_of, read_scan
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, NovaError

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_FRAMES: Final = 20
LOOK_MS: Final = 1500
# Beyond what a frame may take for its own scan, for the way there and back.
_ON_THE_WAY_MS: Final = 500

Written = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LookRequest:
    """What to look at: the whole page, or what lies inside one element."""

    visible_only: bool = True
    deep: bool = False
    within: int | None = None
    frame_id: str | None = None

    @property
    def view(self) -> tuple[object, ...]:
        """Looks are comparable when they were taken the same way."""
        return self.visible_only, self.deep, self.within, self.frame_id


@dataclass(slots=True)
class _Budget:
    """What is left for frames that could not be asked together with the document around them."""

    ends: float
    frames: int = MAX_FRAMES
    origins: dict[str, str] = field(default_factory=dict)

    @property
    def left_ms(self) -> int:
        return int((self.ends - anyio.current_time()) * 1000)


async def look(tab: "Tab", request: LookRequest) -> Scan:
    """Everything a look finds, frames of the same origin included; `deep` includes the others."""
    channel = tab.channel
    budget = _Budget(anyio.current_time() + LOOK_MS / 1000)
    question: Json = {"visibleOnly": request.visible_only, "within": request.within}
    written = _written(await channel.ask("summary", question, frame_id=request.frame_id))
    if request.frame_id is None:
        tab.learn_status(written.get("status"))
    if written.get("gone"):
        raise NotFound("ref.stale", "The element to look inside left the page.", "Call nova.perceive without scope.")
    if written["frames"]:
        await _complete(channel, written, request, budget)
    if request.frame_id is not None:
        written = await _held(channel, request.frame_id, written)
    return read_scan(written)


async def selectors_for(
    tab: "Tab", elements: Sequence[SeenElement], look_number: int = 0, timeout_ms: int = STALL_MS
) -> dict[int, Found | None]:
    """A selector for each element of one document, checked in the page to mean that element alone."""
    if not elements:
        return {}
    nodes = [element.node for element in elements]
    question: Json = {"nodes": list(nodes), "look": look_number}
    frame_id = elements[0].facts.frame or None
    found = await tab.channel.ask("selectors", question, frame_id=frame_id, timeout_ms=timeout_ms)
    rows = found if isinstance(found, list) else []
    return {node: read_found(cast(Written | None, row)) for node, row in zip(nodes, rows, strict=True)}


def _written(told: Json) -> Written:
    return cast(Written, answer(told))


async def _complete(channel: PageChannel, written: Written, request: LookRequest, budget: _Budget) -> None:
    """Give every frame its id, and ask those that the document around them could not ask."""
    frame_id = request.frame_id
    await _name(channel, written, frame_id)
    frames = list(frames_in(written))
    channel.note_frames(frame["id"] for frame in frames if frame["id"])
    budget.frames -= sum(frame["scan"] is not None for frame in frames)
    if not all(frame["same"] for frame in frames):
        await _note_origins(channel, frame_id, budget)
    for frame in frames:
        frame["origin"] = budget.origins.get(frame["id"], "")
        if frame["scan"] is None and frame["id"] and (frame["same"] or request.deep):
            frame["scan"] = await _asked(channel, frame["id"], request, budget)
            written["scanTruncated"] = written["scanTruncated"] or frame["scan"] is None


async def _name(channel: PageChannel, written: Written, frame_id: str | None) -> None:
    unnamed = [frame for frame in frames_in(written) if frame["id"] is None]
    if not unnamed:
        return
    question: Json = {"stamp": written["stamp"]}
    handles = await channel.nodes("unnamedFrames", question, frame_id=frame_id)
    if len(handles) != len(unnamed):
        return
    names: list[Json] = []
    for handle in handles:
        told = await channel.send("DOM.describeNode", {"objectId": handle}, frame_id=frame_id)
        names.append(told["node"].get("frameId"))
    for frame, name in zip(unnamed, names, strict=True):
        frame["id"] = name
    await channel.ask("nameFrames", {"stamp": written["stamp"], "names": names}, frame_id=frame_id)


async def _note_origins(channel: PageChannel, frame_id: str | None, budget: _Budget) -> None:
    """Where frames of other origins come from, as the browser knows it."""
    tree = await channel.send("Page.getFrameTree", frame_id=frame_id)
    open_nodes = [tree["frameTree"]]
    while open_nodes:
        node = open_nodes.pop()
        budget.origins[node["frame"]["id"]] = origin_of(node["frame"]["url"])
        open_nodes.extend(node.get("childFrames", ()))
    told = await channel.send("Target.getTargets")
    budget.origins |= {one["targetId"]: origin_of(one["url"]) for one in told["targetInfos"] if one["type"] == "iframe"}


async def _asked(channel: PageChannel, frame_id: str, request: LookRequest, budget: _Budget) -> Written | None:
    """A frame's own answer, or None when it has none in time: it is then listed like one that was not asked."""
    if budget.left_ms <= 0 or budget.frames <= 0:
        return None
    budget.frames -= 1
    question: Json = {"visibleOnly": request.visible_only, "millis": budget.left_ms, "frames": budget.frames}
    try:
        await channel.reach(frame_id)
        timeout_ms = max(1, budget.left_ms) + _ON_THE_WAY_MS
        written = _written(await channel.ask("summary", question, frame_id=frame_id, timeout_ms=timeout_ms))
        if written["frames"]:
            inner = LookRequest(request.visible_only, request.deep, None, frame_id)
            await _complete(channel, written, inner, budget)
    except (NovaError, DocumentChanged, PageScriptError):
        return None
    return written


async def _held(channel: PageChannel, frame_id: str, written: Written) -> Written:
    """What was seen inside a frame, as part of the page that holds it."""
    page = _written(await channel.ask("page"))
    placed = await place(channel, frame_id, 0, 0)
    across = await place(channel, frame_id, 100, 0)
    width, height = written["viewport"]
    frame: Written = {
        "id": frame_id,
        "n": 0,
        "before": 0,
        "x": placed.x,
        "y": placed.y,
        "w": width,
        "h": height,
        "scale": (across.x - placed.x) / 100,
        "bits": 0,
        "same": True,
        "origin": written["origin"],
        "scan": written,
    }
    empty: Written = {"rows": [], "texts": [""], "total": 0, "scanTruncated": False, "forms": [], "headings": []}
    return {**page, **empty, "landmarks": [], "closedRoots": 0, "look": 0, "frames": [frame]}
