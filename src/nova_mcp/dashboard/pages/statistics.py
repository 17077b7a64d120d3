"""Statistics over time: how well calls, verification and learning go, from counters that cost the same at any size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.dashboard.charts.charts import Chart, Series, lines, stacked
from nova_mcp.dashboard.context import Entry, Place, View, Visit
from nova_mcp.dashboard.data.figures import WINDOWS, Counted, Window, counted, slowness, window_of
from nova_mcp.dashboard.formatting import plain
from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.report import Labelled, Report, StatisticsQuery
from nova_mcp.memory.journal.statistics.service import look_up

TOP: Final = 6
COUNTED: Final = (
    names.EVENT,
    names.CONTRACT,
    names.CAUGHT,
    names.VERIFIED,
    names.OBSERVATION,
    names.CANDIDATE,
    names.CURATED,
    names.DECISION,
)
SIGNALS: Final = {
    "scrollSmart": "scrolling",
    "clickNavigation": "clicks that navigate",
    "dismissBlockers": "dismissing blockers",
    "screenshotCapture": "screenshots",
}
_TONES: Final = ("s1", "s2", "s3", "s4")
_BLOCKERS: Final = {
    "too_few_verified_actions": "too few actions were verified yet",
    "contradicted_successes": "verified successes were contradicted later",
    "outbox_unhealthy": "jobs after commits are not getting done",
    "chain_break": "a chain of the ledger is broken",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """How pages take one kind of act."""

    name: str
    attempts: int
    rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    hosts: tuple[tuple[str, int, float | None], ...]
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """Everything the page shows about one window."""

    window: Window
    report: Report
    charts: tuple[Chart, ...]
    signals: tuple[Signal, ...]
    components: tuple[tuple[str, int], ...]
    skips: tuple[tuple[str, int], ...]
    blockers: tuple[str, ...]


def statistics(conn: Connection, key: str, now_ms: int) -> StatisticsView:
    window = window_of(key, now_ms)
    query = StatisticsQuery(window.hours, TOP, TOP, TOP, TOP, TOP)
    report = look_up(conn, query, now_ms)
    return StatisticsView(
        window=window,
        report=report,
        charts=charts(conn, window),
        signals=tuple(_signal(name, report) for name in SIGNALS),
        components=_plain(report.reading.components),
        skips=_plain(report.reading.skip_reasons),
        blockers=tuple(_BLOCKERS[one] for one in report.rollout.blockers),
    )


def charts(conn: Connection, window: Window) -> tuple[Chart, ...]:
    return (*_amounts(conn, window), _durations(conn, window))


def _amounts(conn: Connection, window: Window) -> Iterator[Chart]:
    """How much there was of everything that is counted."""
    found = counted(conn, COUNTED, window)
    verified, caught = _counts(found[names.VERIFIED]), _counts(found[names.CAUGHT])
    told: dict[str, tuple[Series, ...]] = {
        "Calls": _good_and_rest(found[names.EVENT], "ok", "not ok"),
        "Actions checked": (Series("verified", "s2", verified), Series("false successes caught", "s4", caught)),
        "Actions under a contract": _good_and_rest(found[names.CONTRACT], "kept", "not kept"),
        "Observations": (Series("observations", "s1", _counts(found[names.OBSERVATION])),),
        "Learning": (
            Series("new candidates", "s1", _counts(found[names.CANDIDATE])),
            Series("curated entries", "s2", _counts(found[names.CURATED])),
            Series("decided when a tab was released", "s3", _counts(found[names.DECISION])),
        ),
    }
    return (stacked(title, window.names(), series, window.marks()) for title, series in told.items())


def _durations(conn: Connection, window: Window) -> Chart:
    slow = slowness(conn, [f"tool.{name}" for name in SIGNALS], window, 0.95)
    series = [
        Series(words, tone, tuple(slow[f"tool.{name}"]))
        for (name, words), tone in zip(SIGNALS.items(), _TONES, strict=True)
    ]
    return lines("95 % of calls took at most", window.names(), series, window.marks(), unit=" ms")


def _counts(columns: list[Counted]) -> tuple[float, ...]:
    return tuple(float(count) for count, _ in columns)


def _good_and_rest(columns: list[Counted], well: str, rest: str) -> tuple[Series, Series]:
    return (
        Series(well, "s1", tuple(float(good) for _, good in columns)),
        Series(rest, "s3", tuple(float(count - good) for count, good in columns)),
    )


def _signal(name: str, report: Report) -> Signal:
    found = report.runtime[name]
    return Signal(
        name=SIGNALS[name],
        attempts=found.attempts,
        rate=found.success_rate,
        p50_ms=found.p50_ms,
        p95_ms=found.p95_ms,
        hosts=tuple(
            (plain(one.label), one.count, one.good / one.count if one.count else None) for one in found.found.hosts
        ),
        reasons=_plain(found.found.reasons),
    )


def _plain(labels: tuple[Labelled, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((plain(one.label), one.count) for one in labels)


async def shown(visit: Visit) -> View:
    found = await visit.desk.read(statistics, visit.query("window"), visit.desk.now_ms())
    windows = [(key, words) for key, words, *_ in WINDOWS]
    return View("activity/statistics.html", {"title": "Statistics", "found": found, "windows": windows})


PLACES = (Place("/statistics", "statistics", get=shown, menu=Entry("System", "Statistics")),)
