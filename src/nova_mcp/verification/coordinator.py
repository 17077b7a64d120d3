"""One guarded action at a time on a target: a reservation, agents before background work, nobody thrown out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import anyio

from nova_mcp.core.clock import Clock
from nova_mcp.verification import refusals
from nova_mcp.verification.model import GuardedCommit

Priority = Literal["agent", "background"]

# Background work is short; an agent waits for it rather than being sent away.
BACKGROUND_PATIENCE_MS: Final = 1000
# A holder that has not let go this long after its own window is dead.
DEAD_MAN_MS: Final = 15_000


@dataclass(slots=True)
class _Held:
    priority: Priority
    expires_at_ms: float
    released: anyio.Event


class Coordinator:
    """Who holds which target; in memory, because a target belongs to one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._agents_waiting: dict[str, int] = {}

    @asynccontextmanager
    async def reserved(
        self, target_id: str, holder: str, window_ms: int, priority: Priority = "agent"
    ) -> AsyncIterator[None]:
        """Hold a target for one guarded action, or say at once that somebody else does."""
        if priority == "agent":
            await self._outwait_background(target_id)
        if self._holder(target_id) is not None or (priority == "background" and self._agents_waiting.get(target_id)):
            raise refusals.busy(f"Another guarded action on {target_id} is still being verified.", self._unsent(holder))
        mine = _Held(priority, self._clock.monotonic_ms() + window_ms + DEAD_MAN_MS, anyio.Event())
        self._held[target_id] = mine
        try:
            yield
        finally:
            if self._held.get(target_id) is mine:
                del self._held[target_id]
            mine.released.set()

    def _unsent(self, holder: str) -> GuardedCommit:
        now = self._clock.now_ms()
        return GuardedCommit(
            holder, "blocked_coordinator", "skipped", "safe_to_retry", started_at=now, completed_at=now
        )

    def _holder(self, target_id: str) -> _Held | None:
        held = self._held.get(target_id)
        if held is None or held.expires_at_ms > self._clock.monotonic_ms():
            return held
        del self._held[target_id]
        return None

    async def _outwait_background(self, target_id: str) -> None:
        held = self._holder(target_id)
        if held is None or held.priority != "background":
            return
        self._agents_waiting[target_id] = self._agents_waiting.get(target_id, 0) + 1
        try:
            with anyio.move_on_after(BACKGROUND_PATIENCE_MS / 1000):
                await held.released.wait()
        finally:
            self._agents_waiting[target_id] -= 1
            if not self._agents_waiting[target_id]:
                del self._agents_waiting[target_id]
