"""Nova's entry in a client's configuration: everything else stays, and what can't be read is not touched."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.cli.setup.client_files import (
    CannotEdit,
    Launch,
    Place,
    client_file,
    launch_of,
    with_entry,
    with_json_entry,
    with_toml_entry,
)

LAUNCH = Launch("/opt/nova/bin/nova-mcp", ("--tool-names", "underscore"))
ENTRY = {"command": LAUNCH.command, "args": list(LAUNCH.args)}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_an_empty_or_missing_json_file_gets_just_the_entry() -> None:
    for text in (None, "", "  \n", "{}"):
        assert json.loads(with_entry("cursor", text, LAUNCH)) == {"mcpServers": {"nova": ENTRY}}


def test_claude_code_entries_name_their_transport() -> None:
    assert json.loads(with_entry("claude", None, LAUNCH))["mcpServers"]["nova"]["type"] == "stdio"
    assert "type" not in json.loads(with_entry("claude-desktop", None, LAUNCH))["mcpServers"]["nova"]


def test_other_servers_unknown_keys_and_their_order_stay() -> None:
    before = {"z": 1, "mcpServers": {"other": {"command": "x", "env": {"KEY": "v"}}}, "a": {"deep": [1, "é"]}}
    after = json.loads(with_json_entry(json.dumps(before), LAUNCH, typed=False))
    assert list(after) == ["z", "mcpServers", "a"]
    assert after["mcpServers"].pop("nova") == ENTRY
    assert after == before


def test_keys_the_user_added_to_the_entry_stay_and_a_remote_address_goes() -> None:
    before = {"mcpServers": {"nova": {"command": "old", "args": ["x"], "env": {"NOVA_HEADED": "1"}, "url": "http://x"}}}
    after = json.loads(with_json_entry(json.dumps(before), LAUNCH, typed=False))
    assert after["mcpServers"]["nova"] == {"env": {"NOVA_HEADED": "1"}, **ENTRY}


def test_the_indentation_of_a_json_file_is_kept() -> None:
    text = '{\n\t"theme": "dark"\n}\n'
    assert with_json_entry(text, LAUNCH, typed=False).startswith('{\n\t"theme": "dark",\n\t"mcpServers"')


@given(
    st.dictionaries(st.text(), JSON, max_size=4).map(lambda tree: {k: v for k, v in tree.items() if k != "mcpServers"})
)
def test_json_merging_twice_changes_nothing_more_and_loses_nothing(tree: dict[str, object]) -> None:
    once = with_json_entry(json.dumps(tree), LAUNCH, typed=True)
    assert with_json_entry(once, LAUNCH, typed=True) == once
    assert {key: value for key, value in json.loads(once).items() if key != "mcpServers"} == tree


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {',
        "// a comment\n{}",
        "[]",
        '"text"',
        '{"a": 1, "a": 2}',
        '{"mcpServers": []}',
        '{"mcpServers": {"nova": "x"}}',
        '{"limit": 1e999}',
        "[" * 100_000,
    ],
)
def test_json_that_is_broken_or_means_something_else_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        with_json_entry(text, LAUNCH, typed=False)


TOML = """# my settings
model = "o5"  # the good one

[mcp_servers.other]
command = "x"

[mcp_servers.nova]
# why: pinned
command = "old"
args = [
  "a",  # first
  "b",
]
startup_timeout_sec = 20

[mcp_servers.nova.env]
NOVA_HEADED = "1"

[tools]
web = true
"""


def test_an_empty_toml_file_gets_just_the_entry() -> None:
    assert tomllib.loads(with_entry("codex", None, LAUNCH)) == {"mcp_servers": {"nova": ENTRY}}


def test_a_toml_file_without_the_entry_keeps_every_byte_before_it() -> None:
    for text in ('model = "o5"', 'model = "o5" # x\n\n[a]\nb = 1\n'):
        after = with_toml_entry(text, LAUNCH)
        assert after.startswith(text)
        assert tomllib.loads(after)["mcp_servers"]["nova"] == ENTRY


def test_an_existing_toml_entry_is_replaced_in_its_place() -> None:
    after = with_toml_entry(TOML, LAUNCH)
    expected = tomllib.loads(TOML)
    expected["mcp_servers"]["nova"].update(ENTRY)
    assert tomllib.loads(after) == expected
    for comment in ("# my settings", "# the good one", "# why: pinned"):
        assert comment in after


def test_toml_merging_twice_changes_nothing_more() -> None:
    for text in ("", TOML):
        once = with_toml_entry(text, LAUNCH)
        assert with_toml_entry(once, LAUNCH) == once


@pytest.mark.parametrize(
    "text",
    [
        "model = ",
        "mcp_servers = 3",
        'mcp_servers = {other = {command = "x"}}',
        'mcp_servers.nova = {command = "old"}',
        '[[mcp_servers]]\ncommand = "x"',
        'note = """\n[mcp_servers.nova]\n"""\n[mcp_servers]\nnova = {command = "old"}\n',
    ],
)
def test_toml_that_is_broken_or_written_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        with_toml_entry(text, LAUNCH)


@given(st.text(max_size=30), st.lists(st.text(max_size=20), max_size=3))
def test_any_command_survives_the_way_into_both_formats_or_is_refused(command: str, args: list[str]) -> None:
    launch = Launch(command, tuple(args))
    entry = {"command": command, "args": args}
    assert json.loads(with_json_entry("", launch, typed=False))["mcpServers"]["nova"] == entry
    try:
        after = with_toml_entry("", launch)
    except CannotEdit:
        return
    assert tomllib.loads(after)["mcp_servers"]["nova"] == entry


def place(platform: str, **environ: str) -> Place:
    return Place(platform, Path("/home/me"), Path("/work/app"), environ)


def test_every_client_is_found_where_it_looks() -> None:
    linux = place("linux")
    assert client_file("claude", linux, project=False) == Path("/home/me/.claude.json")
    assert client_file("claude", linux, project=True) == Path("/work/app/.mcp.json")
    assert client_file("cursor", linux, project=False) == Path("/home/me/.cursor/mcp.json")
    assert client_file("cursor", linux, project=True) == Path("/work/app/.cursor/mcp.json")
    assert client_file("codex", linux, project=False) == Path("/home/me/.codex/config.toml")
    assert client_file("codex", place("linux", CODEX_HOME="/c"), project=False) == Path("/c/config.toml")
    name = "claude_desktop_config.json"
    assert client_file("claude-desktop", linux, project=False) == Path("/home/me/.config/Claude") / name
    mac = Path("/home/me/Library/Application Support/Claude") / name
    assert client_file("claude-desktop", place("darwin"), project=False) == mac
    windows = place("win32", APPDATA="/roaming")
    assert client_file("claude-desktop", windows, project=False) == Path("/roaming/Claude") / name


def test_a_client_without_project_files_says_so() -> None:
    with pytest.raises(CannotEdit, match="per project"):
        client_file("codex", place("linux"), project=True)


def test_the_entry_starts_this_installation_again() -> None:
    python, script = Path("/v/bin/python"), Path("/v/bin/nova-mcp")
    names = ("--tool-names", "underscore")
    assert launch_of(python, script, ()) == Launch(str(script), names)
    assert launch_of(python, None, ("--headed",)) == Launch(
        str(python), ("-m", "nova_mcp.cli", "serve", *names, "--headed")
    )
    throwaway = Path("/home/me/.cache/uv/archive-v0/abc/bin/python")
    assert launch_of(throwaway, script, ()) == Launch("uvx", ("nova-mcp", *names))
