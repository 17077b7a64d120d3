"""MCP over standard input and output: `nova serve`, for as long as its client lives."""

import logging
import os
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from nova_mcp.server.inflight import Inflight
from nova_mcp.server.lazy_backend import BackendFactory, BackendSlot, build_default
from nova_mcp.server.lifetime import Ending, watch_parent, watch_signals
from nova_mcp.server.logs import log_to_stderr
from nova_mcp.server.manifest import Manifest, load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.server.stdio.streams import Wire, claim_standard_streams
from nova_mcp.settings import Settings

log = logging.getLogger(__name__)

DRAIN_S = 5.0
LAST_ANSWERS_S = 1.0


async def serve_stdio(
    settings: Settings, backend_factory: BackendFactory = build_default, manifest: Manifest | None = None
) -> str:
    """Serve one client until it leaves; returns why it ended."""
    parent = os.getppid()
    # Nothing listens here, whatever address HTTP would take.
    settings = settings.model_copy(update={"http": settings.http.model_copy(update={"host": "127.0.0.1"})})
    log_to_stderr(settings.log_level)
    slot, inflight, ending, warmup = BackendSlot(settings, backend_factory), Inflight(), Ending(), _WarmUp()
    wiring = Wiring(backend=slot.get, inflight=inflight, on_listed=warmup.listed)
    server = build_server(manifest or load_manifest(), settings, wiring)
    wire = Wire(claim_standard_streams(), settings.http.max_body_bytes, warmup.written, ending.because)
    try:
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(watch_signals, ending.because)
            watchers.start_soon(watch_parent, ending.because, parent)
            async with anyio.create_task_group() as background:
                warmup.start = lambda: _discard(background.start_soon(slot.warm))
                await _serve_until_end(server, wire, inflight, ending)
                background.cancel_scope.cancel()
            await slot.close(ending.reason)
            watchers.cancel_scope.cancel()
    finally:
        ending.finished()
    return ending.reason


async def _serve_until_end(server: Server[Any], wire: Wire, inflight: Inflight, ending: Ending) -> None:
    async def protocol() -> None:
        await wire.run(server)
        ending.because("end of input")

    async with anyio.create_task_group() as serving:
        serving.start_soon(protocol)
        await ending.event.wait()
        # Calls end before the wire does, so that their evidence is written and their answers still get out.
        if left := await inflight.drain(DRAIN_S):
            log.error("%d calls did not end within %s s", left, DRAIN_S)
        if ending.reason.startswith("signal"):
            await wire.answered(LAST_ANSWERS_S)
        serving.cancel_scope.cancel()


class _WarmUp:
    """Starts once the first tool list has been written, so that it never delays that list."""

    def __init__(self) -> None:
        self.start: Callable[[], None] = lambda: None
        self._due = False
        self._started = False

    def listed(self) -> None:
        self._due = True

    def written(self) -> None:
        if self._due and not self._started:
            self._started = True
            self.start()


def _discard(_: object) -> None:
    return None
