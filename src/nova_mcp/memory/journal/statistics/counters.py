"""Adds to the journal's figures, in the transaction of what they count, and drops hours that nobody asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from sqlalchemy import Connection, delete
from sqlalchemy import text as sql

from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.journal.statistics.counting import (
    CAPPED,
    DAY,
    OTHER,
    Figures,
    Tally,
    day_of,
    hour_of,
    of_call,
    of_contradiction,
)
from nova_mcp.memory.journal.statistics.tables import SHARDS, statistic_hour, statistic_latency
from nova_mcp.storage.prepared import Prepared

# More than the longest list anybody can ask for; what comes later in the hour is counted together.
LABELS_PER_HOUR: Final = 64
LABELS_PER_DAY: Final = 128
KEPT_HOURS: Final = 720 + 24
_KNOWN_LIMIT: Final = 4096

Key = tuple[str, int, str]
Known = set[tuple[str, Key]]

# Both databases read these sentences the same way.
_ADD_HOUR = Prepared(
    sql(
        "INSERT INTO statistic_hour (name, hour, label, principal, shard, count, good) "
        "VALUES (:name, :hour, :label, :principal, :shard, :count, :good) "
        "ON CONFLICT (name, hour, label, principal, shard) "
        "DO UPDATE SET count = statistic_hour.count + excluded.count, good = statistic_hour.good + excluded.good"
    )
)
_ADD_LATENCY = Prepared(
    sql(
        "INSERT INTO statistic_latency (name, hour, bucket, shard, count) "
        "VALUES (:name, :hour, :bucket, :shard, :count) ON CONFLICT (name, hour, bucket, shard) "
        "DO UPDATE SET count = statistic_latency.count + excluded.count"
    )
)
_ADD_TOTAL = Prepared(
    sql(
        "INSERT INTO statistic_total (name, label, principal, shard, count) "
        "VALUES (:name, :label, :principal, :shard, :count) "
        "ON CONFLICT (name, label, principal, shard) DO UPDATE SET count = statistic_total.count + excluded.count"
    )
)
_LABELS = Prepared(
    sql("SELECT label FROM statistic_hour WHERE name = :name AND hour = :hour AND principal = :principal")
)


def shard_of(origin: str) -> int:
    """Where a server or a work context counts; always the same place for the same one."""
    return crc32(origin.encode()) % SHARDS


def bump(conn: Connection, origin: str, tally: Tally, known: Known | None = None, *, principal: str = "") -> None:
    """Add a tally in the caller's transaction, after all of its other rows and at most once per group of names.

    What has a label is the principal's; without one, only the operator sees it.

    The keys are touched in sorted order: two transactions in random order would deadlock on PostgreSQL. `known` are
    labels that have a row already; it only saves looking.
    """
    shard, hours = shard_of(origin), _admitted(conn, _with_days(tally.hours), known, principal)
    if hours:
        _ADD_HOUR.many(
            conn,
            [
                {
                    "name": name,
                    "hour": hour,
                    "label": label,
                    "principal": principal if label else "",
                    "shard": shard,
                    "count": count,
                    "good": good,
                }
                for (name, hour, label), (count, good) in sorted(hours.items())
            ],
        )
    if tally.latencies:
        days = {(name + DAY, day_of(hour), bucket): 0 for name, hour, bucket in tally.latencies}
        for (name, hour, bucket), count in tally.latencies.items():
            days[(name + DAY, day_of(hour), bucket)] += count
        _ADD_LATENCY.many(
            conn,
            [
                {"name": name, "hour": hour, "bucket": bucket, "shard": shard, "count": count}
                for (name, hour, bucket), count in sorted((days | dict(tally.latencies)).items())
            ],
        )
    if tally.totals:
        _ADD_TOTAL.many(
            conn,
            [
                {
                    "name": name,
                    "label": label,
                    "principal": principal if label else "",
                    "shard": shard,
                    "count": count,
                }
                for (name, label), count in sorted(tally.totals.items())
            ],
        )


def count_contradiction(conn: Connection, server_id: str, now_ms: int) -> None:
    """Count a verified success that has been refuted since."""
    bump(conn, server_id, of_contradiction(now_ms))


def _with_days(hours: Mapping[Key, Figures]) -> dict[Key, Figures]:
    """The same amounts for whole days too, so that a month is read from thirty rows of a figure and not from 720."""
    both = dict(hours)
    for (name, hour, label), (count, good) in hours.items():
        day = (name + DAY, day_of(hour), label)
        had = both.get(day, (0, 0))
        both[day] = (had[0] + count, had[1] + good)
    return both


def _admitted(
    conn: Connection, amounts: Mapping[Key, Figures], known: Known | None, principal: str
) -> dict[Key, Figures]:
    """The amounts with labels beyond an hour's or a day's number taken together; racing servers may add a few more.

    Everybody has that number of their own: nobody's labels crowd out another's.
    """
    admitted: dict[Key, Figures] = {}
    taken: dict[tuple[str, int], set[str]] = {}
    for key, (count, good) in amounts.items():
        name, hour, label = key
        place = key
        if name.removesuffix(DAY) in CAPPED and (known is None or (principal, key) not in known):
            if (name, hour) not in taken:
                rows = _LABELS.run(conn, {"name": name, "hour": hour, "principal": principal})
                taken[(name, hour)] = {row[0] for row in rows}
            there = taken[(name, hour)]
            if label in there or len(there) < (LABELS_PER_DAY if name.endswith(DAY) else LABELS_PER_HOUR):
                there.add(label)
                if known is not None:
                    known.add((principal, key))
            else:
                place = (name, hour, OTHER)
        had = admitted.get(place, (0, 0))
        admitted[place] = (had[0] + count, had[1] + good)
    return admitted


class Counters:
    """Counts every call in the transaction that records it."""

    def __init__(self) -> None:
        self._known: Known = set()

    def count(self, conn: Connection, record: CallRecord, link: Link) -> None:
        if len(self._known) > _KNOWN_LIMIT:
            self._known = set()
        bump(conn, link.server_id, of_call(record), self._known, principal=whose(record))


def whose(record: CallRecord) -> str:
    return storable_text(record.caller.principal)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many rows of figures went."""

    hours: int
    latencies: int


def forget_hours(conn: Connection, now_ms: int) -> Forgotten:
    """Drop the hours that no window reaches any more; totals stay."""
    before = hour_of(now_ms) - KEPT_HOURS
    return Forgotten(
        conn.execute(delete(statistic_hour).where(statistic_hour.c.hour < before)).rowcount,
        conn.execute(delete(statistic_latency).where(statistic_latency.c.hour < before)).rowcount,
    )
