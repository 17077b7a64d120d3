"""What stored knowledge asks of an open page: what selectors find, how elements look, which signs hold."""

import functools
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, cast

from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.commits.check import commit_facts
from nova_mcp.browser.commits.commit_points import CommitPoint, Trigger, classify_commit_point
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, SeenForm, answer, read_element, read_form
from nova_mcp.core.page.control_labels import ControlFacts, label_for
from nova_mcp.core.values import Json

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_SELECTORS: Final = 64
MAX_SURFACES: Final = 8
MAX_ELEMENTS: Final = 400
MAX_DOM: Final = 1500
MAX_TEXTS: Final = 800
MAX_VENDORS: Final = 200
_SELECTOR_CHARS: Final = 2000
# Of the time a caller waits, this share is for the page's own work; what it can't read until then it says so.
_FOR_THE_PAGE: Final = 0.5
_UNREAD: Final = ControlFacts()


@dataclass(frozen=True, slots=True)
class PrintSeen:
    """What an element looks like; nothing that was entered into the page is part of it.

    `text` is its visible label, `shape` its path by tags alone, `place` its centre as shares of the page, `picture`
    what the icon or image is called that it shows instead of a label.
    """

    tag: str
    type: str = ""
    name: str = ""
    text: str = ""
    href: str = ""
    id: str = ""
    testid: str = ""
    role: str = ""
    aria_label: str = ""
    classes: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    shape: str = ""
    place: tuple[float, float] | None = None
    picture: str = ""


@dataclass(frozen=True, slots=True)
class SelectorSeen:
    """What one selector finds. The element looked at is the first that can be seen, as for a click, else the first.

    `inside` says whether it lies in one of the surfaces and is None without any. `unread` is a selector that the time
    did not suffice for: it says nothing. `roads` are the controls that a press would set off.
    """

    selector: str
    matches: int
    visible: bool = False
    inside: bool | None = None
    invalid: bool = False
    unread: bool = False
    control: ControlFacts = _UNREAD
    seen: PrintSeen | None = None
    roads: tuple[tuple[SeenElement, SeenForm | None], ...] = ()

    def commit_point(self, trigger: Trigger = "click", *, accepts: bool = False) -> CommitPoint | None:
        """The commit that using the element would be, by the rules of a click or a key."""
        roads = self.roads if trigger == "click" else self.roads[:1]
        points = (classify_commit_point(commit_facts(one, form, trigger, accepts=accepts)) for one, form in roads)
        return next((point for point in points if point is not None), None)


@dataclass(frozen=True, slots=True)
class ElementSeen:
    """One element that can be acted on; `selector` names it alone, None where nothing that may be kept does."""

    node: int
    seen: PrintSeen
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class ItemsSeen:
    """A list that repeats: how many items it has, and a selector for all of them."""

    count: int
    selector: str


@dataclass(frozen=True, slots=True)
class VendorSign:
    """By what a vendor is known: hosts of its scripts, marks in the page."""

    id: str
    hosts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedSignals:
    dom: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    vendors: tuple[VendorSign, ...] = ()


@dataclass(frozen=True, slots=True)
class SignalsSeen:
    """Which signs hold, in the spelling they were asked for.

    `unread` are selectors that the time did not suffice for; `whole` is False where a long page was read in part.
    """

    dom: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    interaction: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    locale: str | None = None
    frameworks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True


@functools.cache
def page_signs() -> Mapping[str, Mapping[str, object]]:
    """The fixed vocabulary: interaction and layout signs with what they mean, frameworks with their marks."""
    found: dict[str, dict[str, object]] = json.loads(
        files("nova_mcp.browser").joinpath("data/page_signs.json").read_text("utf-8")
    )
    return found


async def look(
    tab: "Tab", selectors: Sequence[str], surfaces: Sequence[str] = (), *, timeout_ms: int = 2000
) -> dict[str, SelectorSeen]:
    """What each selector finds now, in one round trip; those beyond the limit are unread."""
    wanted = list(dict.fromkeys(selectors))
    asked = [one for one in wanted if len(one) <= _SELECTOR_CHARS][:MAX_SELECTORS]
    args: Json = {"selectors": [*asked], "surfaces": [*surfaces[:MAX_SURFACES]], "millis": timeout_ms * _FOR_THE_PAGE}
    told: Answer = await _told(tab, "knowledgeLook", args, timeout_ms) if asked else {"seen": (), "forms": ()}
    forms = [read_form(raw) for raw in told["forms"]]
    seen = {one: _selector_seen(one, raw, forms) for one, raw in zip(asked, told["seen"], strict=True)}
    return {one: seen.get(one) or SelectorSeen(one, 0, unread=True) for one in wanted}


async def elements(tab: "Tab", limit: int = MAX_ELEMENTS, *, timeout_ms: int = 3000) -> tuple[ElementSeen, ...]:
    """The elements that can be acted on, in the order of the document; a sample where there are more than the limit."""
    args: Json = {"limit": limit, "millis": timeout_ms * _FOR_THE_PAGE}
    told = await _told(tab, "knowledgeElements", args, timeout_ms)
    return tuple(ElementSeen(one["n"], _print(one["print"]), one["selector"]) for one in cast(list[Answer], told))


