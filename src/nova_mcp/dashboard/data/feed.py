"""The newest calls as pages follow them: the ledger is asked once for everybody who looks, and only for what is new."""

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.store import StoredCall

KEPT: Final = 100
# After so long without anybody looking it begins anew, instead of catching up with everything in between.
STALE_MS: Final = 300_000

Positions = Mapping[ServerId, int]


@dataclass(frozen=True, slots=True)
class News:
    """Calls behind some positions, oldest first, and where the next look begins."""

    calls: tuple[StoredCall, ...]
    positions: Positions


@dataclass(frozen=True, slots=True)
class Numbered:
    """A call with the number under which this feed noticed it."""

    number: int
    call: StoredCall


class Feed:
    """A window on the ledger's end. `name` tells a page of an earlier server that its numbers mean nothing here."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(6)
        self._calls: deque[Numbered] = deque(maxlen=KEPT)
        self._positions: Positions | None = None
        self._last = 0
        self._looked_ms = 0
        self._lock = anyio.Lock()

    async def look(self, now_ms: int, read: Callable[[Positions | None], Awaitable[News]]) -> None:
        """Take in what is new."""
        async with self._lock:
            if abs(now_ms - self._looked_ms) > STALE_MS:
                self._begin()
            self._looked_ms = now_ms
            news = await read(self._positions)
            for call in news.calls:
                self._last += 1
                self._calls.append(Numbered(self._last, call))
            self._positions = news.positions

    def _begin(self) -> None:
        self.name = secrets.token_hex(6)
        self._calls.clear()
        self._positions = None
        self._last = 0

    @property
    def last(self) -> int:
        return self._last

    def newest(self, after: int) -> list[Numbered]:
        """What came after a number, newest first."""
        return [numbered for numbered in reversed(self._calls) if numbered.number > after]
