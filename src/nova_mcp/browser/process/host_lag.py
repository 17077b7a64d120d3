"""Notices when this process, not the page, is the slow one."""

from collections import deque
from collections.abc import Callable

import anyio

PROBE_MS = 100
BUSY_MS = 500
KEEP = 64


class HostLag:
    """A heartbeat of the event loop: late beats within a call's time mean its timeout proves nothing about the page."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._last_beat: float | None = None
        self._late: deque[tuple[float, float]] = deque(maxlen=KEEP)

    def now_ms(self) -> float:
        return self._monotonic_ms()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await anyio.sleep(PROBE_MS / 1000)

    def beat(self) -> None:
        now = self._monotonic_ms()
        if self._last_beat is not None and (late := now - self._last_beat - PROBE_MS) > BUSY_MS:
            self._late.append((now, late))
        self._last_beat = now

    def busy_within(self, past_ms: float) -> bool:
        """Whether the loop stood still for over half a second at some point of the given past."""
        now = self._monotonic_ms()
        # A timer that fires before the next beat sees the lag only here.
        if self._last_beat is not None and now - self._last_beat - PROBE_MS > BUSY_MS:
            return True
        return any(now - at <= past_ms for at, _ in self._late)
