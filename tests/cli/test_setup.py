"""`nova setup`: shows, asks, backs up, replaces in one step, and leaves broken files alone."""

import json
import stat
from pathlib import Path

import pytest
from cli_kit import nova_process

from nova_mcp.cli.setup.file_change import Change, FileMoved, apply, read_text


def test_a_dry_run_shows_the_change_and_writes_nothing(tmp_path: Path) -> None:
    done = nova_process("setup", "cursor", "--dry-run")
    assert done.returncode == 0
    assert '+    "nova": {' in done.stdout
    assert list((tmp_path / "home").iterdir()) == []


def test_nothing_is_written_when_nobody_can_be_asked(tmp_path: Path) -> None:
    done = nova_process("setup", "cursor", stdin="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not (tmp_path / "home" / ".cursor").exists()


@pytest.mark.parametrize(
    ("client", "name", "content"),
    [("cursor", ".cursor/mcp.json", '{"mcpServers": {'), ("codex", ".codex/config.toml", "model = ")],
)
def test_a_broken_file_is_refused_and_stays_as_it_is(client: str, name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "home" / name
    path.parent.mkdir()
    path.write_text(content)
    done = nova_process("setup", client, "--yes")
    assert done.returncode == 1
    assert "left alone" in done.stderr
    assert path.read_text() == content
    assert list(path.parent.iterdir()) == [path]


def test_an_unknown_client_is_refused_with_the_known_ones() -> None:
    done = nova_process("setup", "emacs")
    assert done.returncode == 2
    assert "claude-desktop" in done.stderr


@pytest.mark.browser
def test_setup_writes_the_entry_tries_it_and_suggests_a_prompt(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".claude.json"
    path.write_text('{"theme": "dark"}')
    path.chmod(0o600)
    done = nova_process("setup", "claude", "--yes", "--wait", 50, "--data-dir", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    # Nothing but what the command says itself: a client would complain of tools that were never listed.
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["browser", "Trying it out …"]
    entry = json.loads(path.read_text())["mcpServers"]["nova"]
    assert entry["args"] == ["--tool-names", "underscore", "--data-dir", str(tmp_path / "data")]
    assert Path(entry["command"]).is_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    backups = [file for file in path.parent.iterdir() if file.name.endswith(".bak")]
    assert [file.read_text() for file in backups] == ['{"theme": "dark"}']
    assert "It works" in done.stdout
    assert "then try:" in done.stdout
    # The trial leaves no trace in the user's own data.
    assert not (tmp_path / "data" / "nova.db").exists()
    again = nova_process("setup", "claude", "--yes", "--dry-run", "--data-dir", tmp_path / "data")
    assert "already has this entry" in again.stdout


def test_a_new_file_is_private_and_has_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "mcp.json"
    assert apply(Change(path, None, "{}\n")) is None
    assert path.read_text() == "{}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed_and_the_mode_is_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "mcp.json"
    link.symlink_to(real)
    backup = apply(Change(link, "old", "new"))
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert backup is not None
    assert backup.read_text() == "old"


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("theirs")
    with pytest.raises(FileMoved):
        apply(Change(path, "what we read", "ours"))
    assert path.read_text() == "theirs"
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".mcp.json")]


def test_reading_tells_no_file_from_an_empty_one_and_drops_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert read_text(path) is None
    path.write_bytes(b"\xef\xbb\xbf{}\r\n")
    assert read_text(path) == "{}\r\n"


def test_a_diff_names_the_file_and_both_sides(tmp_path: Path) -> None:
    diff = Change(tmp_path / "a", "one\ntwo\n", "one\nthree\n").diff()
    assert "-two" in diff
    assert "+three" in diff
    assert str(tmp_path / "a") in diff
