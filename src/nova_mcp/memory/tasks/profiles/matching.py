"""Which profile a described task is: scores, what is accepted and why something is not; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.memory.tasks.model import TaskContent
from nova_mcp.memory.tasks.profiles.filler_words import LIGHT_WORDS
from nova_mcp.memory.tasks.profiles.terms import dice, grams_of, index_terms, tokens, trigrams

Rejection = Literal["domain_mismatch", "platform_mismatch", "weak_text", "below_threshold"]

THRESHOLD: Final = 0.60
LEAST_TEXT: Final = 0.45
LEAST_LISTED: Final = 0.30
MOST_MATCHES: Final = 3

_TEXT_WEIGHT, _DOMAIN_WEIGHT, _PLATFORM_WEIGHT = 0.70, 0.20, 0.10
_NAME, _GOAL, _TYPE, _GUIDANCE = 1.0, 0.9, 0.8, 0.6
_LIGHT: Final = 0.3
_SAME_SITE: Final = 0.8
# Sums of fractions miss a threshold by less than this.
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for; `site` is the registrable domain of the host."""

    tokens: tuple[str, ...]
    domain: str | None = None
    site: str | None = None
    platform: str | None = None
    task_type: str | None = None

    @property
    def terms(self) -> frozenset[str]:
        return index_terms(self.tokens)


def query_of(
    text: str,
    *,
    domain: str | None = None,
    site: str | None = None,
    platform: str | None = None,
    task_type: str | None = None,
) -> Query:
    return Query(tokens(text, domain), domain, site, None if platform is None else platform.casefold(), task_type)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A profile as far as matching is concerned: what each of its words is worth, and where it belongs."""

    profile_id: str
    credits: Mapping[str, float]
    domain: str | None = None
    site: str | None = None
    platform: str | None = None
    confidence: float = 0.5
    usage: int = 0


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The parts of a score; None is a part that does not apply."""

    text: float
    domain: float | None
    platform: float | None


@dataclass(frozen=True, slots=True)
class Match:
    candidate: Candidate
    score: float
    parts: Breakdown
    rejected_because: Rejection | None

    @property
    def accepted(self) -> bool:
        return self.rejected_because is None


def credits_of(content: TaskContent) -> dict[str, float]:
    """What a word of a profile is worth: as much as in the field where it counts most."""
    found: dict[str, float] = {}
    fields = (
        (_GUIDANCE, " \n".join(one.text for one in content.stable_guidance)),
        (_TYPE, content.task_type),
        (_GOAL, content.goal),
        (_NAME, content.display_name),
    )
    for credit, text in fields:
        found |= dict.fromkeys(tokens(text), credit)
    return found


def weight_of(token: str) -> float:
    """How much of a query a word of it is."""
    return _LIGHT if token in LIGHT_WORDS else 1.0


class _Reading:
    """One query against many profiles: each word of theirs is compared with the query's once, and most say nothing."""

    def __init__(self, query: Query, words: Iterable[str]) -> None:
        self._weights = [weight_of(token) for token in query.tokens]
        self._total = sum(self._weights)
        self._trigrams = [trigrams(token) for token in query.tokens]
        self._alike = self._compared(words)

    def _compared(self, words: Iterable[str]) -> dict[str, list[tuple[int, float]]]:
        """The words that are like some of the query, with its places and how much."""
        every = frozenset[str]().union(*self._trigrams)
        fewest = min(map(len, self._trigrams), default=0)
        alike: dict[str, list[tuple[int, float]]] = {}
        for word in words:
            grams = grams_of(word)
            shared = every.intersection(grams)
            # What all of the query shares too little with, none of its words is like.
            if shared and dice(len(shared), len(grams), fewest):
                much = [dice(len(shared & own), len(grams), len(own)) for own in self._trigrams]
                alike[word] = [(place, one) for place, one in enumerate(much) if one]
        return alike

    def text(self, worth: Mapping[str, float]) -> tuple[float, bool]:
        """The share of the query's weight that the profile covers, and whether a word that tells something is in it."""
        best = [0.0] * len(self._weights)
        for word in worth.keys() & self._alike.keys():
            credit = worth[word]
            for place, alike in self._alike[word]:
                best[place] = max(best[place], credit * alike)
        gained = sum(weight * credit for weight, credit in zip(self._weights, best, strict=True))
        telling = any(credit > 0 and weight == 1 for weight, credit in zip(self._weights, best, strict=True))
        return (gained / self._total if self._total else 0.0), telling


def match_profiles(query: Query, candidates: Iterable[Candidate]) -> list[Match]:
    """Every candidate judged, best first; a profile that shares no word with the query is left out."""
    known = list(candidates)
    reading = _Reading(query, set[str]().union(*(one.credits for one in known)))
    found = [_judged(query, reading, one) for one in known]
    return sorted(
        (one for one in found if one.parts.text > 0),
        key=lambda one: (-one.score, -one.candidate.confidence, -one.candidate.usage, one.candidate.profile_id),
    )


def best_of(matches: Iterable[Match]) -> Match | None:
    return next((one for one in matches if one.accepted), None)


def shown_of(matches: list[Match]) -> list[Match]:
    """The few that are told; the one that is accepted is always among them."""
    top, best = matches[:MOST_MATCHES], best_of(matches)
    return top if best is None or best in top else [*top[:-1], best]


def _judged(query: Query, reading: _Reading, one: Candidate) -> Match:
    text, telling = reading.text(one.credits)
    parts = Breakdown(round(text, _DIGITS), _domain_part(query, one), _platform_part(query, one))
    score = round(score_of(parts.text, parts.domain, parts.platform), _DIGITS)
    return Match(one, score, parts, _rejection(score, parts, telling=telling))


def score_of(text: float, domain: float | None, platform: float | None = None) -> float:
    """The parts that apply, weighed; between 0 and 1."""
    gained, weights = _TEXT_WEIGHT * text, _TEXT_WEIGHT
    if domain is not None:
        gained, weights = gained + _DOMAIN_WEIGHT * domain, weights + _DOMAIN_WEIGHT
    if platform is not None:
        gained, weights = gained + _PLATFORM_WEIGHT * platform, weights + _PLATFORM_WEIGHT
    return min(1.0, max(0.0, gained / weights))


def _domain_part(query: Query, one: Candidate) -> float | None:
    if query.domain is None or one.domain is None:
        return None
    if query.domain == one.domain:
        return 1.0
    return _SAME_SITE if query.site is not None and query.site == one.site else 0.0


def _platform_part(query: Query, one: Candidate) -> float | None:
    if query.platform is None or one.platform is None:
        return None
    return 1.0 if query.platform == one.platform.casefold() else 0.0


def _rejection(score: float, parts: Breakdown, *, telling: bool) -> Rejection | None:
    if parts.domain == 0:
        return "domain_mismatch"
    if parts.platform == 0:
        return "platform_mismatch"
    if parts.text < LEAST_TEXT or not telling:
        return "weak_text"
    return "below_threshold" if score < THRESHOLD else None
