"""What the journal costs as history grows: memory statistics and the write path, on SQLite and PostgreSQL.

History is laid down in bulk, as thirty days of steady work on a few hundred sites; nothing of it is read back by what
is measured, and that is the claim: the last column stays near one.
"""

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text

from bench.findings import flat
from bench.postgres import private_cluster
from bench.tables import machine, show, tell
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.memory.journal.collector import derive
from nova_mcp.memory.journal.statistics.counters import LABELS_PER_DAY, LABELS_PER_HOUR, Counters
from nova_mcp.memory.journal.statistics.counting import CAPPED, DAY, HOUR_MS, RUNTIME, day_of
from nova_mcp.memory.journal.statistics.reader import _PLAIN, _STANDINGS, _TOTALS
from nova_mcp.memory.journal.statistics.report import StatisticsQuery
from nova_mcp.memory.journal.statistics.service import look_up
from nova_mcp.storage.engine import Database

SIZES = (10_000, 100_000, 1_000_000)
LONG_SIZE = 10_000_000
AIM = 2.0
HOURS = 720
SITES = 300
NOW_MS = 1_800_000_000_000 // (24 * HOUR_MS) * 24 * HOUR_MS + 13 * HOUR_MS
BATCH = 250_000

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "
_OBSERVATIONS = (
    "INSERT INTO observation (owner_agent_id, principal, target_id, activity_session_id, context_host, kind, outcome, "
    "severity, tool_name, selector_norm, payload, throttle_key, call_id, server_id, server_seq, created_at_ms) "
    "{numbers} SELECT 'ada', 'local', 'tab_1', 's' || (i / 200), 'site' || (i % {sites}) || '.example', "
    "'action_success', 1, 0, 'nova.click_selector', '#b' || (i % 997), '{{}}', 'k' || i, 'old-' || i, 'old', i, "
    "{start} + {step} * CAST(i AS BIGINT) FROM n"
)
_EVENTS = (
    "INSERT INTO tool_event (event_id, principal, owner_agent_id, task_id, target_id, tool_name, success, duration_ms, "
    "context_host, arguments, activity_session_id, event_key, verdict, created_at_ms) "
    "{numbers} SELECT 'old-' || i, 'local', 'ada', 'claim_' || (i / 50), 'tab_1', 'nova.click_selector', 1, 40, "
    "'site' || (i % {sites}) || '.example', '{{}}', 's' || (i / 200), 'e' || (i % 997), 'success', "
    "{start} + {step} * CAST(i AS BIGINT) FROM n"
)
_LABELS = (
    "INSERT INTO statistic_hour (name, hour, label, principal, shard, count, good) {numbers}, "
    "m(j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM m WHERE j < {most}) "
    "SELECT '{name}', i * {width}, 'site' || j || '.example/some/route', 'local', j % 8, {count}, {count} FROM n, m"
)
_LATENCIES = (
    "INSERT INTO statistic_latency (name, hour, bucket, shard, count) {numbers}, m(j) AS (SELECT 0 UNION ALL "
    "SELECT j + 1 FROM m WHERE j < 15) SELECT '{name}', i * {width}, 20 + j, j % 8, {count} FROM n, m"
)


def _distinct(draws: float, of: int, most: int) -> int:
    """How many of so many sites a number of calls meets, as far as names are kept."""
    return max(1, min(most, round(of * (1.0 - math.pow(1 - 1 / of, draws)))))


def _run(db: Database, sentence: str) -> None:
    db.write_sync(lambda conn: conn.execute(text(sentence)))


def _evidence(db: Database, have: int, size: int) -> None:
    start = NOW_MS - HOURS * HOUR_MS
    for first in range(have, size, BATCH):
        last = min(first + BATCH, size) - 1
        # Each size fills the same thirty days, so larger ones are denser and not longer.
        step = (HOURS * HOUR_MS) // size
        numbers = _NUMBERS.format(first=first, last=last)
        for sentence in (_OBSERVATIONS, _EVENTS):
            _run(db, sentence.format(numbers=numbers, sites=SITES, start=start, step=max(1, step)))


