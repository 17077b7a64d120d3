"""The same pages from SQLite and from PostgreSQL, and no walk through the ledger on either."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.dashboard_rows import append, grow
from bench.postgres import private_cluster
from dashboard_kit import NOW, Stand, stand
from filled import fill
from growth_kit import Reading, spied
from sqlalchemy import Connection
from test_growth import READINGS

from nova_mcp.dashboard.data.chain import in_chain
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.store import register_server

pytestmark = pytest.mark.postgres

# So many that a walk would cost more than the stretch that a filter looks at.
ROWS = 60_000
YOUNG = ServerId("f" * 32)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stand, Stand]]:
    folder: Path = tmp_path_factory.mktemp("both")
    with (
        private_cluster("autovacuum = off\n") as cluster,
        stand(folder / "sqlite") as lite,
        stand(folder / "postgres", store=cluster.fresh_database(template=cluster.migrated)) as post,
    ):
        for desk in (lite, post):
            fill(desk, 100)
            grow(desk.db, ROWS, NOW - 30_000)
        post.db.write_sync(lambda conn: conn.exec_driver_sql("ANALYZE"))
        for desk in (lite, post):
            # A server that started after the last statistics were made, and has been busy since.
            desk.db.write_sync(register_server, describe_server(YOUNG, NOW - 30_000, "grown"))
            desk.db.write_sync(append, YOUNG, range(8_000), 8_000, NOW - 20_000)
        yield lite, post


@pytest.mark.parametrize("name", READINGS)
def test_both_stores_show_the_same(stores: tuple[Stand, Stand], name: str):
    lite, post = stores
    assert lite.db.dialect != post.db.dialect
    assert lite.db.read_sync(READINGS[name]) == post.db.read_sync(READINGS[name])


def _plans(conn: Connection, reading: Reading) -> list[str]:
    with spied() as seen:
        reading(conn)
    found: list[str] = []
    for statement, parameters in seen:
        if statement.lstrip().upper().startswith("SELECT"):
            found += [str(row[0]) for row in conn.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
    return found


@pytest.mark.parametrize("name", READINGS)
def test_no_plan_of_postgresql_walks_the_ledger(stores: tuple[Stand, Stand], name: str):
    steps = stores[1].db.read_sync(_plans, READINGS[name])
    assert steps
    assert [step for step in steps if re.search(r"Seq Scan on (ledger_body|ledger_link)\b", step)] == []


def test_a_young_server_is_found_by_number_although_no_statistics_know_it(stores: tuple[Stand, Stand]):
    steps = stores[1].db.read_sync(_plans, lambda conn: in_chain(conn, YOUNG, [7_990, 7_992, 7_999]))
    conditions = [step for step in steps if "Index Cond" in step]
    assert len(conditions) == 2
    assert all("server_seq >=" in step and "server_seq <=" in step for step in conditions)
    assert [call.link.server_seq for call in stores[1].db.read_sync(in_chain, YOUNG, [7_999, 7_990])] == [7_990, 7_999]


async def test_every_page_answers_on_postgresql(stores: tuple[Stand, Stand]):
    async with stores[1].operator() as visitor:
        for path in ("/", "/live", "/calls", "/calls/call-commit", "/receipts", "/statistics?window=7d", "/controls"):
            assert (await visitor.get(path)).status_code == 200