async def items(tab: "Tab", selector: str, *, timeout_ms: int = 1000) -> ItemsSeen | None:
    """The list that an element is an item of or lies in an item of; None where nothing repeats."""
    told = await _told(tab, "knowledgeItems", {"selector": selector[:_SELECTOR_CHARS]}, timeout_ms)
    return None if told is None else ItemsSeen(told["count"], told["selector"])


async def signals(tab: "Tab", wanted: WantedSignals, *, timeout_ms: int = 1000) -> SignalsSeen:
    """Which of the wanted signs hold, and what the page shows of the fixed ones."""
    vendors = wanted.vendors[:MAX_VENDORS]
    args: Json = {
        "dom": list(wanted.dom[:MAX_DOM]),
        "text": [_folded(one) for one in wanted.text[:MAX_TEXTS]],
        "vendors": [{"hosts": list(one.hosts), "marks": list(one.marks)} for one in vendors],
        "millis": timeout_ms * _FOR_THE_PAGE,
    }
    raw, _ = await on_one_document(tab, lambda: tab.channel.ask("knowledgeSignals", args, timeout_ms=timeout_ms))
    told = answer(raw)
    return SignalsSeen(
        dom=tuple(wanted.dom[index] for index in told["dom"]),
        text=tuple(wanted.text[index] for index in told["text"]),
        vendors=tuple(vendors[index].id for index in told["vendors"]),
        interaction=tuple(told["interaction"]),
        layout=tuple(told["layout"]),
        locale=told["lang"].strip() or None,
        frameworks=tuple(told["frameworks"]),
        unread=tuple(wanted.dom[index] for index in told["unread"]) + wanted.dom[MAX_DOM:],
        whole=told["whole"],
    )


def _folded(text: str) -> str:
    """Case, blanks and compatible characters don't count; the page folds its own texts the same way."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


async def _told(tab: "Tab", question: str, args: Json, timeout_ms: int) -> Any:
    """Long answers come as one text."""
    raw, _ = await on_one_document(tab, lambda: tab.channel.ask(question, args, timeout_ms=timeout_ms))
    return json.loads(raw) if isinstance(raw, str) else raw


def _selector_seen(selector: str, raw: Answer, forms: Sequence[SeenForm]) -> SelectorSeen:
    return SelectorSeen(
        selector=selector,
        matches=raw["matches"],
        visible=raw["visible"],
        inside=raw["inside"],
        invalid=raw["invalid"],
        unread=raw["unread"],
        control=_control(raw["control"]) if "control" in raw else _UNREAD,
        seen=_print(raw["print"]) if "print" in raw else None,
        roads=tuple(_road(road, forms) for road in raw.get("roads", ())),
    )


def _road(raw: Answer, forms: Sequence[SeenForm]) -> tuple[SeenElement, SeenForm | None]:
    form = raw["formFacts"]
    return read_element(raw), None if form is None else forms[form]


def _control(raw: Answer) -> ControlFacts:
    return ControlFacts(
        texts=tuple(raw["texts"]),
        identifiers=tuple(raw["identifiers"]),
        platform=raw["platform"],
        away=raw["away"],
        unfolds=raw["unfolds"],
        small=raw["small"],
    )


def _print(raw: Answer) -> PrintSeen:
    place = raw["place"]
    return PrintSeen(
        tag=raw["tag"],
        type=raw["type"],
        name=raw["name"],
        text=raw["text"],
        href=raw["href"],
        id=raw["id"],
        testid=raw["testid"],
        role=raw["role"],
        aria_label=raw["aria"],
        classes=tuple(raw["classes"]),
        neighbours=tuple(raw["near"]),
        shape=raw["shape"],
        place=None if place is None else (place[0], place[1]),
        picture=raw["picture"],
    )


@dataclass(frozen=True, slots=True)
class ArmedSeen:
    """The very element that is about to be acted on; `consents` when pressing it would give consent."""

    seen: PrintSeen
    control: ControlFacts
    consents: bool = False


async def armed(tab: "Tab", frame_id: str | None = None) -> ArmedSeen | None:
    """What the element looks like that an action is prepared for; None when it has left the page.

    Asked of one document only: another one has nothing that was prepared.
    """
    told = answer(await tab.channel.ask("knowledgeArmed", {}, frame_id=frame_id))
    if told.get("lost"):
        return None
    control, layer = _control(told["control"]), told["layer"]
    asked = layer is not None and (layer["kind"], layer["label"]) == ("consent", "accept")
    consents = asked or (told["nearConsent"] and label_for(control, "consent") == "accept")
    return ArmedSeen(_print(told["print"]), control, consents)


async def covered_share(tab: "Tab") -> float | None:
    """Which part of the window lies under layers that are not the page itself; None when there is no window to see."""
    raw, _ = await on_one_document(tab, lambda: tab.channel.ask("knowledgeCovered", {}))
    return raw if isinstance(raw, int | float) else None
