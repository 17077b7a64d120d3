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
from nova_mcp.core.page.looks import (
    MAX_SELECTORS,
    UNREAD_CONTROL,
    ElementSeen,
    ItemsSeen,
    PrintSeen,
    SelectorSeen,
    SignalsSeen,
    WantedSignals,
)
from nova_mcp.core.values import Json

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_SURFACES: Final = 8
MAX_ELEMENTS: Final = 400
MAX_DOM: Final = 1500
MAX_TEXTS: Final = 800
MAX_VENDORS: Final = 200
_SELECTOR_CHARS: Final = 2000
# Of the time a caller waits, this share is for the page's own work; what it can't read until then it says so.
_FOR_THE_PAGE: Final = 0.5


@dataclass(frozen=True, slots=True)
class JudgedSelector(SelectorSeen):
    """What a selector finds, with the controls that a press on it would set off."""

    roads: tuple[tuple[SeenElement, SeenForm | None], ...] = ()

    def commit_point(self, trigger: Trigger = "click", *, accepts: bool = False) -> CommitPoint | None:
        """The commit that using the element would be, by the rules of a click or a key."""
        roads = self.roads if trigger == "click" else self.roads[:1]
        points = (classify_commit_point(commit_facts(one, form, trigger, accepts=accepts)) for one, form in roads)
        return next((point for point in points if point is not None), None)


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
    seen: dict[str, SelectorSeen] = {
        one: _selector_seen(one, raw, forms) for one, raw in zip(asked, told["seen"], strict=True)
    }
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


def _selector_seen(selector: str, raw: Answer, forms: Sequence[SeenForm]) -> JudgedSelector:
    return JudgedSelector(
        selector=selector,
        matches=raw["matches"],
        visible=raw["visible"],
        inside=raw["inside"],
        invalid=raw["invalid"],
        unread=raw["unread"],
        control=_control(raw["control"]) if "control" in raw else UNREAD_CONTROL,
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
