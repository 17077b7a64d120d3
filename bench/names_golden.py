"""What is kept of pages that others wrote: enough to see that a control got another role or name, and which one."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from bench.names_oracle import Pair

GOLDEN = Path(__file__).with_name("names_golden.json")
ACTED_ON = frozenset(
    {
        "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton",
        "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem",
    }
)  # fmt: skip
_MARK_LETTERS = 6


@dataclass(frozen=True, slots=True)
class Kept:
    """One page: how many controls, how many of them with a name, and a mark of each in place of its words."""

    controls: int
    named: int
    marks: str


Pages = dict[str, Kept]


def lines_of(pairs: Sequence[Pair]) -> list[str]:
    """Role and name of every control, in the order of the page."""
    return [f"{pair.nova.role} {pair.nova.name}" for pair in pairs if pair.nova.role in ACTED_ON]


def _mark(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:_MARK_LETTERS]


def kept_of(lines: Sequence[str]) -> Kept:
    named = sum(1 for line in lines if line.split(" ", 1)[1])
    return Kept(len(lines), named, " ".join(map(_mark, lines)))


def page_difference(lines: Sequence[str], golden: Kept) -> str | None:
    """The first control that is not what it was; None where all are."""
    pairs = zip_longest(lines, golden.marks.split())
    for place, (line, mark) in enumerate(pairs, start=1):
        if line is None:
            return f"control {place} of {golden.controls} is gone"
        if mark is None or _mark(line) != mark:
            return f"control {place} is now {line[:80]!r}"
    return None


def golden_differences(seen: Mapping[str, Mapping[str, Sequence[str]]], golden: Mapping[str, Pages]) -> list[str]:
    """Every kept page that looks different or was not seen; pages that nobody kept are no difference."""
    found = []
    for package, pages in golden.items():
        for path, kept in pages.items():
            lines = seen.get(package, {}).get(path)
            why = "not seen" if lines is None else page_difference(lines, kept)
            if why is not None:
                found.append(f"{package}/{path}: {why}")
    return found


def read_golden() -> dict[str, Pages]:
    told = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {package: {path: Kept(**kept) for path, kept in pages.items()} for package, pages in told.items()}


def write_golden(seen: Mapping[str, Mapping[str, Sequence[str]]], golden: Mapping[str, Pages]) -> None:
    """Keep what was seen; packages that could not be looked at stay as they were."""
    now = {package: {path: kept_of(lines) for path, lines in pages.items()} for package, pages in seen.items()}
    told = {
        package: {path: asdict(kept) for path, kept in pages.items()}
        for package, pages in sorted({**golden, **now}.items())
    }
    GOLDEN.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
