"""Looking for layers over a page, those whose words stand in a frame included."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nova_mcp.browser.blockers.rules import Blocker, Control, NotedLayer, Switch
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.scan_values import Answer, answer, read_element
from nova_mcp.core.page.control_labels import HUMAN, BlockerKind, ControlFacts, label_for
from nova_mcp.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

_VAGUE: Final[frozenset[BlockerKind]] = frozenset({"unknown", "modal"})
_MOST_FRAMES: Final = 30


@dataclass(frozen=True, slots=True)
class _Part:
    """What one document says about a layer."""

    controls: tuple[Control, ...]
    switches: tuple[Switch, ...]
    closing_accepts: bool


async def look_for_blockers(tab: "Tab") -> tuple[Blocker, ...]:
    """Every layer over the page, those that cover it first; the tab remembers what was seen."""
    raw, _ = await on_one_document(tab, lambda: tab.channel.ask("blockers"))
    told = answer(raw)
    layers: list[Answer] = told["layers"]
    found = [_blocker(layer, told["url"]) for layer in layers]
    if any(layer["framed"] for layer in layers):
        found = await _with_frames(tab, found, layers)
    note_layers(tab, layers)
    return tuple(found)


def note_layers(tab: "Tab", layers: Sequence[Answer]) -> None:
    """Remember what covers the page, as the script told it, so that nobody has to ask again."""
    seen = [
        NotedLayer(one["kind"], one["blocking"], frozenset(one.get("inside", ())), read_element(one["element"]))
        for one in layers
    ]
    tab.blockers.note(tab.page_epoch, seen)


async def _with_frames(tab: "Tab", found: Sequence[Blocker], layers: Sequence[Answer]) -> list[Blocker]:
    """Each frame that stands in a layer speaks for it, and so do the frames inside that one."""
    channel = tab.channel
    blockers = list(found)
    homes: dict[str, int] = {}
    by_number = {number: index for index, layer in enumerate(layers) for number in layer["framed"]}
    for frame_id in (await channel.frame_ids())[1:_MOST_FRAMES]:
        try:
            holder, number = await channel.ask_holder(frame_id, "frameNumber", {})
            inside = by_number.get(number) if isinstance(number, int) else None
            home = inside if holder == channel.frame_id else homes.get(holder)
            if home is None:
                continue
            homes[frame_id] = home
            raw = await channel.ask("blockerPart", frame_id=frame_id)
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            continue
        if raw is not None:
            blockers[home] = _joined(blockers[home], answer(raw), frame_id)
    return blockers


def _joined(blocker: Blocker, told: Answer, frame_id: str) -> Blocker:
    kind: BlockerKind = told["kind"]
    if kind in _VAGUE or (blocker.kind not in _VAGUE and kind not in HUMAN):
        kind = blocker.kind
    part = _part(told, kind, told["url"], frame_id)
    # What a page says may be weighed anew once it is known what the layer is about.
    own = tuple(replace(control, label=label_for(control.facts, kind)) for control in blocker.controls)
    return replace(
        blocker,
        kind=kind,
        name=blocker.name or told["name"],
        controls=(*own, *part.controls),
        switches=(*blocker.switches, *part.switches),
        closing_accepts=blocker.closing_accepts or part.closing_accepts,
    )


def _blocker(told: Answer, url: str) -> Blocker:
    part = _part(told, told["kind"], url, "")
    return Blocker(
        kind=told["kind"],
        blocking=told["blocking"],
        name=told["name"],
        element=read_element(told["element"]),
        controls=part.controls,
        switches=part.switches,
        closing_accepts=part.closing_accepts,
        alert=told["alert"],
    )


def _part(told: Answer, kind: BlockerKind, url: str, frame: str) -> _Part:
    return _Part(
        controls=tuple(_control(one, kind, url, frame) for one in told["choices"]),
        switches=tuple(_switch(one, url, frame) for one in told["switches"]),
        closing_accepts=told["closingAccepts"],
    )


def _control(told: Answer, kind: BlockerKind, url: str, frame: str) -> Control:
    facts = ControlFacts(
        texts=tuple(told["texts"]),
        identifiers=tuple(told["identifiers"]),
        platform=told["platform"],
        away=told["away"],
        unfolds=told["unfolds"],
        small=told["small"],
    )
    return Control(facts, label_for(facts, kind), read_element(told["element"], frame), url)


def _switch(told: Answer, url: str, frame: str) -> Switch:
    element = None if told["element"] is None else read_element(told["element"], frame)
    return Switch(told["on"], told["locked"], told["stuck"], told["picks"], element, url)
