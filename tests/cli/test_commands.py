"""The list of commands: complete, quick to show, and the same as what the commands say of themselves."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_kit import nova, nova_process

import nova_mcp
from nova_mcp.cli.commands import COMMANDS, load

GROUPS = ("ledger", "db", "kill", "replay", "notes", "tasks")


def test_the_version_is_the_packages() -> None:
    done = nova_process("--version")
    assert (done.returncode, done.stdout) == (0, f"nova {nova_mcp.__version__}\n")


def test_without_a_command_the_help_is_shown() -> None:
    done = nova()
    assert "Usage: " in done.output
    assert all(name in done.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_the_same_in_the_list_and_in_its_own_help(name: str) -> None:
    assert load(name).help.splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("serve", "demo", *GROUPS)])
def test_every_command_takes_the_data_folder_and_the_store(name: str) -> None:
    flags = {flag for parameter in load(name).params for flag in parameter.opts}
    assert {"--data-dir", "--store"} <= flags


def subcommands(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from subcommands(command)
        else:
            yield command


@pytest.mark.parametrize("group", GROUPS)
def test_every_subcommand_takes_the_data_folder_and_the_store(group: str) -> None:
    for command in subcommands(load(group)):
        assert {"--data-dir", "--store"} <= {flag for parameter in command.params for flag in parameter.opts}
        assert command.help


@pytest.mark.parametrize("words", [("replay", "facts"), ("notes", "list"), ("tasks", "runs")])
def test_a_flag_before_a_subcommand_is_refused_instead_of_lost(words: tuple[str, str], tmp_path: Path) -> None:
    done = nova(words[0], "--data-dir", tmp_path, words[1])
    assert done.exit_code == 2
    assert f"nova {words[0]} {words[1]} --data-dir" in done.stderr


@pytest.mark.parametrize("name", ["facts", "knowledge", "tasks", "notes", "events"])
def test_a_list_without_anything_in_it_says_so_beside_the_output(name: str, tmp_path: Path) -> None:
    nova("db", "upgrade", "--data-dir", tmp_path)
    done = nova(name, "--data-dir", tmp_path)
    assert (done.exit_code, len(done.stderr.splitlines())) == (0, 1)


def test_showing_the_list_loads_none_of_the_commands() -> None:
    code = (
        "import sys; from nova_mcp.cli.commands import app; from typer.testing import CliRunner;"
        "print(CliRunner().invoke(app, ['--help']).exit_code,"
        " [name for name in ('sqlalchemy', 'playwright', 'mcp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    done = nova_process("docter")
    assert done.returncode == 2
    assert "doctor" in done.stderr


def test_a_broken_configuration_file_is_a_line_and_code_2_for_every_command(tmp_path) -> None:
    (tmp_path / "nova.toml").write_text("nonsense = 1\n")
    for words in (("events",), ("doctor",), ("stop",), ("ledger", "head"), ("tools",)):
        done = nova(*words, "--data-dir", tmp_path)
        assert done.exit_code == 2, words
        assert "nonsense" in done.stderr
