"""Nova as it runs for everybody, over HTTP on loopback, with the story's clock put in at its composition root."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Clock, Ports, SystemIds
from nova_mcp.server.http.bearer_tokens import load_credentials
from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.lifetime import Ending
from nova_mcp.settings import Settings, load_settings

# Days pass between two calls here; the browser stays for them.
_A_YEAR_S = 365 * 24 * 60 * 60
_CALL_LIMIT_S = 120.0


def story_settings(data_dir: Path, *, headed: bool = False) -> Settings:
    """The machine's own browser, and nothing else of what its owner has configured: the store is the story's."""
    browser = {
        "headed": headed,
        "cdp_endpoint": None,
        "idle_release_s": _A_YEAR_S,
        "ephemeral": True,
        "private_network": "loopback",
        "allow_hosts": (),
        "deny_hosts": (),
    }
    return load_settings(
        {
            "data_dir": data_dir,
            "store": f"sqlite:///{data_dir / 'nova.db'}",
            "tools": "all",
            "tool_names": "dotted",
            "text_only": False,
            # What happens is told by the chapters.
            "log_level": "error",
            "browser": browser,
            "http": {"host": "127.0.0.1", "port": 0},
            # Levels move when the story asks for it, so that every run of it goes the same way.
            "learning": {"passes": False},
        }
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """A running server: where it is, its token, and how to wait for its end or bring it about."""

    endpoint: str
    token: str
    ending: Ending

    @property
    def root(self) -> str:
        return self.endpoint.removesuffix("/mcp")


@asynccontextmanager
async def serving(settings: Settings, clock: Clock) -> AsyncIterator[Serving]:
    """Started and ended like `nova serve --http`; only its clock is another one."""
    ready, ending = anyio.Event(), Ending()
    found: list[str] = []

    async def backend(served: Settings) -> Nova:
        return await build(served, Ports(clock, SystemIds(clock)), ahead=True)

    def on_ready(endpoint: str) -> None:
        found.append(endpoint)
        ready.set()

    async def serve() -> None:
        try:
            await serve_http(settings, backend, on_ready=on_ready, ending=ending)
        finally:
            # Whoever waits for a server that could not start must not wait for ever.
            ready.set()

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        await ready.wait()
        try:
            if found:
                token = load_credentials(settings.data_dir, found[0]).tokens[0].token
                yield Serving(found[0], token, ending)
        finally:
            ending.because("the story is over")


@asynccontextmanager
async def connected(server: Serving) -> AsyncIterator[Client]:
    """A client like any other: Streamable HTTP with the bearer token."""
    headers: dict[str, Any] = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_CALL_LIMIT_S) as http,
        Client(streamable_http_client(server.endpoint, http_client=http), mode="auto") as client,
    ):
        yield client
