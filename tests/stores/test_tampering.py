"""Whatever is changed in the ledger's tables past Nova, verification names it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from nova_mcp.evidence import store
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.model import CallOutcome, PageState
from nova_mcp.evidence.pruner import erase_bodies

TABLES = [store.ledger_server, store.ledger_link, store.ledger_body, store.ledger_open_intent]
# Facts about the process, not evidence: they decide who recovers whom and are in no hash.
OUTSIDE_THE_CHAIN = {
    ("ledger_server", name)
    for name in (
        "started_at_ms", "pid", "process_started_ms", "host", "version", "last_seen_ms", "ended_at_ms", "end_reason",
    )
}  # fmt: skip
COVERED = [
    (table.name, column.name)
    for table in TABLES
    for column in table.columns
    if (table.name, column.name) not in OUTSIDE_THE_CHAIN
]
ROWS = 6


@pytest.fixture
def filled(db, build):
    for server_id in ("alpha", "beta"):
        db.write_sync(store.register_server, build.server(server_id))
        for number in range(1, ROWS + 1):
            record = build.call(
                server_id,
                f"{server_id}-{number}",
                kind="intent" if number == 2 else "call",
                after=PageState("t1", "s1", "https://example.com/x", "example.com/x", 1),
                outcome=CallOutcome("failed", reason_code="page.gone"),
                task_id="k1",
                instance_id="r1",
                closes="nothing",
            )
            db.write_sync(store.append_call, record)
    return db


def flipped(value, place, bit):
    match value:
        case None:
            return 1
        case bytes():
            place %= len(value)
            return value[:place] + bytes([value[place] ^ 1 << bit]) + value[place + 1 :]
        case str():
            place %= len(value)
            return value[:place] + chr(ord(value[place]) ^ 0x40) + value[place + 1 :]
        case int():
            # High bits: a neighbouring number would collide with a row that exists, which the database refuses.
            return value ^ 1 << (bit + 8)
    raise TypeError(type(value))


@pytest.mark.parametrize(("table", "column"), COVERED)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seq=st.integers(1, ROWS), place=st.integers(0, 5_000), bit=st.integers(0, 7))
def test_one_changed_byte_is_found(filled, bare_engine, table, column, seq, place, bit):
    where = {
        "ledger_server": "server_id = 'alpha'",
        "ledger_open_intent": "server_id = 'alpha'",
    }.get(table, f"server_id = 'alpha' AND server_seq = {seq}")
    with bare_engine.connect() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET session_replication_role = replica"))
        assert list(verify(conn)) == []
        before = conn.execute(text(f"SELECT {column} FROM {table} WHERE {where}")).scalar_one()
        change = {"value": flipped(before, place, bit)}
        assert conn.execute(text(f"UPDATE {table} SET {column} = :value WHERE {where}"), change).rowcount == 1
        found = list(verify(conn))
        conn.rollback()
    assert found
    if table in ("ledger_link", "ledger_body") and column not in ("server_id", "server_seq"):
        assert (found[0].server_id, found[0].server_seq) == ("alpha", seq)


def test_every_column_of_the_ledger_is_covered_or_named_as_outside():
    everything = {(table.name, column.name) for table in TABLES for column in table.columns}
    assert everything == set(COVERED) | OUTSIDE_THE_CHAIN


@pytest.mark.parametrize("column", ["server_id", "server_seq", "body_hash", "hash"])
def test_the_skeleton_of_an_erased_body_is_still_protected(filled, build, bare_engine, column):
    filled.write_sync(erase_bodies, ["alpha-3"], 9_000, build.eraser("alpha"))
    where = "server_id = 'alpha' AND server_seq = 3"
    with bare_engine.connect() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET session_replication_role = replica"))
        before = conn.execute(text(f"SELECT {column} FROM ledger_link WHERE {where}")).scalar_one()
        conn.execute(text(f"UPDATE ledger_link SET {column} = :value WHERE {where}"), {"value": flipped(before, 0, 0)})
        assert list(verify(conn))
        conn.rollback()


def test_two_swapped_bodies_are_found(filled, bare_engine):
    with bare_engine.connect() as conn:
        rows = {
            row.server_seq: row.body
            for row in conn.execute(text("SELECT server_seq, body FROM ledger_body WHERE server_id = 'alpha'"))
        }
        for seq, other in ((3, 4), (4, 3)):
            conn.execute(
                text("UPDATE ledger_body SET body = :body WHERE server_id = 'alpha' AND server_seq = :seq"),
                {"body": rows[other], "seq": seq},
            )
        (finding,) = verify(conn)
        conn.rollback()
    assert (finding.server_seq, finding.fault) == (3, "body_hash")


def test_a_record_added_past_the_head_is_found(filled, bare_engine):
    with bare_engine.connect() as conn:
        conn.execute(
            text(
                "INSERT INTO ledger_link (server_id, server_seq, call_id, body_hash, hash, erased_at_ms) "
                "SELECT server_id, 7, 'forged', body_hash, hash, 1 FROM ledger_link WHERE call_id = 'alpha-1'"
            )
        )
        (finding,) = verify(conn)
        conn.rollback()
    assert (finding.server_id, finding.server_seq, finding.fault) == ("alpha", 7, "head")


def test_only_the_first_break_of_a_chain_is_named_and_other_chains_are_still_walked(filled, bare_engine):
    with bare_engine.connect() as conn:
        conn.execute(text("UPDATE ledger_body SET tool_name = 'other' WHERE server_seq IN (2, 5)"))
        found = [(item.server_id, item.server_seq, item.fault) for item in verify(conn)]
        conn.rollback()
    assert found == [("alpha", 2, "index_columns"), ("beta", 2, "index_columns")]
