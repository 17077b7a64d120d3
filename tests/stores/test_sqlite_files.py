"""What happens to the SQLite file when the disk, its owner or its bytes misbehave."""

import logging
import os
import sqlite3
from pathlib import Path

import pytest

from nova_mcp.evidence import store
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.pruner import erase_bodies
from nova_mcp.storage import engine, recovery, schema
from nova_mcp.storage.engine import Database, Tuning
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.filesystem import Mount, is_network, mount_of, network_file_system, parse_mounts

NOW = 1_700_000_000_000
STAMP = "20231114T221320.000Z"
HASTY = Tuning(busy_timeout_ms=50)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nova.db"


@pytest.fixture
def written(path, build):
    with Database.open(f"sqlite:///{path}") as db:
        db.write_sync(store.register_server, build.server("a"))
        for number in range(300):
            db.write_sync(store.append_call, build.call("a", f"c{number}"))
    return path


def destroy_header(path):
    with path.open("r+b") as file:
        file.write(b"\x00garbage" * 20)


def destroy_a_page(path):
    """Ruin the first page that holds rows of the schema's tables, but leave the header intact."""
    size = 4096
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // size):
        data[page * size : page * size + 200] = b"\xff" * 200
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [destroy_header, destroy_a_page])
def test_a_damaged_file_is_moved_aside_and_loudly_replaced(written, damage, open_db, caplog):
    damage(written)
    broken = written.read_bytes()
    with caplog.at_level(logging.ERROR):
        db = open_db(f"sqlite:///{written}", now_ms=lambda: NOW)
    aside = written.with_name(f"nova.db.corrupt-{STAMP}")
    assert aside.read_bytes() == broken
    (notice,) = db.notices
    assert str(aside) in notice
    assert notice in caplog.text
    assert db.read_sync(store.servers) == []


@pytest.mark.parametrize("damage", [destroy_header, destroy_a_page])
def test_what_only_the_log_of_a_damaged_file_holds_is_kept_with_it(written, damage, open_db):
    writer = sqlite3.connect(written)
    writer.execute("UPDATE ledger_server SET version = 'only-in-the-log'")
    writer.commit()
    data, log = written.read_bytes(), Path(f"{written}-wal").read_bytes()
    writer.close()
    written.write_bytes(data)
    Path(f"{written}-wal").write_bytes(log)
    damage(written)
    assert b"only-in-the-log" not in written.read_bytes()
    open_db(f"sqlite:///{written}", now_ms=lambda: NOW)
    moved = list(written.parent.glob(f"nova.db.corrupt-{STAMP}*"))
    assert any(b"only-in-the-log" in file.read_bytes() for file in moved)
    assert b"only-in-the-log" not in written.read_bytes()


def test_a_damaged_file_that_another_process_uses_is_left_alone(written, spawn):
    holder = spawn("hold", written)
    assert holder.stdout.readline() == "ready\n"
    destroy_header(written)
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(f"sqlite:///{written}", tuning=HASTY)
    assert refusal.value.reason == "locked"
    assert "other processes" in refusal.value.message
    assert recovery.past_recoveries(written) == []


def test_a_healthy_file_that_another_process_uses_is_left_alone(written, spawn):
    holder = spawn("hold", written)
    assert holder.stdout.readline() == "ready\n"
    assert recovery.move_if_broken(written, written.with_name("aside")) == recovery.InUse()
    assert written.exists()


def test_a_healthy_file_is_left_alone_whatever_was_suspected(written):
    assert recovery.recover(written, NOW) is None
    assert recovery.past_recoveries(written) == []
    with Database.open(f"sqlite:///{written}") as db:
        assert db.read_sync(lambda conn: list(verify(conn))) == []


def test_a_fourth_recovery_is_refused(written):
    for number in range(3):
        destroy_header(written)
        Database.open(f"sqlite:///{written}", now_ms=lambda number=number: NOW + number).close_sync()
    assert len(recovery.past_recoveries(written)) == 3
    destroy_header(written)
    broken = written.read_bytes()
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(f"sqlite:///{written}", now_ms=lambda: NOW + 9)
    assert refusal.value.reason == "corrupt"
    assert "check the disk" in refusal.value.hint
    assert written.read_bytes() == broken


