"""Health: what attempts and silent checks make of an entry, how stale it is, and how far a scope is trusted; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from nova_mcp.memory.knowledge.model import (
    ACTIVE,
    SHADOW,
    DayCount,
    DomainHint,
    Health,
    HealthState,
    Level,
    Phenomenon,
    Trust,
)

# `misfire` is a failure whose action was carried out and proven wrong.
HealthOutcome = Literal["success", "failure", "misfire", "silent_ok", "silent_drift", "not_applicable"]

DAY_MS: Final = 24 * 60 * 60 * 1000
WINDOW_DAYS: Final = 30
STALE_DAYS: Final = 30
ENOUGH_ATTEMPTS: Final = 5
HEALTHY_RATE: Final = 0.95
QUARANTINE_RATE: Final = 0.80
QUARANTINE_FAILURES: Final = 3
CLEAN_TO_LEAVE: Final = 3
HIGH_TRUST_ENTRIES: Final = 3
NO_RATE: Final = 0.5
TROUBLING_FAILURES: Final = 2
TROUBLING_RATE: Final = 0.5
MOST_TROUBLE: Final = 5


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """Something that happened to an entry. Confirmations on one occasion count once; without a name each is its own."""

    outcome: HealthOutcome
    at_ms: int
    occasion: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    successes: int
    failures: int

    @property
    def attempts(self) -> int:
        return self.successes + self.failures

    @property
    def rate(self) -> float | None:
        return self.successes / self.attempts if self.attempts else None


def _window(days: Iterable[DayCount], now_ms: int) -> Window:
    first = now_ms // DAY_MS - WINDOW_DAYS
    kept = [one for one in days if one.day > first]
    return Window(sum(one.successes for one in kept), sum(one.failures for one in kept))


def last_30_days(health: Health, now_ms: int) -> Window:
    return _window(health.recent, now_ms)


def success_rate(health: Health, now_ms: int) -> float | None:
    """Of the last 30 days; None without attempts."""
    return last_30_days(health, now_ms).rate


def staleness(health: Health, now_ms: int) -> float:
    """From 0 just confirmed to 1 after 30 days, or never."""
    if health.last_confirmed_at_ms is None:
        return 1.0
    return min(1.0, max(0, now_ms - health.last_confirmed_at_ms) / (STALE_DAYS * DAY_MS))


def _since_release(health: Health, now_ms: int) -> Window:
    return _window((one for one in health.recent if one.run == health.run), now_ms)


def _falls_ill(health: Health, now_ms: int) -> bool:
    if health.consecutive_failures >= QUARANTINE_FAILURES:
        return True
    judged = _since_release(health, now_ms)
    return judged.attempts >= ENOUGH_ATTEMPTS and (judged.rate or 0.0) < QUARANTINE_RATE


def state(health: Health, now_ms: int) -> HealthState:
    if health.quarantined_at_ms is not None:
        return "quarantined"
    if last_30_days(health, now_ms).failures == 0:
        return "healthy"
    judged = _since_release(health, now_ms)
    well = judged.attempts >= ENOUGH_ATTEMPTS and (judged.rate or 0.0) >= HEALTHY_RATE
    return "healthy" if well else "watch"


def _counted(health: Health, at_ms: int, *, won: bool) -> tuple[DayCount, ...]:
    day = at_ms // DAY_MS
    kept = [one for one in health.recent if one.day > day - WINDOW_DAYS]
    same = next((one for one in kept if one.day == day and one.run == health.run), DayCount(day, health.run))
    kept = [one for one in kept if one != same]
    more = replace(same, successes=same.successes + won, failures=same.failures + (not won))
    return tuple(sorted((*kept, more), key=lambda one: (one.day, one.run)))


def _later(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)


def _succeeded(health: Health, event: HealthEvent) -> Health:
    return replace(
        health,
        attempts=health.attempts + 1,
        successes=health.successes + 1,
        consecutive_failures=0,
        recent=_counted(health, event.at_ms, won=True),
        last_success_at_ms=_later(health.last_success_at_ms, event.at_ms),
        last_confirmed_at_ms=_later(health.last_confirmed_at_ms, event.at_ms),
    )


def _failed(health: Health, event: HealthEvent) -> Health:
    severe = event.outcome == "misfire"
    after = replace(
        health,
        attempts=health.attempts + 1,
        failures=health.failures + 1,
        consecutive_failures=health.consecutive_failures + 1,
        severe_misfires=health.severe_misfires + severe,
        recent=_counted(health, event.at_ms, won=False),
        last_failure_at_ms=_later(health.last_failure_at_ms, event.at_ms),
        clean=(),
    )
    return _quarantined(after, event.at_ms) if severe else after


def drifted(health: Health, at_ms: int) -> Health:
    """Health once the page was found changed, by a check or by a use."""
    return replace(health, last_drift_at_ms=_later(health.last_drift_at_ms, at_ms))


def _quarantined(health: Health, at_ms: int) -> Health:
    return health if health.quarantined_at_ms is not None else replace(health, quarantined_at_ms=at_ms, clean=())


def _confirmed(health: Health, event: HealthEvent) -> Health:
    after = replace(health, last_confirmed_at_ms=_later(health.last_confirmed_at_ms, event.at_ms))
    if after.quarantined_at_ms is None:
        return after
    occasion = event.occasion or f"{event.at_ms}#{len(after.clean)}"
    clean = after.clean if occasion in after.clean else (*after.clean, occasion)
    return replace(after, clean=clean) if len(clean) < CLEAN_TO_LEAVE else released(after)


def released(health: Health) -> Health:
    """Health after a quarantine: what was before stays in the books, but what comes is judged anew."""
    if health.quarantined_at_ms is None:
        return health
    return replace(health, clean=(), quarantined_at_ms=None, consecutive_failures=0, run=health.run + 1)


def after_event(health: Health, event: HealthEvent) -> Health:
    """Health once something has happened. Only a failure leads into quarantine, which stays until three clean
    confirmations in a row: neither time nor a success makes an entry ill."""
    match event.outcome:
        case "success":
            return _succeeded(health, event)
        case "failure" | "misfire":
            failed = _failed(health, event)
            return _quarantined(failed, event.at_ms) if _falls_ill(failed, event.at_ms) else failed
        case "silent_ok":
            return _confirmed(health, event)
        case "silent_drift":
            missed = replace(health, silent_verify_fails=health.silent_verify_fails + 1, clean=())
            return drifted(missed, event.at_ms)
        case "not_applicable":
            return health


def failures_in_row(kept: Phenomenon | DomainHint) -> int:
    """Since the last success, silent checks included."""
    return max(kept.health.consecutive_failures, kept.standing.run.length)


def trouble(kept: Phenomenon | DomainHint) -> int:
    """Whether an entry that guides, or may come to, has to be looked at one day: 0 if not, else by failures in a row.

    Time decides more; whatever it could come to is in here.
    """
    if kept.deprecated or kept.level < SHADOW:
        return 0
    row = failures_in_row(kept)
    failing = kept.health.attempts >= ENOUGH_ATTEMPTS and _worst_rate(kept.health) < TROUBLING_RATE
    return 1 + min(MOST_TROUBLE - 1, row) if failing or row >= TROUBLING_FAILURES else 0


def _worst_rate(health: Health) -> float:
    """The lowest success rate that is left when older days go, one after the other."""
    worst, successes, failures = 1.0, 0, 0
    for day in reversed(health.recent):
        successes, failures = successes + day.successes, failures + day.failures
        if successes + failures:
            worst = min(worst, successes / (successes + failures))
    return worst


class Rated(Protocol):
    """As much of an entry as trust depends on."""

    @property
    def level(self) -> Level: ...

    @property
    def deprecated(self) -> bool: ...

    @property
    def health(self) -> Health: ...


def trust_of(entries: Iterable[Rated], now_ms: int) -> Trust:
    """How far a scope is trusted; derived from its entries and never set."""
    alive = [one for one in entries if not one.deprecated]
    active = [one for one in alive if one.level == ACTIVE]
    if len(active) >= HIGH_TRUST_ENTRIES and all(state(one.health, now_ms) == "healthy" for one in active):
        return "high"
    if active:
        return "medium"
    return "low" if any(one.level == SHADOW for one in alive) else "unknown"
