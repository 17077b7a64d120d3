"""Reads the journal's figures back; a reading costs the same however long the history is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, and_, case, false, func, or_, select, true

from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.counting import DAY, DAY_HOURS, day_of, hour_of
from nova_mcp.memory.journal.statistics.report import Labelled, OutboxState, Reading, RuntimeReading, StatisticsQuery
from nova_mcp.memory.journal.statistics.tables import statistic_hour, statistic_latency, statistic_total

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


@dataclass(frozen=True, slots=True)
class Span:
    """A window as it is read: hours up to the first midnight in it, and whole days from there."""

    hours: range
    first_day: int
    last_day: int

    def within(self, table: Table, *wanted: str) -> ColumnElement[bool]:
        """Rows of these names, each moment once."""
        named, hour = table.c.name, table.c.hour
        return or_(
            and_(named.in_(wanted), hour.in_(self.hours)) if self.hours else false(),
            and_(named.in_([name + DAY for name in wanted]), hour >= self.first_day),
        )

    def days(self) -> range:
        return range(self.first_day, self.last_day + 1, DAY_HOURS)


def span_of(window_hours: int, now_ms: int) -> Span:
    first = hour_of(now_ms - window_hours * names.HOUR_MS)
    midnight = day_of(first + DAY_HOURS - 1)
    # One day more: a server whose clock is ahead may have begun it already.
    return Span(range(first, midnight), midnight, day_of(hour_of(now_ms)) + DAY_HOURS)


def read(conn: Connection, query: StatisticsQuery, now_ms: int, *, chain_broken: bool) -> Reading:
    """Everything a report is made of, in one transaction."""
    span, component = span_of(query.window_hours, now_ms), query.component
    window = _window(conn, span)
    if component is not None:
        window |= _component_window(conn, component, span, query.principal)
    top, totals = names.CANDIDATE_OF + ".top", _totals(conn, (*_TOTALS, *_STANDINGS))
    return Reading(
        window=window,
        totals=totals,
        chosen=totals if component is None else _totals(conn, _STANDINGS, component, query.principal),
        components=_labels(conn, top, span, Top(query.top_components, query.principal))
        if component is None
        else _only(component, window[names.CANDIDATE][0]),
        skip_reasons=_labels(
            conn, names.SKIP_REASON, span, Top(query.max_skip_reasons, query.principal, own_words=True)
        ),
        outbox=_outbox(conn, now_ms),
        runtime={name: _runtime(conn, name, span, query) for name in names.RUNTIME},
        chain_broken=chain_broken,
    )


def _window(conn: Connection, span: Span) -> dict[str, tuple[int, int]]:
    table = statistic_hour.c
    rows = conn.execute(
        select(table.name, func.sum(table.count), func.sum(table.good))
        .where(span.within(statistic_hour, *_PLAIN), table.label == "")
        .group_by(table.name)
    )
    found = dict.fromkeys(_PLAIN, (0, 0))
    for name, count, good in rows:
        plain = name.removesuffix(DAY)
        had = found[plain]
        found[plain] = (had[0] + int(count), had[1] + int(good))
    return found


def _component_window(
    conn: Connection, component: str, span: Span, principal: str | None
) -> dict[str, tuple[int, int]]:
    table, wanted = statistic_hour.c, (names.CANDIDATE_OF, names.CURATED_OF)
    # Day by day, so that the index leads to the one label and the others are never looked at.
    places = or_(
        and_(table.name.in_(wanted), table.hour.in_(span.hours)) if span.hours else false(),
        and_(table.name.in_([name + DAY for name in wanted]), table.hour.in_(span.days())),
    )
    rows = conn.execute(
        select(table.name, func.sum(table.count))
        .where(places, table.label == names.label(component), _of(statistic_hour, principal))
        .group_by(table.name)
    )
    found = dict.fromkeys(wanted, 0)
    for name, count in rows:
        found[name.removesuffix(DAY)] += int(count)
    return {names.CANDIDATE: (found[names.CANDIDATE_OF], 0), names.CURATED: (found[names.CURATED_OF], 0)}


def _only(component: str, candidates: int) -> tuple[Labelled, ...]:
    return (Labelled(component, candidates),) if candidates else ()


def _of(table: Table, *principals: str | None) -> ColumnElement[bool]:
    return true() if None in principals else table.c.principal.in_(principals)


def _totals(conn: Connection, wanted: Sequence[str], label: str = "", principal: str | None = None) -> dict[str, int]:
    table = statistic_total.c
    rows = conn.execute(
        select(table.name, func.sum(table.count))
        .where(table.name.in_(wanted), table.label == names.label(label), _of(statistic_total, principal))
        .group_by(table.name)
    )
    found = {name: int(count) for name, count in rows}
    return {name: found.get(name, 0) for name in wanted}


@dataclass(frozen=True, slots=True)
class Top:
    """How long a list may get, and whose labels it may hold; Nova's own words are nobody's and for everybody."""

    limit: int
    principal: str | None
    own_words: bool = False


def _labels(conn: Connection, name: str, span: Span, top: Top) -> tuple[Labelled, ...]:
    table = statistic_hour.c
    count, good = func.sum(table.count), func.sum(table.good)
    whose = (top.principal, "") if top.own_words else (top.principal,)
    rows = conn.execute(
        select(table.label, count, good)
        .where(span.within(statistic_hour, name), _of(statistic_hour, *whose))
        .group_by(table.label)
        .order_by(count.desc(), table.label)
        .limit(top.limit)
    )
    return tuple(Labelled(label, int(often), int(well)) for label, often, well in rows)


def _runtime(conn: Connection, name: str, span: Span, query: StatisticsQuery) -> RuntimeReading:
    table, whose = statistic_latency.c, query.principal
    rows = conn.execute(
        select(table.bucket, func.sum(table.count))
        .where(span.within(statistic_latency, f"tool.{name}"))
        .group_by(table.bucket)
    )
    return RuntimeReading(
        latencies={int(bucket): int(count) for bucket, count in rows},
        routes=_labels(conn, f"tool.{name}.route", span, Top(query.top_routes, whose)),
        hosts=_labels(conn, f"tool.{name}.host", span, Top(query.top_hosts, whose)),
        selectors=_labels(conn, f"tool.{name}.selector", span, Top(query.top_selectors, whose)),
        reasons=_labels(conn, f"tool.{name}.reason", span, Top(REASONS, whose)),
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
