"""What holds on both transports and in both protocol eras."""

import base64
from typing import Any

import anyio
import pytest
from fake_nova import PIXEL, SECRET
from mcp import MCPError
from wire_kit import Connect, Events

from nova_mcp import __version__


async def test_a_client_lists_and_calls_tools(connect: Connect, events: Events):
    async with connect() as client:
        tools = (await client.list_tools()).tools
        assert "nova.echo" in {tool.name for tool in tools}
        assert "nova.rare" not in {tool.name for tool in tools}
        assert all(tool.output_schema is None for tool in tools)
        assert tools[0].annotations is not None
        assert tools[0].annotations.read_only_hint is True
        result = await client.call_tool("nova.echo", {"value": {"deep": [1, None, "ü"]}})
        assert result.structured_content is not None
        assert result.structured_content["arguments"] == {"value": {"deep": [1, None, "ü"]}}
        assert result.structured_content["principal"] == "local"
        assert not result.is_error
        info = client.server_info
        assert (info.name, info.title, info.version) == ("nova", "Nova", __version__)
        assert client.instructions is not None
        assert "nova.call" in client.instructions
        assert client.server_capabilities.tools is not None
        assert not client.server_capabilities.tools.list_changed


async def test_every_spelling_reaches_the_tool_and_unlisted_ones_are_reachable(connect: Connect, events: Events):
    async with connect() as client:
        for name in ("nova.rare", "nova_rare", "rare", "mcp__nova__nova_rare", "mcp__other__nova.rare"):
            result = await client.call_tool(name, {})
            assert result.structured_content is not None
            assert result.structured_content["tool"] == "nova.rare"


async def test_failures_come_in_the_shape_their_kind_has(connect: Connect, events: Events):
    async with connect() as client:
        failed = await client.call_tool("nova.fail", {})
        assert failed.is_error
        assert failed.structured_content is not None
        assert failed.structured_content["reasonCode"] == "selector.not_found"

        busy = await client.call_tool("nova.busy", {})
        assert busy.is_error
        assert busy.structured_content is not None
        assert busy.structured_content["errorCode"] == -32002
        assert busy.structured_content["retryAfterMs"] == 250

        with pytest.raises(MCPError) as unknown:
            await client.call_tool("nova.ecko", {})
        assert unknown.value.code == -32602
        assert "nova.echo" in unknown.value.message
        assert unknown.value.data["closest"] == ["nova.echo"]

        with pytest.raises(MCPError) as broken:
            await client.call_tool("nova.boom", {})
        assert broken.value.code == -32603
        assert SECRET not in broken.value.message + str(broken.value.data)
        assert broken.value.data["reference"] in broken.value.message

        after = await client.call_tool("nova.echo", {})
        assert not after.is_error


async def test_pictures_travel_behind_the_text(connect: Connect, events: Events):
    async with connect() as client:
        result = await client.call_tool("nova.image", {})
        text, picture = result.content
        assert text.type == "text"
        assert picture.type == "image"
        assert base64.b64decode(picture.data) == PIXEL
        assert picture.mime_type == "image/png"


async def test_broken_characters_and_numbers_of_a_page_do_not_break_the_connection(connect: Connect, events: Events):
    async with connect() as client:
        result = await client.call_tool("nova.odd", {})
        assert result.structured_content is not None
        assert result.structured_content["half\ufffd"] == ["\ufffdx", None, "\U0001f600", 1.5]
        assert result.content[0].text == "half \ufffd of a face"


async def test_progress_reaches_only_those_who_asked(connect: Connect, events: Events):
    steps: list[tuple[float, float | None, str | None]] = []
    received = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))
        if len(steps) == 3:
            received.set()

    async with connect() as client:
        silent = await client.call_tool("nova.progress", {})
        assert not silent.is_error
        assert steps == []
        await client.call_tool("nova.progress", {}, progress_callback=note)
        with anyio.fail_after(30):
            await received.wait()
    assert sorted(steps) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_hundred_calls_at_once_each_get_their_own_answer(connect: Connect, events: Events):
    answers: dict[int, Any] = {}
    async with connect() as client:

        async def one(number: int) -> None:
            result = await client.call_tool("nova.echo", {"value": number})
            assert result.structured_content is not None
            answers[number] = result.structured_content["arguments"]["value"]

        async with anyio.create_task_group() as tg:
            for number in range(100):
                tg.start_soon(one, number)
    assert answers == {number: number for number in range(100)}


async def test_cancelling_a_call_ends_it_and_its_record_is_closed(connect: Connect, events: Events):
    async with connect() as client:
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.call_tool, "nova.slow", {})
            await events.until("call nova.slow")
            tg.cancel_scope.cancel()
        await events.until("slow recorded")
        after = await client.call_tool("nova.echo", {})
        assert not after.is_error


async def test_resources_are_read_or_not_found(connect: Connect, events: Events, era: str):
    async with connect() as client:
        templates = (await client.list_resource_templates()).resource_templates
        addresses = {
            f"nova://{one}" for one in ("ledger/{callId}", "screenshot/{id}", "receipt/{id}", "playbook/{scope}")
        }
        assert {entry.uri_template for entry in templates} == addresses
        assert (await client.list_resources()).resources == []
        (ledger,) = (await client.read_resource("nova://ledger/c1")).contents
        assert ledger.text == '{"callId":"c1"}'
        (picture,) = (await client.read_resource("nova://screenshot/s1")).contents
        assert base64.b64decode(picture.blob) == PIXEL
        for missing in ("nova://ledger/none", "nova://knowledge/site", "file:///etc/passwd", "nova://ledger/"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(missing)
            assert refused.value.code == (-32002 if era == "legacy" else -32602)


async def test_prompts_are_listed_and_filled_in(connect: Connect, events: Events):
    async with connect() as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert set(prompts) == {"learn-platform", "resume-task"}
        learn = await client.get_prompt("learn-platform", {"url": "http://127.0.0.1/shop", "focus": "{orders}"})
        text = learn.messages[0].content.text
        assert "http://127.0.0.1/shop" in text
        assert "{orders}" in text
        resume = await client.get_prompt("resume-task")
        assert "nova.tabs" in resume.messages[0].content.text
        for name, arguments in (("learn-platform", {}), ("nothing", {}), ("resume-task", {"url": "x"})):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name, arguments)
            assert refused.value.code == -32602
