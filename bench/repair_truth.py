"""What became of every element from one version of a page to the next, as people have labelled it, line by line.

A file per site. `== 4.0.0 login.html > 5.1.1 login.html` heads a pair of pages; below it stands every element of both:

    =  the same element, written the same way on both pages
    ~  the same element, written another way: `old >> new`; `old >> one || other` where either is right
    -  gone: only the old page has it, so the right answer is to propose nothing
    ?  nobody can say, so it is not counted
    +  only the new page has it

Two old elements may have become one.

An element is written as its tag, what it is called and where it leads or what it is named; a further one that is
written the same way gets a number by its order on the page.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nova_mcp.memory.knowledge.model import ElementPrint

FOLDER = Path(__file__).with_name("data") / "repair"
MARKS = "=~-?+"
_TEXT = 60


class Mislabelled(Exception):
    """A label that fits no element, or an element without a label."""


@dataclass(frozen=True, slots=True)
class Heading:
    old_version: str
    old_path: str
    new_version: str
    new_path: str

    def __str__(self) -> str:
        return f"== {self.old_version} {self.old_path} > {self.new_version} {self.new_path}"


@dataclass(frozen=True, slots=True)
class Label:
    """What became of one old element: any of `became` is right, none means gone, None that it is not counted."""

    old: str
    became: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Labels:
    labels: tuple[Label, ...]
    added: tuple[str, ...] = ()


def written(seen: ElementPrint) -> str:
    """An element as a person would point it out."""
    tag = f"{seen.tag}:{seen.type}" if seen.type and seen.tag == "input" else seen.tag
    text = (seen.text or seen.aria_label).replace("|", "/").replace(">>", "»")[:_TEXT].strip()
    return " ".join(part for part in (tag, f'"{text}"', seen.name or seen.href or seen.id) if part)


def keys_of(elements: Sequence[ElementPrint]) -> list[str]:
    """Every element's own line, in the order of the page."""
    met: Counter[str] = Counter()
    keys: list[str] = []
    for seen in elements:
        line = written(seen)
        met[line] += 1
        keys.append(line if met[line] == 1 else f"{line} #{met[line]}")
    return keys


def _label(mark: str, text: str) -> Label:
    if mark != "~":
        return Label(text, {"=": (text,), "-": (), "?": None}[mark])
    old, sign, new = text.partition(" >> ")
    if not sign:
        raise Mislabelled(f"nothing after: {text}")
    return Label(old.strip(), tuple(one.strip() for one in new.split(" || ")))


def _heading(line: str) -> Heading:
    old, sign, new = line.removeprefix("==").partition(" > ")
    parts = (*old.split(), *new.split())
    if not sign or len(parts) != 4:
        raise Mislabelled(f"no heading: {line}")
    return Heading(*parts)


def read_labels(text: str) -> dict[Heading, Labels]:
    found: dict[Heading, tuple[list[Label], list[str]]] = {}
    labels: list[Label] = []
    added: list[str] = []
    for line in text.splitlines():
        if line.startswith("=="):
            labels, added = [], []
            found[_heading(line)] = labels, added
        elif line.strip() and not line.startswith("#"):
            mark, rest = line[0], line[1:].strip()
            if mark not in MARKS or not found:
                raise Mislabelled(f"no label: {line}")
            if mark == "+":
                added.append(rest)
            else:
                labels.append(_label(mark, rest))
    return {heading: Labels(tuple(one), tuple(other)) for heading, (one, other) in found.items()}


def site_labels(site: str) -> dict[Heading, Labels]:
    file = FOLDER / f"{site}.txt"
    return read_labels(file.read_text(encoding="utf-8")) if file.is_file() else {}


def truth_of(labels: Labels, old: Sequence[ElementPrint], new: Sequence[ElementPrint]) -> list[frozenset[int] | None]:
    """For each old element the places on the new page that are right; labels and pages must fit completely."""
    old_keys, new_keys = keys_of(old), keys_of(new)
    place = {key: index for index, key in enumerate(new_keys)}
    told = {label.old: label for label in labels.labels}
    became = [key for label in labels.labels for key in label.became or ()]
    wrong = [
        *(f"twice: {key}" for key, count in Counter(one.old for one in labels.labels).items() if count > 1),
        *(f"not labelled: {key}" for key in old_keys if key not in told),
        *(f"not on the old page: {key}" for key in told if key not in set(old_keys)),
        *(f"not on the new page: {key}" for key in (*became, *labels.added) if key not in place),
        *(f"new and old: {key}" for key in labels.added if key in became),
        *(f"not accounted for: {key}" for key in new_keys if key not in {*became, *labels.added}),
    ]
    if wrong:
        raise Mislabelled("\n".join(wrong))
    answers = [told[key].became for key in old_keys]
    return [None if one is None else frozenset(place[key] for key in one) for one in answers]


def drafted(heading: Heading, old: Sequence[ElementPrint], new: Sequence[ElementPrint]) -> Iterator[str]:
    """A beginning for a person to check: what is written alike and equally often, and everything else as gone."""
    old_keys, new_keys = keys_of(old), keys_of(new)
    before, after = Counter(map(written, old)), Counter(map(written, new))
    yield str(heading)
    for key, seen in zip(old_keys, old, strict=True):
        yield f"{'=' if before[written(seen)] == after[written(seen)] else '-'} {key}"
    for key, seen in zip(new_keys, new, strict=True):
        if before[written(seen)] != after[written(seen)]:
            yield f"+ {key}"
    yield ""
