"""A server that is killed or loses its store while it writes knowledge leaves nothing half done."""

import subprocess
import sys
from pathlib import Path

import author
import pytest
from sqlalchemy import create_engine, select, text

from nova_mcp.evidence.audit import verify
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.schema import metadata
from promotion_kit import HERE, replayed

HELPER = Path(author.__file__)
# What a call comes to the first time, and when it is sent again after it was done.
ANSWERS = {
    "upsert": ("created", "unchanged"),
    "patch": ("updated", "unchanged"),
    "promote": ("banner:True", "banner:False"),
    "generate": ("1", "0"),
    # What was seen a moment ago is not counted a second time.
    "revalidate": ("banner", ""),
}


def killed(url, name, point):
    """Run one call in a process of its own and end it, without a word, where it has come to that point."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", HELPER, url, name, "victim", "ready", point],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            before = everything(url)
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{point}\n"
        finally:
            process.kill()
            process.wait()
    return before


def everything(url):
    """Every row of every table, as another process sees it."""
    with author.Database.open(url) as db:
        tables = [select(table) for table in metadata.sorted_tables]
        return db.read_sync(lambda conn: [sorted(map(repr, conn.execute(one))) for one in tables])


def sound(db):
    """The chain holds, and every entry stands where its own history leads."""
    assert db.read_sync(lambda conn: list(verify(conn))) == []
    for shelved in db.read_sync(store.entries, HERE):
        assert db.read_sync(steps_store.snapshot, shelved.entry_id) is not None
        assert replayed(db, shelved.entry_id) == entry_of(shelved)


@pytest.fixture
def ready(store_url, open_db):
    with open_db(store_url) as db:
        author.prepared(db)
    return store_url


@pytest.mark.parametrize("name", ANSWERS)
def test_what_was_not_committed_is_not_there_and_can_be_asked_for_again(ready, open_db, name):
    before = killed(ready, name, "ledger.before_commit")
    assert everything(ready) == before
    db = open_db(ready)
    assert author.perform(db, name, "heir") == ANSWERS[name][0]
    sound(db)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_was_committed_but_never_answered_is_whole_and_is_not_done_twice(ready, open_db, name):
    first, second = open_db(ready), open_db(ready)
    assert author.perform(first, name, "victim") == ANSWERS[name][0]
    before = standing(second)
    assert author.perform(second, name, "heir") == ANSWERS[name][1]
    assert standing(second) == before
    sound(second)


def standing(db):
    """Entries as far as anybody is guided by them, and every move of a level."""
    entries = [
        (one.stable_id, one.slot, one.kept.level, one.kept.revision) for one in db.read_sync(store.entries, HERE)
    ]
    events = db.read_sync(event_store.events, HERE, 0, 50)
    return entries, [one for one in events if one.from_level != one.to_level]


# -- stores that go away


def lost(db, name, monkeypatch, losing):
    """Let the store go away under a call the first time that it writes an entry; why it says so."""
    told = []

    def breaking(write):
        def broken(conn, *args, **more):
            if not told:
                told.append(name)
                losing(conn)
            return write(conn, *args, **more)

        return broken

    with monkeypatch.context() as patched:
        for place, write in ((store, "save"), (store, "add"), (steps_store, "record")):
            patched.setattr(place, write, breaking(getattr(place, write)))
        with pytest.raises(StoreUnavailable) as refused:
            author.perform(db, name, "victim")
    assert told, "the store was never lost"
    return refused.value.reason


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("why", ["readonly", "full"])
def test_a_file_that_can_not_be_written_any_more_takes_nothing_of_a_call(sqlite_url, open_db, monkeypatch, name, why):
    author.prepared(open_db(sqlite_url))
    before, db = standing(open_db(sqlite_url)), open_db(sqlite_url)
    counted = rows_but_servers(sqlite_url)

    def losing(conn):
        if why == "readonly":
            conn.exec_driver_sql("PRAGMA query_only=ON")
            return
        conn.exec_driver_sql("PRAGMA max_page_count=1")
        # Big enough for a page of its own, which there is no room for.
        conn.exec_driver_sql("INSERT INTO schema_probe VALUES (zeroblob(100000))")

    open_db(sqlite_url).write_sync(lambda conn: conn.exec_driver_sql("CREATE TABLE schema_probe (body BLOB)"))
    assert lost(db, name, monkeypatch, losing) == why
    assert rows_but_servers(sqlite_url) == counted
    assert author.perform(open_db(sqlite_url), name, "heir") == ANSWERS[name][0]
    assert standing(open_db(sqlite_url)) != before or name == "revalidate"


@pytest.mark.postgres
@pytest.mark.parametrize("name", ANSWERS)
def test_a_database_that_ends_the_connection_takes_nothing_of_a_call(postgres_url, open_db, monkeypatch, name):
    author.prepared(open_db(postgres_url))
    counted, killer = rows_but_servers(postgres_url), create_engine(postgres_url)

    def losing(conn):
        mine = conn.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        with killer.connect() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": mine})

    assert lost(open_db(postgres_url), name, monkeypatch, losing) == "down"
    killer.dispose()
    assert rows_but_servers(postgres_url) == counted
    assert author.perform(open_db(postgres_url), name, "heir") == ANSWERS[name][0]


def rows_but_servers(url):
    """Everything but who has ever been there."""
    kept = [number for number, table in enumerate(metadata.sorted_tables) if table.name != "ledger_server"]
    found = everything(url)
    return [found[number] for number in kept]
