"""Keeps the ledger within its retention while a server runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from anyio import sleep
from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.pruner import PruneRequest, prune
from nova_mcp.evidence.rules import Holds, RetentionPolicy
from nova_mcp.settings import RetentionSettings
from nova_mcp.storage.engine import Database

FIRST_AFTER_S = 60
EVERY_S = 6 * 3600
# Small steps with pauses between them: a call that wants to write waits for one step at most.
STEP = 200
PAUSE_S = 0.05


# What another subsystem forgets in one step, given the time; says how much went.
Chore = Callable[[Connection, int], int]
# What something alive wants kept.
Keeping = Callable[[Connection], Holds]


def retention_policy(settings: RetentionSettings) -> RetentionPolicy:
    return RetentionPolicy(ended_days=settings.ended_days, gap_days=settings.gap_days, other_days=settings.other_days)


class Janitor:
    """Several servers may sweep one store: erasing what is erased changes nothing."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        policy: RetentionPolicy,
        by: Eraser,
        chores: Sequence[Chore] = (),
        keeping: Keeping = lambda _: Holds(),
    ) -> None:
        self._db = db
        self._clock = clock
        self._policy = policy
        self._by = by
        self._chores = tuple(chores)
        self._keeping = keeping

    async def run(self) -> None:
        await sleep(FIRST_AFTER_S)
        while True:
            await self.sweep()
            for chore in self._chores:
                await self._until_done(chore)
            await sleep(EVERY_S)

    async def _until_done(self, chore: Chore) -> None:
        while True:
            if not await self._db.write(chore, self._clock.now_ms()):
                return
            await sleep(PAUSE_S)

    async def sweep(self) -> int:
        """Erase every body whose time is over; says how many went."""
        holds = await self._db.read(self._keeping)
        request, erased = PruneRequest(self._by, self._policy, holds, limit=STEP), 0
        while True:
            report = await self._db.write(prune, self._clock.now_ms(), request)
            erased += report.total
            if report.resume is None:
                return erased
            request = replace(request, resume=report.resume)
            await sleep(PAUSE_S)
