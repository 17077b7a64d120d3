"""Looks whether stored entries still fit a page, without touching it: a verdict each, and one repair or none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from nova_mcp.core.clock import Clock
from nova_mcp.core.page.looks import MAX_SELECTORS, SelectorSeen, SignalsSeen
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import Checked
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.apply_rules import still_looks_like
from nova_mcp.memory.knowledge.drift import (
    Check,
    Telemetry,
    Verdict,
    check_order,
    has_selector,
    judged,
    moved,
    reachable_now,
    reached_later,
    telemetry_of,
)
from nova_mcp.memory.knowledge.matching.fingerprints import Match, match
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, page_elements, print_of, wanted_of
from nova_mcp.memory.knowledge.matching.routes import Route, any_covers, route_of
from nova_mcp.memory.knowledge.model import Action, ElementPrint, Phenomenon, Platform, ScopeName
from nova_mcp.memory.knowledge.page import KnowledgePage
from nova_mcp.memory.knowledge.repair.repair import Abstain, PageElement, Repair, repair
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.page_check import harmless
from nova_mcp.memory.knowledge.writes.stability import action_selectors
from nova_mcp.memory.promotion.revalidation import check_store
from nova_mcp.memory.promotion.sightings import EntrySighting, Sightings
from nova_mcp.storage.engine import Database

DEFAULT_LIMIT: Final = 3
MAX_LIMIT: Final = 5
LABEL_CHARS: Final = 60
Hides = Callable[[str], str]
UnrecordedBecause = Literal["nothing_proven", "throttled", "page_scripted"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What could stand in for a selector that is lost, or why nothing is proposed. `label` is text of the page."""

    lost: str
    selector: str | None = None
    confidence: float | None = None
    label: str | None = None
    abstained: str | None = None


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """What a look at the page said about one entry."""

    shelved: Shelved
    verdict: Verdict
    match: Match
    resolves: bool
    error: str | None = None
    lost: Action | None = None
    # What the lost selector finds now: an element that no longer looks as learned.
    instead: ElementPrint | None = None
    # How far the page is from what was learned; None where the situation was not seen.
    moved: float | None = None
    # Selectors that nobody had seen before, with what they find.
    seen_first: Mapping[str, ElementPrint | None] = field(default_factory=dict)
    suggestion: Suggestion | None = None
    # Later steps whose controls this page does not show, so that nothing is known of them.
    absent: tuple[Action, ...] = ()
    # What the steps find that are there.
    present: tuple[ElementPrint, ...] = ()

    @property
    def entry(self) -> Phenomenon:
        if not isinstance(self.shelved.kept, Phenomenon):
            raise LookupError("only phenomena are checked")
        return self.shelved.kept

    @property
    def telemetry(self) -> Telemetry | None:
        return telemetry_of(self.verdict)

    def checked(self) -> Checked | None:
        """As the journal takes it; nothing where nothing was proven."""
        if self.telemetry is None:
            return None
        actions = (self.lost, *reachable_now(self.entry))
        named = next((one.selector for one in actions if one is not None and one.selector is not None), None)
        selector = None if named is None else normalize_selector(named)
        return Checked(self.entry.stable_id, "seen" if self.verdict == "healthy" else "hard_drift", selector)


@dataclass(frozen=True, slots=True)
class Revalidation:
    """The checks of one look. Hand `checks` to the call's signals and the `also` of `sightings` to its transaction."""

    entries: tuple[EntryCheck, ...]
    sightings: Sightings
    denied: tuple[str, ...] = ()
    remaining: int = 0
    retry_after_ms: int | None = None

    @property
    def scope(self) -> ScopeName:
        return self.sightings.scope

    @property
    def reason_code(self) -> str | None:
        return self.denied[0].partition(":")[0] if self.denied else None

    @property
    def checks(self) -> tuple[Checked, ...]:
        return tuple(found for one in self.entries if (found := one.checked()) is not None)

    def skipped(self, one: EntryCheck) -> UnrecordedBecause | None:
        """Why a verdict has left no observation; known once the call is recorded."""
        if one.telemetry is None:
            return "nothing_proven"
        if one.entry.stable_id in self.sightings.recorded:
            return None
        return "page_scripted" if self.sightings.scripted else "throttled"


