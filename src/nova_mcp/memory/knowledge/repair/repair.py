"""Repair: which element of a page is the one that a lost selector stood for — one candidate, or none; pure.

A wrong repair is worse than none, so whatever is doubtful is left to the agent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.page.selectors import looks_generated
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.landmarks import Gap, landmarks, slot_of
from nova_mcp.memory.knowledge.repair.print_similarity import (
    PLAIN,
    SAME_MEANING,
    TELLING,
    Likeness,
    excludes,
    family,
    keeps,
    label_of,
    lens_for,
    likeness,
    marks_of,
    text_likeness,
    twins_of,
)
from nova_mcp.memory.knowledge.writes.stability import stability

AbstainReason = Literal[
    "no_candidates",
    "nothing_telling",
    "contradicted",
    "too_different",
    "too_close",
    "not_mutual",
    "twin_gone",
    "moved",
    "no_unique_selector",
    "unsure",
]

MIN_SCORE: Final = 0.50
MIN_MARGIN: Final = 0.04
# Without the page it was learned on nobody can ask whether the candidate was something else there.
MIN_MARGIN_ALONE: Final = 0.15
MIN_CONFIDENCE: Final = 0.50
_FULL_MARGIN: Final = 0.20
_WITHOUT_MARGIN: Final = 0.55
_ALONE: Final = 0.85
_RISKY: Final = 0.90
_TELLS: Final = 0.90
# What being the only one to keep something that only the lost element had is worth beside likeness.
_SOLE: Final = 0.15
_LABEL_CHARS: Final = 60
_REGIONS: Final = frozenset({"nav", "aside", "header", "footer", "main", "dialog"})
_IDENTIFIERS: Final = ("name", "testid", "id", "href")


@dataclass(frozen=True, slots=True)
class PageElement:
    """An element of the page as it is now; `selector` is the page's own proposal if it names this element alone.

    `at` is its place in the order of the document, None where nobody knows.
    """

    node: int
    seen: ElementPrint
    selector: str | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """The best candidate with everything that speaks for and against it.

    `mutual` is None without an old page; `contradicted` when another element has kept what this one has lost;
    `twin_gone` when there are fewer elements of its label than there were and nothing says which of them is left;
    `moved` when it stands elsewhere and nothing but the label is the same.
    """

    candidate: PageElement
    likeness: Likeness
    margin: float
    mutual: bool | None
    telling: bool
    contradicted: bool
    twin_gone: bool
    moved: bool
    selector: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Repair:
    """A suggestion; only a verified action makes it knowledge."""

    candidate: PageElement
    selector: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Abstain:
    reason: AbstainReason
    best: Assessment | None = None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ")
    return f'"{escaped}"'


def selectors_for(seen: ElementPrint) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Ways to name an element, best first, each with the attributes it asks for."""
    found: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    if seen.id and not looks_generated(seen.id):
        # The attribute form needs no escapes and means the same.
        found.append((f"[id={_quoted(seen.id)}]", (("id", seen.id),)))
    if seen.testid and not looks_generated(seen.testid):
        found.append((f"[data-testid={_quoted(seen.testid)}]", (("testid", seen.testid),)))
    label = seen.aria_label
    if label and len(label) <= _LABEL_CHARS:
        found.append((f"{seen.tag}[aria-label={_quoted(label)}]", (("tag", seen.tag), ("aria_label", label))))
    if seen.role and seen.text and len(seen.text) <= _LABEL_CHARS:
        found.append((f"role={seen.role}[name={_quoted(seen.text)}]", (("role", seen.role), ("text", seen.text))))
    if seen.name:
        found.append((f"{seen.tag}[name={_quoted(seen.name)}]", (("tag", seen.tag), ("name", seen.name))))
    if seen.href and seen.tag == "a" and seen.href != "#":
        found.append((f"a[href={_quoted(seen.href)}]", (("tag", "a"), ("href", seen.href))))
    return tuple(found)


def proposed_selector(element: PageElement, page: Sequence[PageElement]) -> str | None:
    """The best selector that names this element and no other of the page.

    The page's own proposal was checked against everything there is; what is made here only against the candidates.
    """
    if element.selector is not None:
        return element.selector
    for selector, asked in selectors_for(element.seen):
        named = sum(all(getattr(one.seen, name) == value for name, value in asked) for one in page)
        if named == 1:
            return selector
    return None


