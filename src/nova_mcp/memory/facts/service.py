"""Keeps live facts: takes claims into the transaction of their call, answers what is known, and says when to look."""

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from nova_mcp.core.clock import Clock
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS
from nova_mcp.core.urls import normalize_url, page_origin, redact_query, route_key, url_hash
from nova_mcp.core.values import Json
from nova_mcp.evidence.model import CallRecord, Effect, Link
from nova_mcp.evidence.outage import Also
from nova_mcp.memory.facts import store
from nova_mcp.memory.facts.capabilities import compile_capabilities
from nova_mcp.memory.facts.model import Certainty, ClaimResult, Fact, Observation, Page, Scope, Service
from nova_mcp.memory.facts.policies import Lacking, Policy, demanded, lacking
from nova_mcp.memory.facts.rules import Hint, canonical, doubted, fit, hint, usable_facts
from nova_mcp.memory.facts.services import service_of
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

NO_WORDS: Final[tuple[object, ...]] = ()
HISTORY_KEPT: Final = 20
MAX_ROUTE_CHARS: Final = 500
MAX_ADDRESS_CHARS: Final = 32_768


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


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of a scope."""

    facts: dict[str, Fact]
    history: Mapping[str, Sequence[Fact]]
    capabilities: dict[str, bool]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a caller should report what the page shows, with all that is known there.

    `unchanged` where the same hint was given before, `visiting` where any was since the tab came to this service;
    `connection`, `asked` and `words` are which connection was told what about which target.
    """

    place: Place
    hint: Hint | None
    facts: Mapping[str, Fact]
    unchanged: bool
    visiting: bool
    asked: tuple[str, str]
    connection: AgentConnection
    words: tuple[object, ...]
    now_ms: int

    @property
    def service_key(self) -> str:
        return self.place.service.key

    def doubted(self, sightings: Mapping[str, Json]) -> tuple[str, ...]:
        """Which facts of agents look otherwise to Nova, given what it has just read of the page."""
        texts = {key: canonical(value) for key, value in sightings.items()}
        return doubted(self.facts, texts, self.place.page.url_hash, self.now_ms)


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
        multi_tenant: Collection[str] = MULTI_TENANT_DOMAINS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._policies = tuple(policies)
        self._hides = hides
        self._keep_raw_urls = keep_raw_urls
        self._multi_tenant = multi_tenant

    # -- where

    def place(self, target: Located, url: str | None = None) -> Place | None:
        """Where a target stands, or would stand at another address; None outside the web."""
        raw = target.url if url is None else url
        service = service_of(raw[:MAX_ADDRESS_CHARS], self._multi_tenant)
        if service is None:
            return None
        return Place(
            service, Scope(target.target_id, target.sandbox_id, target.principal, service.key), self._page(raw)
        )

    def _page(self, raw: str) -> Page:
        """An address that is too long to keep is kept without its query, and told apart by the whole of it."""
        url = normalize_url(raw)
        short = url or normalize_url(re.split(r"[?#]", raw[:MAX_ADDRESS_CHARS], maxsplit=1)[0])
        place = short or f"{page_origin(raw[:MAX_ADDRESS_CHARS])}/"
        kept = self._hides(place)
        if not self._keep_raw_urls:
            kept = redact_query(kept)
        return Page(kept, url_hash(url or raw), self._hides(route_key(place))[:MAX_ROUTE_CHARS])

    # -- taking

    def observations(
        self, place: Place, claims: Sequence[Claim], call_id: str, perception_id: str | None = None
    ) -> tuple[Observation, ...]:
        """An agent's claims, as they are to be noted."""
        now = self._clock.now_ms()
        return tuple(
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

    def note(self, conn: Connection, place: Place, seen: Sequence[Observation]) -> tuple[ClaimResult, ...] | None:
        """What became of each; None when the target closed before anything could be written."""
        return store.note(conn, place.scope, seen)

    def seen(self, place: Place, sightings: Mapping[str, Json], call_id: str) -> Also | None:
        """What Nova read of the page itself in a call; None when that was nothing."""
        now = self._clock.now_ms()
        seen = tuple(
            Observation(key, canonical(value), "likely", "system", call_id, place.page, now)
            for key, value in sorted(sightings.items())
        )
        if not seen:
            return None

        def also(conn: Connection, record: CallRecord, link: Link) -> None:
            # A call that came to nothing says nothing.
            if record.outcome.kind in ("ok", "partial"):
                store.note(conn, place.scope, seen)

        return also

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

    async def advice(self, place: Place, connection: AgentConnection) -> Advice:
        """Whether that connection should report what the page shows, and what is known so far."""
        binding, facts = await self._db.read(store.scope_of, place.scope.binding_id)
        now = self._clock.now_ms()
        reported_at = None if binding is None else binding.agent_url_hash
        needed = hint(place.service.kind, facts, reported_at, place.page.url_hash, now)
        why = () if needed is None else (needed.keys, needed.first_visit, needed.url_changed)
        asked, words = ("facts", place.scope.target_id), (place.service.key, place.page.url_hash, *why)
        last = connection.delivered(asked, NO_WORDS)
        unchanged = needed is not None and last == words
        visiting = last[:1] == (place.service.key,)
        return Advice(place, needed, facts, unchanged, visiting, asked, connection, words, now)

    def told(self, advice: Advice) -> None:
        """The connection gets this answer: the same hint need not bring the facts again."""
        if advice.hint is None:
            advice.connection.forget(advice.asked)
        else:
            advice.connection.deliver(advice.asked, advice.words)

    # -- policies

    async def lacking(self, effect: Effect, place: Place | None) -> Lacking | None:
        """What a call of that class lacks there by the operator's word; nothing when that can't be told."""
        if place is None or (policy := demanded(self._policies, effect, place.service.key)) is None:
            return None
        try:
            able = (await self.known(place)).capabilities
        except (StoreUnavailable, SQLAlchemyError, ValueError) as failure:
            log.warning("policies.toml was not applied: %s", failure)
            return None
        return lacking(policy, place.service.key, able)
