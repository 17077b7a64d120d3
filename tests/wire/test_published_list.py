"""What a client is shown: names, schemas, price."""

import json
import warnings
from typing import Any

import pytest
from fake_nova import build, fake_manifest
from mcp import Client

from nova_mcp.server.manifest import ListedTool, load_manifest
from nova_mcp.server.protocol import Wiring, build_server, listed_tool
from nova_mcp.settings import Settings

CORE_LIST_TOKENS = 3_000


def count_tokens(text: str) -> int:
    with warnings.catch_warnings():
        # The tokenizer opens its tables through an interface that Python has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import get_encoding

        return len(get_encoding("o200k_base").encode(text))


def fake_server(**changes: Any):
    async def backend():
        return await build(lambda line: None)

    return build_server(fake_manifest(), Settings.model_validate(changes), Wiring(backend=backend))


async def test_underscore_names_are_published_on_request_and_both_spellings_work(era: str):
    async with Client(fake_server(tool_names="underscore"), mode=era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "nova_echo" in names
        assert not [name for name in names if "." in name]
        assert client.instructions is not None
        assert "nova_call" in client.instructions
        for name in ("nova_echo", "nova.echo"):
            result = await client.call_tool(name, {})
            assert result.structured_content is not None
            assert result.structured_content["tool"] == "nova.echo"


async def test_text_only_leaves_out_the_structured_answer_and_promises_none(era: str):
    async with Client(fake_server(text_only=True, output_schemas=True), mode=era) as client:
        assert all(tool.output_schema is None for tool in (await client.list_tools()).tools)
        result = await client.call_tool("nova.echo", {})
        assert result.structured_content is None
        assert result.content[0].text.startswith("echo")
        failed = await client.call_tool("nova.fail", {})
        assert failed.is_error
        assert failed.structured_content is None


async def test_published_output_schemas_accept_what_the_tools_answer(era: str):
    async with Client(fake_server(output_schemas=True), mode=era) as client:
        tools = (await client.list_tools()).tools
        assert all(tool.output_schema is not None for tool in tools)
        # The client itself checks answers against the schemas it was given.
        for name in ("nova.echo", "nova.image", "nova.fail"):
            assert (await client.call_tool(name, {})).structured_content is not None


@pytest.mark.parametrize("tool", load_manifest().tools, ids=lambda tool: tool.name)
def test_promised_answers_stay_open_to_fields_that_come_and_go(tool: ListedTool):
    assert tool.output_schema["type"] == "object"
    assert tool.output_schema["required"] == ["ok"]
    written = json.dumps(tool.output_schema)
    assert written.count('"required": [') == 1
    assert "additionalProperties" not in written


async def test_bundles_choose_the_list_and_the_door_is_always_in_it():
    async with Client(fake_server(tools="extra"), mode="legacy") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "nova.rare",
            "nova.call",
            "nova.tools_bundle",
        }
    with pytest.raises(ValueError, match="unknown bundle nonsense"):
        fake_server(tools="nonsense")


async def test_the_schema_of_every_spelling_is_known_without_listing():
    server = fake_server()
    assert server.get_tool_input_schema is not None
    for name in ("nova.rare", "nova_rare", "mcp__nova__rare"):
        assert server.get_tool_input_schema(name) is not None
    assert server.get_tool_input_schema("nova.nothing") is None


@pytest.mark.parametrize("spelling", ["dotted", "underscore"])
def test_the_core_list_fits_its_token_budget(spelling: str):
    settings = Settings.model_validate({"tool_names": spelling})
    tools = [listed_tool(tool, settings) for tool in load_manifest().profile("core")]
    wire = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    text = json.dumps({"tools": wire}, ensure_ascii=False, separators=(",", ":"))
    assert count_tokens(text) <= CORE_LIST_TOKENS
