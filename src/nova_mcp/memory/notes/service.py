"""Keeps Browser Memory and Operator Notes: takes them down, finds them again, and says what a page brings to mind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, or_, select

from nova_mcp.core.clock import Clock, Ids
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.hosts import host_rule, site
from nova_mcp.core.keywords import cut
from nova_mcp.errors import NotFound, PolicyDenied, Precondition
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.knowledge.codec import decoded
from nova_mcp.memory.knowledge.matching.categories import built_in_categories
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.tables import knowledge_scope
from nova_mcp.memory.notes import memory_store, operator_store
from nova_mcp.memory.notes.memory_store import Forgetting, Full, Glimpse, NewMemory, Saved, Wanted
from nova_mcp.memory.notes.model import (
    EVERYBODY,
    ExclusionReason,
    MatchedBy,
    MemoryRow,
    MemoryType,
    OperatorNote,
    Ranked,
    Source,
)
from nova_mcp.memory.notes.operator_store import Draft, Outcome, Stale, Stored
from nova_mcp.memory.notes.rules import Exclusions, content_fold, exclusion_reason, path_matches, rank_notes
from nova_mcp.memory.notes.sensitive_sites import sensitive_sites
from nova_mcp.settings import NoteSettings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.writer_lock import hold

TOLD_MS: Final = 30 * 60 * 1000
NOTHING_HEARD: Final[tuple[int, frozenset[tuple[int, int]]]] = (0, frozenset())
MEMORY_NOT_FOUND: Final = "memory.not_found"
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Recalled:
    """Memories in order of presence with how each came to fit; `excluded` says why the host has none."""

    rows: tuple[tuple[MemoryRow, MatchedBy], ...]
    excluded: ExclusionReason | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class RecallQuery:
    principal: str
    host: str | None
    words: tuple[str, ...]
    memory_type: MemoryType | None
    include_expired: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many memories went; `named` where particular ones were asked for."""

    deleted: int
    named: bool

    @property
    def reason_code(self) -> str | None:
        return MEMORY_NOT_FOUND if self.named and not self.deleted else None

    def on_record(self, record: CallRecord) -> CallRecord:
        return record if self.reason_code is None else record.with_reason(self.reason_code)


@dataclass(frozen=True, slots=True)
class NoteQuery:
    principal: str
    keywords: Sequence[str]
    min_score: float
    limit: int


@dataclass(frozen=True, slots=True)
class SurfacedItem:
    memory_id: int
    memory_type: MemoryType
    content: str
    source: Source


@dataclass(frozen=True, slots=True)
class SurfacedMemory:
    """What lives about a page: how much, and the most present of it. `mark` says which wording of which memories."""

    host: str
    count: int
    items: tuple[SurfacedItem, ...]
    mark: frozenset[tuple[int, int]]


def words_of(query: str) -> tuple[str, ...]:
    """The words of a search; each has to occur."""
    return tuple(dict.fromkeys(content_fold(query).split()))


class NoteKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock, ids: Ids, settings: NoteSettings) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._memory = settings.browser_memory
        self._tenants = frozenset(settings.multi_tenant_domains)
        # Put together when first asked: most servers remember nothing, and the lists take a while to read.
        self._rules: Exclusions | None = None

    # -- who and where

    def remembers_for(self, principal: str) -> bool:
        """Whether a principal wants things remembered; only the settings can say so."""
        return principal in self._memory.users or EVERYBODY in self._memory.users

    def site(self, host: str) -> str:
        return site(host, self._tenants)

    def excluded(self, conn: Connection, host: str) -> ExclusionReason | None:
        """Why nothing is remembered of a host; what its site is known as is asked last, because that costs a read."""
        if self._rules is None:
            listed = tuple(rule for entry in self._memory.exclude_domains if (rule := host_rule(entry)) is not None)
            self._rules = Exclusions(listed, self._memory.allow_domains, sensitive_sites(), self._tenants)
        found = exclusion_reason(host, self._rules)
        return found if found is not None else exclusion_reason(host, self._rules, self._categories(conn, host))

    def _categories(self, conn: Connection, host: str) -> frozenset[str]:
        """What stored knowledge calls a site; where it says nothing, what the table of well-known hosts says."""
        names = sorted({f"{prefix}{name}" for name in (host, self.site(host)) for prefix in ("", "www.")})
        scope = knowledge_scope.c.scope
        here = or_(scope.in_(names), *(scope.startswith(f"{name}:", autoescape=True) for name in names))
        said = conn.execute(select(knowledge_scope.c.service_categories).where(here)).scalars()
        told = {category for one in said for category in decoded(tuple[str, ...], one)}
        if told:
            return frozenset(told)
        return frozenset(category for name in names for category in built_in_categories(ScopeName(name)))

    # -- Browser Memory

    def save(self, conn: Connection, new: NewMemory, now_ms: int) -> Saved:
        if (reason := self.excluded(conn, new.domain)) is not None:
            raise domain_excluded(new.domain, reason)
        saved = memory_store.save(conn, new, now_ms)
        if isinstance(saved, Full):
            raise memory_full(saved)
        return saved

    def recall(self, conn: Connection, query: RecallQuery, now_ms: int) -> Recalled:
        hold(conn, "browser_memory", query.principal)
        reasons: dict[str, ExclusionReason | None] = {}

        def reason(host: str) -> ExclusionReason | None:
            if host not in reasons:
                reasons[host] = self.excluded(conn, host)
            return reasons[host]

        if query.host is not None and (why := reason(query.host)) is not None:
            return Recalled((), why, now_ms)
        domains = None if query.host is None else tuple(dict.fromkeys((query.host, self.site(query.host))))
        wanted = Wanted(query.principal, domains, query.words, query.memory_type, query.include_expired)
        found: list[MemoryRow] = []
        offset = 0
        while len(found) < query.limit:
            page = memory_store.search(conn, wanted, now_ms, _PAGE, offset)
            found += [row for row in page if reason(row.domain) is None]
            offset += _PAGE
            if len(page) < _PAGE:
                break
        rows = memory_store.recalled(conn, found[: query.limit], now_ms)
        return Recalled(tuple((row, _matched_by(row, query.host)) for row in rows), None, now_ms)

    def forget(self, conn: Connection, what: Forgetting) -> Forgotten:
        return Forgotten(memory_store.forget(conn, what), named=what != Forgetting(what.principal))

    async def surfaced_memory(
        self, principal: str, host: str, path: str, limit: int, chars: int
    ) -> SurfacedMemory | None:
        """What a page brings to mind, each text at most so long; None where nothing does. Nothing is written."""
        if not self.remembers_for(principal):
            return None
        return await self._db.read(self._surfaced, principal, host, path, limit, chars)

    def _surfaced(
        self, conn: Connection, principal: str, host: str, path: str, limit: int, chars: int
    ) -> SurfacedMemory | None:
        now = self._clock.now_ms()
        # One more than is shown tells a cut text from a whole one.
        held = memory_store.glimpses(conn, principal, {host, self.site(host)}, now, chars + 1)
        fitting = [one for one in held if path_matches(one.url_pattern, path)]
        if not fitting or self.excluded(conn, host) is not None:
            return None
        hidden = {name for name in {one.domain for one in fitting} - {host} if self.excluded(conn, name) is not None}
        fitting = [one for one in fitting if one.domain not in hidden]
        if not fitting:
            return None
        items = tuple(_item(one, chars) for one in fitting[:limit])
        return SurfacedMemory(host, len(fitting), items, frozenset((one.memory_id, one.content_rev) for one in fitting))

    def is_news(self, connection: AgentConnection, found: SurfacedMemory) -> bool:
        """Whether any of it is new to this connection, or half an hour old."""
        return not found.mark <= self._heard(connection, found.host)

    def told(self, connection: AgentConnection, found: SurfacedMemory) -> None:
        """The connection gets it with this answer."""
        heard = self._heard(connection, found.host)
        connection.deliver(("browser memory", found.host), (self._clock.now_ms(), heard | found.mark))

    def _heard(self, connection: AgentConnection, host: str) -> frozenset[tuple[int, int]]:
        at_ms, heard = connection.delivered(("browser memory", host), NOTHING_HEARD)
        return heard if self._clock.now_ms() - at_ms < TOLD_MS else frozenset()

    # -- Operator Notes

    def store(self, conn: Connection, draft: Draft, now_ms: int) -> Stored | Stale:
        return accepted(operator_store.store(conn, draft, now_ms, self._ids.token))

    def query(self, conn: Connection, query: NoteQuery, now_ms: int) -> list[Ranked]:
        """Working rules that fit, best first; each counts as found."""
        notes = operator_store.visible_to(conn, query.principal)
        found = rank_notes(notes, query.keywords, now_ms, query.min_score)[: query.limit]
        operator_store.matched(conn, [one.note for one in found], now_ms)
        return found

    async def for_keywords(
        self, principal: str, keywords: Sequence[str], limit: int = 5, min_score: float = 0.3
    ) -> list[Ranked]:
        """Working rules for a task, best first; reading them here changes nothing."""
        notes = await self._db.read(operator_store.visible_to, principal)
        return rank_notes(notes, keywords, self._clock.now_ms(), min_score)[:limit]

    async def listed(self, principal: str, offset: int, limit: int) -> tuple[list[OperatorNote], int]:
        return await self._db.read(operator_store.page, principal, offset, limit)

    def remove(self, conn: Connection, principal: str, note_id: str) -> bool:
        """Whether there was such a note."""
        ended = operator_store.remove(conn, principal, note_id, "agent")
        if ended == "user_owned":
            raise user_owned()
        return ended == "deleted"


def _matched_by(row: MemoryRow, host: str | None) -> MatchedBy:
    return "any" if host is None else "host" if row.domain == host else "parent"


def _item(one: Glimpse, chars: int) -> SurfacedItem:
    return SurfacedItem(one.memory_id, one.memory_type, cut(one.content, chars), one.source)


# -- refusals


def memory_disabled() -> PolicyDenied:
    return PolicyDenied("browser_memory.disabled")


def domain_excluded(domain: str, reason: ExclusionReason) -> PolicyDenied:
    return PolicyDenied(
        "browser_memory.domain_excluded",
        f"Nothing is remembered about {domain}.",
        details={"reason": reason, "saved": False, "domain": domain},
    )


def memory_full(full: Full) -> Precondition:
    where = "this host" if full.scope == "host" else "this user"
    return Precondition(
        "browser_memory.full",
        f"There are {full.cap} memories of {where}, all of them the user's own.",
        stage="precondition",
    )


def user_owned() -> PolicyDenied:
    return PolicyDenied(
        "notes.user_owned",
        "The user wrote this note; agents don't change it.",
        "Store a note of your own, or ask the user to run `nova notes edit` or `nova notes delete`.",
    )


def accepted(outcome: Outcome) -> Stored | Stale:
    """What the store took; raises why it did not."""
    match outcome:
        case Stored() | Stale():
            return outcome
        case operator_store.Refused("missing"):
            raise NotFound("operator_notes.not_found", stage="precondition")
        case operator_store.Refused("user_owned"):
            raise user_owned()
        case _:
            raise Precondition(
                "operator_notes.full",
                f"There are {operator_store.PER_PRINCIPAL} notes, and none that nobody used for 90 days.",
                stage="precondition",
            )
