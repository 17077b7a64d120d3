"""The baseline: a fresh store, one of the schema before it, and those that are too old."""

from pathlib import Path

import pytest
from former_store import connected, make_former, revision_of, rows, shape

from nova_mcp.evidence import store
from nova_mcp.evidence.audit import verify
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.schema import HEAD, PREVIOUS, RETIRED


def heads(conn):
    return {row.server_id: (row.head_seq, bytes(row.head_hash)) for row in store.heads(conn)}


@pytest.fixture
def former(empty_url, build):
    make_former(empty_url, build)
    return empty_url


def test_a_store_of_the_schema_before_keeps_its_rows_and_ledger_heads(former):
    with connected(former) as conn:
        before, heads_before = rows(conn), heads(conn)
    assert {name for name, found in before.items() if not found} == {"ledger_open_intent"}
    with Database.open(former) as db:
        assert db.read_sync(rows) == before
        assert db.read_sync(heads) == heads_before
        assert db.read_sync(lambda conn: list(verify(conn))) == []
        assert db.read_sync(revision_of) == HEAD


def test_a_fresh_store_and_an_upgraded_one_have_the_same_schema(former, tmp_path, request):
    kind = "postgres" if former.startswith("postgres") else "sqlite"
    fresh = request.getfixturevalue(f"{kind}_url")
    Database.open(former).close_sync()
    with connected(former) as upgraded, connected(fresh) as made:
        assert shape(upgraded) == shape(made)


def test_an_upgrade_that_is_cut_off_leaves_the_store_as_it_was(former, monkeypatch):
    from nova_mcp.storage import schema

    def cut_off(conn):
        migrate(conn)
        raise StoreUnavailable("down", "cut off")

    migrate = schema._migrate
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_migrate", cut_off)
        with pytest.raises(StoreUnavailable):
            Database.open(former)
    with connected(former) as conn:
        assert revision_of(conn) == PREVIOUS
    Database.open(former).close_sync()


@pytest.mark.parametrize("revision", ["0001", "0010"])
def test_an_older_store_is_refused_in_one_sentence_and_stays_as_it_is(empty_url, build, revision):
    make_former(empty_url, build, revision)
    with connected(empty_url) as conn:
        before = shape(conn), heads(conn)
    for open_store in (Database.open, Database.open_for_reading):
        with pytest.raises(StoreUnavailable) as refusal:
            open_store(empty_url)
        assert refusal.value.reason == "schema_retired"
        assert f"too old for this Nova: it has schema {revision}" in refusal.value.message
        assert "nothing was changed" in refusal.value.hint
    with connected(empty_url) as conn:
        assert (shape(conn), heads(conn)) == before
        assert revision_of(conn) == revision


def test_not_a_byte_of_an_older_file_changes(empty_sqlite_url, build, tmp_path):
    make_former(empty_sqlite_url, build, "0010")
    before = {file.name: file.read_bytes() for file in Path(tmp_path).iterdir()}
    for open_store in (Database.open, Database.open_for_reading):
        with pytest.raises(StoreUnavailable):
            open_store(empty_sqlite_url)
    assert {file.name: file.read_bytes() for file in Path(tmp_path).iterdir()} == before


def test_every_former_schema_is_known(request):
    chain = Path(request.path).with_name("former_schema") / "versions"
    assert {path.name[:4] for path in chain.glob("0*.py")} == {PREVIOUS, *RETIRED}
