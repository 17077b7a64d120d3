"""What a platform's playbook has to hold: named sections in a fixed order, none of them empty; pure."""

import re
from dataclasses import dataclass
from typing import Final

PLAYBOOK_KEY: Final = "PLATFORM_PLAYBOOK"

SECTIONS: Final[tuple[str, ...]] = (
    "Platform",
    "Surface Map",
    "Navigation",
    "Access and Identity",
    "Blockers",
    "Controls and Forms",
    "Workflows",
    "Commit Points",
    "Success and Failure Signals",
    "Fragile and Unknown",
    "Evidence",
)

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class PlaybookCheck:
    """Whether a playbook is complete; a section counts as missing where it is absent, empty or out of place."""

    complete: bool
    missing_sections: tuple[str, ...]


@dataclass(slots=True)
class _Section:
    title: str
    filled: bool = False


def check_playbook(text: str) -> PlaybookCheck:
    """Read the level-2 headings of a Markdown text; other headings in between are content."""
    found = _sections(text)
    place, missing = 0, []
    for wanted in SECTIONS:
        at = next((i for i in range(place, len(found)) if found[i].title == wanted and found[i].filled), None)
        if at is None:
            missing.append(wanted)
        else:
            place = at + 1
    return PlaybookCheck(not missing, tuple(missing))


def _sections(text: str) -> list[_Section]:
    found: list[_Section] = []
    fence = ""
    for line in text.splitlines():
        heading = None if fence else _HEADING.fullmatch(line)
        if heading is not None and len(heading.group(1)) == 2:
            found.append(_Section(" ".join((heading.group(2) or "").split())))
            continue
        before, fence = fence, _fence_after(line, fence)
        # A fence or a bare heading is no content by itself; what it holds or heads is.
        if found and line.strip() and fence == before and heading is None:
            found[-1].filled = True
    return found


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line; empty when none is."""
    mark = _FENCE.fullmatch(line)
    if mark is None:
        return fence
    if not fence:
        return mark.group(1)
    closes = mark.group(1)[0] == fence[0] and len(mark.group(1)) >= len(fence) and not mark.group(2).strip()
    return "" if closes else fence
