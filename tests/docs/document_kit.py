"""The documents and what stands in them: fenced blocks with what their writer says of them, links, names of tests.

A comment on the line before a block says what a test does with it:

    <!-- run -->              it is run and must end well
    <!-- run: browser -->     likewise, and it drives a browser
    <!-- from: path -->       its lines stand like that in a file of the repository, which has a test of its own
    <!-- file: name -->       it is the content of that file of the data folder, and is read as such
    <!-- not run: reason -->  nothing can be said of it

Without a comment, commands are checked against what exists, data is parsed, and text is left alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
_MARK = re.compile(r"^<!-- (run|from|file|not run)(?:: (.+?))? -->$")


def documents() -> list[Path]:
    own = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
    return [*own, *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True, slots=True)
class Block:
    path: Path
    line: int
    language: str
    text: str
    mark: str | None = None
    word: str | None = None

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    lines = path.read_text(encoding="utf-8").splitlines()
    opened: tuple[int, str, str] | None = None
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = (number, fence[1], fence[2])
        elif fence[1] == opened[1] and not fence[2]:
            start, _, language = opened
            mark = _MARK.match(lines[start - 2]) if start > 1 else None
            text = "\n".join(lines[start : number - 1]) + "\n"
            yield Block(path, start, language, text, mark and mark[1], mark and mark[2])
            opened = None
    if opened is not None:
        raise ValueError(f"{path}:{opened[0]}: a block without an end")


def every_block() -> list[Block]:
    return [block for path in documents() for block in blocks(path)]


def prose(path: Path) -> str:
    """The text without its blocks."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What the headings of a document are called in a link, the way code hosts make it."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", prose(path), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (numbered := name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(numbered)
    return found
