"""What MCP clients keep where, and how Nova's entry gets into it: pure text in, pure text out."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

Client = Literal["claude", "claude-desktop", "cursor", "codex"]
SERVER_NAME = "nova"
_TOML_TABLE = f"mcp_servers.{SERVER_NAME}"
_TOML_HEADER = re.compile(r"^\s*\[")
_TOML_OWN_HEADER = re.compile(r"^\s*\[\s*mcp_servers\s*\.\s*(?:nova|\"nova\"|'nova')\s*\]\s*(?:#.*)?$")


class CannotEdit(Exception):
    """The file is not what it should be, so it is left alone; the message says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The command with which a client starts Nova."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Who asks: enough of the machine to know where clients look."""

    platform: str
    home: Path
    project: Path
    environ: Mapping[str, str]


def client_file(client: Client, place: Place, *, project: bool) -> Path:
    """The file that holds the client's server list; `project` means the one for the current folder only."""
    if project:
        match client:
            case "claude":
                return place.project / ".mcp.json"
            case "cursor":
                return place.project / ".cursor" / "mcp.json"
            case _:
                raise CannotEdit(f"{client} has no configuration per project")
    match client:
        case "claude":
            return place.home / ".claude.json"
        case "cursor":
            return place.home / ".cursor" / "mcp.json"
        case "codex":
            return Path(place.environ.get("CODEX_HOME") or place.home / ".codex") / "config.toml"
        case "claude-desktop":
            return _desktop_folder(place) / "claude_desktop_config.json"


def _desktop_folder(place: Place) -> Path:
    if place.platform == "darwin":
        return place.home / "Library" / "Application Support" / "Claude"
    if place.platform == "win32":
        return Path(place.environ.get("APPDATA") or place.home / "AppData" / "Roaming") / "Claude"
    return Path(place.environ.get("XDG_CONFIG_HOME") or place.home / ".config") / "Claude"


def launch_of(executable: Path, script: Path | None, extra: tuple[str, ...]) -> Launch:
    """How this installation is started again; names are underscored because not every model API takes dots."""
    flags = ("--tool-names", "underscore", *extra)
    if "archive-v0" in executable.parts or "archive-v0" in PureWindowsPath(executable).parts:
        # A throw-away environment of uvx: its path is gone tomorrow.
        return Launch("uvx", ("nova-mcp", *flags))
    if script is not None:
        return Launch(str(script), flags)
    return Launch(str(executable), ("-m", "nova_mcp.cli", "serve", *flags))


def with_entry(client: Client, text: str | None, launch: Launch) -> str:
    """The file's new content; everything else in it stays. The same text comes back when nothing has to change."""
    if client == "codex":
        return with_toml_entry(text or "", launch)
    return with_json_entry(text or "", launch, typed=client == "claude")


# -- JSON ------------------------------------------------------------------------------------------------------------


def with_json_entry(text: str, launch: Launch, *, typed: bool) -> str:
    tree = _parse_json(text) if text.strip() else {}
    servers = tree.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise CannotEdit("its mcpServers entry is not an object")
    before = servers.get(SERVER_NAME, {})
    if not isinstance(before, dict):
        raise CannotEdit(f"its mcpServers.{SERVER_NAME} entry is not an object")
    entry = {**({"type": "stdio"} if typed else {}), "command": launch.command, "args": list(launch.args)}
    # Keys the user added beside ours (env, disabled, …) stay; an address of a remote server would contradict a command.
    merged = {**{key: value for key, value in before.items() if key != "url"}, **entry}
    if before == merged:
        return text
    changed = {**tree, "mcpServers": {**servers, SERVER_NAME: merged}}
    try:
        return json.dumps(changed, indent=_indent(text), ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise CannotEdit(f"it holds a number that can't be written back: {error}") from error


def _parse_json(text: str) -> dict[str, Any]:
    try:
        tree = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise CannotEdit(f"it is not valid JSON ({error})") from error
    if not isinstance(tree, dict):
        raise CannotEdit("it holds no JSON object")
    return tree


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return tree


def _indent(text: str) -> str | int:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else 2


# -- TOML ------------------------------------------------------------------------------------------------------------


def with_toml_entry(text: str, launch: Launch) -> str:
    tree = _parse_toml(text)
    tables = tree.get("mcp_servers", {})
    if not isinstance(tables, dict) or not isinstance(tables.get(SERVER_NAME, {}), dict):
        raise CannotEdit("its mcp_servers entry is not a table")
    before: dict[str, Any] = tables.get(SERVER_NAME, {})
    entry: dict[str, Any] = {"command": launch.command, "args": list(launch.args)}
    merged = {**{key: value for key, value in before.items() if key != "url"}, **entry}
    if before == merged:
        return text
    changed = _replace_table(text, entry) if SERVER_NAME in tables else _append_table(text, entry)
    # The text was edited without a TOML writer, so the result is read back before anybody trusts it.
    expected = {**tree, "mcp_servers": {**tables, SERVER_NAME: merged}}
    try:
        if tomllib.loads(changed) == expected:
            return changed
    except tomllib.TOMLDecodeError:
        pass
    raise CannotEdit(f"its servers are written in a form Nova does not edit; add this by hand:\n{_table(entry)}")


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotEdit(f"it is not valid TOML ({error})") from error


def _table(entry: Mapping[str, Any]) -> str:
    return f"[{_TOML_TABLE}]\n{_lines(entry)}"


def _lines(entry: Mapping[str, Any]) -> str:
    # A JSON string or list of strings is also a TOML one.
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items())


def _append_table(text: str, entry: Mapping[str, Any]) -> str:
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + _table(entry)


def _replace_table(text: str, entry: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if _TOML_OWN_HEADER.match(line)), None)
    if start is None:
        return text
    kept, number = [], start + 1
    while number < len(lines) and not _TOML_HEADER.match(lines[number]):
        length = _assignment(lines[number:])
        key = re.match(r"\s*[\"']?([A-Za-z0-9_-]+)[\"']?\s*=", lines[number])
        if key is None or key[1] not in (*entry, "url"):
            kept += lines[number : number + length]
        number += length
    return "".join([*lines[: start + 1], _lines(entry), *kept, *lines[number:]])


def _assignment(lines: list[str]) -> int:
    """How many lines the first value takes: arrays and long strings run over several."""
    for count in range(1, len(lines) + 1):
        try:
            tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue
        return count
    return 1
