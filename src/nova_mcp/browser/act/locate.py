"""From a selector or a ref to the one element it means, ready to be acted on, or a refusal that says why."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from nova_mcp.browser.channel.frame_owners import Placed, place
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.perceive.element_lines import element_line, quoted
from nova_mcp.browser.perceive.elements import ElementFacts, fingerprint_id
from nova_mcp.browser.perceive.look import selectors_for
from nova_mcp.browser.perceive.rules import RefRefused, UseNode, resolve_ref
from nova_mcp.browser.perceive.scan_values import (
    Answer,
    Found,
    SeenElement,
    SeenForm,
    answer,
    facts_to_page,
    read_element,
    read_form,
)
from nova_mcp.core.page.control_labels import BlockerKind, Label
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound, NovaError, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Purpose: TypeAlias = Literal["click", "type"]

# The page waits by itself in pieces this long, so that a page that stopped answering is noticed in time.
_SLICE_MS: Final = 2000
_ANSWER_MS: Final = 5000
_AGAIN_S: Final = 0.1
# A ref whose node is gone or has become something else may still be found by its looks.
_MOVED_ON: Final = frozenset({"gone", "identity_changed"})

_REFUSALS: Final[dict[str, tuple[str, str]]] = {
    "ref.identity_changed": ("now stands for something else", "Call nova.perceive and use the new ref."),
    "ref.ambiguous": ("matches several elements after the page changed", "Call nova.perceive and use a new ref."),
    "ref.stale": ("is no longer on the page", "Call nova.perceive and use a new ref."),
    "ref.stale_document": ("belongs to another page", "Call nova.perceive on the current page."),
}
_UNREADY: Final[dict[str, tuple[str, str]]] = {
    "disabled": ("is disabled", "Fill in what it waits for, then call again."),
    "unstable": ("keeps moving", "Wait until the page is still, or raise timeoutMs."),
    "not_visible": ("is not visible", "Open what hides it, or scroll to it."),
    "detached": ("left the page while it was being looked at", "Call nova.perceive again."),
}


@dataclass(frozen=True, slots=True)
class Locator:
    """Which element is meant: exactly one of selector and ref."""

    selector: str | None = None
    ref: str | None = None
    frame_id: str | None = None
    nth: int | None = None

    @property
    def spoken(self) -> str:
        return self.ref or quoted(self.selector or "", 80)


@dataclass(frozen=True, slots=True)
class Target:
    """The node a locator means, and what it must still look like at the last moment."""

    node: int | None
    expect: ElementFacts | None
    frame_id: str | None
    rebound: bool = False
    drift: Literal["name"] | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """An element that can be acted on now; the shield is up and the watch has begun.

    `spot` is the point inside the element's own frame, `x` and `y` where it lies on the screen.
    """

    x: float
    y: float
    spot: tuple[float, float]
    holders: tuple[str, ...]
    element: SeenElement
    acting: SeenElement
    form: SeenForm | None
    also_acting: tuple[tuple[SeenElement, SeenForm | None], ...]
    ref: str
    line: str
    selector: str | None
    standing: str
    href: str | None
    secret: bool
    url: str
    recent_paths: frozenset[str]
    frame_id: str | None
    rebound: bool = False
    drift: Literal["name"] | None = None
    layer: "LayerAt | None" = None
    # A selector for the alike elements that it is one of, and how many there are.
    items: tuple[str, int] | None = None

    @property
    def fingerprint(self) -> str:
        return fingerprint_id(self.acting.facts)


@dataclass(frozen=True, slots=True)
class LayerAt:
    """The layer over the page that an element stands in; `label` is what the element does there.

    `root` and `control` are selectors that layer and element will be known by on another visit, where there are any;
    `platform` is the consent platform that shows it, by the name it has in the list of those.
    """

    frame_id: str | None
    node: int
    kind: BlockerKind
    label: Label
    root: str | None = None
    control: str | None = None
    platform: str | None = None


async def prepare(tab: "Tab", locator: Locator, timeout_ms: int, purpose: Purpose = "click") -> Prepared:
    """Find the element, wait until it can be acted on, and arm the shield around it."""
    try:
        target, told, placed = await _found(tab, locator, timeout_ms, purpose)
    except DocumentChanged:
        raise navigating() from None
    if placed is not None:
        return await _prepared(tab, locator, target, told, placed)
    raise await _refusal(tab, locator, target, told)


async def _found(
    tab: "Tab", locator: Locator, timeout_ms: int, purpose: Purpose
) -> tuple[Target, Answer, Placed | None]:
    if (seen := _as_last_seen(tab, locator)) is not None:
        told, placed = await _reachable(tab, locator, seen, timeout_ms, purpose)
        if told["state"] not in _MOVED_ON or not told.get("atOnce"):
            return seen, told, placed
    target = await aim(tab, locator)
    return target, *await _reachable(tab, locator, target, timeout_ms, purpose)


def _as_last_seen(tab: "Tab", locator: Locator) -> Target | None:
    """The node a ref was given to, on the page's own document; whether it still is that is asked with the rest."""
    ref = None if locator.ref is None else tab.perception.get(locator.ref)
    if ref is None or ref.epoch != tab.page_epoch or ref.facts.frame:
        return None
    return Target(ref.node, ref.facts, None)


