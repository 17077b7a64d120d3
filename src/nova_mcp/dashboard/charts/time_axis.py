"""A time axis: where a moment stands, and round times to name on it; pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
MOST_TICKS: Final = 7
# A life of a few seconds is drawn as one of a minute.
LEAST_SPAN_MS: Final = MINUTE_MS
_STEPS: Final = (
    *(MINUTE_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * count for count in (1, 2, 3, 6, 12)),
    *(DAY_MS * count for count in (1, 2, 7, 14, 30, 90, 180, 365, 730, 3650)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Moments from left to right."""

    from_ms: int
    to_ms: int
    left: float
    right: float

    def x(self, at_ms: int) -> float:
        span = max(self.to_ms - self.from_ms, LEAST_SPAN_MS)
        share = min(1.0, max(0.0, (at_ms - self.from_ms) / span))
        return round(self.left + share * (self.right - self.left), 1)

    def ticks(self) -> tuple[Tick, ...]:
        span = max(self.to_ms - self.from_ms, LEAST_SPAN_MS)
        step = next((one for one in _STEPS if span // one < MOST_TICKS), _STEPS[-1])
        first = -(-self.from_ms // step) * step
        times = range(first, self.from_ms + span + 1, step)
        return tuple(Tick(self.x(at_ms), _label(at_ms, step)) for at_ms in times)


def _label(at_ms: int, step_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if step_ms >= 90 * DAY_MS:
        return f"{at:%b %Y}"
    day = f"{at.day} {at:%b}"
    return day if step_ms >= DAY_MS or at_ms % DAY_MS == 0 else f"{at:%H:%M}"
