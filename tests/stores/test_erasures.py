"""An erasure is a record of the ledger: what is missing without one is named, whoever took it away."""

import json

import pytest
from former_store import migrate
from sqlalchemy import text

from nova_mcp.evidence import store
from nova_mcp.evidence.audit import Erased, Head, verify
from nova_mcp.evidence.erasure import erased_ranges
from nova_mcp.evidence.janitor import Janitor, retention_policy
from nova_mcp.evidence.pruner import PruneRequest, erase_bodies, prune
from nova_mcp.evidence.rules import DAY_MS, body_hash, canonical_body, genesis_hash, index_columns, link_hash
from nova_mcp.settings import RetentionSettings
from nova_mcp.storage.engine import Database

ROWS = 8
# The last schema in which nothing recorded an erasure.
UNRECORDED = "0010"


def findings(conn, kept=None, erased=None):
    return [(found.server_id, found.server_seq, found.fault) for found in verify(conn, kept, erased)]


@pytest.fixture
def filled(db, build):
    for server_id in ("alpha", "beta"):
        db.write_sync(store.register_server, build.server(server_id))
        for number in range(1, ROWS + 1):
            db.write_sync(store.append_call, build.call(server_id, f"{server_id}-{number}"))
    return db


def heads_of(db):
    return {row.server_id: Head(row.head_seq, row.head_hash) for row in db.read_sync(store.heads)}


def by_hand(engine, *statements):
    """An intruder's way into the tables, past Nova and past the constraints."""
    with engine.begin() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET session_replication_role = replica"))
        for statement in statements:
            conn.execute(text(statement))


def last_record(db, server_id):
    seq = heads_of(db)[server_id].server_seq
    query = text("SELECT call_id FROM ledger_link WHERE server_id = :server AND server_seq = :seq")
    call_id = db.read_sync(lambda conn: conn.execute(query, {"server": server_id, "seq": seq}).scalar())
    return db.read_sync(store.get_call, call_id).record


def test_an_erasure_says_who_why_which_and_when(filled, build):
    named = ["alpha-2", "alpha-3", "alpha-5", "beta-8"]
    assert filled.write_sync(erase_bodies, named, 77_000, build.eraser("beta", who="the owner")) == 4
    record = last_record(filled, "beta")
    assert (record.kind, record.caller.server_id, record.started_at_ms) == ("erasure", "beta", 77_000)
    assert record.arguments["by"] == "the owner"
    assert record.arguments["why"] == {"named": 4}
    assert erased_ranges(record) == {"alpha": [(2, 3), (5, 5)], "beta": [(8, 8)]}
    erased = Erased()
    assert filled.read_sync(findings, None, erased) == []
    assert (erased.recorded, erased.before_records) == (4, 0)


async def test_retention_records_what_it_erases_with_its_rules(filled, build):
    class Later:
        def now_ms(self):
            return 1_000 + 31 * DAY_MS

    keeper = Janitor(filled, Later(), retention_policy(RetentionSettings()), build.eraser("alpha", who="retention"))
    assert await keeper.sweep() == 2 * ROWS
    record = last_record(filled, "alpha")
    assert (record.arguments["by"], record.arguments["why"]) == ("retention", {"other": 2 * ROWS})
    # Neither the bodies that are gone nor the record of it are due a year later.
    Later.now_ms = lambda _: 1_000 + 400 * DAY_MS
    assert await keeper.sweep() == 0
    assert filled.read_sync(findings) == []


def test_nothing_is_erased_without_saying_who(filled):
    with pytest.raises(ValueError, match="who"):
        filled.write_sync(prune, 99 * DAY_MS, PruneRequest())


