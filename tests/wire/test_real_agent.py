"""A real client against the real program, over both transports and in both eras, checked against the ledger."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, MCPError
from real_kit import findings, http_connection, real_http_server, real_stdio, records, small_site, text_of

from nova_mcp.server.manifest import load_manifest

pytestmark = pytest.mark.browser


@asynccontextmanager
async def connected(transport: str, era: str, data_dir: Path) -> AsyncIterator[Client]:
    if transport == "stdio":
        async with real_stdio(data_dir, era) as client:
            yield client
        return
    async with real_http_server(data_dir) as (endpoint, token), http_connection(endpoint, token, era) as client:
        yield client


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_everything_an_agent_does_stands_in_the_ledger(transport: str, era: str, tmp_path: Path) -> None:
    with small_site() as (base, held):
        async with connected(transport, era, tmp_path) as client:
            await _lists_the_core_tools(client)
            await _drives_a_page(client, base)
            await _is_told_about_mistakes(client)
            await _cancels(client, base, held)
            await _calls_a_hundred_times_at_once(client)
    seen = records(tmp_path)
    assert findings(tmp_path) == []
    outcomes = Counter((record.tool_name, record.outcome.kind) for record in seen)
    assert outcomes["nova.navigate", "ok"] == 1
    assert outcomes["nova.navigate", "cancelled"] == 1
    assert outcomes["nova.perceive", "ok"] == 1
    assert outcomes["nova.perceive", "invalid"] == 1
    assert outcomes["nova.percieve", "invalid"] == 1
    assert outcomes["nova.click_selector", "ok"] == 1
    assert outcomes["nova.type_selector", "ok"] == 1
    assert outcomes["nova.tabs", "ok"] == 100
    assert {record.caller.agent_id for record in seen if record.tool_name == "nova.tabs"} == {
        f"agent-{number}" for number in range(100)
    }
    click = next(record for record in seen if record.tool_name == "nova.click_selector")
    assert click.touched.selector == "#more"
    assert click.outcome.action_dispatched is True
    assert click.before.url == f"{base}/start"
    assert {"mutation_attempted", "mutation_committed", "selector_touched"} <= click.touched.flags


async def _lists_the_core_tools(client: Client) -> None:
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [tool.name for tool in load_manifest().profile("core")]


async def _drives_a_page(client: Client, base: str) -> None:
    opened = await client.call_tool("nova.navigate", {"url": f"{base}/start"})
    assert opened.structured_content is not None
    assert (opened.structured_content["status"], opened.structured_content["httpStatus"]) == ("ok", 200)
    seen = text_of(await client.call_tool("nova_perceive", {}))
    ref = next(line.split()[0] for line in seen.splitlines() if '"More"' in line)
    clicked = await client.call_tool("nova.click_selector", {"ref": ref})
    assert clicked.structured_content is not None
    assert clicked.structured_content["actionDispatched"] is True
    assert clicked.structured_content["verifyState"] == "likely"
    typed = await client.call_tool("nova.type_selector", {"selector": "#note", "text": "hello"})
    assert typed.structured_content is not None
    assert typed.structured_content["verifyState"] == "verified"
    read = text_of(await client.call_tool("nova.read_text", {}))
    assert "1" in read.splitlines()
    picture = await client.call_tool("nova.capture_screenshot", {"maxWidth": 320})
    assert [block.type for block in picture.content] == ["text", "image"]


async def _is_told_about_mistakes(client: Client) -> None:
    wrong = await client.call_tool("nova.perceive", {"maxTokens": 5, "extra": True})
    assert wrong.is_error
    assert wrong.structured_content is not None
    assert wrong.structured_content["reasonCode"] == "invalid_params"
    assert json.loads(text_of(wrong)) == wrong.structured_content
    with pytest.raises(MCPError) as unknown:
        await client.call_tool("nova.percieve", {})
    assert unknown.value.code == -32602
    assert "nova.perceive" in unknown.value.message


async def _cancels(client: Client, base: str, held: Any) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "nova.navigate", {"url": f"{base}/held", "timeoutMs": 60_000})
        assert await anyio.to_thread.run_sync(held.asked.wait, 60)
        group.cancel_scope.cancel()


async def _calls_a_hundred_times_at_once(client: Client) -> None:
    answers: list[bool] = []

    async def one(number: int) -> None:
        answer = await client.call_tool("nova.tabs", {"agentId": f"agent-{number}"})
        answers.append(answer.is_error is True)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(one, number)
    assert answers == [False] * 100


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_that_leaves_in_mid_call_is_recorded(era: str, tmp_path: Path) -> None:
    with small_site() as (base, held):
        async with real_http_server(tmp_path) as (endpoint, token):
            async with anyio.create_task_group() as group:

                async def leave() -> None:
                    async with http_connection(endpoint, token, era) as client:
                        await client.call_tool("nova.navigate", {"url": f"{base}/held", "timeoutMs": 60_000})

                group.start_soon(leave)
                assert await anyio.to_thread.run_sync(held.asked.wait, 60)
                group.cancel_scope.cancel()
            held.release.set()
    (record,) = records(tmp_path)
    assert (record.tool_name, record.outcome.kind) == ("nova.navigate", "cancelled")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_that_closes_its_pipe_in_mid_call_is_recorded(era: str, tmp_path: Path) -> None:
    with small_site() as (base, held):
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                async with real_stdio(tmp_path, era) as client:
                    group.start_soon(close_when_asked)
                    await client.call_tool("nova.navigate", {"url": f"{base}/held", "timeoutMs": 60_000})

            async def close_when_asked() -> None:
                assert await anyio.to_thread.run_sync(held.asked.wait, 60)
                group.cancel_scope.cancel()

            group.start_soon(leave)
    (record,) = records(tmp_path)
    assert record.tool_name == "nova.navigate"
    assert record.outcome.kind in ("cancelled", "failed")
    assert record.outcome.action_dispatched is True
    assert findings(tmp_path) == []


async def test_a_server_that_is_told_to_end_in_mid_call_records_the_call(tmp_path: Path) -> None:
    with small_site() as (base, held):
        async with anyio.create_task_group() as group:
            async with real_http_server(tmp_path) as (endpoint, token):

                async def call() -> None:
                    async with http_connection(endpoint, token, "legacy") as client:
                        await client.call_tool("nova.navigate", {"url": f"{base}/held", "timeoutMs": 60_000})

                group.start_soon(call)
                assert await anyio.to_thread.run_sync(held.asked.wait, 60)
            group.cancel_scope.cancel()
        held.release.set()
    (record,) = records(tmp_path)
    assert record.tool_name == "nova.navigate"
    assert record.outcome.kind in ("cancelled", "failed")
    assert findings(tmp_path) == []


async def test_a_tab_of_an_earlier_server_is_remembered(tmp_path: Path) -> None:
    with small_site() as (base, _):
        async with real_stdio(tmp_path, "auto") as client:
            first = await client.call_tool("nova.navigate", {"url": f"{base}/start?secret=1"})
        assert first.structured_content is not None
        target_id = first.structured_content["targetId"]
        async with real_stdio(tmp_path, "auto") as client:
            gone = await client.call_tool("nova.perceive", {"targetId": target_id})
            again = await client.call_tool("nova.tab_new", {})
    assert gone.structured_content is not None
    assert gone.structured_content["reasonCode"] == "tab.unknown"
    seen = gone.structured_content["lastSeen"]
    assert seen["url"] == f"{base}/start?secret"
    assert seen["endReason"] in ("server_restart", "closed", "browser_exit")
    assert again.structured_content is not None
    assert again.structured_content["targetId"] != target_id
