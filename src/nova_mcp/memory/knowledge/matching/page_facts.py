"""What a page showed, in the words of the knowledge rules, and what stored entries have to ask a page; pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nova_mcp.core.page.looks import ElementSeen, PrintSeen, SelectorSeen, SignalsSeen, VendorSign, WantedSignals
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal, distinct
from nova_mcp.memory.knowledge.model import ElementPrint, Phenomenon, Platform, Signal
from nova_mcp.memory.knowledge.repair.repair import PageElement
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook, bounded

NEIGHBOURHOOD: Final = 80
_HOST: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)+[a-z][a-z0-9-]{1,62}")


def print_of(seen: PrintSeen) -> ElementPrint:
    """A print as it may be kept."""
    return bounded(
        ElementPrint(
            tag=seen.tag,
            type=seen.type,
            name=seen.name,
            text=seen.text,
            href=seen.href,
            id=seen.id,
            testid=seen.testid,
            role=seen.role,
            aria_label=seen.aria_label,
            classes=seen.classes,
            neighbours=seen.neighbours,
            shape=seen.shape,
            place=seen.place,
            picture=seen.picture,
        )
    )


def page_elements(seen: Iterable[ElementSeen]) -> tuple[PageElement, ...]:
    """The page as repair looks at it."""
    return tuple(PageElement(one.node, print_of(one.seen), one.selector, at) for at, one in enumerate(seen))


def live_looks(seen: Mapping[str, SelectorSeen]) -> dict[str, LiveLook]:
    """What a live check goes by. A selector that could not be read in time is left out: nobody has looked for it."""
    return {
        selector: LiveLook(one.matches, one.inside, one.control) for selector, one in seen.items() if not one.unread
    }


def observed_signals(seen: SignalsSeen) -> tuple[ObservedSignal, ...]:
    """Everything that holds, as a fingerprint is matched against."""
    return (
        *(ObservedSignal(one, "dom") for one in seen.dom),
        *(ObservedSignal(one, "vendor") for one in seen.vendors),
        *(ObservedSignal(one, "text") for one in seen.text),
        *(ObservedSignal(one, "interaction") for one in seen.interaction),
        *(ObservedSignal(one, "layout") for one in seen.layout),
    )


def _vendors(signals: Iterable[Signal], platforms: Sequence[Platform]) -> tuple[VendorSign, ...]:
    """Every known platform, and each vendor that an entry names by the host of its script."""
    found = {
        one.stable_id: VendorSign(
            one.stable_id,
            tuple(alias.value.lower() for alias in one.aliases if alias.kind == "script_host"),
            tuple(alias.value for alias in one.aliases if alias.kind == "dom_marker"),
        )
        for one in platforms
    }
    signs: dict[str, VendorSign] = {str(name): sign for name, sign in found.items()}
    for signal in signals:
        host = signal.match.strip().lower()
        if signal.kind == "vendor" and signal.match not in signs and _HOST.fullmatch(host):
            signs[signal.match] = VendorSign(signal.match, (host,))
    return tuple(signs.values())


def wanted_of(phenomena: Iterable[Phenomenon], platforms: Iterable[Platform] = ()) -> WantedSignals:
    """What a page has to be asked so that all of these entries, and their baselines, can be judged."""
    signals = distinct(
        one for entry in phenomena for one in (*entry.content.fingerprint.signals, *sorted(entry.baseline, key=_order))
    )
    return WantedSignals(
        dom=tuple(dict.fromkeys(one.match for one in signals if one.kind == "dom")),
        text=tuple(dict.fromkeys(one.match for one in signals if one.kind == "text")),
        vendors=_vendors(signals, tuple(platforms)),
    )


def _order(signal: Signal) -> tuple[str, str, str]:
    return signal.kind, signal.match, signal.locale or ""


def surroundings(
    prints: Sequence[ElementPrint], of: ElementPrint, most: int = NEIGHBOURHOOD
) -> tuple[ElementPrint, ...]:
    """The elements nearest to one of them in the order of the document, itself included; none if it is not there."""
    if of not in prints or most < 1:
        return ()
    at = prints.index(of)
    begin = max(0, min(at - most // 2, len(prints) - most))
    return tuple(prints[begin : begin + most])
