"""Keeps what is known of websites: reads it for tools, and takes writes into the transaction of their call."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.evidence.outage import Also
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.health import trust_of
from nova_mcp.memory.knowledge.matching.entry_ranking import Question, Ranking, Request, rank
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.matching.site_discovery import Service, discovered
from nova_mcp.memory.knowledge.model import (
    DomainHint,
    Phenomenon,
    PhenomenonType,
    Platform,
    PlatformId,
    Scope,
    ScopeName,
    Trust,
)
from nova_mcp.memory.knowledge.platforms import store as platform_store
from nova_mcp.memory.knowledge.platforms.store import Version
from nova_mcp.memory.knowledge.platforms.templates import built_in
from nova_mcp.memory.knowledge.site_list import Listing, Wanted, listed
from nova_mcp.memory.knowledge.step_writer import Scribe
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.storage.engine import Database

KEPT_SCOPES: Final = 256
KEPT_MEETINGS: Final = 4096
# Trust depends on the time as well, but not on minutes.
TRUST_MS: Final = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class KnownScope:
    """Everything stored of a scope, as of one state of it."""

    scope: ScopeName
    state_rev: int = 0
    shelved: tuple[Shelved, ...] = ()
    trust: Trust = "unknown"
    about: Scope | None = None
    read_at_ms: int = 0

    @property
    def phenomena(self) -> tuple[Phenomenon, ...]:
        """The revisions that count."""
        return tuple(one.kept for one in self.shelved if one.slot == "current" and isinstance(one.kept, Phenomenon))

    @property
    def hints(self) -> tuple[DomainHint, ...]:
        return tuple(one.kept for one in self.shelved if one.slot == "current" and isinstance(one.kept, DomainHint))

    @property
    def guiding(self) -> tuple[Phenomenon, ...]:
        return tuple(one for one in self.phenomena if one.may_guide)

    def find(self, stable_id: str) -> tuple[Shelved, ...]:
        """The revisions behind a stable id, the one that counts first."""
        return tuple(one for one in self.shelved if one.stable_id == stable_id)


class KnowledgeKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock, scribe: Scribe) -> None:
        self._db = db
        self._clock = clock
        self._scribe = scribe
        self._scopes: OrderedDict[ScopeName, KnownScope] = OrderedDict()
        self._platforms: tuple[Version, tuple[Platform, ...]] = ((0, 0, 0), built_in())
        self._met: OrderedDict[tuple[ScopeName, str], None] = OrderedDict()
        self.writer = Writer(scribe)

    # -- reading

    async def known(self, scope: ScopeName) -> KnownScope:
        """What is stored of a scope; read anew only when it has changed."""
        held = self._scopes.get(scope)
        known = await self._db.read(self._read, scope, held)
        self._scopes[scope] = known
        self._scopes.move_to_end(scope)
        while len(self._scopes) > KEPT_SCOPES:
            self._scopes.popitem(last=False)
        return known

    def _read(self, conn: Connection, scope: ScopeName, held: KnownScope | None) -> KnownScope:
        rev, now = store.state_rev(conn, scope), self._clock.now_ms()
        if held is not None and held.state_rev == rev and abs(now - held.read_at_ms) < TRUST_MS:
            return held
        if not rev:
            return KnownScope(scope, read_at_ms=now)
        shelved = tuple(store.entries(conn, scope))
        current = (one.kept for one in shelved if one.slot == "current" and isinstance(one.kept, Phenomenon))
        return KnownScope(scope, rev, shelved, trust_of(current, now), store.scope_row(conn, scope), now)

    def match(
        self,
        known: KnownScope,
        observed: Sequence[ObservedSignal],
        request: Request,
        kind: PhenomenonType | None = None,
    ) -> Ranking:
        """Which active entries fit what is seen, best first."""
        return rank(known.phenomena, Question(observed, request, known.trust, self._clock.now_ms(), kind))

    async def listed(self, wanted: Wanted) -> Listing:
        return await self._db.read(listed, wanted, self._clock.now_ms())

    async def for_keywords(self, keywords: Sequence[str]) -> tuple[Service, ...]:
        """Known sites that offer what a task is about."""
        return await self._db.read(discovered, keywords)

    # -- platforms

    async def platforms(self) -> tuple[Platform, ...]:
        """Those that are built in, then those that agents added."""
        self._platforms = await self._db.read(self._read_platforms, self._platforms)
        return self._platforms[1]

    def _read_platforms(
        self, conn: Connection, held: tuple[Version, tuple[Platform, ...]]
    ) -> tuple[Version, tuple[Platform, ...]]:
        version = platform_store.version(conn)
        return held if version == held[0] else (version, (*built_in(), *platform_store.added(conn)))

    async def last_seen(self) -> dict[PlatformId, int]:
        return await self._db.read(platform_store.last_seen)

    def met(self, scope: ScopeName, vendors: Collection[str]) -> Also | None:
        """Vendors were seen on a page: what goes into the call's transaction, nothing when it was said before.

        Goes by the platforms as they were last read; those that are built in are always among them.
        """
        known = [one for one in self._platforms[1] if one.stable_id in vendors]
        fresh = tuple(one for one in known if (scope, one.stable_id) not in self._met)
        if not fresh:
            return None

        def also(conn: Connection, record: CallRecord, link: Link) -> None:
            if record.outcome.kind in ("ok", "partial") and not record.signals.scripted:
                platform_store.met(conn, self._scribe, scope, fresh, self._clock.now_ms())
                self._remember(scope, fresh)

        return also

    def _remember(self, scope: ScopeName, platforms: Sequence[Platform]) -> None:
        for one in platforms:
            self._met[(scope, one.stable_id)] = None
        while len(self._met) > KEPT_MEETINGS:
            self._met.popitem(last=False)
