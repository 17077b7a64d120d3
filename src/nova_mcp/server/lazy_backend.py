"""The place for the program behind the server: built once, on first need, closed once."""

import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

import anyio
import anyio.to_thread

from nova_mcp import __version__
from nova_mcp.errors import Unavailable
from nova_mcp.server.backend import Backend, Health
from nova_mcp.server.garbage import keeping_everything
from nova_mcp.settings import Settings

log = logging.getLogger(__name__)

BackendFactory = Callable[[Settings], Awaitable[Backend]]
CLOSE_LIMIT_S = 10.0
REBUILD_S = 5.0


async def build_default(settings: Settings) -> Backend:
    """Import the program in a thread, so that the protocol stays responsive meanwhile."""
    with keeping_everything():
        app = await anyio.to_thread.run_sync(import_module, "nova_mcp.app")
        return cast(Backend, await app.build(settings, ahead=True))


class BackendSlot:
    """Hands out one backend to everybody who asks; a failed build is tried again by the next one."""

    def __init__(self, settings: Settings, factory: BackendFactory) -> None:
        self._settings = settings
        self._factory = factory
        self._lock = anyio.Lock()
        self._backend: Backend | None = None
        self._closed = False
        # Why the last build failed.
        self._failure: str | None = None

    async def get(self) -> Backend:
        if self._backend is not None and not self._closed:
            return self._backend
        async with self._lock:
            if self._closed:
                raise Unavailable("server.shutting_down", "The server is stopping; nothing ran", "Connect again.")
            return self._backend or await self._build()

    async def _build(self) -> Backend:
        # Shielded: a caller who leaves must not tear down what the next one is waiting for.
        with anyio.CancelScope(shield=True):
            try:
                backend = await self._factory(self._settings)
            except Exception as failure:
                self._failure = getattr(failure, "reason_code", "failed")
                raise
        self._backend, self._failure = backend, None
        return backend

    async def warm(self) -> None:
        """Build ahead of the first call; a failure is left for that call to report."""
        level = logging.WARNING if self._failure is None else logging.DEBUG
        try:
            backend = await self.get()
            await backend.warm()
        except Exception:
            log.log(level, "warming up failed", exc_info=True)

    async def keep_warm(self) -> None:
        """Build ahead, again and again until it works: who is not well gets no calls that would try it."""
        await self.warm()
        while self._backend is None and not self._closed:
            await anyio.sleep(REBUILD_S)
            await self.warm()

    async def health(self) -> Health:
        if self._backend is not None:
            return await self._backend.health()
        if self._failure is not None:
            return Health("failing", __version__, store=self._failure, browser="not started")
        return Health("starting", __version__, store="not opened yet", browser="not started")

    async def close(self, reason: str) -> None:
        """Close what was built, within a limit that holds even if the caller is being cancelled."""
        with anyio.move_on_after(CLOSE_LIMIT_S, shield=True) as scope:
            async with self._lock:
                backend, closed = self._backend, self._closed
                self._closed = True
            if backend is not None and not closed:
                try:
                    await backend.close(reason)
                except Exception:
                    log.exception("closing failed")
        if scope.cancelled_caught:
            log.error("closing took longer than %s s and was given up", CLOSE_LIMIT_S)
