"""Races on PostgreSQL played out step by step: the second party has to wait, then to see what the first one did."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from nova_mcp.observation import store
from nova_mcp.storage import schema
from nova_mcp.storage.engine import Database

pytestmark = pytest.mark.postgres


def wait_for_a_blocked_session(conn, other):
    """Come back once somebody waits for a lock, or the other party ended without ever waiting."""
    while not other.done() and not conn.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar():
        pass


@pytest.mark.parametrize("ended_before", [False, True])
def test_of_two_recoveries_in_flight_the_second_closes_nothing(postgres_url, open_db, build, ended_before):
    first, second = open_db(postgres_url), open_db(postgres_url)
    for server_id in ("dead", "one", "two"):
        first.write_sync(store.register_server, build.server(server_id))
    first.write_sync(store.append_call, build.call("dead", "i1", kind="intent", effect="commit"))
    if ended_before:
        first.write_sync(store.end_server, "dead", 2_000, "shutdown")

    def recover(conn, server_id):
        return store.recover(conn, 5_000, server_id, lambda row: row.server_id != "dead", lambda: f"r-{server_id}")

    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            closed = recover(conn, "one")
            other = thread.submit(second.write_sync, recover, "two")
            wait_for_a_blocked_session(conn, other)
            return closed, other

        closed, other = first.write_sync(overlap)
        assert [call.record.closes for call in closed] == ["i1"]
        assert other.result(30) == []


def test_a_server_that_opens_the_store_during_a_migration_waits_for_its_end(empty_postgres_url):
    engine = create_engine(empty_postgres_url)
    with ThreadPoolExecutor(1) as thread:
        with engine.begin() as conn:
            assert schema.upgrade(conn)
            other = thread.submit(Database.open, empty_postgres_url)
            wait_for_a_blocked_session(conn, other)
            assert not other.done()
        with other.result(30) as db:
            assert db.read_sync(store.servers) == []
    engine.dispose()
