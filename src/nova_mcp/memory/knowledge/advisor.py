"""Decides what is news about a site to each connection, and writes down how far sites have moved."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.page.looks import SignalsSeen, WantedSignals
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.evidence.outage import Also
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.advice import (
    Advice,
    FrameworkHint,
    HealthWarning,
    Noted,
    Present,
    Told,
    UsedAction,
    advise,
    framework_hints,
    gravest,
    news,
    noted,
    present,
    warning_of,
)
from nova_mcp.memory.knowledge.drift import HOUR_MS, after_sighting
from nova_mcp.memory.knowledge.drift import moved as moved_away
from nova_mcp.memory.knowledge.matching.entry_ranking import Question, Request, context_fit
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal, page_signals
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, wanted_of
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import SHADOW, DomainHint, Phenomenon, ScopeName, StableId
from nova_mcp.memory.knowledge.platforms.templates import built_in
from nova_mcp.memory.knowledge.service import KnownScope
from nova_mcp.memory.knowledge.store import Shelved

# One page seen again and again within this time has moved once.
SIGHTING_MS: Final = 30_000
REMEMBERED: Final = 4_000
_ANY_FRAMEWORK: Final = ("salesforce",)

NOTHING_TOLD: Final = Told()
Proofs: TypeAlias = Mapping[StableId, tuple[int, int]]
_Whose: TypeAlias = tuple[tuple[str, str], ScopeName]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _put(held: "OrderedDict[K, V]", key: K, value: V) -> None:
    held[key] = value
    held.move_to_end(key)
    while len(held) > REMEMBERED:
        held.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Here:
    """Whose look at which page."""

    connection: AgentConnection
    scope: ScopeName
    target_id: str
    page_epoch: int
    url: str


@dataclass(frozen=True, slots=True)
class Looking:
    """What there is to say about a site before its page has been asked what of it holds."""

    here: Here
    known: KnownScope
    entries: tuple[Shelved, ...]
    hints: tuple[DomainHint, ...]
    used: UsedAction | None
    proofs: Proofs
    now_ms: int

    @property
    def phenomena(self) -> tuple[Phenomenon, ...]:
        return tuple(one.kept for one in self.entries if isinstance(one.kept, Phenomenon))

    @property
    def asks_page(self) -> bool:
        return bool(self.entries) or any(one.may_guide for one in self.hints)


@dataclass(frozen=True, slots=True)
class Said:
    """What is news to a connection, and what it has been told with it."""

    noted: tuple[Noted, ...] = ()
    advice: tuple[Advice, ...] = ()
    warnings: tuple[HealthWarning, ...] = ()
    frameworks: tuple[FrameworkHint, ...] = ()
    told: Told = field(default_factory=Told)

    @property
    def anything(self) -> bool:
        return bool(self.noted or self.advice or self.warnings or self.frameworks)


def _told_of(one: Shelved) -> bool:
    return one.slot == "current" and one.kept.level >= SHADOW and not one.kept.deprecated


def _topic(scope: ScopeName) -> tuple[str, ScopeName]:
    return "knowledge", scope


def _told_already(here: Here) -> Told:
    return here.connection.delivered(_topic(here.scope), NOTHING_TOLD)


class Advisor:
    """One per server; what it remembers are hints, and the store decides."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: OrderedDict[_Whose, UsedAction] = OrderedDict()
        self._visits: OrderedDict[str, tuple[int, ScopeName, int]] = OrderedDict()
        self._sighted: OrderedDict[int, int] = OrderedDict()
        self._longest: OrderedDict[
            tuple[int, ScopeName], tuple[KnownScope, Told, tuple[UsedAction | None, tuple[Shelved, ...]], Said]
        ]
        self._longest = OrderedDict()
        self._doubtful: OrderedDict[ScopeName, tuple[KnownScope, int, tuple[tuple[Phenomenon, HealthWarning], ...]]]
        self._doubtful = OrderedDict()
        self._proofs: OrderedDict[ScopeName, tuple[KnownScope, Proofs]] = OrderedDict()
        self._wanted: OrderedDict[ScopeName, tuple[KnownScope, WantedSignals]] = OrderedDict()

    def used(self, owner: tuple[str, str], scope: ScopeName, selector: str, tool: str) -> None:
        """A caller's verified action; its next look may be told that it is worth keeping."""
        _put(self._used, (owner, scope), UsedAction(normalize_selector(selector), tool))

    def looking(self, here: Here, known: KnownScope) -> Looking:
        """What may be told on this page: nothing that came to be only while it was open."""
        now = self._clock.now_ms()
        since = self._since(here, now)
        kept = tuple(one for one in known.shelved if _told_of(one) and one.kept.created_at_ms < since)
        hints = tuple(one.kept for one in kept if isinstance(one.kept, DomainHint))
        entries = tuple(one for one in kept if isinstance(one.kept, Phenomenon))
        return Looking(here, known, entries, hints, self._action(here, known), {}, now)

    def _since(self, here: Here, now_ms: int) -> int:
        epoch, scope, since = self._visits.get(here.target_id, (-1, "", 0))
        if (epoch, scope) != (here.page_epoch, here.scope):
            since = now_ms
            _put(self._visits, here.target_id, (here.page_epoch, here.scope, since))
        return since

    def _action(self, here: Here, known: KnownScope) -> UsedAction | None:
        used = self._used.get((here.connection.owner, here.scope))
        if used is None:
            return None
        holders = (
            one.stable_id
            for one in known.shelved
            if not one.kept.deprecated and used.selector in store.selectors_in(one.kept)
        )
        return replace(used, covered_by=next(holders, None))

    def wanted(self, looking: Looking) -> WantedSignals:
        """What the page has to be asked about all of it."""
        scope, known = looking.here.scope, looking.known
        held = self._wanted.get(scope)
        if held is None or held[0] is not known:
            entries = [one.kept for one in known.shelved if _told_of(one) and isinstance(one.kept, Phenomenon)]
            named = {signal.match for one in entries for signal in one.content.fingerprint.signals}
            platforms = [one for one in built_in() if one.stable_id in named]
            held = known, wanted_of(entries, platforms)
            _put(self._wanted, scope, held)
        return held[1]

    async def with_proofs(self, looking: Looking, read: Callable[[], Awaitable[Proofs]]) -> Looking:
        """How far the shadows have come; read anew only when something has happened to them."""
        if not any(one.kept.level == SHADOW for one in looking.entries):
            return looking
        scope, known = looking.here.scope, looking.known
        held = self._proofs.get(scope)
        if held is None or held[0] is not known:
            held = known, await read()
            _put(self._proofs, scope, held)
        return replace(looking, proofs=held[1])

    def say(self, looking: Looking, seen: SignalsSeen) -> tuple[Said, Present]:
        """What of all that holds now and is news to this caller."""
        request = Request(locale=seen.locale, route=route_of(looking.here.url))
        question = Question(page_signals(observed_signals(seen)), request, looking.known.trust, looking.now_ms)
        found = present(looking.phenomena, question)
        return self._said(looking, found, request, seen.frameworks), found

    def at_most(self, looking: Looking) -> Said:
        """What would be told if every entry held: nothing that is said later is longer."""
        here, used = looking.here, looking.used
        told = _told_already(here)
        held = self._longest.get((here.connection.serial, here.scope))
        if held is not None and held[0] is looking.known and held[1] is told and held[2] == (used, looking.entries):
            return held[3]
        signals = [one for entry in looking.phenomena for one in entry.content.fingerprint.signals]
        observed = page_signals(ObservedSignal(one.match, one.kind) for one in signals)
        found = present(looking.phenomena, Question(observed, Request(), looking.known.trust, looking.now_ms))
        reads = any(key.startswith("framework:") for key, _ in told.said)
        said = self._said(looking, found, Request(), () if reads else _ANY_FRAMEWORK)
        _put(self._longest, (here.connection.serial, here.scope), (looking.known, told, (used, looking.entries), said))
        return said

    def _said(self, looking: Looking, found: Present, request: Request, frameworks: Iterable[str]) -> Said:
        here, now = looking.here, looking.now_ms
        told = _told_already(here)
        names, told = news(noted(found.entries, looking.proofs, now), told)
        advice, told = news(advise(here.scope, found.matches, looking.used), told)
        doubts, told = news(gravest(self._doubts(looking, request)), told)
        reading, told = news(framework_hints(frameworks, looking.hints), told)
        return Said(names, advice, doubts, reading, told)

    def _doubts(self, looking: Looking, request: Request) -> Iterator[HealthWarning]:
        """Doubts about what would hold in these surroundings; they change with the entries, and slowly with time."""
        scope, known, hour = looking.here.scope, looking.known, looking.now_ms // HOUR_MS
        held = self._doubtful.get(scope)
        if held is None or held[0] is not known or held[1] != hour:
            entries = (one.kept for one in known.shelved if _told_of(one) and isinstance(one.kept, Phenomenon))
            pairs = ((one, warning_of(scope, one, looking.now_ms)) for one in entries if one.may_guide)
            held = known, hour, tuple((one, doubt) for one, doubt in pairs if doubt is not None)
            _put(self._doubtful, scope, held)
        names = {one.stable_id for one in looking.entries} if held[2] else ()
        for one, doubt in held[2]:
            if one.stable_id in names and context_fit(one.content.context, request).fits:
                yield doubt

    def told(self, here: Here, told: Told) -> None:
        """The connection gets this answer."""
        here.connection.deliver(_topic(here.scope), told)

    # -- evidence

    def sighted(self, looking: Looking, found: Present, seen: SignalsSeen) -> Also | None:
        """How far the entries that were seen have moved from what was learned; None when there is nothing to write."""
        names, observed = {one.stable_id for one in found.entries}, page_signals(observed_signals(seen))
        moved: dict[int, float] = {}
        for one in looking.entries:
            entry = one.kept
            if not isinstance(entry, Phenomenon) or entry.stable_id not in names or not entry.baseline:
                continue
            if looking.now_ms - self._sighted.get(one.entry_id, -SIGHTING_MS) < SIGHTING_MS:
                continue
            _put(self._sighted, one.entry_id, looking.now_ms)
            far = moved_away(entry, observed, seen.locale)
            if after_sighting(entry.drift_debt, far) != entry.drift_debt:
                moved[one.entry_id] = far
        if not moved:
            return None

        def write(conn: Connection, record: CallRecord, link: Link) -> None:
            if record.outcome.kind == "ok" and not record.signals.scripted:
                _write_debts(conn, looking.here.scope, moved, looking.now_ms)

        return write


def _write_debts(conn: Connection, scope: ScopeName, moved: Mapping[int, float], now_ms: int) -> None:
    store.touch_scope(conn, scope, now_ms, visible=False)
    for one in store.by_ids(conn, moved, lock=True):
        entry = one.kept
        if isinstance(entry, Phenomenon):
            debt = after_sighting(entry.drift_debt, moved[one.entry_id])
            store.save(conn, replace(one, kept=replace(entry, drift_debt=debt)), visible=False)
