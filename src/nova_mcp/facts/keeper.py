"""Keeps live facts: takes claims into the transaction of their call, answers what is known, and says when to look."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sqlalchemy import Connection

from nova_mcp.clock import Clock
from nova_mcp.facts import store
from nova_mcp.facts.capabilities import compile_capabilities
from nova_mcp.facts.model import Certainty, ClaimResult, Fact, Observation, Page, Scope, Service
from nova_mcp.facts.policies import Lacking, Policy, demanded, lacking
from nova_mcp.facts.rules import Hint, canonical, fit, hint, usable_facts
from nova_mcp.facts.services import service_of
from nova_mcp.observation.model import CallRecord, Effect, Json, Link
from nova_mcp.observation.recorder import Also
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.urls import normalize_url, redact_query, route_key, url_hash

log = logging.getLogger(__name__)

TOLD_KEPT: Final = 2_000
HISTORY_KEPT: Final = 20
MAX_ROUTE_CHARS: Final = 500


class Located(Protocol):
    """A target and the page it shows."""

    @property
    def target_id(self) -> str: ...

    @property
    def sandbox_id(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def url(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A page of a service in a target, at one moment."""

    service: Service
    scope: Scope
    page: Page


@dataclass(frozen=True, slots=True)
class Claim:
    """One reported signal."""

    key: str
    value: Json
    certainty: Certainty = "likely"
    evidence: str | None = None


@dataclass(slots=True)
class Noting:
    """Claims on their way into the store; `results` are there once the call's record is committed.

    None as a result says that the target closed before anything could be written.
    """

    scope: Scope
    seen: tuple[Observation, ...]
    results: tuple[ClaimResult, ...] | None = field(default=None)

    def also(self, conn: Connection, record: CallRecord, link: Link) -> None:
        """In the transaction of the call's own record; a call that came to nothing says nothing."""
        if record.outcome.kind in ("ok", "partial"):
            self.results = store.note(conn, self.scope, self.seen)


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of a scope."""

    facts: dict[str, Fact]
    history: Mapping[str, Sequence[Fact]]
    capabilities: dict[str, bool]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Advice:
    """A hint with the facts it is about; without them where the same hint was given before."""

    service_key: str
    hint: Hint
    facts: Mapping[str, Fact]
    unchanged: bool


class FactKeeper:
    """One per server."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        policies: Sequence[Policy] = (),
        hides: Callable[[str], str] = str,
        keep_raw_urls: bool = False,
    ) -> None:
        self._db = db
        self._clock = clock
        self._policies = tuple(policies)
        self._hides = hides
        self._keep_raw_urls = keep_raw_urls
        self._told: OrderedDict[tuple[str, str, str], tuple[object, ...]] = OrderedDict()

    # -- where

    def place(self, target: Located, url: str | None = None) -> Place | None:
        """Where a target stands, or would stand at another address; None outside the web."""
        return self._place(target, target.url if url is None else url)

    def _place(self, target: Located, raw: str) -> Place | None:
        service, url = service_of(raw), normalize_url(raw)
        if service is None or url is None:
            return None
        kept = self._hides(url)
        if not self._keep_raw_urls:
            kept = redact_query(kept)
        page = Page(kept, url_hash(url), self._hides(route_key(url))[:MAX_ROUTE_CHARS])
        return Place(service, Scope(target.target_id, target.sandbox_id, target.principal, service.key), page)

    # -- taking

    def noting(self, place: Place, claims: Sequence[Claim], call_id: str, perception_id: str | None = None) -> Noting:
        """An agent's claims; hand `also` to the call's evidence."""
        now = self._clock.now_ms()
        seen = tuple(
            Observation(
                key=claim.key,
                value=canonical(claim.value),
                certainty=claim.certainty,
                source="agent",
                call_id=call_id,
                page=place.page,
                observed_at_ms=now,
                evidence=None if claim.evidence is None else self._hides(claim.evidence),
                perception_id=perception_id,
            )
            for claim in claims
        )
        return Noting(place.scope, seen)

    def seen(self, place: Place, sightings: Mapping[str, Json], call_id: str) -> Also | None:
        """What Nova read of the page itself in a call; None when that was nothing."""
        now = self._clock.now_ms()
        seen = tuple(
            Observation(key, canonical(value), "likely", "system", call_id, place.page, now)
            for key, value in sorted(sightings.items())
        )
        return Noting(place.scope, seen).also if seen else None

    # -- answering

    async def known(self, place: Place, keys: Collection[str] | None = None, *, history: bool = False) -> Known:
        """Current facts of a place, all or some, and what they make possible."""
        return await self._db.read(self._read_known, place, keys, history)

    def _read_known(self, conn: Connection, place: Place, keys: Collection[str] | None, history: bool) -> Known:
        now = self._clock.now_ms()
        every = store.current_facts(conn, place.scope.binding_id)
        facts = every if keys is None else {key: one for key, one in every.items() if key in keys}
        earlier = store.closed_versions(conn, place.scope.binding_id, facts, HISTORY_KEPT) if history and facts else {}
        able = compile_capabilities(usable_facts(every.values(), place.page.url_hash, now))
        return Known(facts, earlier, able, now)

    async def read(self, place: Place, keys: Collection[str]) -> dict[str, tuple[Fact, str]]:
        """Named facts with how far each may be relied on: `fit`, `stale` or `unsure`."""
        facts = await self._db.read(store.current_facts, place.scope.binding_id, frozenset(keys))
        now = self._clock.now_ms()
        return {key: (one, fit(one, place.page.url_hash, now)) for key, one in facts.items()}

    async def advice(self, place: Place, owner: tuple[str, str]) -> Advice | None:
        """Whether that caller should report what the page shows, and what is known so far."""
        binding, facts = await self._db.read(store.scope_of, place.scope.binding_id)
        now = self._clock.now_ms()
        reported_at = None if binding is None else binding.agent_url_hash
        needed = hint(place.service.kind, facts, reported_at, place.page.url_hash, now)
        asked = (*owner, place.scope.target_id)
        if needed is None:
            self._told.pop(asked, None)
            return None
        words = (place.service.key, place.page.url_hash, needed.keys, needed.first_visit, needed.url_changed)
        unchanged = self._told.get(asked) == words
        self._told[asked] = words
        self._told.move_to_end(asked)
        while len(self._told) > TOLD_KEPT:
            self._told.popitem(last=False)
        return Advice(place.service.key, needed, {} if unchanged else facts, unchanged)

    # -- policies

    async def lacking(self, effect: Effect, place: Place | None) -> Lacking | None:
        """What a call of that class lacks there by the operator's word; nothing when that can't be told."""
        if place is None or (policy := demanded(self._policies, effect, place.service.key)) is None:
            return None
        try:
            able = (await self.known(place)).capabilities
        except StoreUnavailable as failure:
            log.warning("policies.toml was not applied: %s", failure)
            return None
        return lacking(policy, place.service.key, able)
