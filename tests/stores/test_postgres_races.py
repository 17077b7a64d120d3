"""Races on PostgreSQL played out step by step: the second party has to wait, then to see what the first one did."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from nova_mcp.evidence import store
from nova_mcp.memory.notes import memory_store, operator_store
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


def test_of_two_memories_in_flight_the_second_sees_that_there_is_no_room(postgres_url, open_db, monkeypatch):
    monkeypatch.setattr(memory_store, "PER_HOST", 1)
    first, second = open_db(postgres_url), open_db(postgres_url)

    def save(conn, text):
        new = memory_store.NewMemory("local", "shop.test", "note", text, None, "user")
        return memory_store.save(conn, new, 1_000)

    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            saved = save(conn, "one")
            other = thread.submit(second.write_sync, save, "two")
            wait_for_a_blocked_session(conn, other)
            return saved, other

        saved, other = first.write_sync(overlap)
        assert saved.action == "created"
        assert isinstance(other.result(30), memory_store.Full)


def test_of_two_notes_in_flight_with_one_text_the_second_joins_the_first(postgres_url, open_db):
    first, second = open_db(postgres_url), open_db(postgres_url)

    def put(conn, name):
        draft = operator_store.Draft("local", "Check twice", (name,), None, "agent")
        return operator_store.store(conn, draft, 1_000, lambda: name * 32)

    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            stored = put(conn, "a")
            other = thread.submit(second.write_sync, put, "b")
            wait_for_a_blocked_session(conn, other)
            return stored, other

        stored, other = first.write_sync(overlap)
        joined = other.result(30)
        assert (stored.action, joined.action, joined.note.note_id) == ("created", "updated", "a" * 32)
        assert joined.note.tags == ("a", "b")
