"""The calls that run right now, so that a stopping server can end them and wait for their evidence."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from nova_mcp.errors import Unavailable

T = TypeVar("T")
RESTART_RETRY_MS = 5_000


class Inflight:
    """Runs calls in scopes of their own; a cancelled call still finishes its shielded part."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._closing = False
        self._idle = anyio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._scopes)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run to the end, or raise `Unavailable` if the server stops meanwhile."""
        if self._closing:
            raise _stopping("The server is stopping; nothing ran", dispatched=False)
        if not self._scopes:
            self._idle = anyio.Event()
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await work()
            finally:
                self._scopes.discard(scope)
                if not self._scopes:
                    self._idle.set()
        raise _stopping("The server stopped while the call was running", dispatched=True)

    async def drain(self, grace_s: float) -> int:
        """End every call and wait for them; returns how many did not end in time."""
        self._closing = True
        for scope in self._scopes:
            scope.cancel()
        with anyio.move_on_after(grace_s):
            await self._idle.wait()
        return len(self._scopes)


def _stopping(message: str, *, dispatched: bool) -> Unavailable:
    return Unavailable(
        "server.shutting_down",
        message,
        retry_after_ms=RESTART_RETRY_MS,
        action_dispatched=dispatched,
    )
