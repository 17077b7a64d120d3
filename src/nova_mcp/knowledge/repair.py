"""Repair: which element of a page is the one that a lost selector stood for — one candidate, or none; pure.

A wrong repair is worse than none, so whatever is doubtful is left to the agent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.browser.elements import looks_generated
from nova_mcp.knowledge.model import ElementPrint
from nova_mcp.knowledge.similarity import (
    PLAIN,
    TELLING,
    Likeness,
    excludes,
    keeps,
    lens_for,
    likeness,
    twins_of,
)
from nova_mcp.knowledge.stability import stability

AbstainReason = Literal[
    "no_candidates",
    "nothing_telling",
    "contradicted",
    "too_different",
    "too_close",
    "not_mutual",
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
_LABEL_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class PageElement:
    """An element of the page as it is now; `selector` is the page's own proposal if it names this element alone."""

    node: int
    seen: ElementPrint
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """The best candidate with everything that speaks for and against it.

    `mutual` is None without an old page; `contradicted` when another element has kept what this one has lost.
    """

    candidate: PageElement
    likeness: Likeness
    margin: float
    mutual: bool | None
    telling: bool
    contradicted: bool
    selector: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Repair:
    """A suggestion; only a verified action makes it knowledge."""

    candidate: PageElement
    selector: str
    confidence: float
    assessment: Assessment


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

    Without the old page nobody knows how many elements said the same, so a label needs its surroundings.
    """
    stayed = [name for name in TELLING if (found.of(name) or 0.0) >= _TELLS]
    if alone and set(stayed) <= {"text", "aria_label"}:
        return bool(stayed) and found.of("neighbours") != 0.0
    return bool(stayed)


def _is_contradicted(learned: ElementPrint, candidate: PageElement, page: Sequence[PageElement]) -> bool:
    """Whether another element has kept a telling attribute that the candidate has not."""
    lost = [name for name in TELLING if getattr(learned, name) and not keeps(learned, candidate.seen, name)]
    rivals = [one.seen for one in page if one.node != candidate.node and excludes(learned, one.seen) is None]
    return any(keeps(learned, rival, name) for rival in rivals for name in lost)


def _is_mutual(learned: ElementPrint, candidate: ElementPrint, old_page: Sequence[ElementPrint]) -> bool:
    """Whether the candidate's best match on the old page is the element that is looked for, and it alone."""
    own = likeness(learned, candidate, lens_for(learned, old_page)).score
    twins = twins_of(learned, old_page)
    others = list(old_page)
    if learned in others:
        others.remove(learned)
    for other in others:
        if excludes(other, candidate) is not None:
            continue
        lens = lens_for(other, old_page) if other in twins else PLAIN
        if likeness(other, candidate, lens).score >= own:
            return False
    return True


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
    ranked = sorted(
        ((likeness(learned, one.seen, lens), one) for one in page if excludes(learned, one.seen) is None),
        key=lambda pair: (-pair[0].score, pair[1].node),
    )
    if not ranked:
        return None
    found, candidate = ranked[0]
    margin = found.score - (ranked[1][0].score if len(ranked) > 1 else 0.0)
    mutual = None if old_page is None else _is_mutual(learned, candidate.seen, old_page)
    selector = proposed_selector(candidate, page)
    sure = _confidence(found.score, margin, mutual, selector)
    telling = _is_telling(found, alone=old_page is None)
    contradicted = _is_contradicted(learned, candidate, page)
    return Assessment(candidate, found, margin, mutual, telling, contradicted, selector, sure)


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
    if found.selector is None:
        return Abstain("no_unique_selector", found)
    if found.confidence < min_confidence:
        return Abstain("unsure", found)
    return Repair(found.candidate, found.selector, found.confidence, found)


def repair(
    learned: ElementPrint, page: Sequence[PageElement], old_page: Sequence[ElementPrint] | None = None
) -> Repair | Abstain:
    """One candidate for an element that its selector no longer finds, or the reason why there is none."""
    return decide(assess(learned, page, old_page))
