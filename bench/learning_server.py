"""A whole server in this process with a real client on it, and a clock that can be put forward by days."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp import Client

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Peer, Wiring, build_server
from nova_mcp.settings import Settings

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


class MovedClock(SystemClock):
    """The machine's clock, put forward."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@dataclass(frozen=True, slots=True)
class LearningServer:
    nova: Nova
    settings: Settings
    clock: MovedClock

    def later(self, ms: int) -> None:
        self.clock.ahead_ms += ms

    @asynccontextmanager
    async def client(self, principal: str = "local") -> AsyncIterator[Client]:
        """A client that speaks for one user."""

        async def backend() -> Nova:
            return self.nova

        wiring = Wiring(backend=backend, peer_of=lambda ctx: Peer(principal))
        async with Client(build_server(load_manifest(), self.settings, wiring)) as client:
            yield client


@asynccontextmanager
async def learning_server() -> AsyncIterator[LearningServer]:
    clock = MovedClock()
    with tempfile.TemporaryDirectory() as folder:
        told = {"data_dir": Path(folder), "tools": "all", "receipts": {"pictures": False}}
        told["enable_eval"] = True
        # Days pass between two calls here; the browser stays for them.
        told["browser"] = {"idle_release_s": 365 * DAY_MS}
        settings = Settings.model_validate(told)
        nova = await build(settings, Ports(clock, SystemIds(clock)))
        try:
            yield LearningServer(nova, settings, clock)
        finally:
            await nova.close("done")
