"""What a look at an open page finds of selectors, elements and signs; pure."""

from dataclasses import dataclass
from typing import Final

from nova_mcp.core.page.control_labels import ControlFacts

# One question takes so many.
MAX_SELECTORS: Final = 64
UNREAD_CONTROL: Final = ControlFacts()


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
    did not suffice for: it says nothing.
    """

    selector: str
    matches: int
    visible: bool = False
    inside: bool | None = None
    invalid: bool = False
    unread: bool = False
    control: ControlFacts = UNREAD_CONTROL
    seen: PrintSeen | None = None


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
