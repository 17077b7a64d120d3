"""`nova tools`: what is published, its price, and whether the generated files are up to date."""

import json

from cli_kit import nova, nova_process

from nova_mcp.server.manifest import load_manifest


def test_the_list_names_every_core_tool_with_its_tokens() -> None:
    answer = json.loads(nova("tools", "--json").stdout)
    assert answer["profile"] == "core"
    assert [tool["name"] for tool in answer["tools"]] == [tool.name for tool in load_manifest().profile("core")]
    assert answer["tokens"] == sum(tool["tokens"] for tool in answer["tools"])
    assert all(tool["tokens"] > 0 for tool in answer["tools"])


def test_a_bundle_and_underscored_names_can_be_asked_for(monkeypatch) -> None:
    monkeypatch.setenv("NOVA_TOOL_NAMES", "underscore")
    names = {tool["name"] for tool in json.loads(nova("tools", "--bundle", "system_tools", "--json").stdout)["tools"]}
    assert "nova_call" in names
    every = json.loads(nova("tools", "--bundle", "all", "--json").stdout)["tools"]
    assert len(every) == len(load_manifest().tools) >= len(names)


def test_an_unknown_bundle_is_refused_with_the_known_ones() -> None:
    done = nova_process("tools", "--bundle", "nonsense")
    assert done.returncode == 2
    assert "core" in done.stderr


def test_the_generated_files_are_up_to_date() -> None:
    done = nova_process("tools", "--check")
    assert done.returncode == 0, done.stderr
