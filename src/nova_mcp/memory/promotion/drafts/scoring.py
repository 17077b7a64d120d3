"""How much a pattern deserves attention, part by part, so that every score can be added up by hand; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2
from typing import Final

from nova_mcp.memory.knowledge.health import ENOUGH_ATTEMPTS, TROUBLING_FAILURES, TROUBLING_RATE
from nova_mcp.memory.promotion.model import DAY_MS, Cluster, Opportunity, OpportunityKind

STALE: Final = 0.5
STALE_FAILURES: Final = TROUBLING_FAILURES
FAILING_ATTEMPTS: Final = ENOUGH_ATTEMPTS
FAILING_RATE: Final = TROUBLING_RATE
SUGGESTIONS: Final = 5
# The most that a pattern earns by being recent.
RECENCY_LIMIT: Final = 1.0

Parts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TroubledEntry:
    """An entry that guides or is about to, as far as drift is concerned."""

    host: str
    stable_id: str
    attempts: int
    successes: int
    failures: int
    consecutive_failures: int
    success_rate_30d: float | None
    staleness: float
    distinct_sessions: int
    last_at_ms: int


def total(parts: Parts) -> float:
    return round(sum(value for _, value in parts), 2)


def cluster_parts(found: Cluster, now_ms: int, *, known: bool) -> Parts:
    return (*_lasting_parts(found, known=known), ("recencyBonus", recency(now_ms - found.last_at_ms)))


def cluster_rank(found: Cluster, *, known: bool) -> float:
    """The score without what depends on the time of asking."""
    return total(_lasting_parts(found, known=known))


def _lasting_parts(found: Cluster, *, known: bool) -> Parts:
    return (
        ("supportScore", round(log2(max(1, found.support)), 2)),
        ("sessionBonus", 2.0 if found.distinct_sessions >= 2 else 0.0),
        ("successRateFactor", _success_factor(found.successes, found.failures)),
        ("driftSignal", _drift_signal(found, known=known)),
    )


def _success_factor(successes: int, failures: int) -> float:
    outcomes = successes + failures
    return round(2 * successes / outcomes, 2) if outcomes else 1.0


def _drift_signal(found: Cluster, *, known: bool) -> float:
    if known and found.drifts:
        return 3.0
    return -0.5 if found.failures > found.successes else 0.0


def recency(age_ms: int) -> float:
    return RECENCY_LIMIT if age_ms <= DAY_MS else 0.5 if age_ms <= 7 * DAY_MS else 0.0


def from_cluster(found: Cluster, now_ms: int, *, known: bool) -> Opportunity:
    """A cluster as something to look at; `known` when it is about an entry that exists."""
    parts = cluster_parts(found, now_ms, known=known)
    return Opportunity(
        host=found.key.host,
        candidate_key=found.key.key,
        dominant_kind=found.dominant_kind,
        support=found.support,
        successes=found.successes,
        failures=found.failures,
        distinct_sessions=found.distinct_sessions,
        score=total(parts),
        breakdown=parts,
        suggestion=_advice(found, known=known),
        last_at_ms=found.last_at_ms,
    )


def _advice(found: Cluster, *, known: bool) -> str:
    if known and found.drifts:
        return "A known control was not where it had been; unless that was repaired, revalidate the entry and patch it."
    if found.failures > found.successes:
        return "This fails more often than it works; find out why before anything is stored."
    if found.distinct_sessions < 2:
        return "This repeats within one session; see whether it comes back in another before storing it."
    if known:
        return "A stored entry is being used; see whether its gates pass."
    return "This comes back across sessions; generate a candidate if it is how the site works."


def drift_opportunities(standing: TroubledEntry) -> tuple[Opportunity, ...]:
    """Stored knowledge that needs a look: gone stale while it fails, or failing in use."""
    found = []
    if standing.consecutive_failures >= STALE_FAILURES and standing.staleness >= STALE:
        part = ("staleness", round(standing.staleness, 2))
        advice = "Checks keep failing and nothing has confirmed this entry for a while; revalidate it on the page."
        found.append(_drifting(standing, "silent_verify_drift", part, advice))
    rate = standing.success_rate_30d
    if rate is not None and standing.attempts >= FAILING_ATTEMPTS and rate < FAILING_RATE:
        part = ("failureShare", round(max(0.5, 1 - rate), 2))
        advice = "This entry fails in more than half of its uses; revalidate it, then patch or deprecate it."
        found.append(_drifting(standing, "active_failure_drift", part, advice))
    return tuple(found)


def drift_limit(failures_in_row: int) -> float:
    """The most that stored knowledge can score with that many failures in a row, whatever else is true of it."""
    return total(_drift_parts(failures_in_row, ("", 1.0)))


def _drift_parts(failures_in_row: int, part: tuple[str, float]) -> Parts:
    return (("driftItem", 2.0), ("failureStreak", min(2.0, 0.5 * failures_in_row)), part)


def _drifting(standing: TroubledEntry, kind: OpportunityKind, part: tuple[str, float], advice: str) -> Opportunity:
    parts = _drift_parts(standing.consecutive_failures, part)
    return Opportunity(
        host=standing.host,
        candidate_key=standing.stable_id,
        dominant_kind=kind,
        support=standing.attempts,
        successes=standing.successes,
        failures=standing.failures,
        distinct_sessions=standing.distinct_sessions,
        score=total(parts),
        breakdown=parts,
        suggestion=advice,
        last_at_ms=standing.last_at_ms,
    )


def ranked(found: Iterable[Opportunity], limit: int = SUGGESTIONS) -> tuple[Opportunity, ...]:
    """The best first; equal scores fall to the newer one, then to the name, so the order never depends on the input."""
    ordered = sorted(
        found, key=lambda one: (-one.score, -one.last_at_ms, one.host, one.candidate_key, one.dominant_kind)
    )
    return tuple(ordered[:limit])