def _figures(db: Database, size: int) -> None:
    """The hourly and daily figures that such a history leaves behind."""
    for table in ("statistic_hour", "statistic_latency", "statistic_total"):
        _run(db, f"DELETE FROM {table}")
    last = NOW_MS // HOUR_MS
    per_hour = size / HOURS
    for suffix, width, calls, cap in (("", 1, per_hour, LABELS_PER_HOUR), (DAY, 24, 24 * per_hour, LABELS_PER_DAY)):
        first = (last - HOURS) if width == 1 else day_of(last - HOURS) // 24
        numbers = _NUMBERS.format(first=first, last=last // width)
        most, count = _distinct(calls, SITES, cap) - 1, max(1, round(calls))
        for name in sorted(CAPPED):
            _run(db, _LABELS.format(numbers=numbers, name=name + suffix, width=width, most=most, count=count))
        for name in _PLAIN:
            sentence = _LABELS.format(numbers=numbers, name=name + suffix, width=width, most=0, count=count)
            _run(db, sentence.replace("'site' || j || '.example/some/route', 'local'", "'', ''"))
        for name in RUNTIME:
            _run(db, _LATENCIES.format(numbers=numbers, name=f"tool.{name}{suffix}", width=width, count=count))
    for name in {*_TOTALS, *_STANDINGS}:
        _run(
            db,
            f"INSERT INTO statistic_total (name, label, principal, shard, count) VALUES ('{name}', '', '', 0, {size})",
        )


def a_call(server_id: str, number: int) -> CallRecord:
    page = PageState("tab_1", "A", f"https://site{number % SITES}.example/a", f"site{number % SITES}.example/a", 1)
    return CallRecord(
        call_id=f"{server_id}-{number}",
        caller=Caller("local", "ada", ServerId(server_id)),
        tool_name="nova.click_selector",
        effect="act",
        # A minute apart, so that no observation is one of a repeat.
        started_at_ms=NOW_MS + number * 60_000,
        duration_ms=40,
        outcome=CallOutcome("ok", action_dispatched=True, verification="verified"),
        before=page,
        after=page,
        touched=Touched(f"#b{number % 7}", "h", "f", frozenset({"navigation_committed"})),
        arguments={"selector": f"#b{number % 7}"},
        signals=Signals(label="success", effect_observed=True),
    )


def recorded(conn: Connection, counters: Counters, record: CallRecord) -> None:
    link = append_call(conn, record)
    derive(conn, record, link)
    counters.count(conn, record, link)


def _timed(count: int, act: Callable[[int], object]) -> float:
    timings = []
    for number in range(count):
        started = time.perf_counter()
        act(number)
        timings.append((time.perf_counter() - started) * 1000)
    return statistics.median(timings)


def _measured(db: Database, size: int, rounds: int) -> dict[str, float]:
    def ask(hours: int) -> float:
        query = StatisticsQuery(window_hours=hours, principal="local")
        db.read_sync(look_up, query, NOW_MS)
        return _timed(rounds, lambda _: db.read_sync(look_up, query, NOW_MS))

    server_id, counters = f"bench-{size}", Counters()
    db.write_sync(register_server, ServerInfo(ServerId(server_id), NOW_MS, 1, 1, "bench", "0"))
    for number in range(20):
        db.write_sync(recorded, counters, a_call(server_id, number))
    return {
        "memory_stats, 24 h": ask(24),
        "memory_stats, 720 h": ask(720),
        "one call recorded and learned from": _timed(
            5 * rounds, lambda number: db.write_sync(recorded, counters, a_call(server_id, 20 + number))
        ),
    }


def _series(label: str, url: str, sizes: tuple[int, ...], rounds: int) -> list[list[object]]:
    found: dict[str, list[float]] = {}
    have = 0
    with Database.open(url) as db:
        for size in sizes:
            begun = time.perf_counter()
            _evidence(db, have, size)
            _figures(db, size)
            have = size
            if db.dialect == "postgresql":
                _run(db, "ANALYZE")
            print(f"{label}: {size:,} observations laid down in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
            for what, took in _measured(db, size, rounds).items():
                found.setdefault(what, []).append(took)
    for what, all_took in found.items():
        tell(flat("S7", f"{what}, {label}, by observations", all_took, sizes, SIZES[-1], rounds))
    return [[f"{label}: {what}", *all_took, all_took[-1] / all_took[0]] for what, all_took in found.items()]


def main(*, long: bool) -> int:
    print(f"journal · {machine()}\n")
    sizes = (*SIZES, LONG_SIZE) if long else SIZES
    rounds = 40
    rows: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        rows += _series("SQLite", f"sqlite:///{folder}/nova.db", sizes, rounds)
    with private_cluster("shared_buffers = 256MB\nmax_wal_size = 4GB\n") as cluster:
        rows += _series("PostgreSQL", cluster.fresh_database(), sizes, rounds)
    columns = ["median ms", *(f"{size:,}" for size in sizes), f"last / first (aim <= {AIM:g})"]
    show("The journal as history grows (observations over the same 30 days)", columns, rows)
    return int(any(row[-1] > AIM for row in rows))
