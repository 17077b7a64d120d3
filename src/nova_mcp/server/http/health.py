"""The answer of `/health`: store, driver and browser are asked each time, within a moment and never twice at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from nova_mcp import __version__
from nova_mcp.core.clock import Clock
from nova_mcp.server.backend import Health
from nova_mcp.storage.errors import StoreUnavailable

STORE_S = 2.0
FRESH_MS = 1000


class Processes(Protocol):
    """What the browser says of itself and of the process that drives it."""

    @property
    def driver(self) -> str: ...

    @property
    def browser(self) -> str: ...

    @property
    def ok(self) -> bool: ...


class HealthCheck:
    """Answers everybody who asks within a second alike: the question needs no token, so it must cost little."""

    def __init__(
        self,
        dialect: str,
        write: Callable[[], Awaitable[None]],
        processes: Callable[[], Awaitable[Processes]],
        clock: Clock,
    ) -> None:
        self._dialect = dialect
        self._write = write
        self._processes = processes
        self._clock = clock
        self._turn = anyio.Lock()
        self._last: tuple[float, Health] | None = None
        self._writing: asyncio.Task[None] | None = None

    async def ask(self) -> Health:
        """The state now, or as it was within the last second."""
        async with self._turn:
            now = self._clock.monotonic_ms()
            if self._last is None or now - self._last[0] >= FRESH_MS:
                self._last = (now, await self._ask())
            return self._last[1]

    async def _ask(self) -> Health:
        trouble = await self._store_trouble()
        processes = await self._processes()
        return Health(
            status="ok" if trouble is None and processes.ok else "failing",
            version=__version__,
            store=self._dialect if trouble is None else f"{self._dialect}: {trouble}",
            driver=processes.driver,
            browser=processes.browser,
        )

    async def _store_trouble(self) -> str | None:
        """Why nothing can be recorded; a write, because a store that is full or read-only can still be read."""
        if self._writing is None:
            self._writing = asyncio.create_task(_awaited(self._write))
        # A unit of work can't be taken back: while one is out, no second one is sent after it.
        done, _ = await asyncio.wait({self._writing}, timeout=STORE_S)
        if not done:
            return "no answer"
        finished, self._writing = self._writing, None
        match finished.exception():
            case None:
                return None
            case StoreUnavailable() as failure:
                return failure.reason
            case _:
                return "failed"


async def _awaited(write: Callable[[], Awaitable[None]]) -> None:
    await write()