def test_servers_starting_together_on_a_damaged_file_all_get_a_store(written, spawn):
    destroy_header(written)
    workers = [spawn("open", f"sqlite:///{written}") for _ in range(3)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert {worker.communicate(timeout=60)[0] for worker in workers} == {f"revision {schema.HEAD}\n"}
    assert len(recovery.past_recoveries(written)) == 1


def test_a_file_locked_by_another_writer_is_reported_as_locked(written, open_db):
    db = open_db(f"sqlite:///{written}", tuning=HASTY)
    other = sqlite3.connect(written, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailable) as refusal:
            db.write_sync(store.end_server, "a", 1, "x")
        assert refusal.value.reason == "locked"
        assert db.read_sync(store.heads)[0].head_seq == 300
    finally:
        other.execute("ROLLBACK")
        other.close()
    db.write_sync(store.end_server, "a", 1, "x")


def test_a_full_disk_is_reported_as_full_and_the_store_works_on_once_there_is_room(written, open_db, build):
    db = open_db(f"sqlite:///{written}")

    def fill(conn):
        pages = conn.exec_driver_sql("PRAGMA page_count").scalar()
        conn.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        store.append_call(conn, build.call("a", "big", arguments="x" * 200_000))

    with pytest.raises(StoreUnavailable) as refusal:
        db.write_sync(fill)
    assert refusal.value.reason == "full"
    assert db.write_sync(store.append_call, build.call("a", "next")).server_seq == 301


def test_a_file_that_cannot_be_written_is_reported_as_readonly(written, spawn):
    folder = written.parent
    written.chmod(0o444)
    folder.chmod(0o555)
    for parent in list(folder.parents)[:-2]:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    try:
        worker = spawn("open-unprivileged", f"sqlite:///{written}")
        assert worker.communicate(timeout=60)[0] == "readonly\n"
    finally:
        folder.chmod(0o755)


def test_readers_cannot_write(written, open_db):
    db = open_db(f"sqlite:///{written}")
    with pytest.raises(StoreUnavailable) as refusal:
        db.read_sync(store.end_server, "a", 1, "x")
    assert refusal.value.reason == "readonly"


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_only_its_owner_may_read_a_new_store(tmp_path, build):
    path = tmp_path / "data" / "nova.db"
    with Database.open(f"sqlite:///{path}") as db:
        db.write_sync(store.register_server, build.server("a"))
        files = [path, *path.parent.glob("nova.db-*")]
        assert len(files) == 3
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["body = 'text'", "tool_name = CAST(x'ff' AS TEXT)", "at_ms = 'soon'"])
def test_a_value_its_column_cannot_hold_is_named_and_not_fatal(written, open_db, damage):
    db = open_db(f"sqlite:///{written}")
    db.write_sync(lambda conn: conn.exec_driver_sql(f"UPDATE ledger_body SET {damage} WHERE server_seq = 77"))
    (finding,) = db.read_sync(lambda conn: list(verify(conn)))
    assert finding.server_seq == 77


def test_an_erased_body_leaves_no_trace_in_the_file(written, build):
    with Database.open(f"sqlite:///{written}") as db:
        db.write_sync(store.append_call, build.call("a", "private", arguments="a-very-private-word"))
        db.write_sync(erase_bodies, ["private"], 5, build.eraser("a"))
    assert b"a-very-private-word" not in written.read_bytes()
    assert not Path(f"{written}-wal").exists()


# -- network file systems --------------------------------------------------------------------------------------------

MOUNTS = parse_mounts(
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "30 22 0:30 / /home rw - nfs4 server:/home rw\n"
    "31 30 0:31 / /home/local\\040disk rw shared:7 master:2 - xfs /dev/sdb rw\n"
    "32 22 0:32 / /mnt/cloud rw - fuse.sshfs me@host: rw\n"
    "33 22 0:33 / /mnt/stick rw - fuseblk /dev/sdc rw\n"
    "34 22 0:34 / /mnt/stick rw - cifs //server/share rw\n"
    "a line of another shape\n"
)


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("/var/lib/nova.db", "ext4"),
        ("/home/me/nova.db", "nfs4"),
        ("/home/local disk/nova.db", "xfs"),
        ("/home/local diskette/nova.db", "nfs4"),
        ("/homework/nova.db", "ext4"),
        ("/mnt/cloud/nova.db", "fuse.sshfs"),
        ("/mnt/stick/nova.db", "cifs"),
    ],
)
def test_the_deepest_and_latest_mount_decides(where, kind):
    assert mount_of(where, MOUNTS).fs_type == kind


def test_a_path_outside_every_mount_has_none():
    assert mount_of("/x", (Mount("/y", "ext4"),)) is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse", "NFS", "virtiofs", "ceph"])
def test_network_types_are_known(kind):
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk", "zfs", "apfs"])
def test_local_types_pass(kind):
    assert not is_network(kind)


def test_a_file_on_a_network_file_system_is_refused_with_a_way_out(path, monkeypatch):
    monkeypatch.setattr(engine, "network_file_system", lambda _: "nfs4")
    with pytest.raises(StoreUnavailable) as refusal:
        Database.open(f"sqlite:///{path}")
    assert refusal.value.reason == "network_fs"
    assert "PostgreSQL" in refusal.value.hint
    assert not path.exists()


def test_where_the_mount_table_cannot_be_read_nothing_is_refused(path, monkeypatch):
    monkeypatch.setattr("nova_mcp.storage.filesystem._MOUNTINFO", path)
    assert network_file_system(path) is None
