"""One lock per tab: many readers, one mutation, nobody waits longer than they said."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from nova_mcp.errors import Unavailable

WAIT_MS = 5000


@dataclass(slots=True, eq=False)
class _Waiter:
    exclusive: bool
    turn: anyio.Event = field(default_factory=anyio.Event)
    granted: bool = False


class ReadWriteLock:
    """First come, first served; readers that stand together go in together, so a writer is never starved."""

    def __init__(self) -> None:
        self._readers = 0
        self._writer = False
        self._queue: deque[_Waiter] = deque()

    @asynccontextmanager
    async def shared(self, timeout_ms: int = WAIT_MS) -> AsyncIterator[None]:
        await self._acquire(_Waiter(exclusive=False), timeout_ms)
        try:
            yield
        finally:
            self._readers -= 1
            self._grant()

    @asynccontextmanager
    async def exclusive(self, timeout_ms: int = WAIT_MS) -> AsyncIterator[None]:
        await self._acquire(_Waiter(exclusive=True), timeout_ms)
        try:
            yield
        finally:
            self._writer = False
            self._grant()

    @property
    def held(self) -> bool:
        return self._writer or self._readers > 0

    async def _acquire(self, waiter: _Waiter, timeout_ms: int) -> None:
        self._queue.append(waiter)
        self._grant()
        if waiter.granted:
            return
        try:
            with anyio.move_on_after(timeout_ms / 1000):
                await waiter.turn.wait()
        except BaseException:
            self._give_up(waiter)
            raise
        if not waiter.granted:
            self._give_up(waiter)
            raise Unavailable(
                "tab.busy",
                f"Another call held this tab for more than {timeout_ms} ms.",
                "Try again shortly, or work in a tab of your own (nova.tab_new).",
                retry_after_ms=1000,
            )

    def _give_up(self, waiter: _Waiter) -> None:
        if not waiter.granted:
            self._queue.remove(waiter)
        elif waiter.exclusive:
            self._writer = False
        else:
            self._readers -= 1
        self._grant()

    def _grant(self) -> None:
        while self._queue:
            waiter = self._queue[0]
            if self._writer or (waiter.exclusive and self._readers):
                return
            self._queue.popleft()
            waiter.granted = True
            if waiter.exclusive:
                self._writer = True
            else:
                self._readers += 1
            waiter.turn.set()
