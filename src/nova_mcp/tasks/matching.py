"""Which profile a described task is: scores, what is accepted and why something is not; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.tasks.filler_words import LIGHT_WORDS
from nova_mcp.tasks.model import TaskContent
from nova_mcp.tasks.terms import index_terms, likeness, tokens, trigrams

Rejection = Literal["domain_mismatch", "platform_mismatch", "weak_text", "below_threshold"]

THRESHOLD: Final = 0.60
LEAST_TEXT: Final = 0.45
LEAST_LISTED: Final = 0.30
MOST_MATCHES: Final = 3
# Found by their rarest terms, so many profiles of each: work stays the same however many profiles there are.
QUERY_TERMS: Final = 8
PROFILES_PER_TERM: Final = 500
# Of those found, the ones under the most, and the rarest, of the terms are judged: always so many, and at most so many
# as long as the terms speak for them at least this much as for the first.
LEAST_JUDGED: Final = 100
MOST_JUDGED: Final = 500
_SPOKEN_FOR: Final = 1 / 3

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


@dataclass(frozen=True, slots=True)
class Hit:
    """A term of the query, in how many profiles it stands, and the ones that were looked up."""

    term: str
    profiles: int
    found: Sequence[str]


def worth_judging(hits: Sequence[Hit]) -> list[str]:
    """The profiles to hold the query against: those that several rare terms speak for first."""
    weights: dict[str, float] = {}
    for hit in hits:
        weight = 1 / (1 + math.log1p(hit.profiles))
        for profile_id in hit.found:
            weights[profile_id] = weights.get(profile_id, 0.0) + weight
    # Sorting keeps the order of what weighs the same: own site first, then newest.
    ordered = sorted(weights, key=lambda one: -weights[one])[:MOST_JUDGED]
    return [
        one
        for place, one in enumerate(ordered)
        if place < LEAST_JUDGED or weights[one] >= _SPOKEN_FOR * weights[ordered[0]]
    ]


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


class _Reading:
    """One query against many profiles: a word of theirs is compared with the query's once, and most say nothing."""

    def __init__(self, query: Query) -> None:
        self._weights = [_LIGHT if token in LIGHT_WORDS else 1.0 for token in query.tokens]
        self._total = sum(self._weights)
        self._tokens = query.tokens
        self._trigrams = frozenset[str]().union(*map(trigrams, query.tokens))
        self._seen: dict[str, tuple[tuple[int, float], ...]] = {}

    def text(self, worth: Mapping[str, float]) -> tuple[float, bool]:
        """The share of the query's weight that the profile covers, and whether a word that tells something is in it."""
        best = [0.0] * len(self._tokens)
        for word, credit in worth.items():
            for place, alike in self._alike(word):
                best[place] = max(best[place], credit * alike)
        gained = sum(weight * credit for weight, credit in zip(self._weights, best, strict=True))
        telling = any(credit > 0 and weight == 1 for weight, credit in zip(self._weights, best, strict=True))
        return (gained / self._total if self._total else 0.0), telling

    def _alike(self, word: str) -> tuple[tuple[int, float], ...]:
        known = self._seen.get(word)
        if known is None:
            known = self._seen[word] = () if self._trigrams.isdisjoint(trigrams(word)) else self._compared(word)
        return known

    def _compared(self, word: str) -> tuple[tuple[int, float], ...]:
        found = ((place, likeness(token, word)) for place, token in enumerate(self._tokens))
        return tuple((place, alike) for place, alike in found if alike)


def match_profiles(query: Query, candidates: Iterable[Candidate]) -> list[Match]:
    """Every candidate judged, best first; a profile that shares no word with the query is left out."""
    reading = _Reading(query)
    found = [_judged(query, reading, one) for one in candidates]
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
    weighed = [
        (weight, part)
        for weight, part in (
            (_TEXT_WEIGHT, parts.text),
            (_DOMAIN_WEIGHT, parts.domain),
            (_PLATFORM_WEIGHT, parts.platform),
        )
        if part is not None
    ]
    score = sum(weight * part for weight, part in weighed) / sum(weight for weight, _ in weighed)
    score = round(min(1.0, max(0.0, score)), _DIGITS)
    return Match(one, score, parts, _rejection(score, parts, telling=telling))


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
