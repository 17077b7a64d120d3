"""The story's clock: the machine's, put back by some days, so that the last day of the story is today."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from nova_mcp.core.clock import SystemClock

HOUR_MS = 60 * 60_000
DAY_MS = 24 * HOUR_MS


class StoryClock(SystemClock):
    """Runs like any clock and is moved between two visits; it never goes back and never passes the real one."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._behind_ms = (days - 1) * DAY_MS
        self._held_ms: int | None = None

    def now_ms(self) -> int:
        return super().now_ms() - self._behind_ms if self._held_ms is None else self._held_ms

    @contextmanager
    def held(self) -> Iterator[None]:
        """One moment, however slow the machine is; what has to happen at once happens at once."""
        self._held_ms = self.now_ms()
        try:
            yield
        finally:
            self._held_ms = None

    def move_to(self, day: int, hours: int = 0) -> None:
        """The given day of the story, so many hours after the time of day at which it began."""
        behind = (self._days - day) * DAY_MS - hours * HOUR_MS
        if not 0 <= behind <= self._behind_ms:
            raise ValueError(f"day {day}, hour {hours} is not ahead within the story")
        self._behind_ms = behind

    def today(self) -> str:
        now = datetime.fromtimestamp(self.now_ms() / 1000, UTC)
        return f"{now:%A} {now.day} {now:%B}"
