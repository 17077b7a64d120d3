"""A store that is locked, removed or replaced under a running server is reported in time, never written past."""

import sqlite3
from pathlib import Path

import anyio
import pytest
from sqlalchemy import Connection, event, text

from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.evidence.store import ServerInfo, append_call, heads, register_server
from nova_mcp.storage.engine import Database, Tuning
from nova_mcp.storage.errors import StoreUnavailable

BUSY_MS = 400


def _touch(conn: Connection) -> None:
    conn.execute(text("UPDATE id_counter SET value = value"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nova.db"


async def test_calls_behind_a_locked_file_wait_together_and_not_one_after_the_other(path: Path) -> None:
    tries: list[int] = []
    with Database.open(f"sqlite:///{path}", tuning=Tuning(busy_timeout_ms=BUSY_MS)) as db:
        # A unit that fails on the lock gives its connection up, so connections count the tries.
        event.listen(db._engines[0], "connect", lambda *_: tries.append(1))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")

        async def write() -> None:
            with pytest.raises(StoreUnavailable) as refused:
                await db.write(_touch)
            assert refused.value.reason == "locked"

        async with anyio.create_task_group() as calls:
            for _ in range(40):
                calls.start_soon(write)
        assert len(tries) < 5
        holder.execute("COMMIT")
        holder.close()
        await db.write(_touch)


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_evidence_is_never_written_into_a_file_that_is_gone(path: Path, replaced: bool) -> None:
    with Database.open(f"sqlite:///{path}") as db:
        db.write_sync(_touch)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        if replaced:
            path.write_bytes(b"")
        for unit in (db.write_sync, db.read_sync, db.write_sync):
            with pytest.raises(StoreUnavailable) as refused:
                unit(_touch)
            assert refused.value.reason == "down"
            assert "removed or replaced" in refused.value.message
        assert path.exists() == replaced


@pytest.mark.parametrize(
    "damage", ["head_seq = 'many'", "head_seq = 1.5", "head_hash = 'text'", "last_seen_ms = 'noon'"]
)
def test_a_head_of_the_wrong_kind_is_named_and_stops_nobody(path: Path, damage: str) -> None:
    with Database.open(f"sqlite:///{path}") as db:
        for server_id in ("alpha", "beta"):
            info = ServerInfo(ServerId(server_id), 1, 1, 1, "here", "0")
            db.write_sync(register_server, info)
            caller = Caller("local", "default", ServerId(server_id))
            outcome = CallOutcome("ok")
            db.write_sync(append_call, CallRecord(f"{server_id}-1", caller, "nova.tabs", "read", 1, 1, outcome))
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE ledger_server SET {damage} WHERE server_id = 'alpha'")
    raw.close()
    with Database.open(f"sqlite:///{path}") as db:
        (finding,) = db.read_sync(lambda conn: list(verify(conn)))
        assert (finding.server_id, finding.fault) == ("alpha", "unreadable")
        assert [row.server_id for row in db.read_sync(heads)] == ["beta"]
