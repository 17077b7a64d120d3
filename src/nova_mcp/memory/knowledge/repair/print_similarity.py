"""How alike two prints of elements are, attribute by attribute, weighted by how long each lasts in practice; pure."""

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from nova_mcp.core.page.consent_words import said_by
from nova_mcp.core.page.selectors import looks_generated
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.synonyms import DRAWING, meaning

Family = Literal["press", "entry", "choice", "other"]

_HIGH: Final = 1.5
_MIDDLE: Final = 1.0
_LOWER: Final = 0.5
_LOWEST: Final = 0.25
WEIGHTS: Final = {
    "tag": _HIGH,
    "type": _HIGH,
    "name": _HIGH,
    "text": _HIGH,
    "testid": _HIGH,
    "picture": _HIGH,
    "aria_label": _MIDDLE,
    "id": _MIDDLE,
    "href": _MIDDLE,
    "role": _MIDDLE,
    "classes": _LOWER,
    "neighbours": _LOWEST,
    "shape": _LOWEST,
    "place": _LOWEST,
}
# Attributes that are meant to tell one element from another.
TELLING: Final = ("text", "name", "testid", "id", "aria_label", "href", "picture")
# Something that only the newer print has says little: pages gain labels and ids without becoming other pages.
_GAINED: Final = 0.5
_OTHER_NUMBER: Final = 0.93
SAME_MEANING: Final = 0.92
_SAME_LABEL: Final = _OTHER_NUMBER
_OTHER_TWIN: Final = 0.5
# How much it counts to stand where an element is expected, and that it is one of several alike.
_IN_ORDER: Final = 0.5
_IN_ORDER_TWIN: Final = 2.0
_PRESSED_TAGS: Final = frozenset({"button", "a", "summary"})
_PRESSED_TYPES: Final = frozenset({"submit", "button", "image", "reset"})
_CHOICE_TYPES: Final = frozenset({"checkbox", "radio"})
_EDITED_TAGS: Final = frozenset({"input", "textarea"})
_PRESSED_ROLES: Final = frozenset({"button", "link", "menuitem", "tab"})
_NO_LABEL: Final = " .…·•-–—_*|"
_STANDING: Final = "active disabled enabled show shown open opened closed collapsed selected current"
_STATES: Final = frozenset(_STANDING.split())
_KINDRED_TYPES: Final = frozenset({"", "text", "email", "search", "tel", "url", "number"})
_DIGITS: Final = re.compile(r"\d+")
_NOT_WORD: Final = re.compile(r"[\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@functools.lru_cache(maxsize=16_384)
def words(text: str) -> tuple[str, ...]:
    """The words of a label or identifier; numbers are content and count alike."""
    spaced = _CAMEL.sub(" ", unicodedata.normalize("NFKC", text))
    return tuple(word for word in _NOT_WORD.split(_DIGITS.sub("0", spaced).casefold()) if word)


def _dice(left: Counter[str], right: Counter[str]) -> float:
    size = left.total() + right.total()
    return 2 * (left & right).total() / size if size else 0.0


@functools.lru_cache(maxsize=16_384)
def _trigrams(text: str) -> Counter[str]:
    padded = f"  {text} "
    return Counter(padded[index : index + 3] for index in range(len(padded) - 2))


@functools.lru_cache(maxsize=65_536)
def text_likeness(one: str, other: str) -> float:
    """Equal but for case, blanks and signs is 1; other numbers or other words for the same cost little.

    Else it is what words and letters share.
    """
    left, right = words(one), words(other)
    if not left or not right:
        return 1.0 if one.strip() == other.strip() else 0.0
    joined = "".join(left), "".join(right)
    if joined[0] == joined[1]:
        return 1.0 if _DIGITS.findall(one) == _DIGITS.findall(other) else _OTHER_NUMBER
    if meaning(left) == meaning(right):
        return SAME_MEANING
    return 0.95 * (0.5 * _dice(Counter(left), Counter(right)) + 0.5 * _dice(_trigrams(joined[0]), _trigrams(joined[1])))


def _identifier_likeness(one: str, other: str) -> float:
    """Ids and names: equal, or the same words in another spelling; what is generated never tells anything."""
    if one == other:
        return 1.0
    if looks_generated(one) or looks_generated(other):
        return 0.0
    return 0.9 * text_likeness(one, other)


def _path(href: str) -> tuple[str, ...]:
    place = re.sub(r"^[a-z][a-z0-9+.-]*://[^/]*", "", href, flags=re.IGNORECASE).split("#", 1)[0].split("?", 1)[0]
    place = re.sub(r"\.(?:html?|php|aspx?|jsp)$", "", place)
    return tuple(part for part in place.split("/") if part not in ("", ".", ".."))


def _href_likeness(one: str, other: str) -> float:
    if one == other:
        return 1.0
    left, right = _path(one), _path(other)
    if not left or not right:
        return 0.0
    if left == right:
        return 0.95
    shared = 0
    for old, new in zip(reversed(left), reversed(right), strict=False):
        if old != new:
            break
        shared += 1
    return 0.8 * shared / max(len(left), len(right))


def _jaccard(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    left, right = set(one), set(other)
    return len(left & right) / len(left | right) if left | right else 0.0


@functools.lru_cache(maxsize=4096)
def _written(classes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in classes if not looks_generated(one))


@functools.lru_cache(maxsize=16_384)
def _shape_likeness(one: str, other: str) -> float:
    """Paths by tags, compared from the element upwards, because pages change at the top."""
    left = [part for part in re.sub(r"\[\d+\]", "", one).split("/") if part]
    right = [part for part in re.sub(r"\[\d+\]", "", other).split("/") if part]
    shared = 0
    for old, new in zip(reversed(left), reversed(right), strict=False):
        if old != new:
            break
        shared += 1
    return shared / max(len(left), len(right), 1)


def _place_likeness(one: tuple[float, float] | None, other: tuple[float, float] | None) -> float:
    return 0.0 if one is None or other is None else max(0.0, 1 - math.dist(one, other))


def family(seen: ElementPrint) -> Family:
    """What can be done with an element at all."""
    if seen.tag == "select" or seen.type in _CHOICE_TYPES or seen.role in ("checkbox", "radio", "switch", "combobox"):
        return "choice"
    if seen.tag in _PRESSED_TAGS or seen.type in _PRESSED_TYPES or seen.role in _PRESSED_ROLES:
        return "press"
    if seen.tag in _EDITED_TAGS or seen.role in ("textbox", "searchbox"):
        return "entry"
    return "other"


def label_of(seen: ElementPrint) -> str:
    """What it says, or what it shows instead. The number beside an icon only counts something; dots say nothing."""
    shown = pictured(seen.picture)
    for text in (seen.text, seen.aria_label):
        if any(map(str.isalpha, text)) or (not shown and text.strip(_NO_LABEL)):
            return text
    return shown


@functools.lru_cache(maxsize=4096)
def pictured(name: str) -> str:
    """The words of a picture's name that say what it shows, not how it is drawn."""
    written = (one for one in name.split() if not looks_generated(one))
    return " ".join(word for one in written for word in words(one) if word not in DRAWING)


def _tag_likeness(one: ElementPrint, other: ElementPrint) -> float:
    if one.tag == other.tag:
        return 1.0
    return 0.6 if family(one) == family(other) != "other" else 0.0


def _type_likeness(one: ElementPrint, other: ElementPrint) -> float:
    if one.type == other.type:
        return 1.0
    kindred = {one.type, other.type} <= _KINDRED_TYPES or {one.type, other.type} <= _PRESSED_TYPES | {""}
    return 0.6 if kindred else 0.0


def excludes(old: ElementPrint, new: ElementPrint) -> str | None:
    """Why one can't be the other, however alike they look; None when it could be."""
    if family(old) != family(new):
        return "another kind of control"
    if family(old) == "entry" and "password" in (old.type, new.type) and old.type != new.type:
        return "a password field and another one"
    if "file" in (old.type, new.type) and old.type != new.type:
        return "a file field and another one"
    before, after = _says(old), _says(new)
    if before is not None and after is not None and before != after:
        return "its label says the opposite"
    return None


# A page has few labels and they are asked for again and again.
@functools.lru_cache(maxsize=4096)
def _polarity(label: str) -> str | None:
    said = said_by(label)
    if said is None or said == "unknown":
        return None
    return "reject" if said in ("decline", "excuse") else said


def _says(seen: ElementPrint) -> str | None:
    return _polarity(seen.text or seen.aria_label)


def _class_likeness(old: ElementPrint, new: ElementPrint) -> float:
    return _jaccard(_written(old.classes), _written(new.classes))


def _neighbour_likeness(old: ElementPrint, new: ElementPrint) -> float:
    return _jaccard(_folded(old.neighbours), _folded(new.neighbours))


_COMPARED: Final[Mapping[str, Callable[[ElementPrint, ElementPrint], float]]] = {
    "tag": _tag_likeness,
    "type": _type_likeness,
    "name": lambda old, new: _identifier_likeness(old.name, new.name),
    "text": lambda old, new: text_likeness(old.text, new.text),
    "testid": lambda old, new: _identifier_likeness(old.testid, new.testid),
    "aria_label": lambda old, new: text_likeness(old.aria_label, new.aria_label),
    "id": lambda old, new: _identifier_likeness(old.id, new.id),
    "href": lambda old, new: _href_likeness(old.href, new.href),
    "picture": lambda old, new: text_likeness(pictured(old.picture), pictured(new.picture)),
    "role": lambda old, new: float(old.role == new.role),
    "classes": _class_likeness,
    "neighbours": _neighbour_likeness,
    "shape": lambda old, new: _shape_likeness(old.shape, new.shape),
    "place": lambda old, new: _place_likeness(old.place, new.place),
}


@dataclass(frozen=True, slots=True)
class Lens:
    """What to look at: weights, and what only this one of several alike elements had on its page.

    That can be neighbouring texts, the number in its label, or a word in its classes.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    own_neighbours: frozenset[str] = frozenset()
    own_marks: frozenset[str] = frozenset()
    numbered: bool = False
    order: float = _IN_ORDER


PLAIN: Final = Lens()


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two prints are in all, and in each attribute that either of them has."""

    score: float
    parts: tuple[tuple[str, float], ...]

    def of(self, name: str) -> float | None:
        return next((value for part, value in self.parts if part == name), None)


def twins_of(learned: ElementPrint, old_page: Sequence[ElementPrint]) -> list[ElementPrint]:
    """Other elements of the page it was learned on that say and do the same, such as one button in every row.

    Without a label, it is everything of its family that says nothing either.
    """
    others = list(old_page)
    if learned in others:
        others.remove(learned)
    kind, label = family(learned), label_of(learned)
    alike = (one for one in others if family(one) == kind)
    if not label:
        return [one for one in alike if not label_of(one)]
    return [one for one in alike if text_likeness(label, label_of(one)) >= _SAME_LABEL]


def lens_for(learned: ElementPrint, old_page: Sequence[ElementPrint]) -> Lens:
    """Among elements that are alike, what tells them apart counts most: their row's own text, an id, a destination."""
    twins = twins_of(learned, old_page)
    if not twins:
        return PLAIN
    shared = {text for one in twins for text in _folded(one.neighbours)}
    own = frozenset(text for text in _folded(learned.neighbours) if text not in shared)
    label = label_of(learned)
    numbered = bool(label) and all(text_likeness(label, label_of(one)) < 1.0 for one in twins)
    taken = {word for one in twins for word in marks_of(one)}
    marks = frozenset() if label else marks_of(learned) - taken
    apart = {
        name
        for name in ("name", "testid", "id", "aria_label", "href")
        if _value(learned, name) and all(getattr(one, name) != getattr(learned, name) for one in twins)
    }
    apart |= {name for name, has in (("neighbours", own), ("text", numbered), ("classes", marks)) if has}
    weights = {name: weight + (_HIGH if name in apart else 0.0) for name, weight in WEIGHTS.items()}
    return Lens(weights, own, marks, numbered, _IN_ORDER_TWIN)


@functools.lru_cache(maxsize=4096)
def marks_of(seen: ElementPrint) -> frozenset[str]:
    """The words of its classes, without those that say how it stands at the moment."""
    return frozenset(word for one in _written(seen.classes) for word in words(one)) - _STATES


@functools.lru_cache(maxsize=4096)
def _folded(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(text.casefold().split()) for text in texts)


def _compared(name: str, old: ElementPrint, new: ElementPrint, lens: Lens) -> float:
    if name == "neighbours" and lens.own_neighbours:
        return len(lens.own_neighbours.intersection(_folded(new.neighbours))) / len(lens.own_neighbours)
    if name == "classes" and lens.own_marks:
        return len(lens.own_marks & marks_of(new)) / len(lens.own_marks)
    if name == "text" and lens.numbered:
        share = text_likeness(old.text, new.text)
        return _OTHER_TWIN if share == _OTHER_NUMBER else share
    return _COMPARED[name](old, new)


def likeness(old: ElementPrint, new: ElementPrint, lens: Lens = PLAIN, in_place: bool | None = None) -> Likeness:
    """What both lack is not counted, what only the new one has counts half.

    `in_place` says whether it stands where the old one is to be expected, None that nobody knows.
    """
    total = agreed = 0.0
    parts: list[tuple[str, float]] = []
    for name, weight in lens.weights.items():
        had, has = _value(old, name), _value(new, name)
        if not had and not has:
            continue
        share = _compared(name, old, new, lens) if had and has else 0.0
        worth = weight if had else weight * _GAINED
        total += worth
        agreed += worth * share
        parts.append((name, share))
    if in_place is not None:
        total += lens.order
        agreed += lens.order * in_place
        parts.append(("order", float(in_place)))
    return Likeness(agreed / total if total else 0.0, tuple(parts))


def keeps(old: ElementPrint, new: ElementPrint, name: str) -> bool:
    """Whether an attribute that tells elements apart has stayed as it was."""
    before, after = _value(old, name), _value(new, name)
    if not before or not after:
        return False
    if name in ("text", "aria_label", "picture"):
        return text_likeness(str(before), str(after)) == 1.0
    return before == after


def _value(seen: ElementPrint, name: str) -> object:
    value = getattr(seen, name)
    if name in ("id", "testid", "name") and looks_generated(value):
        return ""
    if name == "href" and value.strip() in ("#", ""):
        return ""
    if name == "picture":
        return pictured(value)
    return _written(value) if name == "classes" else value