@pytest.mark.parametrize("marked", [False, True], ids=["deleted", "deleted and marked as erased"])
@pytest.mark.parametrize("kept", [False, True], ids=["alone", "with kept heads"])
def test_every_body_that_was_erased_by_hand_is_named(filled, build, bare_engine, marked, kept):
    filled.write_sync(erase_bodies, ["alpha-4", "beta-1"], 9_000, build.eraser("alpha"))
    heads = heads_of(filled)
    gone = "server_id = 'alpha' AND server_seq IN (2, 5, 6)"
    mark = f"UPDATE ledger_link SET erased_at_ms = 9000 WHERE {gone}" if marked else "SELECT 1"
    by_hand(bare_engine, f"DELETE FROM ledger_body WHERE {gone}", mark)
    missing = [("alpha", seq, "missing_body") for seq in (2, 5, 6)]
    assert filled.read_sync(findings, heads if kept else None) == missing


def test_an_emptied_body_is_named(filled, bare_engine):
    by_hand(bare_engine, "UPDATE ledger_body SET body = '' WHERE server_id = 'alpha' AND server_seq = 3")
    ((server_id, seq, fault),) = filled.read_sync(findings)
    assert (server_id, seq) == ("alpha", 3)
    assert fault in ("unreadable", "body_hash")


def test_the_record_of_an_erasure_that_goes_missing_uncovers_what_it_named(filled, build, bare_engine):
    filled.write_sync(erase_bodies, ["alpha-4"], 9_000, build.eraser("beta"))
    by_hand(
        bare_engine,
        f"DELETE FROM ledger_body WHERE server_id = 'beta' AND server_seq = {ROWS + 1}",
        f"UPDATE ledger_link SET erased_at_ms = 1 WHERE server_id = 'beta' AND server_seq = {ROWS + 1}",
    )
    assert filled.read_sync(findings) == [("alpha", 4, "missing_body"), ("beta", ROWS + 1, "missing_body")]


def forged(build, server_id, seq):
    arguments = {"by": "nobody", "why": {"other": 1}, "links": {"alpha": [[2, 2]]}}
    record = build.call(server_id, "forged", kind="erasure", tool_name="ledger", effect="admin", arguments=arguments)
    return record, canonical_body(record), seq


def put_body(conn, record, body, seq):
    row = {"server_id": record.caller.server_id, "server_seq": seq, "body": body}
    columns = index_columns(record)
    names = [column.name for column in store.ledger_body.c if column.name not in row]
    conn.execute(store.ledger_body.insert(), {**row, **{name: getattr(columns, name) for name in names}})


@pytest.mark.parametrize("way", ["body alone", "past the head", "in place of a body", "with a head that does not fit"])
def test_a_forged_erasure_record_that_is_not_in_the_chain_covers_nothing(filled, build, bare_engine, way):
    heads = heads_of(filled)
    by_hand(
        bare_engine,
        "DELETE FROM ledger_body WHERE server_id = 'alpha' AND server_seq = 2",
        "UPDATE ledger_link SET erased_at_ms = 1 WHERE server_id = 'alpha' AND server_seq = 2",
    )
    seq = 4 if way == "in place of a body" else ROWS + 1
    record, body, seq = forged(build, "beta", seq)
    with bare_engine.begin() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET session_replication_role = replica"))
        if way == "in place of a body":
            conn.execute(text(f"DELETE FROM ledger_body WHERE server_id = 'beta' AND server_seq = {seq}"))
        elif way != "body alone":
            digest = body_hash(body)
            previous = heads["beta"].hash if way == "past the head" else genesis_hash("beta")
            link = {"server_id": "beta", "server_seq": seq, "call_id": "forged", "body_hash": digest}
            conn.execute(store.ledger_link.insert(), {**link, "hash": link_hash(previous, seq, digest)})
            if way != "past the head":
                conn.execute(text(f"UPDATE ledger_server SET head_seq = {seq} WHERE server_id = 'beta'"))
        put_body(conn, record, body, seq)
    found = filled.read_sync(findings)
    assert ("alpha", 2, "missing_body") in found
    assert [server_id for server_id, _, _ in found].count("beta") == 1


