"""Describes every command and flag for the shell's completion; run when the generated files are made."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nova_mcp.cli.serving.serve import parser as serve_parser


def completion_text(names: Sequence[str], load: Callable[[str], Any]) -> str:
    """The file's content, made from the commands themselves."""
    tree = {name: _described(load(name)) for name in names}
    tree["serve"] |= {"flags": list(_serve_flags())}
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def _described(command: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"help": (command.help or "").split("\n")[0]}
    if hasattr(command, "commands"):
        return entry | {"commands": {name: _described(inner) for name, inner in command.commands.items()}}
    options = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
    entry["flags"] = [_flag(option) for option in options]
    if command.add_help_option:
        entry["flags"].append({"names": ["--help"], "help": "Show this message and exit."})
    arguments = [_choices(one) for one in command.params if one.param_type_name == "argument"]
    return entry | ({"arguments": arguments} if any(arguments) else {})


def _flag(option: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"names": [*option.opts, *option.secondary_opts], "help": option.help or ""}
    return entry if option.is_flag else entry | {"choices": _choices(option)}


def _choices(parameter: Any) -> list[str]:
    return [item.value for item in parameter.shell_complete(None, "") if item.type == "plain"]


def _serve_flags() -> Iterator[dict[str, Any]]:
    for action in serve_parser("nova serve")._actions:
        entry: dict[str, Any] = {"names": list(action.option_strings), "help": action.help or ""}
        # `--http` may stand alone, so what follows it is not always its value.
        alone = action.nargs in (0, argparse.OPTIONAL)
        yield entry if alone else entry | {"choices": [str(choice) for choice in action.choices or ()]}
