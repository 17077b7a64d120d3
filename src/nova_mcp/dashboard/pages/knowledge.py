"""What is known of websites: the sites, and one site with its entries and how far each has come."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.dashboard.charts.lifeline import Lane, lane_of
from nova_mcp.memory.knowledge.health import staleness, state, success_rate
from nova_mcp.memory.knowledge.matching.categories import categories_of
from nova_mcp.memory.knowledge.model import DomainHint, HealthState, Phenomenon, ScopeName, Trust
from nova_mcp.memory.knowledge.site_list import SiteBrief, Wanted, listed
from nova_mcp.memory.promotion import event_store, overview
from nova_mcp.memory.promotion.model import DAY_MS, ConsentGates, LearningEvent
from nova_mcp.memory.promotion.overview import KnownRevision, Progress

SITES: Final = 50
DECISIONS: Final = 15
DECISION_DAYS: Final = 90
PREFIX_CHARS: Final = 253


@dataclass(frozen=True, slots=True)
class LevelShare:
    """One part of the bar that shows how a site's entries stand, in percent of its length."""

    lane: Lane
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class SiteRow:
    brief: SiteBrief
    levels: tuple[LevelShare, ...]


@dataclass(frozen=True, slots=True)
class SitesView:
    """A page of sites by name; `next_after` leads to the next one."""

    sites: tuple[SiteRow, ...]
    prefix: str
    next_after: str | None


@dataclass(frozen=True, slots=True)
class HealthView:
    state: HealthState
    successes: int
    attempts: int
    # Of the last thirty days, in percent; None without attempts.
    rate: int | None
    # From 0 just confirmed to 100 after thirty days, or never.
    stale: int


@dataclass(frozen=True, slots=True)
class ProgressView:
    """`2 of 3 proofs`, as a bar and in words."""

    percent: int
    told: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    stable_id: str
    type: str
    hint: bool
    lane: Lane
    guides: bool
    # A newer revision that has to earn its place.
    in_review: bool
    origin: str
    revision: int
    health: HealthView
    progress: ProgressView | None
    drift_debt: float | None
    updated_at_ms: int


@dataclass(frozen=True, slots=True)
class SiteView:
    scope: ScopeName
    trust: Trust
    categories: tuple[str, ...]
    levels: tuple[LevelShare, ...]
    hints: int
    entries: tuple[EntryRow, ...]
    decisions: tuple[LearningEvent, ...]


def sites(conn: Connection, prefix: str, after: str, now_ms: int) -> SitesView:
    wanted = Wanted(prefix=prefix.strip().lower()[:PREFIX_CHARS], after=after, limit=SITES)
    found = listed(conn, wanted, now_ms)
    rows = tuple(SiteRow(one, _of_brief(one)) for one in found.sites)
    return SitesView(rows, wanted.prefix, rows[-1].brief.scope if found.has_more else None)


def _of_brief(one: SiteBrief) -> tuple[LevelShare, ...]:
    counts: tuple[tuple[Lane, int], ...] = (
        ("active", one.active),
        ("shadow", one.shadow),
        ("candidate", one.candidate),
        ("retired", one.deprecated),
    )
    return level_shares(counts)


def level_shares(counts: tuple[tuple[Lane, int], ...]) -> tuple[LevelShare, ...]:
    """The parts of the bar, side by side; levels that nothing stands at have none."""
    total = sum(count for _, count in counts)
    found: list[LevelShare] = []
    done = 0
    for lane, count in counts:
        if count:
            found.append(LevelShare(lane, count, round(100 * done / total, 2), round(100 * count / total, 2)))
        done += count
    return tuple(found)


def site(conn: Connection, scope: ScopeName, now_ms: int, consent: ConsentGates) -> SiteView | None:
    """Everything known of a site; None where nothing is."""
    found = overview.site(conn, scope, now_ms, consent)
    if found is None:
        return None
    rows = [
        entry_row(one, now_ms, in_review=in_review)
        for entry in found.entries
        for one, in_review in ((entry.current, False), (entry.pending, True))
        if one is not None
    ]
    # As the list of sites counts them: hints guide reading, and stand beside.
    lanes = [row.lane for row in rows if not row.in_review and not row.hint]
    names: tuple[Lane, ...] = ("active", "shadow", "candidate", "retired")
    since_ms = max(0, now_ms - DECISION_DAYS * DAY_MS)
    return SiteView(
        scope=found.about.name,
        trust=found.trust,
        categories=categories_of(found.about),
        levels=level_shares(tuple((lane, lanes.count(lane)) for lane in names)),
        hints=sum(row.hint for row in rows),
        entries=tuple(rows),
        decisions=tuple(event_store.events(conn, scope, since_ms, DECISIONS)),
    )


def entry_row(one: KnownRevision, now_ms: int, *, in_review: bool = False) -> EntryRow:
    kept = one.shelved.kept
    return EntryRow(
        stable_id=one.shelved.stable_id,
        type=kind_of(kept),
        hint=isinstance(kept, DomainHint),
        lane=lane_of(kept.level, deprecated=kept.deprecated),
        guides=kept.may_guide and not in_review,
        in_review=in_review,
        origin=one.shelved.origin,
        revision=kept.revision,
        health=health_view(kept, now_ms),
        progress=None if one.progress is None else progress_view(one.progress),
        drift_debt=kept.drift_debt if isinstance(kept, Phenomenon) else None,
        updated_at_ms=kept.updated_at_ms,
    )


def kind_of(kept: Phenomenon | DomainHint) -> str:
    return kept.content.type if isinstance(kept, Phenomenon) else f"hint: {kept.kind}"


def health_view(kept: Phenomenon | DomainHint, now_ms: int) -> HealthView:
    health, rate = kept.health, success_rate(kept.health, now_ms)
    return HealthView(
        state=state(health, now_ms),
        successes=health.successes,
        attempts=health.attempts,
        rate=None if rate is None else round(100 * rate),
        stale=round(100 * staleness(health, now_ms)),
    )


def progress_view(one: Progress) -> ProgressView:
    told = f"{one.have} of {one.need} {one.unit}"
    if one.have >= one.need:
        told += f", waits for {', '.join(one.waits_for)}" if one.waits_for else ", ready"
    return ProgressView(round(100 * one.have / one.need) if one.need else 100, told)
