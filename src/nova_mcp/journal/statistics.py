"""Reads the journal's figures back; a reading costs the same however long the history is."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from nova_mcp.journal import counting as names
from nova_mcp.journal.counting import hour_of
from nova_mcp.journal.finalize_store import outbox_job
from nova_mcp.journal.report import Labelled, OutboxState, Reading, RuntimeReading, StatisticsQuery
from nova_mcp.journal.statistics_tables import statistic_hour, statistic_latency, statistic_total

OVERDUE_MS: Final = 5 * 60_000
REASONS: Final = 8

_PLAIN: Final = (
    names.EVENT,
    names.RUN,
    names.CONTRACT,
    names.VERIFIED,
    names.CAUGHT,
    names.CONTRADICTED,
    names.OBSERVATION,
    names.DECISION,
    names.CANDIDATE,
    names.CURATED,
    *(f"tool.{name}" for name in names.RUNTIME),
)
_TOTALS: Final = (names.EVENT, names.OBSERVATION, names.DECISION, names.JOB_DONE)
_STANDINGS: Final = (
    names.CANDIDATE,
    *(f"{names.CANDIDATE}.{status}" for status in ("unverified", "verified", "disproven")),
    names.PROMOTABLE,
    names.CURATED,
)


def read(conn: Connection, query: StatisticsQuery, now_ms: int, *, chain_broken: bool) -> Reading:
    """Everything a report is made of, in one transaction."""
    first = hour_of(now_ms - query.window_hours * names.HOUR_MS)
    window = _window(conn, first)
    if query.component is not None:
        window |= _component_window(conn, query.component, range(first, hour_of(now_ms) + 2))
    component = query.component
    top = names.CANDIDATE_OF + ".top"
    return Reading(
        window=window,
        totals=_totals(conn, _TOTALS, "") | _totals(conn, _STANDINGS, component or ""),
        components=_labels(conn, top, first, query.top_components)
        if component is None
        else _only(component, window[names.CANDIDATE][0]),
        skip_reasons=_labels(conn, names.SKIP_REASON, first, query.max_skip_reasons),
        outbox=_outbox(conn, now_ms),
        runtime={name: _runtime(conn, name, first, query) for name in names.RUNTIME},
        chain_broken=chain_broken,
    )


def _window(conn: Connection, first: int) -> dict[str, tuple[int, int]]:
    table = statistic_hour.c
    rows = conn.execute(
        select(table.name, func.sum(table.count), func.sum(table.good))
        .where(table.name.in_(_PLAIN), table.hour >= first, table.label == "")
        .group_by(table.name)
    )
    found = {name: (int(count), int(good)) for name, count, good in rows}
    return {name: found.get(name, (0, 0)) for name in _PLAIN}


def _component_window(conn: Connection, component: str, hours: Iterable[int]) -> dict[str, tuple[int, int]]:
    table = statistic_hour.c
    # Hour by hour, so that the index leads to the one label and the others are never looked at.
    rows = conn.execute(
        select(table.name, func.sum(table.count))
        .where(table.name.in_((names.CANDIDATE_OF, names.CURATED_OF)), table.hour.in_(list(hours)))
        .where(table.label == names.label(component))
        .group_by(table.name)
    )
    found = {name: int(count) for name, count in rows}
    return {
        names.CANDIDATE: (found.get(names.CANDIDATE_OF, 0), 0),
        names.CURATED: (found.get(names.CURATED_OF, 0), 0),
    }


def _only(component: str, candidates: int) -> tuple[Labelled, ...]:
    return (Labelled(component, candidates),) if candidates else ()


def _totals(conn: Connection, wanted: Sequence[str], label: str) -> dict[str, int]:
    table = statistic_total.c
    rows = conn.execute(
        select(table.name, func.sum(table.count))
        .where(table.name.in_(wanted), table.label == names.label(label))
        .group_by(table.name)
    )
    found = {name: int(count) for name, count in rows}
    return {name: found.get(name, 0) for name in wanted}


def _labels(conn: Connection, name: str, first: int, limit: int) -> tuple[Labelled, ...]:
    table = statistic_hour.c
    count, good = func.sum(table.count), func.sum(table.good)
    rows = conn.execute(
        select(table.label, count, good)
        .where(table.name == name, table.hour >= first)
        .group_by(table.label)
        .order_by(count.desc(), table.label)
        .limit(limit)
    )
    return tuple(Labelled(label, int(often), int(well)) for label, often, well in rows)


def _runtime(conn: Connection, name: str, first: int, query: StatisticsQuery) -> RuntimeReading:
    table = statistic_latency.c
    rows = conn.execute(
        select(table.bucket, func.sum(table.count))
        .where(table.name == f"tool.{name}", table.hour >= first)
        .group_by(table.bucket)
    )
    return RuntimeReading(
        latencies={int(bucket): int(count) for bucket, count in rows},
        routes=_labels(conn, f"tool.{name}.route", first, query.top_routes),
        hosts=_labels(conn, f"tool.{name}.host", first, query.top_hosts),
        selectors=_labels(conn, f"tool.{name}.selector", first, query.top_selectors),
        reasons=_labels(conn, f"tool.{name}.reason", first, REASONS),
    )


def _outbox(conn: Connection, now_ms: int) -> OutboxState:
    """What is not done yet, from the queue itself: it is short unless something is wrong, and then that is the news."""
    job = outbox_job.c
    old = case((job.created_at_ms < now_ms - OVERDUE_MS, 1), else_=0)
    rows = conn.execute(
        select(job.state, func.count(), func.min(job.created_at_ms), func.sum(old))
        .where(job.state.in_(("pending", "leased", "failed")))
        .group_by(job.state)
    )
    found = {row[0]: row for row in rows}
    pending: Any = found.get("pending")
    return OutboxState(
        pending=0 if pending is None else int(pending[1]),
        leased=int(found["leased"][1]) if "leased" in found else 0,
        failed=int(found["failed"][1]) if "failed" in found else 0,
        overdue=0 if pending is None else int(pending[3]),
        oldest_pending_age_ms=None if pending is None else max(0, now_ms - int(pending[2])),
    )
