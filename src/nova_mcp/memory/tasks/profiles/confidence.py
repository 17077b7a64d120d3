"""How far a profile can be relied on, computed whenever it is read; pure."""

from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 24 * 60 * 60 * 1000
LEAST: Final = 0.10
MOST: Final = 0.99
# A profile's own word counts as much as this many runs.
_PRIOR_RUNS: Final = 4
_FRESH_DAYS: Final = 30
_FADING_DAYS: Final = 335
_FADES_BY: Final = 0.3


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a confidence was made of."""

    base: float
    effective: float
    completed: int
    failed: int
    idle_days: float
    recency_factor: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How a profile has done so far."""

    base: float
    completed: int
    failed: int
    updated_at_ms: int
    last_ended_at_ms: int | None = None


def recency_factor(idle_days: float) -> float:
    return 1 - _FADES_BY * min(1.0, max(0.0, idle_days - _FRESH_DAYS) / _FADING_DAYS)


def effective_confidence(standing: Standing, now_ms: int) -> Tuning:
    """What was claimed at first, moved by how runs ended, fading once nobody has done the task for a month."""
    since = standing.updated_at_ms if standing.last_ended_at_ms is None else standing.last_ended_at_ms
    idle_days = max(0, now_ms - since) / DAY_MS
    factor = recency_factor(idle_days)
    runs = standing.completed + standing.failed
    earned = (_PRIOR_RUNS * standing.base + standing.completed) / (_PRIOR_RUNS + runs)
    effective = min(MOST, max(LEAST, factor * earned))
    return Tuning(standing.base, effective, standing.completed, standing.failed, idle_days, factor)