def _is_telling(found: Likeness, *, alone: bool) -> bool:
    """Whether anything that is meant to tell elements apart has stayed; several half-truths are none.

    Other words for the same count only where the element is expected. Without the old page nobody knows how many
    elements said or showed the same, so a label needs its surroundings.
    """
    stayed = {name: share for name in TELLING if (share := found.of(name) or 0.0) >= _TELLS}
    if alone:
        stayed.pop("picture", None)
    labels = {name: stayed.pop(name) for name in ("text", "aria_label") if name in stayed}
    if stayed or not labels:
        return bool(stayed)
    if max(labels.values()) <= SAME_MEANING and found.of("order") != 1.0:
        return False
    return not alone or found.of("neighbours") != 0.0


def _is_contradicted(learned: ElementPrint, candidate: PageElement, page: Sequence[PageElement]) -> bool:
    """Whether another element has kept a telling attribute that the candidate has not."""
    lost = [name for name in TELLING if getattr(learned, name) and not keeps(learned, candidate.seen, name)]
    rivals = [one.seen for one in page if one.node != candidate.node and excludes(learned, one.seen) is None]
    return any(keeps(learned, rival, name) for rival in rivals for name in lost)


class _Pages:
    """Both pages side by side, and where each old element is to be expected on the new one."""

    def __init__(self, old: Sequence[ElementPrint], page: Sequence[PageElement]) -> None:
        self.old = old
        placed = [one for one in page if one.at is not None]
        self.new = sorted(placed, key=lambda one: one.at or 0) if len(placed) == len(page) else []
        self._place = {one.node: index for index, one in enumerate(self.new)}
        self._prints = [one.seen for one in self.new]
        self._known = landmarks(old, self._prints) if self.new else []
        self._slots: dict[int, Gap | None] = {}

    def slot(self, index: int) -> Gap | None:
        if not self._known:
            return None
        if index not in self._slots:
            slot = slot_of(index, self._known, (len(self.old), len(self.new)))
            # A row is known by what stands in it; its number among the rows is chance.
            rows = bool(lens_for(self.old[index], self.old).own_neighbours)
            self._slots[index] = slot if slot is None or rows else slot.narrowed(index, self.old, self._prints)
        return self._slots[index]

    def slot_for(self, learned: ElementPrint) -> Gap | None:
        return self.slot(self.old.index(learned)) if learned in self.old else None

    def in_place(self, slot: Gap | None, candidate: PageElement) -> bool | None:
        return None if slot is None else slot.holds(self._place[candidate.node])

    def alone_there(self, slot: Gap | None, learned: ElementPrint, candidate: PageElement) -> bool:
        """Whether neither says anything, and no other such element stands between the same two landmarks."""
        if slot is None or label_of(learned) or label_of(candidate.seen) or not self.in_place(slot, candidate):
            return False
        before = self.old[slot.old[0] + 1 : slot.old[1]]
        after = [one.seen for one in self.new[slot.new[0] + 1 : slot.new[1]]]
        return all(
            sum(family(one) == family(learned) and not label_of(one) for one in side) == 1 for side in (before, after)
        )


def _is_mutual(learned: ElementPrint, candidate: PageElement, own: float, pages: _Pages) -> bool:
    """Whether the candidate's best match on the old page is the element that is looked for, and it alone."""
    twins = twins_of(learned, pages.old)
    skipped = False
    for index, other in enumerate(pages.old):
        if other == learned and not skipped:
            skipped = True
            continue
        if excludes(other, candidate.seen) is not None:
            continue
        lens = lens_for(other, pages.old) if other in twins else PLAIN
        # Standing in its place can only raise it so far; looking for that place is dear.
        if likeness(other, candidate.seen, lens, in_place=True).score < own:
            continue
        in_place = pages.in_place(pages.slot(index), candidate)
        if likeness(other, candidate.seen, lens, in_place).score >= own:
            return False
    return True


def _sole_keeper(learned: ElementPrint, page: Sequence[PageElement], old_page: Sequence[ElementPrint]) -> int | None:
    """The node that alone has kept what only the lost element had; None where there is none or they disagree."""
    others = list(old_page)
    if learned in others:
        others.remove(learned)
    able = [one for one in page if excludes(learned, one.seen) is None]
    found: set[int] = set()
    for name in TELLING:
        if not any(keeps(learned, one, name) for one in others):
            keepers = [one.node for one in able if keeps(learned, one.seen, name)]
            found |= set(keepers) if len(keepers) == 1 else set()
    if not label_of(learned):
        own = lens_for(learned, old_page).own_marks
        keepers = [one.node for one in able if own and own <= marks_of(one.seen)]
        found |= set(keepers) if len(keepers) == 1 else set()
    return found.pop() if len(found) == 1 else None


