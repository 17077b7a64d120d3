"""Connections without a token: what they leave unfinished costs themselves and stops no request that has one."""

import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from wire_kit import LIMIT_S, SERVE_FAKE, Events, process_environment

from nova_mcp.server.http.bearer_tokens import load_credentials
from nova_mcp.settings import Settings

# What a process may have open on most systems, and more connections than that.
OPEN_FILES = 1024
CONNECTIONS = 1100
HOST = b"Host: 127.0.0.1\r\n"
UNFINISHED = {
    "nothing": b"",
    "half a head": b"POST /mcp HTTP/1.1\r\n" + HOST + b"X-Slow: ",
    "a head without its body": b"POST /mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 4000\r\n\r\n{",
    "a form without its body": b"POST /dashboard/login HTTP/1.1\r\n" + HOST + b"Content-Length: 4000\r\n\r\nt",
    "an answered request": b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a token that is wrong": b"POST /mcp HTTP/1.1\r\n" + HOST + b"Authorization: Bearer x\r\nContent-Length: 9\r\n\r\n",
}


@contextmanager
def enough_files(count: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(count, before[1])), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Serving:
    """A server in a process of its own that may open as many files as is usual."""

    def __init__(self, endpoint: str, settings: Settings) -> None:
        self.endpoint = endpoint
        self.address = ("127.0.0.1", int(endpoint.split(":")[2].partition("/")[0]))
        self.headers = {"Authorization": f"Bearer {load_credentials(settings.data_dir, endpoint).tokens[0].token}"}

    def send(self, data: bytes) -> socket.socket:
        connection = socket.create_connection(self.address, timeout=LIMIT_S)
        connection.sendall(data)
        return connection


@contextmanager
def serving(data_dir: Path, **http: int) -> Iterator[Serving]:
    settings = Settings.model_validate({"data_dir": data_dir, "http": {"port": 0, **http}})
    with closing(Events()) as events:
        process = subprocess.Popen(
            [sys.executable, str(SERVE_FAKE)],
            env={**process_environment(events, settings), "NOVA_TEST_HTTP": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES)),
        )
        try:
            events.wait_for(lambda line: line.startswith("ready "))
            yield Serving(
                next(line for line in events.seen if line.startswith("ready ")).removeprefix("ready "), settings
            )
        finally:
            process.terminate()
            process.wait(LIMIT_S)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("http")) as running:
        yield running


async def echoed(server: Serving, value: int) -> object:
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(server.endpoint, http_client=http), mode="auto") as client,
    ):
        answer = await client.call_tool("nova.echo", {"value": value})
        assert answer.structured_content is not None
        return answer.structured_content["arguments"]


@pytest.mark.parametrize("unfinished", ["nothing", "half a head", "a form without its body", "an answered request"])
async def test_more_half_sent_requests_than_files_stop_nobody_with_a_token(stranger: Serving, unfinished: str) -> None:
    def flood(held: ExitStack) -> None:
        for _ in range(CONNECTIONS):
            held.enter_context(closing(stranger.send(UNFINISHED[unfinished])))

    with enough_files(CONNECTIONS + 500), ExitStack() as held:
        await anyio.to_thread.run_sync(flood, held)
        with anyio.fail_after(LIMIT_S):
            for turn in range(3):
                assert await echoed(stranger, turn) == {"value": turn}


def ended(connection: socket.socket, drip: Callable[[], bytes] = lambda: b"") -> bool:
    """Whether the other side closes a connection into which bytes keep dripping."""
    connection.settimeout(0.05)
    for _ in range(400):
        try:
            if not connection.recv(65_536):
                return True
        except TimeoutError:
            try:
                connection.sendall(drip())
            except OSError:
                return True
        except OSError:
            return True
    return False


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("hurried"), header_timeout_s=1, body_timeout_s=1) as running:
        yield running


@pytest.mark.parametrize("unfinished", [name for name in UNFINISHED if name != "an answered request"])
def test_a_request_that_never_ends_is_ended_although_it_keeps_dripping(hurried: Serving, unfinished: str) -> None:
    with closing(hurried.send(UNFINISHED[unfinished])) as connection:
        assert ended(connection, lambda: b"x" if UNFINISHED[unfinished] else b"")


def test_the_body_of_a_known_caller_has_a_deadline_too(hurried: Serving) -> None:
    token = hurried.headers["Authorization"].encode()
    head = b"POST /mcp HTTP/1.1\r\n" + HOST + b"Authorization: " + token + b"\r\nContent-Length: 4000\r\n\r\n"
    with closing(hurried.send(head)) as connection:
        assert ended(connection, lambda: b"x")


def test_a_stranger_that_asks_again_and_again_is_let_go(hurried: Serving) -> None:
    again = UNFINISHED["an answered request"]
    with closing(hurried.send(again)) as connection:
        assert ended(connection, lambda: again)
