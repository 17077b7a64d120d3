"""Kill switches from the command line, beside a running server."""

import json
from pathlib import Path

import pytest
from cli_kit import Folder, nova, nova_process

from nova_mcp.verification.kill_switches import commit_kill

GLOBAL = "closed_loop.commit.kill.global"
DOMAIN = "closed_loop.commit.kill.domain.shop.test"


def test_a_switch_set_here_stops_a_server_that_already_runs_until_it_is_cleared(folder: Folder) -> None:
    assert nova("kill", "set", DOMAIN, "--note", "odd orders", "--data-dir", folder.path).exit_code == 0
    assert folder.db.read_sync(commit_kill, "pay.shop.test") == "domain"
    assert nova("kill", "set", GLOBAL, "--data-dir", folder.path).exit_code == 0
    assert folder.db.read_sync(commit_kill, "other.test") == "global"
    for name in (DOMAIN, GLOBAL):
        assert f"Cleared: {name}" in nova("kill", "clear", name, "--data-dir", folder.path).stdout
    assert folder.db.read_sync(commit_kill, "pay.shop.test") is None


def test_a_second_set_keeps_the_first_note_and_a_second_clear_is_no_failure(folder: Folder) -> None:
    nova("kill", "set", GLOBAL, "--note", "first", "--data-dir", folder.path)
    again = nova("kill", "set", GLOBAL, "--note", "second", "--data-dir", folder.path)
    assert (again.exit_code, again.stdout) == (0, f"Already set: {GLOBAL}.\n")
    listed = json.loads(nova("kill", "list", "--json", "--data-dir", folder.path).stdout)
    assert [(one["name"], one["note"]) for one in listed["switches"]] == [(GLOBAL, "first")]
    done = [nova("kill", "clear", GLOBAL, "--data-dir", folder.path) for _ in range(2)]
    assert [(one.exit_code, one.stdout) for one in done] == [(0, f"Cleared: {GLOBAL}.\n"), (0, f"Not set: {GLOBAL}.\n")]


def test_the_list_shows_who_set_what_and_an_empty_one_says_so(folder: Folder) -> None:
    empty = nova("kill", "list", "--data-dir", folder.path)
    assert (empty.stdout, "Nothing" in empty.stderr) == ("", True)
    nova("kill", "set", "apply.kill.domain.Bücher.example", "--note", "a\x1b[2Jb", "--data-dir", folder.path)
    listed = nova("kill", "list", "--data-dir", folder.path).stdout
    assert "apply.kill.domain.xn--bcher-kva.example" in listed
    assert "\x1b" not in listed


@pytest.mark.parametrize("verb", ["set", "clear"])
def test_an_unknown_name_is_refused_with_the_ones_there_are(folder: Folder, verb: str) -> None:
    done = nova_process("kill", verb, "commit.kill.all", "--data-dir", folder.path)
    assert done.returncode == 2
    assert GLOBAL in done.stderr
    assert "apply.kill.domain.<host>" in done.stderr


def test_a_switch_can_be_set_before_the_first_server_and_only_then_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert nova("kill", "list", "--data-dir", data).exit_code == 1
    assert nova("kill", "set", GLOBAL, "--data-dir", data).exit_code == 0
    assert GLOBAL in nova("kill", "list", "--data-dir", data).stdout
