"""The start page: what agents do right now, as it is recorded."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, or_, select

from nova_mcp.dashboard.charts.charts import Chart, Series, stacked
from nova_mcp.dashboard.context import Desk, Entry, Fragments, Part, Place, View, Visit
from nova_mcp.dashboard.data.call_lines import CallLine, line_of
from nova_mcp.dashboard.data.chain import in_chain
from nova_mcp.dashboard.data.feed import KEPT, STALE_MS, News, Positions
from nova_mcp.dashboard.data.figures import counted, totals, window_of
from nova_mcp.dashboard.formatting import plain, tool_name
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.reader import EventFilter, recent
from nova_mcp.evidence.recorder import HEARTBEAT_S
from nova_mcp.evidence.store import StoredCall, ledger_body, ledger_open_intent, ledger_server
from nova_mcp.memory.journal.statistics import counting as names

SHOWN: Final = 50
UNDER_WAY: Final = 12
SERVERS: Final = 6
# One sign of life may come late; a server of which two are missing may be gone.
SILENT_MS: Final = 2 * HEARTBEAT_S * 1_000


def news(conn: Connection, after: Positions | None, now_ms: int) -> News:
    """Calls behind the positions; of more than a page shows, only the end. Without positions, the newest ones.

    Positions are per chain, because only there the order of numbers is the order of commits. A server that ended
    before the feed began to look has nothing to add, so however many have ever run, few are asked.
    """
    server = ledger_server.c
    awake = or_(server.ended_at_ms.is_(None), server.last_seen_ms > now_ms - 2 * STALE_MS)
    rows = conn.execute(select(server.server_id, server.head_seq).where(awake)).all()
    heads = {ServerId(row.server_id): int(row.head_seq) for row in rows}
    if after is None:
        return News(tuple(recent(conn, EventFilter(limit=KEPT))[::-1]), heads)
    found: list[StoredCall] = []
    for server_id, head in heads.items():
        start = max(after.get(server_id, 0), head - KEPT)
        if head > start:
            found += in_chain(conn, server_id, range(start + 1, head + 1))
    found.sort(key=_moment)
    return News(tuple(found[-KEPT:]), {**after, **heads})


def _moment(call: StoredCall) -> tuple[int, str, int]:
    return (0 if call.record is None else call.record.started_at_ms, call.link.server_id, call.link.server_seq)


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An act that was announced in the ledger and whose end is not recorded yet."""

    call_id: str
    tool: str
    agent: str
    host: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Running:
    """A server that has not ended."""

    server_id: str
    host: str
    pid: int
    version: str
    started_at_ms: int
    last_seen_ms: int
    calls: int
    silent: bool


@dataclass(frozen=True, slots=True)
class Today:
    """What the last day came to."""

    calls: int
    well: int
    verified: int
    caught: int
    contract: int
    contract_kept: int
    chart: Chart


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything around the list of calls."""

    today: Today
    under_way: tuple[UnderWay, ...]
    servers: tuple[Running, ...]


def overview(conn: Connection, now_ms: int) -> Overview:
    return Overview(today(conn, now_ms), under_way(conn), running(conn, now_ms))


def today(conn: Connection, now_ms: int) -> Today:
    window = window_of("24h", now_ms)
    found = counted(conn, (names.EVENT, names.VERIFIED, names.CAUGHT, names.CONTRACT), window)
    calls, well = totals(found[names.EVENT])
    contract, kept = totals(found[names.CONTRACT])
    columns = found[names.EVENT]
    series = (
        Series("ok", "s1", tuple(float(good) for _, good in columns)),
        Series("not ok", "s5", tuple(float(count - good) for count, good in columns)),
    )
    return Today(
        calls=calls,
        well=well,
        verified=totals(found[names.VERIFIED])[0],
        caught=totals(found[names.CAUGHT])[0],
        contract=contract,
        contract_kept=kept,
        chart=stacked("Calls per hour", window.names(), series, window.marks()),
    )


def under_way(conn: Connection) -> tuple[UnderWay, ...]:
    """Announced acts without an end; there are as many as agents that act at this moment."""
    intent, body = ledger_open_intent, ledger_body
    rows = conn.execute(
        select(intent.c.call_id, intent.c.at_ms, body.c.tool_name, body.c.agent_id, body.c.host)
        .join(body, (body.c.server_id == intent.c.server_id) & (body.c.server_seq == intent.c.server_seq))
        .order_by(intent.c.at_ms.desc(), intent.c.call_id)
        .limit(UNDER_WAY)
    )
    return tuple(
        UnderWay(row.call_id, tool_name(row.tool_name), plain(row.agent_id), plain(row.host or ""), row.at_ms)
        for row in rows
    )


def running(conn: Connection, now_ms: int) -> tuple[Running, ...]:
    table = ledger_server.c
    rows = conn.execute(
        select(ledger_server)
        .where(table.ended_at_ms.is_(None))
        .order_by(table.last_seen_ms.desc(), table.server_id)
        .limit(SERVERS)
    )
    return tuple(
        Running(
            server_id=row.server_id,
            host=plain(row.host),
            pid=row.pid,
            version=plain(row.version),
            started_at_ms=row.started_at_ms,
            last_seen_ms=row.last_seen_ms,
            calls=row.head_seq,
            silent=now_ms - row.last_seen_ms > SILENT_MS,
        )
        for row in rows
    )


async def _look(desk: Desk) -> None:
    now_ms = desk.now_ms()
    await desk.feed.look(now_ms, lambda positions: desk.read(news, positions, now_ms))


def _lines(desk: Desk, after: int) -> list[CallLine]:
    """Calls behind a number, newest first. An announcement is left out: the call that it announces will follow."""
    found = (one.call for one in desk.feed.newest(after))
    shown = [call for call in found if call.record is None or call.record.kind != "intent"]
    return [line_of(call) for call in shown[:SHOWN]]


async def activity(visit: Visit) -> View:
    desk = visit.desk
    await _look(desk)
    lines = _lines(desk, 0)
    around = await desk.read(overview, desk.now_ms())
    values = {"lines": lines, "feed": desk.feed.name, "last": desk.feed.last, "shown": SHOWN, "around": around}
    return View("activity/activity.html", {"title": "Activity", **values})


async def live(visit: Visit) -> Fragments:
    """What is new since the page was made or last asked; an empty answer costs two small queries.

    New calls change the day's figures, so these come along with them and only then.
    """
    desk = visit.desk
    await _look(desk)
    given = visit.query("after", 18)
    # Looked at first: a feed that has begun anew has another name, and the page's number means nothing to it.
    ours = visit.query("feed", 40) == desk.feed.name and given.isdecimal() and given.isascii()
    lines = _lines(desk, int(given) if ours else 0)
    under = await desk.read(under_way)
    parts = [
        Part("rows", "calls/call_rows.html", {"lines": lines, "fresh": ours}),
        Part("underWay", "activity/under_way.html", {"acts": under}),
    ]
    if lines:
        figures = {"today": await desk.read(today, desk.now_ms())}
        parts += (
            Part("tiles", "activity/today_tiles.html", figures),
            Part("chart", "activity/today_chart.html", figures),
        )
    return Fragments(
        tuple(parts),
        {"feed": desk.feed.name, "last": desk.feed.last, "all": not ours, "count": len(lines)},
    )


PLACES = (
    Place("/", "activity", get=activity, menu=Entry("Now", "Activity")),
    Place("/live", "activity", get=live),
)
