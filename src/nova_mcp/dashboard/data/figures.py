"""Figures over time from the counters that every call moves; nothing here reads the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, func, select

from nova_mcp.memory.journal.statistics.counting import DAY, DAY_HOURS, HOUR_MS, hour_of, percentile
from nova_mcp.memory.journal.statistics.tables import statistic_hour, statistic_latency

Counted = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time in columns: `step` hours each, `first` the hour with which the first begins."""

    key: str
    words: str
    first: int
    step: int
    columns: int

    @property
    def hours(self) -> int:
        return self.step * self.columns

    @property
    def by_day(self) -> bool:
        return self.step % DAY_HOURS == 0

    def column_of(self, hour: int) -> int | None:
        at = (hour - self.first) // self.step
        return at if 0 <= at < self.columns else None

    def names(self) -> list[str]:
        """What each column is called where it stands alone."""
        return [_hour_words(self.first + at * self.step, by_day=self.by_day) for at in range(self.columns)]

    def marks(self, count: int = 5) -> list[str]:
        """What stands under the plot, evenly from its first to its last column."""
        last = self.columns - 1
        chosen = [round(at * last / (count - 1)) for at in range(count)]
        return [_mark(self.first + at * self.step, self) for at in chosen]


# key, words, hours per column, columns
WINDOWS: Final = (
    ("24h", "24 hours", 1, 24),
    ("7d", "7 days", 6, 28),
    ("30d", "30 days", 24, 30),
)


def window_of(key: str, now_ms: int) -> Window:
    """The window of that name that ends now; the shortest one for a name that there is not."""
    found = next((one for one in WINDOWS if one[0] == key), WINDOWS[0])
    name, words, step, columns = found
    last = hour_of(now_ms)
    first = last - last % step - (columns - 1) * step
    return Window(name, words, first, step, columns)


def counted(conn: Connection, wanted: Sequence[str], window: Window) -> dict[str, list[Counted]]:
    """How often and how often well, by name and column."""
    found: dict[str, list[Counted]] = {name: [(0, 0)] * window.columns for name in wanted}
    table = statistic_hour.c
    rows = conn.execute(
        select(table.name, table.hour, func.sum(table.count), func.sum(table.good))
        .where(
            table.name.in_([_stored(name, window) for name in wanted]),
            table.hour >= window.first,
            table.hour < window.first + window.hours,
            table.label == "",
        )
        .group_by(table.name, table.hour)
    )
    for name, hour, count, good in rows:
        at = window.column_of(int(hour))
        if at is not None:
            column = found[name.removesuffix(DAY)]
            column[at] = (column[at][0] + int(count), column[at][1] + int(good))
    return found


def slowness(conn: Connection, wanted: Sequence[str], window: Window, share: float) -> dict[str, list[float]]:
    """The duration within which that share of the calls ended, by name and column; below 0 where there were none."""
    buckets: dict[str, list[dict[int, int]]] = {name: [{} for _ in range(window.columns)] for name in wanted}
    table = statistic_latency.c
    rows = conn.execute(
        select(table.name, table.hour, table.bucket, func.sum(table.count))
        .where(
            table.name.in_([_stored(name, window) for name in wanted]),
            table.hour >= window.first,
            table.hour < window.first + window.hours,
        )
        .group_by(table.name, table.hour, table.bucket)
    )
    for name, hour, bucket, count in rows:
        at = window.column_of(int(hour))
        if at is not None:
            column = buckets[name.removesuffix(DAY)][at]
            column[int(bucket)] = column.get(int(bucket), 0) + int(count)
    return {name: [_percentile(column, share) for column in columns] for name, columns in buckets.items()}


def totals(columns: Sequence[Counted]) -> Counted:
    return sum(count for count, _ in columns), sum(good for _, good in columns)


def _stored(name: str, window: Window) -> str:
    return name + DAY if window.by_day else name


def _percentile(column: Mapping[int, int], share: float) -> float:
    found = percentile(column, share)
    return -1.0 if found is None else float(found)


def _hour_words(hour: int, *, by_day: bool) -> str:
    at = datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC)
    return f"{at:%a, %b} {at.day}" if by_day else f"{at:%b} {at.day}, {at:%H:%M}"


def _mark(hour: int, window: Window) -> str:
    at = datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC)
    return f"{at:%H:%M}" if window.hours <= DAY_HOURS else f"{at:%b} {at.day}"
