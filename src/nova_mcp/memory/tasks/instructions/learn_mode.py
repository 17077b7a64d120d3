"""Learn Mode: turns it on for claims, counts what their agent does on the site, and says how far that came."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.model import Caller, CallRecord, Link
from nova_mcp.memory.journal.model import Coverage
from nova_mcp.memory.tasks.instructions import learn_store
from nova_mcp.memory.tasks.instructions.learn_rules import (
    INTERACTIONS,
    SURFACES,
    ActivationRefusal,
    Floors,
    learn_domain,
    may_count,
)
from nova_mcp.memory.tasks.instructions.learn_store import Activation
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class Wished:
    """A claim that shall learn: `host` is where its tab stands, `task_id` is empty where the caller has no claim."""

    target_id: str
    task_id: str | None
    host: str | None


@dataclass(frozen=True, slots=True)
class Activated:
    """What became of one wish."""

    target_id: str
    task_id: str | None
    refused: ActivationRefusal | None = None


@dataclass(frozen=True, slots=True)
class LearnMode:
    """One per server; everything it counts is in the store."""

    db: Database
    clock: Clock
    floors: Floors
    multi_tenant: Collection[str]

    @classmethod
    def over(cls, db: Database, clock: Clock, settings: Settings) -> Self:
        floors = Floors(settings.tasks.learn_min_surfaces, settings.tasks.learn_min_interactions)
        return cls(db, clock, floors, frozenset(settings.notes.multi_tenant_domains))

    # -- in the transactions of others

    def count(self, conn: Connection, record: CallRecord, link: Link) -> None:
        if may_count(record):
            learn_store.count(conn, record, self.multi_tenant)

    def coverage(self, conn: Connection, task_id: str) -> Coverage | None:
        visit = learn_store.find(conn, task_id)
        if visit is None or visit.ended:
            return None
        return Coverage(
            {SURFACES: self.floors.surfaces, INTERACTIONS: self.floors.interactions},
            {SURFACES: visit.progress.surfaces, INTERACTIONS: visit.progress.interactions},
        )

    def ended(self, conn: Connection, task_id: str, at_ms: int, exhausted: str | None = None) -> None:
        learn_store.end(conn, task_id, self.floors, at_ms, exhausted)

    # -- for get_instructions

    async def activate(self, caller: Caller, wishes: Sequence[Wished], domain: str | None) -> list[Activated]:
        """Turn it on for each claim whose tab stands on the site; `domain` is the site, else each tab's own."""
        wanted = None if domain is None else learn_domain(domain, self.multi_tenant)
        return await self.db.write(self._activate, caller, tuple(wishes), wanted)

    def _activate(
        self, conn: Connection, caller: Caller, wishes: Sequence[Wished], domain: str | None
    ) -> list[Activated]:
        return [Activated(one.target_id, one.task_id, self._one(conn, caller, one, domain)) for one in wishes]

    def _one(self, conn: Connection, caller: Caller, wish: Wished, domain: str | None) -> ActivationRefusal | None:
        if wish.task_id is None:
            return "claim_required"
        here = learn_domain(wish.host, self.multi_tenant)
        if here is None or (domain is not None and here != domain):
            return "domain_mismatch"
        visit = learn_store.activate(
            conn,
            Activation(wish.task_id, *caller.owner, wish.target_id, here, self.clock.now_ms()),
        )
        if visit is None or visit.ended:
            return "claim_required"
        return None if visit.domain == here else "domain_mismatch"

    async def visits(self, caller: Caller) -> list[Activation]:
        """The visits an agent is in the middle of."""
        return await self.db.read(learn_store.open_of, *caller.owner)