def _is_twin_gone(learned: ElementPrint, page: Sequence[PageElement], old_page: Sequence[ElementPrint]) -> bool:
    """Whether fewer elements carry its label than did before."""
    label, kind = label_of(learned), family(learned)
    if not label:
        return False

    def count(prints: Iterable[ElementPrint]) -> int:
        return sum(family(one) == kind and text_likeness(label, label_of(one)) == 1.0 for one in prints)

    return 1 < count(old_page) > count(one.seen for one in page)


def _is_moved(learned: ElementPrint, candidate: ElementPrint, found: Likeness) -> bool:
    """Whether only its label speaks for an element that stands in another part of the page."""
    if found.of("order") != 0.0 or any((found.of(name) or 0.0) >= _TELLS for name in _IDENTIFIERS):
        return False
    return _region(learned) != _region(candidate)


def _region(seen: ElementPrint) -> str:
    """The part of the page that an element stands in, by the tags around it."""
    return next((tag for tag in reversed(seen.shape.split("/")) if tag in _REGIONS), "")


def _confidence(score: float, margin: float, mutual: bool | None, selector: str | None) -> float:
    worth = score * (_WITHOUT_MARGIN + (1 - _WITHOUT_MARGIN) * min(1.0, margin / _FULL_MARGIN))
    if mutual is None:
        worth *= _ALONE
    if selector is not None and stability(selector) != "stable":
        worth *= _RISKY
    return worth


def assess(
    learned: ElementPrint, page: Sequence[PageElement], old_page: Sequence[ElementPrint] | None = None
) -> Assessment | None:
    """The element that looks most like the learned one, and how far ahead of the next it is."""
    lens = PLAIN if old_page is None else lens_for(learned, old_page)
    pages = None if old_page is None else _Pages(old_page, page)
    slot = None if pages is None else pages.slot_for(learned)
    sole = None if old_page is None else _sole_keeper(learned, page, old_page)
    found_of = {
        one.node: likeness(learned, one.seen, lens, None if pages is None else pages.in_place(slot, one))
        for one in page
        if excludes(learned, one.seen) is None
    }
    worth = {node: found.score + (_SOLE if node == sole else 0.0) for node, found in found_of.items()}
    ranked = sorted((one for one in page if one.node in worth), key=lambda one: (-worth[one.node], one.node))
    if not ranked:
        return None
    candidate = ranked[0]
    found = found_of[candidate.node]
    margin = worth[candidate.node] - (worth[ranked[1].node] if len(ranked) > 1 else 0.0)
    selector = proposed_selector(candidate, page)
    mutual = None if pages is None else _is_mutual(learned, candidate, found.score, pages)
    telling = _is_telling(found, alone=pages is None)
    gone = False
    if pages is not None and candidate.node == sole:
        telling = True
    elif pages is not None:
        telling = telling or pages.alone_there(slot, learned, candidate)
        known = pages.in_place(slot, candidate) or (lens.own_neighbours and found.of("neighbours") == 1.0)
        gone = not known and _is_twin_gone(learned, page, pages.old)
    return Assessment(
        candidate,
        found,
        margin,
        mutual,
        telling,
        _is_contradicted(learned, candidate, page),
        gone,
        _is_moved(learned, candidate.seen, found),
        selector,
        _confidence(found.score, margin, mutual, selector),
    )


def decide(found: Assessment | None, min_confidence: float = MIN_CONFIDENCE) -> Repair | Abstain:
    """Every doubt has a name; only what leaves none is proposed."""
    if found is None:
        return Abstain("no_candidates")
    if not found.telling:
        return Abstain("nothing_telling", found)
    if found.contradicted:
        return Abstain("contradicted", found)
    if found.likeness.score < MIN_SCORE:
        return Abstain("too_different", found)
    if found.margin < (MIN_MARGIN_ALONE if found.mutual is None else MIN_MARGIN):
        return Abstain("too_close", found)
    if found.mutual is False:
        return Abstain("not_mutual", found)
    if found.twin_gone:
        return Abstain("twin_gone", found)
    if found.moved:
        return Abstain("moved", found)
    if found.selector is None:
        return Abstain("no_unique_selector", found)
    if found.confidence < min_confidence:
        return Abstain("unsure", found)
    return Repair(found.candidate, found.selector, found.confidence)


def repair(
    learned: ElementPrint, page: Sequence[PageElement], old_page: Sequence[ElementPrint] | None = None
) -> Repair | Abstain:
    """One candidate for an element that its selector no longer finds, or the reason why there is none."""
    return decide(assess(learned, page, old_page))
