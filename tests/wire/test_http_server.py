"""The server over HTTP: who gets in, what is refused, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError
from wire_kit import LIMIT_S, SERVE_FAKE, Events, HttpServer, http_client, http_server, process_environment

from nova_mcp.server.http.serve import CannotListen, listen
from nova_mcp.settings import Settings

HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MakeSettings = Callable[..., Settings]


class Raw:
    """A client that sends exactly what it is told to."""

    def __init__(self, server: HttpServer, http: httpx2.AsyncClient) -> None:
        self.server, self.http = server, http

    async def post(self, data: bytes, **headers: str) -> httpx2.Response:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.http.post(
            self.server.endpoint, content=data, headers={**ACCEPT, **self.server.headers, **named}
        )

    async def modern(self, method: str, name: str | None = None, **params: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 3, "method": method, "params": {**params, "_meta": MODERN_META}}
        if name is not None:
            body["params"]["name"] = name
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method} | ({"Mcp_Name": name} if name else {})
        return await self.post(json.dumps(body).encode(), **headers)


@asynccontextmanager
async def raw(events: Events, settings: Settings) -> AsyncIterator[Raw]:
    async with http_server(events, settings) as server, httpx2.AsyncClient(timeout=LIMIT_S) as http:
        yield Raw(server, http)


PING = b'{"jsonrpc":"2.0","id":4,"method":"ping"}'


async def test_without_the_right_token_nothing_but_health_answers(events: Events, make_settings: MakeSettings):
    async with raw(events, make_settings()) as peer:
        path = str(peer.server.settings.data_dir / "mcp.json")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {peer.server.token}"}):
            for method, url in (
                ("POST", "/mcp"),
                ("GET", "/mcp"),
                ("GET", "/"),
                ("DELETE", "/mcp"),
                ("POST", "/health"),
            ):
                answer = await peer.http.request(method, peer.server.root + url, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith("Bearer")
                error = answer.json()["error"]
                assert path in error["message"]
                assert peer.server.token not in answer.text
        health = await peer.http.get(peer.server.root + "/health")
        assert health.status_code == 200
        assert health.json()["status"] == "ok"
        assert (await peer.http.get(peer.server.root + "/other", headers=peer.server.headers)).status_code == 404
    assert not [line for line in events.seen if line.startswith("call ")]


async def test_a_foreign_name_or_origin_is_refused_even_with_a_token(events: Events, make_settings: MakeSettings):
    settings = make_settings(http={"allowed_hosts": ["nova.example"], "allowed_origins": ["https://app.example"]})
    async with raw(events, settings) as peer:
        for headers, status, reason in (
            ({"Host": "evil.example"}, 403, "http.host_denied"),
            ({"Origin": "https://evil.example"}, 403, "http.origin_denied"),
            ({"Origin": "null"}, 403, "http.origin_denied"),
            ({"Host": "nova.example:1234"}, None, None),
            ({"Origin": "https://app.example"}, None, None),
            ({"Origin": "http://localhost:3000"}, None, None),
        ):
            answer = await peer.post(PING, **headers)
            if status is None:
                assert answer.status_code not in (401, 403)
            else:
                assert (answer.status_code, answer.json()["error"]["data"]["reasonCode"]) == (status, reason)
        assert (await peer.http.get(peer.server.root + "/health", headers={"Host": "evil.example"})).status_code == 403


async def test_a_body_over_the_limit_is_refused_declared_or_not(events: Events, make_settings: MakeSettings):
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"v":"'
        for _ in range(80):
            yield b"x" * 65_536

    async with raw(events, make_settings()) as peer:
        declared = await peer.post(b"x" * 5_000_000)
        assert declared.status_code == 413
        streamed = await peer.http.post(
            peer.server.endpoint, content=chunks(), headers={**ACCEPT, **peer.server.headers}
        )
        assert streamed.status_code == 413
        assert streamed.json()["id"] == 6
        assert streamed.json()["error"]["data"]["reasonCode"] == "size_limit"
        assert (await peer.modern("tools/list")).status_code == 200


@pytest.mark.parametrize("version", [{}, {"MCP_Protocol_Version": "2026-07-28"}])
async def test_nonsense_gets_an_error_and_the_server_stays_up(
    events: Events, make_settings: MakeSettings, version: dict[str, str]
):
    deep = b"[" * 5_000 + b"]" * 5_000
    async with raw(events, make_settings()) as peer:
        for data, code, request_id in (
            (b"not json", -32700, None),
            (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"v":NaN}}', -32700, 7),
            (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"v":' + deep + b"}}", -32700, 8),
            (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"v":"\xff"}}', -32700, 9),
            (b"[]", -32600, None),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        ):
            answer = await peer.post(data, **version)
            assert answer.status_code == 400
            assert (answer.json()["error"]["code"], answer.json()["id"]) == (code, request_id)
        assert (await peer.modern("tools/destroy")).json()["error"]["code"] == -32601
        fine = await peer.modern("tools/call", "nova.echo", arguments={"value": 1})
        assert fine.json()["result"]["structuredContent"]["arguments"] == {"value": 1}


async def test_each_token_speaks_for_its_own_principal(events: Events, make_settings: MakeSettings, era: str):
    settings = make_settings()
    settings.data_dir.mkdir(parents=True)
    path = settings.data_dir / "mcp.json"
    robot = {"name": "robot", "token": "r" * 32}
    path.write_text(json.dumps({"endpoint": "", "token": "l" * 32, "principal": "ann", "tokens": [robot]}))
    path.chmod(0o600)
    async with http_server(events, settings) as server:
        for token, principal in (("l" * 32, "ann"), ("r" * 32, "robot")):
            server.token = token
            async with http_client(server, era) as client:
                result = await client.call_tool("nova.echo", {})
                assert result.structured_content is not None
                assert result.structured_content["principal"] == principal


async def test_a_session_belongs_to_the_principal_that_opened_it(events: Events, make_settings: MakeSettings):
    settings = make_settings()
    settings.data_dir.mkdir(parents=True)
    path = settings.data_dir / "mcp.json"
    robot = {"name": "robot", "token": "r" * 32}
    path.write_text(json.dumps({"endpoint": "", "token": "l" * 32, "tokens": [robot]}))
    path.chmod(0o600)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}).encode()
    async with raw(events, settings) as peer:
        session = (await peer.post(body)).headers["mcp-session-id"]
        assert (await peer.post(PING, Mcp_Session_Id=session)).status_code == 200
        stolen = await peer.post(PING, Mcp_Session_Id=session, Authorization=f"Bearer {'r' * 32}")
        assert stolen.status_code == 404


async def test_too_many_calls_a_minute_are_answered_with_when_to_come_back(
    events: Events, make_settings: MakeSettings, era: str
):
    async with http_server(events, make_settings(http={"calls_per_minute": 8})) as server:
        async with http_client(server, era) as client:
            results = [await client.call_tool("nova.echo", {}) for _ in range(8)]
            limited = results[-1]
            assert not results[0].is_error
            assert limited.is_error
            assert limited.structured_content is not None
            assert limited.structured_content["errorCode"] == -32029
            assert limited.structured_content["reasonCode"] == "rate.limited"
            assert 0 < limited.structured_content["retryAfterMs"] <= 7_500
            with pytest.raises(MCPError) as refused:
                await client.list_prompts()
            assert refused.value.code == -32029
        assert events.seen.count("call nova.echo") == sum(1 for result in results if not result.is_error)
        async with httpx2.AsyncClient(timeout=LIMIT_S) as http:
            answer = await Raw(server, http).modern("tools/list")
            assert answer.status_code == 429
            assert 1 <= int(answer.headers["retry-after"]) <= 8


async def test_too_many_calls_at_once_are_refused_until_one_ends(events: Events, make_settings: MakeSettings, era: str):
    settings = make_settings(http={"concurrent_calls": 2})
    async with http_server(events, settings) as server, http_client(server, era) as client:
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.call_tool, "nova.slow", {})
            tg.start_soon(client.call_tool, "nova.slow", {})
            await events.until("call nova.slow", 2)
            refused = await client.call_tool("nova.echo", {})
            assert refused.structured_content is not None
            assert refused.structured_content["reasonCode"] == "rate.limited"
            tg.cancel_scope.cancel()
        await events.until("slow recorded", 2)
        assert not (await client.call_tool("nova.echo", {})).is_error


async def test_a_modern_client_that_leaves_in_mid_call_ends_it_and_its_record_is_closed(
    events: Events, make_settings: MakeSettings
):
    async with raw(events, make_settings()) as peer:
        async with anyio.create_task_group() as tg:
            tg.start_soon(lambda: peer.modern("tools/call", "nova.slow", arguments={}))
            await events.until("call nova.slow")
            tg.cancel_scope.cancel()
        await events.until("slow recorded")
        assert (await peer.modern("tools/list")).status_code == 200


async def test_a_handshake_call_outlives_its_stream_and_ends_with_its_session(
    events: Events, make_settings: MakeSettings
):
    greeting = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}).encode()
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    call = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nova.slow","arguments":{}}}'
    async with raw(events, make_settings()) as peer:
        session = (await peer.post(greeting)).headers["mcp-session-id"]
        await peer.post(ready, Mcp_Session_Id=session)
        async with anyio.create_task_group() as tg:
            tg.start_soon(lambda: peer.post(call, Mcp_Session_Id=session))
            await events.until("call nova.slow")
            tg.cancel_scope.cancel()
        assert (await peer.post(PING, Mcp_Session_Id=session)).status_code == 200
        assert "slow recorded" not in events.seen
        gone = await peer.http.delete(peer.server.endpoint, headers={**peer.server.headers, "Mcp-Session-Id": session})
        assert gone.status_code == 200
        await events.until("slow recorded")


async def test_stopping_answers_running_calls_and_closes_the_backend(
    events: Events, make_settings: MakeSettings, era: str
):
    results: list[Any] = []
    async with http_server(events, make_settings()) as server:
        async with http_client(server, era) as client:

            async def call() -> None:
                results.append(await client.call_tool("nova.slow", {}))

            async with anyio.create_task_group() as tg:
                tg.start_soon(call)
                await events.until("call nova.slow")
                server.ending.because("test says so")
            (stopped,) = results
            assert stopped.is_error
            assert stopped.structured_content["reasonCode"] == "server.shutting_down"
        await server.ended.wait()
    assert events.seen[-2:] == ["slow recorded", "close test says so"]


def test_a_signal_ends_the_http_process_and_closes_the_backend(events: Events, make_settings: MakeSettings):
    environment = {**process_environment(events, make_settings()), "NOVA_TEST_HTTP": "1"}
    child = subprocess.Popen([sys.executable, str(SERVE_FAKE)], env=environment, stderr=subprocess.PIPE)
    try:
        # The warm-up runs beside the start, so its end is the last thing that happens by itself.
        events.wait("warm")
        events.wait_for(lambda line: line.startswith("ready http://127.0.0.1:"))
        child.send_signal(signal.SIGTERM)
        _, log = child.communicate(timeout=LIMIT_S)
        assert child.returncode == 0, log
        events.wait("gone")
        assert events.seen[-3:] == ["close signal SIGTERM", "returned signal SIGTERM", "gone"]
    finally:
        child.kill()
        child.communicate(timeout=LIMIT_S)


def test_an_address_in_use_is_named():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}"):
            listen("127.0.0.1", port)
