"""Pressing Tab: every command, flag and choice is offered, from data alone."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_kit import command

from nova_mcp.cli.commands import COMMANDS, load
from nova_mcp.cli.completion import Flag, Item, Node, load_completions, proposals

BASH = shutil.which("bash")


def proposed(line: str, shell: str = "bash", **environment: str) -> str:
    words = line.split(" ")
    done = subprocess.run(
        command(),
        env={
            **os.environ,
            "_NOVA_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nova led", {"ledger"}),
        ("nova ledger ", {"verify", "head"}),
        ("nova notes add ", {"memory", "operator", "domain"}),
        ("nova ledger verify --he", {"--heads", "--help"}),
        ("nova setup cl", {"claude", "claude-desktop"}),
        ("nova setup --yes --wait 5 co", {"codex"}),
        ("nova serve --log-level w", {"warning"}),
        ("nova serve --no-e", {"--no-ephemeral"}),
        ("nova serve --data-dir ", set()),
    ],
)
def test_bash_is_offered_what_may_follow(line: str, expected: set[str]) -> None:
    assert set(proposed(line).split()) == expected


def test_other_shells_get_the_same_words_in_their_own_form() -> None:
    assert '"claude-desktop"' in proposed("nova setup ", "zsh")
    assert "claude-desktop" in proposed("nova setup ", "fish", _TYPER_COMPLETE_FISH_ACTION="get-args").splitlines()
    assert "claude-desktop::: " in proposed("nova setup ", "powershell").splitlines()


def test_completing_loads_no_library_of_the_commands() -> None:
    code = (
        "import atexit, sys\n"
        "heavy = ('sqlalchemy', 'playwright', 'mcp', 'anyio')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "from nova_mcp.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "_NOVA_COMPLETE": "complete_bash", "COMP_WORDS": "nova knowledge --", "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--prefix" in done.stdout
    assert done.stderr.strip() == "[]"


def flags(of: Any) -> set[str]:
    return {name for option in of.params if option.param_type_name == "option" for name in option.opts}


def test_every_command_and_flag_is_in_the_data() -> None:
    data = load_completions()
    assert list(data) == list(COMMANDS)

    def compare(node: Node, real: Any, path: str) -> None:
        assert list(node.commands) == list(getattr(real, "commands", {})), path
        for name, below in node.commands.items():
            compare(below, real.commands[name], f"{path} {name}")
        if not node.commands:
            assert flags(real) <= {name for flag in node.flags for name in flag.names}, path

    for name, node in data.items():
        compare(node, load(name), name)


NODE = Node(
    flags=(Flag(("--mode", "-m"), "how", takes_value=True, choices=("fast", "slow")), Flag(("--quiet",), "less")),
    arguments=((), ("red", "green")),
)


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "--", [Item("--mode", "how"), Item("--quiet", "less")]),
        (["--quiet"], "--", [Item("--mode", "how")]),
        (["--mode"], "", [Item("fast"), Item("slow")]),
        (["-m", "fast"], "", []),
        (["first"], "g", [Item("green")]),
        (["-m", "fast", "first"], "", [Item("red"), Item("green")]),
        (["first", "red"], "", []),
    ],
)
def test_what_is_proposed_depends_on_the_words_before(words: list[str], incomplete: str, expected: list[Item]) -> None:
    assert proposals(NODE, words, incomplete) == expected


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_the_script_installed_for_bash_works_in_bash(tmp_path: Path) -> None:
    home = tmp_path / "home"
    programs = tmp_path / "bin"
    programs.mkdir()
    wrapper = programs / "nova"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    wrapper.chmod(0o755)
    # The shell is recognised by the process above ours; the trailing `true` keeps bash from stepping aside for nova.
    script = (
        "nova --install-completion >/dev/null; source ~/.bashrc;"
        "COMP_WORDS=(nova ledger ''); COMP_CWORD=2; _nova_completion nova; echo ${COMPREPLY[@]}; true"
    )
    done = subprocess.run(
        [str(BASH), "-c", script],
        env={**os.environ, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["verify", "head"], done.stderr
