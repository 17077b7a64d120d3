"""How much one principal may ask for: calls per minute and calls at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nova_mcp.core.clock import Clock
from nova_mcp.errors import BudgetExhausted

MINUTE_MS = 60_000
BUSY_RETRY_MS = 1_000
# What sums of fractions lose on their way to one whole.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Bucket:
    """Allowance left at a moment; it grows back evenly."""

    left: float
    at_ms: float


@dataclass(frozen=True, slots=True)
class Taken:
    bucket: Bucket


@dataclass(frozen=True, slots=True)
class Empty:
    retry_after_ms: int


def take(bucket: Bucket | None, now_ms: float, per_minute: int) -> Taken | Empty:
    """Spend one, or say when there will be one."""
    if bucket is None:
        return Taken(Bucket(per_minute - 1.0, now_ms))
    grown = max(0.0, now_ms - bucket.at_ms) * per_minute / MINUTE_MS
    left = min(float(per_minute), bucket.left + grown)
    if left >= 1.0 - _ROUNDING:
        return Taken(Bucket(max(0.0, left - 1.0), now_ms))
    return Empty(max(1, int((1.0 - left) * MINUTE_MS / per_minute + 0.999)))


class Limits:
    """Counts per principal; principals come from the token file, so the tables stay small."""

    def __init__(self, clock: Clock, per_minute: int, at_once: int) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._at_once = at_once
        self._buckets: dict[str, Bucket] = {}
        self._running: dict[str, int] = {}

    def spend(self, principal: str) -> None:
        """Count one request. Raises `BudgetExhausted` when the minute is used up."""
        match take(self._buckets.get(principal), self._clock.monotonic_ms(), self._per_minute):
            case Taken(bucket):
                self._buckets[principal] = bucket
            case Empty(retry_after_ms):
                raise BudgetExhausted(
                    "rate.limited",
                    f"{self._per_minute} requests a minute are allowed and used up",
                    stage="gate",
                    retry_after_ms=retry_after_ms,
                )

    @contextmanager
    def running(self, principal: str) -> Iterator[None]:
        """Hold one of the places for calls at once."""
        if self._running.get(principal, 0) >= self._at_once:
            raise BudgetExhausted(
                "rate.limited",
                f"{self._at_once} calls at once are allowed and running",
                "Nothing ran. Wait for one of them to end, then call again.",
                stage="gate",
                retry_after_ms=BUSY_RETRY_MS,
            )
        self._running[principal] = self._running.get(principal, 0) + 1
        try:
            yield
        finally:
            self._running[principal] -= 1
