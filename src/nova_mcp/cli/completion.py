"""What a shell may complete, kept as data: pressing Tab must not wait for the libraries the commands are made of."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from typer.core import TyperCommand, TyperGroup

COMPLETION_FILE = "completion.json"


@dataclass(frozen=True, slots=True)
class Flag:
    names: tuple[str, ...]
    help: str = ""
    takes_value: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A command, or a group of them."""

    help: str = ""
    flags: tuple[Flag, ...] = ()
    # The words each argument may be; empty where anything may stand.
    arguments: tuple[tuple[str, ...], ...] = ()
    commands: Mapping[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One proposal, in the form that Typer's shells print."""

    value: str
    help: str | None = None
    type: str = "plain"


def proposals(node: Node, words: Sequence[str], incomplete: str) -> list[Item]:
    """What may follow the words of a command. Nothing means: anything, so the shell offers files."""
    by_name = {name: flag for flag in node.flags for name in flag.names}
    waiting = by_name.get(words[-1]) if words else None
    if waiting is not None and waiting.takes_value:
        return [Item(word) for word in waiting.choices if word.startswith(incomplete)]
    if incomplete.startswith("-"):
        given = {by_name[word] for word in words if word in by_name}
        left = [flag for flag in node.flags if flag not in given]
        return [Item(name, flag.help) for flag in left for name in flag.names if name.startswith(incomplete)]
    position = len(list(_positional(words, by_name)))
    choices = node.arguments[position] if position < len(node.arguments) else ()
    return [Item(word) for word in choices if word.startswith(incomplete)]


def _positional(words: Sequence[str], by_name: Mapping[str, Flag]) -> Iterator[str]:
    before: Flag | None = None
    for word in words:
        taken = before is not None and before.takes_value
        before = None if taken else by_name.get(word)
        if not taken and not word.startswith("-"):
            yield word


class Proposing(TyperCommand):
    """Stands for a command while a shell completes its words."""

    def __init__(self, name: str, node: Node) -> None:
        super().__init__(name, help=node.help, add_help_option=False)
        self._node = node

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return list(args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return proposals(self._node, ctx.args, incomplete)


def stand_in(name: str, node: Node) -> Any:
    if not node.commands:
        return Proposing(name, node)
    inner = {word: stand_in(word, below) for word, below in node.commands.items()}
    return TyperGroup(name=name, help=node.help, commands=inner)


def load_completions() -> dict[str, Node]:
    raw = json.loads(files("nova_mcp.cli").joinpath(COMPLETION_FILE).read_text(encoding="utf-8"))
    return {name: _node(entry) for name, entry in raw.items()}


def _node(raw: Mapping[str, Any]) -> Node:
    return Node(
        help=raw["help"],
        flags=tuple(
            Flag(tuple(flag["names"]), flag["help"], "choices" in flag, tuple(flag.get("choices", ())))
            for flag in raw.get("flags", ())
        ),
        arguments=tuple(tuple(choices) for choices in raw.get("arguments", ())),
        commands={name: _node(entry) for name, entry in raw.get("commands", {}).items()},
    )