class Revalidator:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def revalidate_scope(
        self,
        page: KnowledgePage,
        scope: ScopeName,
        platforms: Sequence[Platform],
        limit: int = DEFAULT_LIMIT,
        hides: Hides = str,
    ) -> Revalidation:
        """Check the entries that need it most on the page that is open, as far as the budgets go; `hides` replaces what
        must not be kept."""
        shelved = [one for one in await self._db.read(store.entries, scope) if belongs(one, route_of(page.url))]
        due, denied = chosen(shelved, limit, self._clock.now_ms())
        spent = await self._db.write(check_store.spend, scope, page.target_id, len(due), self._clock.now_ms())
        checks = await self._looked(page, due[: spent.allowed], platforms) if spent.allowed else ()
        seen = Sightings(
            scope, tuple(EntrySighting(one.shelved, one.moved, _kept(one.seen_first, hides)) for one in checks)
        )
        return Revalidation(checks, seen, (*spent.denied, *denied), spent.remaining, spent.retry_after_ms)

    async def _looked(
        self, page: KnowledgePage, due: Sequence[Shelved], platforms: Sequence[Platform]
    ) -> tuple[EntryCheck, ...]:
        known = [one.kept for one in due if isinstance(one.kept, Phenomenon)]
        wanted = tuple(dict.fromkeys(name for entry in known for name in _selectors(entry)))
        try:
            seen = await page.check_signals(wanted_of(known, platforms))
            found: dict[str, SelectorSeen] = {}
            for begin in range(0, len(wanted), MAX_SELECTORS):
                found |= await page.find_selectors(wanted[begin : begin + MAX_SELECTORS])
        except NovaError as error:
            return tuple(_unread(one, error.reason_code) for one in due)
        checks = [_checked(one, seen, found) for one in due]
        if any(one.lost is not None or one.absent for one in checks):
            checks = await self._repaired(page, checks)
        return tuple(checks)

    async def _repaired(self, page: KnowledgePage, checks: Sequence[EntryCheck]) -> list[EntryCheck]:
        """A suggestion for each selector that is lost; a page that can't be read any more gets none. A later step whose
        control is there under another selector is lost as well; one that is nowhere may only not be shown yet."""
        try:
            elements = page_elements(await page.list_elements())
        except NovaError:
            return list(checks)
        return [await self._suggested(one, elements) for one in checks]

    async def _suggested(self, check: EntryCheck, page: Sequence[PageElement]) -> EntryCheck:
        lost = check.lost
        if lost is not None and lost.selector is not None and lost.element is None:
            return replace(check, suggestion=Suggestion(lost.selector, abstained="no_print"))
        if lost is None and not any(one.element is not None for one in check.absent):
            return check
        old = await self._db.read(store.surroundings, check.shelved.entry_id)
        if lost is None:
            return elsewhere(check, page, old or ())
        if lost.selector is None or lost.element is None:
            return check
        found = repair(lost.element, page, old)
        return replace(check, suggestion=suggested(lost.selector, found, check.instead))


def belongs(shelved: Shelved, route: Route) -> bool:
    """Whether an entry could be on a page of this route at all: what is kept for others is not missed here."""
    kept = shelved.kept
    return not isinstance(kept, Phenomenon) or any_covers(kept.content.context.routes, route)


def chosen(shelved: Sequence[Shelved], limit: int, now_ms: int) -> tuple[tuple[Shelved, ...], tuple[str, ...]]:
    """Which entries are looked at, the neediest first, and which of them have nothing that could be looked for.

    Of two revisions of one entry the needier has its turn: what is seen counts once for both.
    """
    rows = {(one.stable_id, one.kept.revision): one for one in shelved if isinstance(one.kept, Phenomenon)}
    ordered = check_order((one.kept for one in rows.values() if isinstance(one.kept, Phenomenon)), now_ms)
    due: dict[str, Shelved] = {}
    denied: list[str] = []
    for entry in ordered:
        if len(due) >= limit:
            break
        if entry.stable_id in due:
            continue
        if has_selector(entry):
            due[entry.stable_id] = rows[(entry.stable_id, entry.revision)]
        else:
            denied.append(f"no_selector:{entry.stable_id}")
    return tuple(due.values()), tuple(dict.fromkeys(denied))


def suggested(lost: str, found: Repair | Abstain, instead: ElementPrint | None = None) -> Suggestion:
    """A repair as it is told. The element that was just refused for its looks is never the repair."""
    match found:
        case Abstain(reason):
            return Suggestion(lost, abstained=reason)
        case Repair(candidate) if candidate.seen == instead:
            return Suggestion(lost, abstained="contradicted")
        case Repair(candidate, selector, confidence):
            label = candidate.seen.text or candidate.seen.aria_label
            return Suggestion(lost, selector, round(confidence, 3), label[:LABEL_CHARS] or None)