def test_a_body_that_a_record_calls_erased_and_that_is_there_is_named(filled, build):
    body, record = filled.read_sync(_body_of, "alpha", 4), filled.read_sync(store.get_call, "alpha-4").record
    filled.write_sync(erase_bodies, ["alpha-4"], 9_000, build.eraser("alpha"))
    filled.write_sync(lambda conn: put_body(conn, record, body, 4))
    filled.write_sync(lambda conn: conn.execute(text("UPDATE ledger_link SET erased_at_ms = NULL")))
    assert filled.read_sync(findings) == [("alpha", 4, "body_not_erased")]


def _body_of(conn, server_id, seq):
    query = text("SELECT body FROM ledger_body WHERE server_id = :server AND server_seq = :seq")
    return bytes(conn.execute(query, {"server": server_id, "seq": seq}).scalar())


# -- a store of a former schema --------------------------------------------------------------------------------------


@pytest.fixture
def previous(empty_url, build, make_engine):
    """A store from before erasures were recorded, brought to the schema that records them: two chains, one body erased
    by its retention, one deleted by hand."""
    with make_engine(empty_url).begin() as conn:
        migrate(conn, UNRECORDED)
        for server_id in ("alpha", "beta"):
            store.register_server(conn, build.server(server_id))
            for number in range(1, ROWS + 1):
                store.append_call(conn, build.call(server_id, f"{server_id}-{number}"))
        conn.execute(text("DELETE FROM ledger_body WHERE server_id = 'alpha' AND server_seq IN (2, 3, 6)"))
        conn.execute(text("UPDATE ledger_link SET erased_at_ms = 5 WHERE server_id = 'alpha' AND server_seq IN (2, 3)"))
        migrate(conn)
    return empty_url


@pytest.fixture
def make_engine():
    from sqlalchemy import create_engine

    made = []

    def make(url):
        made.append(create_engine(url))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


def test_an_upgrade_keeps_every_head_and_marks_where_records_of_erasures_begin(previous, make_engine):
    with make_engine(previous).connect() as conn:
        before = {row.server_id: Head(row.head_seq, row.head_hash) for row in store.heads(conn)}
    with Database.open(previous) as db:
        assert heads_of(db) == before
        erased = Erased()
        assert db.read_sync(findings, before, erased) == [("alpha", 6, "missing_body")]
        assert (erased.recorded, erased.before_records) == (2, 2)
        (server_id,) = set(before) - {"alpha", "beta"}
        record = last_record(db, server_id)
        assert record.kind == "erasure"
        assert json.loads(canonical_body(record))["arguments"]["why"] == {"before_records": 2}
        assert {row.server_id: row.end_reason for row in db.read_sync(store.servers)}[server_id] == "migrated"


def test_a_second_start_of_records_is_named(previous, bare_marks, make_engine):
    """Who sets the schema back, so that the upgrade would vouch for bodies erased by hand, is found."""
    Database.open(previous).close_sync()
    bare_marks(make_engine(previous))
    with Database.open(previous) as db:
        found = db.read_sync(findings)
    assert "second_start_of_erasures" in [fault for _, _, fault in found]


@pytest.fixture
def bare_marks():
    def mark(engine):
        by_hand(
            engine,
            "DELETE FROM ledger_body WHERE server_id = 'beta' AND server_seq = 5",
            "UPDATE ledger_link SET erased_at_ms = 5 WHERE server_id = 'beta' AND server_seq = 5",
            f"UPDATE alembic_version SET version_num = '{UNRECORDED}'",
        )
        with engine.begin() as conn:
            migrate(conn)

    return mark


def test_a_store_in_which_nothing_was_erased_gets_no_such_record(empty_url, build, make_engine):
    with make_engine(empty_url).begin() as conn:
        migrate(conn, UNRECORDED)
        store.register_server(conn, build.server("alpha"))
        store.append_call(conn, build.call("alpha", "alpha-1"))
        migrate(conn)
    with Database.open(empty_url) as db:
        assert list(heads_of(db)) == ["alpha"]
        assert db.read_sync(findings) == []
