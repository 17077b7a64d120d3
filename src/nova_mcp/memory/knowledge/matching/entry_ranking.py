"""Which entry fits a page best: the ranking `weighted_v1`, near misses told apart from matches; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.memory.knowledge.health import NO_RATE, staleness, state, success_rate
from nova_mcp.memory.knowledge.matching.fingerprints import (
    Match,
    ObservedSignal,
    PageSignals,
    match,
    page_signals,
    same_locale,
)
from nova_mcp.memory.knowledge.matching.routes import Route, any_covers, restricts
from nova_mcp.memory.knowledge.model import Context, Health, HealthState, Phenomenon, PhenomenonType, Trust

MODEL: Final = "weighted_v1"
WEIGHTS: Final = {"confidence": 0.65, "health": 0.20, "trust": 0.10, "contextSpecificity": 0.05}
TRUST_WORTH: Final[dict[Trust, float]] = {"high": 1.0, "medium": 0.75, "low": 0.50, "unknown": 0.25}
STALENESS_COST: Final = 0.20
FAILURE_COST: Final = 0.10
FAILURES_COUNTED: Final = 3
PER_CONDITION: Final = 0.25


@dataclass(frozen=True, slots=True)
class Request:
    """Where the question is asked; what is not known neither speaks for an entry nor against it."""

    device: str | None = None
    locale: str | None = None
    auth: str | None = None
    route: Route | None = None


@dataclass(frozen=True, slots=True)
class ContextFit:
    """What an entry asks of its surroundings and how the request meets it."""

    specificity: float
    mismatches: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.mismatches


_ANYWHERE: Final = Context()
_FITS: Final = ContextFit(0.0)


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry with what speaks for it."""

    phenomenon: Phenomenon
    match: Match
    score: float
    health_worth: float
    specificity: float
    state: HealthState

    @property
    def may_apply(self) -> bool:
        return self.match.reached and self.state != "quarantined"


@dataclass(frozen=True, slots=True)
class Ranking:
    matches: tuple[Scored, ...] = ()
    near_misses: tuple[Scored, ...] = ()
    # Entries that the surroundings rule out, with the conditions they miss.
    ruled_out: tuple[tuple[Phenomenon, tuple[str, ...]], ...] = ()

    @property
    def best(self) -> Scored | None:
        return self.matches[0] if self.matches else None


@dataclass(frozen=True, slots=True)
class Question:
    """What is seen, where, and when."""

    observed: Sequence[ObservedSignal] | PageSignals
    request: Request
    trust: Trust
    now_ms: int
    type: PhenomenonType | None = None


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


def context_fit(context: Context, request: Request) -> ContextFit:
    """A quarter for each condition that is set and met; one that is missed rules the entry out."""
    if context == _ANYWHERE:
        return _FITS
    verdicts: dict[str, bool | None] = {
        "device": None if context.device is None or request.device is None else _same(context.device, request.device),
        "locale": None
        if context.locale is None or request.locale is None
        else same_locale(context.locale, request.locale),
        "auth": None if context.auth is None or request.auth is None else _same(context.auth, request.auth),
        "route": None
        if not restricts(context.routes) or request.route is None
        else any_covers(context.routes, request.route),
    }
    met = sum(verdict is True for verdict in verdicts.values())
    return ContextFit(PER_CONDITION * met, tuple(name for name, verdict in verdicts.items() if verdict is False))


def health_worth(health: Health, now_ms: int) -> float:
    rate = success_rate(health, now_ms)
    costs = STALENESS_COST * staleness(health, now_ms) + FAILURE_COST * min(
        FAILURES_COUNTED, health.consecutive_failures
    )
    return max(0.0, (NO_RATE if rate is None else rate) - costs)


def weighted(confidence: float, health: float, trust: Trust, specificity: float) -> float:
    return (
        WEIGHTS["confidence"] * confidence
        + WEIGHTS["health"] * health
        + WEIGHTS["trust"] * TRUST_WORTH[trust]
        + WEIGHTS["contextSpecificity"] * specificity
    )


def _scored(phenomenon: Phenomenon, specificity: float, question: Question) -> Scored:
    found = match(phenomenon.content.fingerprint, question.observed, question.request.locale)
    worth = health_worth(phenomenon.health, question.now_ms)
    score = weighted(found.confidence, worth, question.trust, specificity)
    return Scored(phenomenon, found, score, worth, specificity, state(phenomenon.health, question.now_ms))


def order(one: Scored) -> tuple[float, float, str, int]:
    """A total order: no two entries of a scope share id and revision."""
    return (-one.score, -one.match.confidence, one.phenomenon.stable_id, -one.phenomenon.revision)


def rank(entries: Iterable[Phenomenon], question: Question) -> Ranking:
    """Active entries only; nothing below and nothing retired is ever returned."""
    if not isinstance(question.observed, PageSignals):
        question = replace(question, observed=page_signals(question.observed))
    scored: list[Scored] = []
    ruled_out: list[tuple[Phenomenon, tuple[str, ...]]] = []
    for one in entries:
        if not one.may_guide or question.type not in (None, one.content.type):
            continue
        fit = context_fit(one.content.context, question.request)
        if fit.fits:
            scored.append(_scored(one, fit.specificity, question))
        else:
            ruled_out.append((one, fit.mismatches))
    scored.sort(key=order)
    return Ranking(
        tuple(one for one in scored if one.match.reached),
        tuple(one for one in scored if not one.match.reached and one.match.confidence > 0),
        tuple(sorted(ruled_out, key=lambda pair: pair[0].stable_id)),
    )
