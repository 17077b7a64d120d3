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


def _busy(waited_ms: int) -> Unavailable:
    return Unavailable(
        "tab.busy",
        f"Another call held this tab for more than {waited_ms} ms.",
        retry_after_ms=1000,
    )


class ReadWriteLock:
    """First come, first served; readers that stand together go in together, so a writer is never starved."""

    def __init__(self) -> None:
        self._readers = 0
        self._writer = False
        self._queue: deque[_Waiter] = deque()
        # Shared holds that give way to whoever wants the lock alone.
        self._yielding: set[anyio.CancelScope] = set()

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

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Shared, for what can wait: taken only if it is free at once, and cancelled for a call that wants it alone."""
        await self._acquire(_Waiter(exclusive=False), 0)
        scope = anyio.CancelScope()
        try:
            with scope:
                self._yielding.add(scope)
                yield
        finally:
            self._yielding.discard(scope)
            self._readers -= 1
            self._grant()
        if scope.cancelled_caught:
            raise _busy(0)

    @property
    def held(self) -> bool:
        return self._writer or self._readers > 0

    async def _acquire(self, waiter: _Waiter, timeout_ms: int) -> None:
        self._queue.append(waiter)
        self._grant()
        if waiter.granted:
            return
        if waiter.exclusive:
            for scope in self._yielding:
                scope.cancel()
        try:
            with anyio.move_on_after(timeout_ms / 1000):
                await waiter.turn.wait()
        except BaseException:
            self._give_up(waiter)
            raise
        if not waiter.granted:
            self._give_up(waiter)
            raise _busy(timeout_ms)

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
