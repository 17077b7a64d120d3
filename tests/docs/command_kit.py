"""Whether a command line that a document shows could be typed: programs, flags, settings and targets exist."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from bench.__main__ import NAMES, PARTS

from nova_mcp.cli.completion import Node, load_completions
from nova_mcp.settings import SECRET_PREFIX, environment_paths

ROOT = Path(__file__).resolve().parents[2]
ROOT_FLAGS = frozenset({"--version", "--help", "-h", "--install-completion", "--show-completion"})
# Programs of others: that they are named is all that can be said of them.
FOREIGN = frozenset(
    {"cat", "chmod", "cp", "curl", "echo", "git", "openssl", "pg_dump", "pg_restore", "pip", "psql", "sqlite3", "ssh"}
)
_ASSIGNMENT = re.compile(r"^[A-Z][A-Z0-9_]*=")
_OPERATORS = frozenset({"|", "&&", "||", ";"})


def line_problems(line: str) -> list[str]:
    """What is wrong with a line of a shell block; nothing is run."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        return [f"{line}: {error}"]
    problems: list[str] = []
    command: list[str] = []
    for word in [*words, ";"]:
        if word in _OPERATORS:
            problems += command_problems(command) if command else []
            command = []
        else:
            command.append(word)
    return [f"{line.strip()}: {problem}" for problem in problems]


def command_problems(words: Sequence[str]) -> list[str]:
    rest = list(words)
    problems: list[str] = []
    while rest and _ASSIGNMENT.match(rest[0]):
        problems += variable_problems(rest.pop(0).partition("=")[0])
    rest = _before_redirection(rest)
    if not rest:
        return problems
    program = rest[0]
    if program in ("nova", "nova-mcp"):
        return problems + nova_problems(rest)
    if program == "make":
        return problems + [f"no target {word}" for word in rest[1:] if "=" not in word and word not in make_targets()]
    if program == "uvx":
        return problems + uvx_problems(rest[1:])
    if program == "docker":
        return problems + docker_problems(rest[1:])
    if program.endswith("python") or program == "python3":
        return problems + python_problems(rest[1:])
    return problems if program in FOREIGN else [*problems, f"{program} is no program these documents know"]


def _before_redirection(words: list[str]) -> list[str]:
    cut = next((place for place, word in enumerate(words) if word.startswith((">", "<"))), len(words))
    return words[:cut]


def variable_problems(name: str) -> list[str]:
    if not name.startswith("NOVA_") or name.startswith(SECRET_PREFIX) or name in environment_paths():
        return []
    return [f"{name} is no setting"]


def nova_problems(words: Sequence[str]) -> list[str]:
    """`nova …`, compared with what the shell's completion knows; words in capitals stand for the reader's own."""
    rest = list(words[1:])
    commands = load_completions()
    if words[0] == "nova-mcp":
        return _flag_problems(commands["serve"], rest)
    if not rest or rest[0] in ROOT_FLAGS:
        return []
    known = Node(commands=commands)
    while known.commands:
        if not rest or rest[0] in ("--help", "-h"):
            return []
        if rest[0] not in known.commands:
            return [f"no command {rest[0]}"]
        known = known.commands[rest.pop(0)]
    return _flag_problems(known, rest)


def _flag_problems(node: Node, words: list[str]) -> list[str]:
    by_name = {name: flag for flag in node.flags for name in flag.names}
    problems: list[str] = []
    position = 0
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and word != "-":
            name, joined, _ = word.partition("=")
            if name not in by_name:
                problems.append(f"no flag {name}")
            elif by_name[name].takes_value and not joined:
                problems += _choice_problems(rest.pop(0) if rest else None, by_name[name].choices)
            continue
        if position < len(node.arguments):
            problems += _choice_problems(word, node.arguments[position])
        position += 1
    return problems


def _choice_problems(word: str | None, choices: Sequence[str]) -> list[str]:
    if word is None:
        return ["a value is missing"]
    return [] if not choices or word in choices or word.isupper() else [f"{word} is none of {', '.join(choices)}"]


def uvx_problems(words: Sequence[str]) -> list[str]:
    rest = list(words)
    if rest[:1] == ["--from"]:
        package = rest[1].partition("[")[0] if len(rest) > 1 else ""
        rest = rest[2:]
        if package != "nova-mcp":
            return [f"{package} is not this package"]
    return command_problems(rest) if rest and rest[0] in ("nova", "nova-mcp") else ["uvx runs nova or nova-mcp"]


def python_problems(words: Sequence[str]) -> list[str]:
    match list(words):
        case ["-m", "bench", "report", *_]:
            return []
        case ["-m", "bench", *names]:
            return [
                f"no bench {name}"
                for name in names
                if not name.startswith("-") and not name.isupper() and name not in (*NAMES, *PARTS)
            ]
        case ["-m", "hatchling", *_]:
            return []
        case ["-m", "pytest", *paths]:
            return [f"{path} is not there" for path in paths if not path.startswith("-") and not (ROOT / path).exists()]
        case [path, *_] if path.endswith(".py"):
            return [] if (ROOT / path).is_file() else [f"{path} is not there"]
    return [f"python {' '.join(words)} is not understood"]


def docker_problems(words: Sequence[str]) -> list[str]:
    match list(words):
        case ["compose", "exec", service, *inside]:
            inner = command_problems(inside)
            return inner if service in ("nova", "db") else [*inner, f"no service {service}"]
        case ["compose", ("up" | "down" | "logs" | "pull" | "build"), *_] | ["build" | "run", *_]:
            return []
    return [f"docker {' '.join(words)} is not understood"]


def make_targets() -> frozenset[str]:
    text = (ROOT / "Makefile").read_text()
    return frozenset(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
