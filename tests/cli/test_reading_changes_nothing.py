"""Commands that only read never create, repair, move or migrate a store: what they can't read is an error."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import Folder, call_record, nova

from nova_mcp.cli.commands import COMMANDS
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.storage.engine import Database
from nova_mcp.storage.schema import HEAD, PREVIOUS, current_revision

READING = {
    "ledger verify": (),
    "ledger head": (),
    "events": (),
    "events --follow": (),
    "watch": (),
    "receipt": (),
    "stats": (),
    "facts": (),
    "knowledge": (),
    "tasks": (),
    "tasks profiles": (),
    "notes": (),
    "explain": ("shop.test", "buy"),
    "export": (),
    "replay": (),
    "replay facts": (),
    "replay levels": (),
    "kill list": (),
    "db check": (),
    "db prune --dry-run": (),
}
WRITING = {
    "db upgrade",
    "db prune",
    "import",
    "kill set",
    "kill clear",
    "notes memory add",
    "notes memory edit",
    "notes memory delete",
    "notes operator add",
    "notes operator edit",
    "notes operator delete",
    "notes domain add",
    "notes domain edit",
    "notes domain delete",
}
WITHOUT_A_STORE = {"serve", "setup", "demo", "login", "dashboard", "stop", "resume", "tools"}


def test_every_command_is_sorted_into_reading_writing_or_neither() -> None:
    sorted_names = {line.split()[0] for line in (*READING, *WRITING)} | WITHOUT_A_STORE | {"doctor"}
    assert sorted_names == set(COMMANDS)


def written_store(folder: Path) -> Path:
    path = folder / "nova.db"
    with Database.open(f"sqlite:///{path}") as db:
        db.write_sync(register_server, ServerInfo(ServerId("s1"), 1, 1, 1, "host", "0"))
        for number in range(40):
            db.write_sync(append_call, call_record("s1", f"c{number}"))
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_store(tmp_path_factory.mktemp("sound"))


def content(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file below a folder: its bytes and its mode."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder",
            path.lstat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
    }


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def truncated_in_the_header(path: Path) -> None:
    os.truncate(path, 60)


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


def another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE song (name TEXT)")
    conn.close()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


DAMAGES = [
    missing,
    empty,
    truncated,
    truncated_in_the_header,
    garbage,
    another_program,
    a_folder,
    moved_away,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("line", READING)
def test_a_store_that_can_not_be_read_is_an_error_and_the_folder_stays_as_it_is(
    tmp_path: Path, sound: Path, line: str, damage
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    damage(Path(shutil.copy(sound, folder)))
    before = content(folder)
    done = nova(*line.split(), *READING[line], "--data-dir", folder)
    assert done.exit_code == 1, done.output
    assert content(folder) == before
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "nova.db" in done.output or "malformed" in done.output or "schema" in done.output, done.output


@pytest.mark.parametrize("line", READING)
def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, line: str) -> None:
    done = nova(*line.split(), *READING[line], "--data-dir", tmp_path / "none")
    assert done.exit_code == 1
    assert not (tmp_path / "none").exists()


# Of a sound store, without those that follow for ever and those that look for something which is not there.
SOUND = [line for line in READING if line not in ("events --follow", "watch", "receipt", "explain")]


@pytest.mark.parametrize("line", SOUND)
def test_a_sound_store_is_read_without_leaving_anything_beside_it(tmp_path: Path, sound: Path, line: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(sound, folder)
    before = content(folder)
    done = nova(*line.split(), *READING[line], "--data-dir", folder)
    assert done.exit_code == 0, done.output
    assert content(folder) == before


def killed_store(folder: Path) -> Path:
    """What a server leaves that was killed: records in the log, and the shared memory beside it."""
    folder.mkdir()
    live = written_store(folder / "live")
    with Database.open(f"sqlite:///{live}") as db:
        db.write_sync(append_call, call_record("s1", "only-in-the-log"))
        for file in live.parent.iterdir():
            shutil.copy(file, folder)
    shutil.rmtree(live.parent)
    return folder / "nova.db"


@pytest.mark.parametrize("shared_memory", [True, False], ids=["killed", "copied without shared memory"])
def test_what_a_killed_server_left_in_its_log_is_read_and_stays_there(tmp_path: Path, shared_memory: bool) -> None:
    path = killed_store(tmp_path / "data")
    if not shared_memory:
        path.with_name("nova.db-shm").unlink()
    before = content(path.parent)
    verified = json.loads(nova("ledger", "verify", "--json", "--data-dir", path.parent).stdout)
    assert (verified["ok"], verified["records"]) == (True, 41)
    assert nova("db", "check", "--data-dir", path.parent).exit_code == 0
    assert content(path.parent) == before


@pytest.mark.parametrize("shared_memory", [True, False], ids=["killed", "copied without shared memory"])
def test_a_store_behind_a_link_is_read_with_what_its_log_holds(tmp_path: Path, shared_memory: bool) -> None:
    real = killed_store(tmp_path / "real")
    if not shared_memory:
        real.with_name("nova.db-shm").unlink()
    data = tmp_path / "data"
    data.mkdir()
    (data / "nova.db").symlink_to(real)
    before = content(tmp_path)
    verified = json.loads(nova("ledger", "verify", "--json", "--data-dir", data).stdout)
    assert (verified["ok"], verified["records"]) == (True, 41)
    assert content(tmp_path) == before


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("gone.db"))


def linked_to_garbage(path: Path) -> None:
    moved_away(path)
    garbage(path.with_name("moved.db"))
    path.symlink_to(path.with_name("moved.db"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def wrong_magic(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[:16] = b"SQLite format 4\0"
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [dangling, linked_to_garbage, a_pipe, wrong_magic], ids=lambda one: one.__name__)
@pytest.mark.parametrize("line", ["ledger verify", "ledger head", "events", "stats", "db check", "export"])
def test_links_and_files_of_another_kind_are_errors_that_change_nothing(
    tmp_path: Path, sound: Path, line: str, damage
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    damage(Path(shutil.copy(sound, folder)))
    before = content(folder)
    done = nova(*line.split(), "--data-dir", folder)
    assert (done.exit_code, done.exception is None or isinstance(done.exception, SystemExit)) == (1, True), done.output
    assert "every link holds" not in done.output
    assert content(folder) == before


# Everything is imported first: another user may not be able to read this program's files.
_AS_ANOTHER_USER = """
import os, sys
from nova_mcp.cli import commands
from nova_mcp.cli.store import ledger
import nova_mcp.storage.reading, sqlalchemy.dialects.sqlite.pysqlite, encodings.idna
commands.load("ledger")
os.setgid(65534)
os.setuid(65534)
commands.app(sys.argv[1:])
"""


def unprivileged(*args: object) -> subprocess.CompletedProcess[str]:
    """A command as a user who owns nothing here."""
    line = [sys.executable, "-c", _AS_ANOTHER_USER, *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("killed", [False, True], ids=["at rest", "killed"])
def test_a_read_only_copy_is_verified_by_a_user_who_may_only_read(tmp_path: Path, sound: Path, killed: bool) -> None:
    folder = tmp_path / "data"
    if killed:
        killed_store(folder)
    else:
        folder.mkdir()
        shutil.copy(sound, folder)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    for parent in list(folder.parents)[:-2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    before = content(folder)
    try:
        done = unprivileged("ledger", "verify", "--data-dir", folder)
        assert (done.returncode, "every link holds" in done.stdout) == (0, True), done.stderr
        assert content(folder) == before
    finally:
        folder.chmod(0o755)


def test_reading_beside_a_server_sees_what_it_has_just_written(folder: Folder) -> None:
    for count in (1, 2, 3):
        folder.call()
        assert json.loads(nova("ledger", "verify", "--json", "--data-dir", folder.path).stdout)["records"] == count


def test_a_store_of_an_older_schema_is_verified_and_not_migrated(tmp_path: Path, sound: Path) -> None:
    shutil.copy(sound, tmp_path)
    with sqlite3.connect(tmp_path / "nova.db") as conn:
        conn.execute(f"UPDATE alembic_version SET version_num = '{PREVIOUS}'")
    conn.close()
    before = content(tmp_path)
    assert nova("ledger", "verify", "--data-dir", tmp_path).exit_code == 0
    assert nova("ledger", "head", "--data-dir", tmp_path).exit_code == 0
    refused = nova("stats", "--data-dir", tmp_path)
    assert refused.exit_code == 1
    assert "older Nova" in refused.output
    assert "nova db upgrade" in refused.output
    assert content(tmp_path) == before


@pytest.mark.parametrize("line", ["ledger verify", "stats", "db upgrade"])
def test_a_store_that_is_too_old_is_refused_by_every_command(tmp_path: Path, sound: Path, line: str) -> None:
    shutil.copy(sound, tmp_path)
    with sqlite3.connect(tmp_path / "nova.db") as conn:
        conn.execute("UPDATE alembic_version SET version_num = '0003'")
    conn.close()
    before = content(tmp_path)
    refused = nova(*line.split(), "--data-dir", tmp_path)
    assert refused.exit_code == 1
    assert "too old for this Nova: it has schema 0003" in refused.output
    assert content(tmp_path) == before


# SQLite files of other programs may hold a Nova store beside their tables.
@pytest.mark.parametrize("damage", [one for one in DAMAGES if one is not another_program], ids=lambda one: one.__name__)
def test_a_command_that_writes_leaves_a_damaged_store_to_the_server(tmp_path: Path, sound: Path, damage) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    damage(Path(shutil.copy(sound, folder)))
    before = content(folder)
    if damage in (missing, moved_away):
        done = nova("db", "prune", "--data-dir", folder)
        assert "no store" in done.output
    else:
        done = nova("kill", "set", "apply.kill.global", "--data-dir", folder)
    assert done.exit_code == 1, done.output
    assert content(folder) == before


def test_the_doctor_takes_a_vanished_store_for_broken_and_a_new_folder_for_new(tmp_path: Path, sound: Path) -> None:
    def state(folder: Path) -> str:
        answer = json.loads(nova("doctor", "--no-start", "--json", "--data-dir", folder).stdout)
        return next(check["state"] for check in answer["checks"] if check["name"] == "store")

    assert state(tmp_path / "new") == "ok"
    for number, trace in enumerate(("mcp.json", "nova.db.corrupt-20260101T000000.000Z", "nova.db-wal")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / trace).write_text("")
        assert state(folder) == "broken"
        assert sorted(file.name for file in folder.iterdir()) == [trace]


def test_the_server_begins_no_new_store_where_an_empty_file_lies_without_saying_so(tmp_path: Path) -> None:
    (tmp_path / "nova.db").write_bytes(b"")
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}") as db:
        (notice,) = db.notices
    assert "empty (0 bytes)" in notice
    assert len(list(tmp_path.glob("nova.db.corrupt-*"))) == 1


def test_a_store_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A server that is killed while it creates its store leaves no file that the next one takes for a damaged one."""
    program = (
        "import os, sys\n"
        "from nova_mcp.storage import schema\n"
        "schema._migrate = lambda conn: os._exit(9)\n"
        "from nova_mcp.storage.engine import Database\n"
        "Database.open(sys.argv[1])\n"
    )
    url = f"sqlite:///{tmp_path / 'nova.db'}"
    assert subprocess.run([sys.executable, "-c", program, url], check=False, timeout=60).returncode == 9
    assert not (tmp_path / "nova.db").exists()
    with Database.open(url) as db:
        assert db.notices == ()
        assert db.read_sync(current_revision) == HEAD