async def aim(tab: "Tab", locator: Locator) -> Target:
    """Resolve a ref to its node; a selector is resolved in the page, poll by poll."""
    if locator.ref is None:
        frame = None if locator.frame_id is None else await tab.channel.reach(locator.frame_id)
        return Target(None, None, frame)
    ref = tab.perception.get(locator.ref)
    if ref is None:
        raise _refused(locator.ref, "ref.stale")
    frame_id = ref.facts.frame or None
    if frame_id is not None:
        await tab.channel.reach(frame_id)
    same_document = ref.epoch == tab.page_epoch
    question: Json = {"node": ref.node if same_document else -1, "expect": facts_to_page(ref.facts)}
    told = answer(await tab.channel.ask("ref", question, frame_id=frame_id))
    node = None if told["node"] is None else read_element(told["node"], ref.facts.frame)
    matches = [read_element(item, ref.facts.frame) for item in told["matches"]]
    match resolve_ref(ref.expected, told["url"], same_document, node, matches):
        case UseNode(node=number, facts=facts, rebound=rebound, drift=drift):
            if rebound:
                tab.perception.rebind(ref.name, number, tab.page_epoch)
            return Target(number, facts, frame_id, rebound, drift)
        case RefRefused(reason=reason):
            raise _refused(locator.ref, reason)


def _refused(name: str, reason: str) -> NotFound | Precondition:
    what, hint = _REFUSALS[reason]
    if reason in Precondition.reasons:
        return Precondition(reason, f"{name} {what}.", hint)
    return NotFound(reason, f"{name} {what}.", hint)


async def _reachable(
    tab: "Tab", locator: Locator, target: Target, timeout_ms: int, purpose: Purpose
) -> tuple[Answer, Placed | None]:
    """An element in a frame is ready only when the documents around the frame let the pointer through as well."""
    end = anyio.current_time() + timeout_ms / 1000
    while True:
        left = max(0, int((end - anyio.current_time()) * 1000))
        told = await _poll(tab, locator, target, left, purpose)
        if told["state"] != "ready":
            return told, None
        placed = await place(tab.channel, target.frame_id, told["x"], told["y"], arm=True)
        if not placed.covered:
            return told, placed
        await lower(tab, (target.frame_id, *placed.holders))
        if anyio.current_time() >= end:
            raise await obstructed(tab, locator, placed.blocker)
        await anyio.sleep(_AGAIN_S)


async def lower(tab: "Tab", frames: Iterable[str | None]) -> None:
    """The page's own users must not meet a raised shield; a page that is gone has none."""
    with anyio.CancelScope(shield=True):
        for frame_id in frames:
            with suppress(DocumentChanged, PageScriptError, Unavailable, NotFound):
                await tab.channel.ask("disarm", frame_id=frame_id, timeout_ms=1000)


async def _poll(tab: "Tab", locator: Locator, target: Target, timeout_ms: int, purpose: Purpose) -> Answer:
    left = timeout_ms
    while True:
        piece = min(left, _SLICE_MS)
        question: Json = {
            "selector": locator.selector,
            "nth": locator.nth,
            "node": target.node,
            "expect": None if target.expect is None else facts_to_page(target.expect),
            "waitMs": piece,
            "editable": purpose == "type",
        }
        told = answer(
            await tab.channel.ask("prepare", question, frame_id=target.frame_id, timeout_ms=piece + _ANSWER_MS)
        )
        left -= piece
        if left <= 0 or told["state"] not in ("unready", "not_found") or told.get("why") == "not_editable":
            return told


async def _prepared(tab: "Tab", locator: Locator, target: Target, told: Answer, placed: Placed) -> Prepared:
    frame = target.frame_id or ""
    element = read_element(told["element"], frame)
    known = tab.perception.get(locator.ref) if locator.ref else None
    found = known.selector if known else Found(locator.selector or "", "given")
    if known is None:
        (name,) = tab.perception.assign([element], told["url"], tab.page_epoch)
    else:
        name = known.name
    (acting, form), *others = (read_acting(raw, frame) for raw in (told["acting"], *told["alsoActing"]))
    return Prepared(
        x=placed.x,
        y=placed.y,
        spot=(told["x"], told["y"]),
        holders=placed.holders,
        element=element,
        acting=acting,
        form=form,
        also_acting=tuple(others),
        ref=name,
        line=element_line(name, element, found),
        selector=locator.selector or (found.selector if found else None),
        standing=told["standing"],
        href=told["href"],
        secret=told["secret"],
        url=told["url"],
        recent_paths=frozenset(told["recentPaths"]),
        frame_id=target.frame_id,
        rebound=target.rebound,
        drift=target.drift,
        layer=_layer(target, told, placed),
        items=_items(told) if target.frame_id is None else None,
    )