def elsewhere(check: EntryCheck, page: Sequence[PageElement], old: Sequence[ElementPrint]) -> EntryCheck:
    """A later step that its selector misses although its control is on this page has drifted.

    Only for controls that stood there too when the entry was written: a later page may well have one that looks like
    something of this one. What another step finds is that step's control, however alike they look.
    """
    for action in check.absent:
        if action.selector is None or action.element is None or action.element not in old:
            continue
        match repair(action.element, page, old):
            case Repair(candidate) as found if candidate.seen not in check.present:
                left = tuple(one for one in check.absent if one is not action)
                told = suggested(action.selector, found)
                return replace(check, verdict="drift", resolves=False, lost=action, suggestion=told, absent=left)
    return check


# -- one entry


def _kept(seen: Mapping[str, ElementPrint | None], hides: Hides) -> dict[str, ElementPrint | None]:
    return {name: None if one is None else harmless(one, hides) for name, one in seen.items()}


def _selectors(entry: Phenomenon) -> tuple[str, ...]:
    acting = (*reachable_now(entry), *reached_later(entry))
    return tuple(dict.fromkeys((*(one.selector or "" for one in acting), *entry.unseen)))


def _unread(shelved: Shelved, error: str) -> EntryCheck:
    nothing = Match(0.0, 0.0, ())
    return EntryCheck(shelved, "error", nothing, resolves=False, error=error)


def _checked(shelved: Shelved, seen: SignalsSeen, found: Mapping[str, SelectorSeen]) -> EntryCheck:
    entry = shelved.kept
    if not isinstance(entry, Phenomenon):
        raise LookupError("only phenomena are checked")
    observed = observed_signals(seen)
    fits = match(entry.content.fingerprint, observed, seen.locale)
    now, later = reachable_now(entry), reached_later(entry)
    missed = (*(one for one in now if not _resolves(one, found)), *(one for one in later if _changed(one, found)))
    lost = missed[0] if missed else None
    error = _trouble(entry, seen, found)
    verdict = judged(entry.content.type, Check(fits, lost is None, error))
    if verdict == "error":
        return replace(_unread(shelved, error or "unread"), match=fits)
    sighted = fits.reached or fits.half_reached
    return EntryCheck(
        shelved,
        verdict,
        fits,
        resolves=lost is None,
        lost=lost if verdict in ("drift", "gone") else None,
        instead=None if lost is None else _found_by(lost, found),
        moved=moved(entry, observed, seen.locale) if sighted else None,
        seen_first=_seen_first(entry, found) if fits.reached else {},
        absent=tuple(one for one in later if not _resolves(one, found) and one not in missed) if fits.reached else (),
        present=tuple(there for one in (*now, *later) if (there := _found_by(one, found)) is not None),
    )


def _found_by(action: Action, found: Mapping[str, SelectorSeen]) -> ElementPrint | None:
    seen = found.get(action.selector or "")
    return None if seen is None or seen.seen is None else print_of(seen.seen)


def _resolves(action: Action, found: Mapping[str, SelectorSeen]) -> bool:
    """Whether a learned selector still finds the element it was learned on, and it alone."""
    seen = found.get(action.selector or "")
    now = _found_by(action, found)
    if seen is None or seen.matches != 1 or now is None:
        return False
    return action.element is None or still_looks_like(action.element, now) is not None


def _changed(action: Action, found: Mapping[str, SelectorSeen]) -> bool:
    """Whether the selector of a later step finds one element, and that is not the one it was learned on."""
    seen = found.get(action.selector or "")
    return (
        seen is not None and seen.matches == 1 and _found_by(action, found) is not None and not _resolves(action, found)
    )


def _trouble(entry: Phenomenon, seen: SignalsSeen, found: Mapping[str, SelectorSeen]) -> str | None:
    """Why the look says nothing: selectors that there was no time for, or that can't be read at all."""
    named = {one.match for one in entry.content.fingerprint.signals if one.kind == "dom"}
    looked = [found[one] for one in _selectors(entry) if one in found]
    if named & set(seen.unread) or any(one.unread for one in looked):
        return "not_read_in_time"
    return "selector_invalid" if any(one.invalid for one in looked) else None


def _seen_first(entry: Phenomenon, found: Mapping[str, SelectorSeen]) -> dict[str, ElementPrint | None]:
    """Selectors waiting to be seen that find something now; one that is acted through has to find it alone."""
    acting = set(action_selectors(entry.content.playbook))
    told: dict[str, ElementPrint | None] = {}
    for selector in entry.unseen:
        seen = found.get(selector)
        if seen is None or seen.unread or not seen.matches or (selector in acting and seen.matches != 1):
            continue
        told[selector] = None if seen.seen is None else print_of(seen.seen)
    return told
