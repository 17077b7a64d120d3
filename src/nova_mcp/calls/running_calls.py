"""The calls under way: who wants them ended, and when the last one is gone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from nova_mcp.core.stop_file import stop_requested
from nova_mcp.errors import Blocked, NovaError, Unavailable

STOP_POLL_S = 0.25


def emergency_stop() -> NovaError:
    return Blocked(
        "safety.emergency_stop",
        "The operator stopped Nova while this call was running.",
        "Only a person can lift the stop.",
        stage="dispatch",
    )


def shutting_down() -> NovaError:
    return Unavailable(
        "server.shutting_down",
        hint="Start it again and look at the page before repeating anything.",
        stage="dispatch",
    )


class Running:
    """Cancels calls for a reason that their answers then give."""

    def __init__(self) -> None:
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._reasons: dict[str, NovaError] = {}
        self._idle = anyio.Event()

    @contextmanager
    def entered(self, call_id: str) -> Iterator[anyio.CancelScope]:
        if not self._scopes:
            self._idle = anyio.Event()
        scope = self._scopes[call_id] = anyio.CancelScope()
        try:
            yield scope
        finally:
            del self._scopes[call_id]
            self._reasons.pop(call_id, None)
            if not self._scopes:
                self._idle.set()

    def reason(self, call_id: str) -> NovaError | None:
        """Why the call was cancelled from here; None when its client did it."""
        return self._reasons.get(call_id)

    def cancel(self, why: NovaError) -> None:
        for call_id, scope in self._scopes.items():
            self._reasons.setdefault(call_id, why)
            scope.cancel()

    async def drained(self) -> None:
        """Return when every call has ended and left its record."""
        if self._scopes:
            await self._idle.wait()

    async def watch_stop_file(self, stop_file: Path) -> None:
        """Until cancelled: end what runs as soon as the operator asks for a stop."""
        while True:
            if self._scopes and stop_requested(stop_file):
                self.cancel(emergency_stop())
            await anyio.sleep(STOP_POLL_S)