def _items(told: Answer) -> tuple[str, int] | None:
    items: Answer | None = told.get("items")
    return None if items is None else (items["selector"], items["count"])


def _layer(target: Target, told: Answer, placed: Placed) -> LayerAt | None:
    """A frame inside a layer belongs to it, whatever stands around the element in the frame's own document."""
    own: Answer | None = told.get("layer")
    frame_id, raw = placed.layer if placed.layer is not None else (target.frame_id, own)
    if raw is None:
        return None
    label: Label = raw["label"] if placed.layer is None or own is None else own["label"]
    # Inside a frame neither names anything on the page itself.
    framed = placed.layer is not None or target.frame_id is not None
    root, control = (None, None) if framed else (raw["root"], raw["control"])
    return LayerAt(frame_id, raw["node"], raw["kind"], label, root, control, raw["platform"])


def read_acting(raw: Answer, frame: str) -> tuple[SeenElement, SeenForm | None]:
    form = raw["formFacts"]
    return read_element(raw, frame), None if form is None else read_form(form)


async def described(tab: "Tab", elements: Sequence[SeenElement]) -> list[Json]:
    """Elements as `{ref, line}`, so that the answer can be acted on at once."""
    try:
        selectors = await selectors_for(tab, elements)
    except DocumentChanged:
        selectors = {}
    names = tab.perception.assign(elements, tab.url, tab.page_epoch, elements, selectors)
    return [
        {"ref": name, "line": element_line(name, element, selectors.get(element.node))}
        for name, element in zip(names, elements, strict=True)
    ]


async def _refusal(tab: "Tab", locator: Locator, target: Target, told: Answer) -> NovaError:
    frame = target.frame_id or ""
    match told["state"]:
        case "invalid":
            return InvalidParams("selector.invalid", f"The selector {locator.spoken} can't be read.")
        case "ambiguous":
            seen = [read_element(item, frame) for item in told["candidates"]]
            candidates = await described(tab, seen)
            count = told["matchCount"]
            return Precondition(
                "selector.ambiguous",
                f"{locator.spoken} matches {count} visible elements.",
                "Use one of the candidates' refs, or nth where the tool takes it.",
                details={"candidates": candidates, "matchCount": count},
            )
        case "identity_changed":
            return _refused(locator.ref or locator.spoken, "ref.identity_changed")
        case "gone":
            return _refused(locator.ref or locator.spoken, "ref.stale")
        case "not_found":
            near = await described(tab, [read_element(item, frame) for item in told["near"]])
            return NotFound(
                "selector.not_found",
                f"Nothing on the page matches {locator.spoken}.",
                "Use a ref from nova.perceive." if not near else "One of the near matches may be meant.",
                details={"matchCount": told.get("matchCount", 0), "nearMatches": near},
            )
        case _:
            return await _not_ready(tab, locator, told, frame)


async def _not_ready(tab: "Tab", locator: Locator, told: Answer, frame: str) -> Precondition:
    why = told["why"]
    if why == "not_editable":
        return Precondition(
            "type.not_editable",
            f"{locator.spoken} takes no text.",
            stage="actionability",
        )
    if why == "obstructed":
        return await obstructed(tab, locator, read_element(told["blocker"], frame) if told["blocker"] else None)
    what, hint = _UNREADY[why]
    reason = "action.not_visible" if why == "detached" else f"action.{why}"
    return Precondition(reason, f"{locator.spoken} {what}.", hint, stage="actionability")


async def _named_blocker(tab: "Tab", blocker: SeenElement) -> dict[str, Json]:
    (shown,) = await described(tab, [blocker])
    by: dict[str, Json] = dict(shown) if isinstance(shown, dict) else {}
    with suppress(DocumentChanged, PageScriptError, Unavailable, NotFound):
        question: Json = {"node": blocker.node}
        kind = await tab.channel.ask("blockerKindOf", question, frame_id=blocker.facts.frame or None)
        if kind is not None:
            by["blockerKind"] = kind
    return by


async def obstructed(tab: "Tab", locator: Locator, blocker: SeenElement | None) -> Precondition:
    """Something lies above the element; it is named, and it was not touched."""
    by = None if blocker is None else await _named_blocker(tab, blocker)
    return Precondition(
        "action.obstructed",
        f"{locator.spoken} is covered by another element.",
        stage="actionability",
        details={"obstructedBy": by} if by is not None else None,
        action_dispatched=False,
    )


async def find(tab: "Tab", locator: Locator) -> tuple[SeenElement, str | None]:
    """The one element for reading: no waiting, no shield."""
    target = await aim(tab, locator)
    frame = target.frame_id or ""
    if target.node is not None and target.expect is not None:
        return SeenElement(target.node, target.expect), target.frame_id
    question: Json = {"selector": locator.selector, "nth": locator.nth}
    told = answer(await tab.channel.ask("find", question, frame_id=target.frame_id))
    if told["state"] != "found":
        raise await _refusal(tab, locator, target, told)
    return read_element(told["element"], frame), target.frame_id
