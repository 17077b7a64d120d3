"""Questions about a page as it was perceived, answered without the page: lists, searches, the outline."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from nova_mcp.browser.channel.frame_ids import shown_id
from nova_mcp.browser.perceive.element_lines import element_line, quoted
from nova_mcp.browser.perceive.element_ranking import is_on_screen
from nova_mcp.browser.perceive.refs import Perception
from nova_mcp.browser.perceive.scan_values import Scan, SeenElement
from nova_mcp.browser.read.snapshots import Snapshot

QueryRegion: TypeAlias = Literal["main", "nav", "footer", "aside", "dialog", "form"]

# What is searched of one element is never longer than this.
_SEARCHED_CHARS: Final = 2000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which elements of a look are meant."""

    role: str | None = None
    region: QueryRegion | None = None

    @property
    def any(self) -> bool:
        return self.role is None and self.region is None


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing a look holds: an element, or a line of its outline; `searched` is what a search looks through."""

    searched: str
    element: SeenElement | None = None
    line: str = ""


def _in_region(element: SeenElement, region: QueryRegion) -> bool:
    match region:
        case "main":
            return element.in_main and not element.in_nav
        case "dialog":
            return element.in_dialog
        case "form":
            return element.form != 0
        case "nav" | "footer" | "aside":
            return element.region == region


def elements_of(scan: Scan, chosen: Filter) -> list[SeenElement]:
    """The elements that are meant, in document order."""
    return [
        element
        for element in scan.elements
        if (chosen.role is None or element.facts.role == chosen.role)
        and (chosen.region is None or _in_region(element, chosen.region))
    ]


def outline_of(scan: Scan) -> list[Entry]:
    """Dialogs, landmarks, headings and frames, as lines."""
    lines = [
        *(f"dialog {layer.role} {quoted(layer.name, 60)}{' modal' if layer.modal else ''}" for layer in scan.layers),
        *(f"landmark {one.role}" + (f" {quoted(one.name, 60)}" if one.name else "") for one in scan.landmarks),
        *(f"h{heading.level} {quoted(heading.text, 100)}" for heading in scan.headings),
        *(f"frame {shown_id(frame.frame_id)} {quoted(frame.origin, 80)}" for frame in scan.frames),
    ]
    return [Entry(line, line=line) for line in lines]


def summary_of(scan: Scan) -> list[Entry]:
    """How many elements of each role a look holds, and where."""
    roles = Counter(element.facts.role for element in scan.elements)
    counts = [f"{count} {role if role.isalpha() else 'generic'}" for role, count in roles.most_common()]
    places: list[tuple[str, Callable[[SeenElement], bool]]] = [
        ("in dialogs", lambda element: element.in_dialog),
        ("in forms", lambda element: element.form != 0),
        ("in navigation", lambda element: element.in_nav),
        ("behind a modal dialog", lambda element: element.behind),
        ("disabled", lambda element: "disabled" in element.flags),
        ("on screen", lambda element: is_on_screen(element, scan.page.viewport)),
    ]
    told = [f"{sum(map(test, scan.elements))} {what}" for what, test in places]
    outline = f"{len(scan.headings)} headings, {len(scan.landmarks)} landmarks, {len(scan.frames)} frames"
    page = f"{quoted(scan.page.title, 120)} {quoted(scan.page.url, 300)}"
    return [Entry(line, line=line) for line in (page, *counts, *told, outline)]


def searchable(scan: Scan, chosen: Filter) -> list[Entry]:
    """Everything a search looks through; with a filter, elements only."""
    elements = [
        Entry(" ".join((e.facts.role, e.facts.name, e.value, e.facts.row_key, e.facts.href_path))[:_SEARCHED_CHARS], e)
        for e in elements_of(scan, chosen)
    ]
    return elements if not chosen.any else [*elements, *outline_of(scan)]


def containing(entries: Sequence[Entry], query: str) -> list[Entry]:
    wanted = query.casefold()
    return [entry for entry in entries if wanted in entry.searched.casefold()]


def entry_line(perception: Perception, snapshot: Snapshot, entry: Entry) -> str:
    """An entry as a line; an element gets the ref it had, or one that fits what it was."""
    element = entry.element
    if element is None:
        return entry.line
    extra = () if is_on_screen(element, snapshot.scan.page.viewport) else ("offscreen",)
    name = perception.name_late(snapshot, element)
    return element_line(name, element, snapshot.selectors.get(element.spot), extra)


def element_named(snapshot: Snapshot, ref: str) -> SeenElement | None:
    """The element of a look that a ref was given to."""
    spot = next((spot for spot, name in snapshot.names.items() if name == ref), None)
    if spot is None:
        return None
    return next((element for element in snapshot.scan.elements if element.spot == spot), None)
