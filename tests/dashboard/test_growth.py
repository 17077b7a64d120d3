"""Pages cost the same however long the ledger is: no plan walks it, and the work does not grow with it."""

import re
from collections.abc import Iterator

import pytest
from bench.dashboard_rows import grow
from dashboard_kit import NOW, Stand, a_call, stand
from filled import COMMIT, fill
from growth_kit import Reading, plans, work
from sqlalchemy import Connection

from nova_mcp.dashboard.pages.activity import news, overview
from nova_mcp.dashboard.pages.call import call_view
from nova_mcp.dashboard.pages.calls import Cursor, Filters, calls
from nova_mcp.dashboard.pages.receipts import receipts
from nova_mcp.dashboard.pages.statistics import statistics
from nova_mcp.evidence.store import servers

FEW, MANY = 6_000, 24_000
# What grows with every call; none of it may be read from one end to the other.
GROWING = (
    "ledger_body",
    "ledger_link",
    "transition",
    "observation",
    "tool_event",
    "statistic_hour",
    "statistic_latency",
)
MIDDLE = Cursor(NOW - 86_400_000, 1, "a")

READINGS: dict[str, Reading] = {
    "the newest calls": lambda conn: news(conn, None, NOW),
    "what is new": lambda conn: news(conn, {one.server_id: one.head_seq - 3 for one in servers(conn)}, NOW),
    "what is around it": lambda conn: overview(conn, NOW),
    "the first page of calls": lambda conn: calls(conn, Filters(), None),
    "a page in the middle": lambda conn: calls(conn, Filters(), MIDDLE),
    "a filter that fits often": lambda conn: calls(conn, Filters(tool="click_selector"), None),
    "a filter that fits nothing": lambda conn: calls(conn, Filters(tool="no_such_tool", host="x.test"), None),
    "the newest receipts": lambda conn: receipts(conn, "", None),
    "receipts with a verdict": lambda conn: receipts(conn, "verified_fail", (NOW, "x")),
    "one call": lambda conn: call_view(conn, COMMIT),
    "statistics of a day": lambda conn: statistics(conn, "24h", NOW),
    "statistics of a month": lambda conn: statistics(conn, "30d", NOW),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stand, Stand]]:
    folder = tmp_path_factory.mktemp("growth")
    with stand(folder / "few") as few, stand(folder / "many") as many:
        for desk, rows in ((few, FEW), (many, MANY)):
            fill(desk, 100)
            grow(desk.db, rows, NOW - 30_000)
            desk.add(*(a_call(f"last-{at}", at_ms=NOW - 10 + at) for at in range(5)))
        yield few, many


@pytest.mark.parametrize("name", READINGS)
def test_no_plan_walks_what_grows(stores: tuple[Stand, Stand], name: str):
    many = stores[1]
    steps = many.db.read_sync(plans, READINGS[name])
    assert steps, "nothing was asked"
    for step, statement in steps:
        walked = re.match(r"SCAN (\w+)", step)
        if walked is None or walked[1] not in GROWING:
            continue
        # Along the index of time and with a limit, a walk ends where the page is full.
        assert re.search("USING INDEX ix_(ledger_body_at_ms|transition_started_at_ms)", step), (step, statement)
        assert "LIMIT" in statement, statement


@pytest.mark.parametrize("name", READINGS)
def test_four_times_the_ledger_is_not_more_work(stores: tuple[Stand, Stand], name: str):
    few, many = (desk.db.read_sync(work, READINGS[name], 100) for desk in stores)
    assert many <= 1.3 * few + 20, (few, many)


def test_the_measure_would_notice_a_walk(stores: tuple[Stand, Stand]):
    def walk(conn: Connection) -> object:
        return conn.exec_driver_sql("SELECT count(*) FROM ledger_body WHERE agent_id = 'x'").scalar()

    few, many = (desk.db.read_sync(work, walk, 100) for desk in stores)
    assert many > 3 * few
    assert any(step.startswith("SCAN ledger_body") for step, _ in stores[1].db.read_sync(plans, walk))


async def test_pages_of_a_long_ledger_stay_short(stores: tuple[Stand, Stand]):
    async with stores[1].operator() as visitor:
        for path in ("/", "/calls", "/calls?agent=nobody", "/statistics?window=30d"):
            assert len(await visitor.page(path)) < 250_000
