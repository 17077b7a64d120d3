"""`nova db`: upgrades, prunes and checks beside servers that go on writing."""

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from cli_kit import DAY_MS, Folder, nova, nova_process
from sqlalchemy import select

from nova_mcp.core.clock import SystemClock
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.memory.facts.tables import fact_binding
from nova_mcp.storage.schema import HEAD
from nova_mcp.verification.model import Contract
from nova_mcp.verification.store import find_transition, open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement


def old(days: float) -> int:
    return SystemClock().now_ms() - int(days * DAY_MS)


def bodies(folder: Folder) -> int:
    """Of calls; a prune adds records of its own."""
    count = "SELECT count(*) FROM ledger_body WHERE kind = 'call'"
    return folder.db.read_sync(lambda conn: conn.exec_driver_sql(count).scalar())


def told_events(folder: Folder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in nova("events", "--json", "--data-dir", folder.path).stdout.splitlines()]


def test_upgrade_creates_a_store_and_finds_it_up_to_date_afterwards(tmp_path: Path) -> None:
    first = nova_process("db", "upgrade", "--data-dir", tmp_path / "new")
    second = nova_process("db", "upgrade", "--data-dir", tmp_path / "new")
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == second.stdout
    assert f"schema {HEAD}" in first.stdout


def test_a_dry_run_counts_what_a_prune_then_erases(folder: Folder) -> None:
    for days in (40, 35, 31, 29, 0):
        folder.call(at_ms=old(days))
    would = json.loads(nova("db", "prune", "--dry-run", "--json", "--data-dir", folder.path).stdout)
    assert (would["total"], bodies(folder)) == (3, 5)
    done = json.loads(nova("db", "prune", "--json", "--data-dir", folder.path).stdout)
    assert {**done, "dryRun": True} == would
    assert bodies(folder) == 2
    verified = nova("ledger", "verify", "--data-dir", folder.path)
    assert (verified.exit_code, "3 bodies erased, each named by a record" in verified.stdout) == (0, True)
    (erasure,) = [call for call in told_events(folder) if call["kind"] == "erasure"]
    assert erasure["arguments"]["by"].startswith("nova db prune, run by ")
    assert erasure["arguments"]["links"] == {"s1": [[1, 3]]}


def test_retention_follows_the_settings(folder: Folder) -> None:
    (folder.path / "nova.toml").write_text("[retention]\nother_days = 1\n")
    for days in (3, 0):
        folder.call(at_ms=old(days))
    done = nova("db", "prune", "--data-dir", folder.path)
    assert "other (after 1 days)\t1" in done.stdout
    assert bodies(folder) == 1


def test_a_prune_of_many_steps_erases_everything_that_is_due(folder: Folder, monkeypatch) -> None:
    monkeypatch.setattr("nova_mcp.cli.store.db.STEP", 7)
    for number in range(50):
        folder.call(at_ms=old(60) + number)
    assert json.loads(nova("db", "prune", "--json", "--data-dir", folder.path).stdout)["total"] == 50
    assert bodies(folder) == 0


def test_commands_work_while_a_server_writes_and_nothing_is_lost(folder: Folder) -> None:
    folder.serve("busy")
    for number in range(200):
        folder.call("old", at_ms=old(60) + number)
    halt = threading.Event()

    def write() -> None:
        while not halt.is_set():
            folder.call("busy", at_ms=SystemClock().now_ms())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        ran = [
            nova_process(*words, "--data-dir", folder.path)
            for words in (("events",), ("ledger", "verify"), ("db", "prune"), ("db", "check"), ("ledger", "verify"))
        ]
    finally:
        halt.set()
        writer.join()
    assert [(done.returncode, done.stderr) for done in ran if done.returncode] == []
    assert "bodies of calls: 200 erased" in ran[2].stdout
    assert bodies(folder) == folder.count["busy"]
    assert nova("ledger", "verify", "--data-dir", folder.path).exit_code == 0


def test_check_finds_a_damaged_file_and_leaves_it_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "nova.db"
    path.write_bytes(b"no database at all" * 1000)
    done = nova_process("db", "check", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout
    assert [file.name for file in tmp_path.glob("nova.db*")] == ["nova.db"]


def test_check_finds_rows_that_hang_in_the_air(folder: Folder) -> None:
    folder.call()
    with sqlite3.connect(folder.path / "nova.db") as conn:
        conn.execute("DELETE FROM ledger_server")
    conn.close()
    done = nova("db", "check", "--json", "--data-dir", folder.path)
    assert done.exit_code == 1
    assert "ledger_server" in json.loads(done.stdout)["problems"][0]


def test_a_sound_store_passes_the_check(folder: Folder) -> None:
    folder.call()
    assert nova_process("db", "check", "--data-dir", folder.path).returncode == 0


def test_an_unknown_kind_of_store_is_a_configuration_mistake(tmp_path: Path) -> None:
    done = nova_process("db", "upgrade", "--data-dir", tmp_path, "--store", "oracle://x")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_old_transitions_and_goals_go_with_the_calls(folder: Folder) -> None:
    for name, days in (("tr_old", 31), ("tr_new", 1)):
        new = NewTransition(name, Caller("local", "a", ServerId("s1")), "c", "nova.x", None, "o", Contract(), old(days))
        folder.db.write_sync(open_transition, new)
        folder.db.write_sync(settle, name, Settlement("verified_success", completed_at_ms=old(days)))
    would = json.loads(nova("db", "prune", "--dry-run", "--json", "--data-dir", folder.path).stdout)
    done = nova("db", "prune", "--data-dir", folder.path).stdout
    assert would["transitions"] == 1
    assert "transitions and goals: 1 forgotten (after 30 days)" in done
    assert folder.db.read_sync(find_transition, None, "tr_old") is None
    assert folder.db.read_sync(find_transition, None, "tr_new") is not None


def test_facts_of_tabs_that_were_closed_long_ago_go_too(folder: Folder) -> None:
    def close(conn, name: str, days: float | None) -> None:
        row = {"binding_id": name, "target_id": name, "sandbox_id": "A", "principal": "local", "service_key": "shop"}
        at_ms = None if days is None else old(days)
        conn.execute(fact_binding.insert().values(**row, custom_facts=0, opened_at_ms=old(200), closed_at_ms=at_ms))

    for name, days in (("long ago", 91), ("lately", 89), ("open", None)):
        folder.db.write_sync(close, name, days)
    would = nova("db", "prune", "--dry-run", "--data-dir", folder.path).stdout
    assert "scopes of live facts: 1 would go (closed for 90 days)" in would
    assert json.loads(nova("db", "prune", "--json", "--data-dir", folder.path).stdout)["facts"] == 1
    left = folder.db.read_sync(lambda conn: conn.execute(select(fact_binding.c.binding_id)).scalars().all())
    assert sorted(left) == ["lately", "open"]
