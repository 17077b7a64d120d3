"""Connections of every kind to the fake backend."""

import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from fake_nova import build, fake_manifest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from nova_mcp.server.http.bearer_tokens import load_credentials
from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.lifetime import Ending
from nova_mcp.settings import Settings

SERVE_FAKE = Path(__file__).with_name("serve_fake.py")
SOURCE = Path(__file__).parents[2] / "src"
LIMIT_S = 60.0


class Events:
    """What the fake backend did, wherever it runs; a lost connection is reported as `gone`."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        with connection, connection.makefile("r", encoding="utf-8") as lines, suppress(OSError):
            for line in lines:
                self.add(line.rstrip("\n"))
        self.add("gone")

    def add(self, line: str) -> None:
        with self._changed:
            self._seen.append(line)
            self._changed.notify_all()

    @property
    def seen(self) -> list[str]:
        with self._changed:
            return list(self._seen)

    def wait(self, line: str, count: int = 1) -> None:
        self.wait_for(lambda seen: seen == line, count)

    def wait_for(self, wanted: Callable[[str], bool], count: int = 1) -> None:
        with self._changed:
            came = self._changed.wait_for(lambda: sum(map(wanted, self._seen)) >= count, LIMIT_S)
        assert came, f"it never happened; seen: {self._seen}"

    async def until(self, line: str, count: int = 1) -> None:
        await anyio.to_thread.run_sync(self.wait, line, count)

    def close(self) -> None:
        # A thread blocked in accept is only woken by a shutdown.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def process_environment(events: Events, settings: Settings) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "NOVA_TEST_EVENTS": str(events.port),
        "NOVA_TEST_SETTINGS": settings.model_dump_json(),
    }


@dataclass
class HttpServer:
    """A running server in this process."""

    endpoint: str
    token: str
    settings: Settings
    ending: Ending
    ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def root(self) -> str:
        return self.endpoint.removesuffix("/mcp")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@asynccontextmanager
async def http_server(events: Events, settings: Settings) -> AsyncIterator[HttpServer]:
    ready = anyio.Event()
    found: list[str] = []
    ending = Ending()

    def on_ready(endpoint: str) -> None:
        found.append(endpoint)
        ready.set()

    async with anyio.create_task_group() as tg:
        ended = anyio.Event()

        async def serve() -> None:
            await serve_http(settings, lambda _: build(events.add), fake_manifest(), on_ready, ending)
            ended.set()

        tg.start_soon(serve)
        await ready.wait()
        token = load_credentials(settings.data_dir, found[0]).tokens[0].token
        yield HttpServer(found[0], token, settings, ending, ended)
        ending.because("test over")


@asynccontextmanager
async def http_client(server: HttpServer, mode: str, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(server.endpoint, http_client=http), mode=mode, **options) as client,
    ):
        yield client


@asynccontextmanager
async def stdio_client(events: Events, settings: Settings, mode: str, **options: Any) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(SERVE_FAKE)], env=process_environment(events, settings)
    )
    async with Client(parameters, mode=mode, **options) as client:
        yield client


Connect = Callable[..., AbstractAsyncContextManager[Client]]
