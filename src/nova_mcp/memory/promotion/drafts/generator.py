"""Finds what recurs: ranks patterns worth a look, and turns them into candidates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.memory.journal.candidates import Candidate
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.health import MOST_TROUBLE, failures_in_row, last_30_days, staleness, trouble
from nova_mcp.memory.knowledge.model import Content, Phenomenon, Platform, ScopeName
from nova_mcp.memory.knowledge.page import KnowledgePage
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.page_check import check_page
from nova_mcp.memory.promotion.drafts import cluster_store, draft_store, trace_store
from nova_mcp.memory.promotion.drafts.draft_store import Drafted, Looks
from nova_mcp.memory.promotion.drafts.model import Proposal, Skipped
from nova_mcp.memory.promotion.drafts.rules import PROPOSALS, generate
from nova_mcp.memory.promotion.drafts.scoring import (
    SUGGESTIONS,
    TroubledEntry,
    drift_limit,
    drift_opportunities,
    ranked,
)
from nova_mcp.memory.promotion.model import ClusterKey, Opportunity
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.storage.engine import Database

# Entries of one degree of trouble that are looked at; more say nothing more to one who asks for twenty at most.
_LOOKED_AT: Final = 64
_DRIFTS: Final = frozenset({"silent_verify_drift", "active_failure_drift"})


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """What would be written about a site, before the page was looked at. `taken` are the proposals that it takes up,
    `committed` the candidates in them."""

    scope: ScopeName
    proposals: tuple[Proposal, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    taken: tuple[str, ...] = ()
    committed: tuple[Candidate, ...] = ()
    # What each entry would say afterwards, by candidate key; hints have nothing that a page could be asked.
    contents: Mapping[str, Content] = field(default_factory=dict)


def write_drafts(conn: Connection, plan: DraftPlan, looks: Looks) -> Drafted:
    """Put a plan into the store, in the transaction of the call that made it."""
    done = draft_store.write(conn, plan.proposals, looks)
    trace_store.taken_up(conn, plan.taken)
    draft_store.log_skipped(conn, plan.committed, [*plan.skipped, *done.skipped], looks.now_ms)
    return done


class Generator:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def suggest(self, scope: ScopeName | None, limit: int = SUGGESTIONS) -> tuple[Opportunity, ...]:
        """What deserves a look, of one site or of all, the most deserving first."""
        return await self._db.read(suggestions, scope, limit, self._clock.now_ms())

    async def plan(self, scope: ScopeName, principal: str, limit: int = PROPOSALS) -> DraftPlan:
        """What the evidence of a site comes to, without anything being written."""
        return await self._db.read(planned, scope, principal, limit, self._clock.now_ms())

    async def look(
        self, page: KnowledgePage, plan: DraftPlan, platforms: Sequence[Platform], hides: Callable[[str], str]
    ) -> Looks:
        """What the open page shows of everything that is planned."""
        now_ms = self._clock.now_ms()
        checks = {key: await check_page(page, one, platforms, now_ms, hides) for key, one in plan.contents.items()}
        return Looks(now_ms, checks)


def planned(conn: Connection, scope: ScopeName, principal: str, limit: int, now_ms: int) -> DraftPlan:
    proposed = trace_store.proposed(conn, scope)
    named = [one for _, ones in proposed for one in ones]
    traces = [*trace_store.candidate_traces(conn, named, now_ms), *trace_store.traces(conn, scope, now_ms)]
    found = store.entries(conn, scope)
    around = draft_store.surroundings(found, semantic_open=semantic_store.has_open(conn, principal, scope))
    proposals, skipped = generate(traces, around, limit)
    stored = {one.stable_id: one.kept.content for one in found if isinstance(one.kept, Phenomenon)}
    contents = {one.candidate_key: draft_store.content_of(one, stored.get(one.stable_id)) for one in proposals}
    return DraftPlan(
        scope,
        proposals,
        skipped,
        tuple(job_key for job_key, _ in proposed),
        tuple(named),
        {key: content for key, content in contents.items() if content is not None},
    )


def suggestions(conn: Connection, scope: ScopeName | None, limit: int, now_ms: int) -> tuple[Opportunity, ...]:
    found = cluster_store.best(conn, scope, limit, now_ms)
    chosen = ranked([*found, *_drifting(conn, scope, found, limit, now_ms)], limit)
    return tuple(_with_sessions(conn, one, now_ms) if one.dominant_kind in _DRIFTS else one for one in chosen)


def _with_sessions(conn: Connection, one: Opportunity, now_ms: int) -> Opportunity:
    """In how many sessions an entry was met is known by its cluster."""
    return replace(
        one, distinct_sessions=cluster_store.sessions_of(conn, ClusterKey(one.host, one.candidate_key), now_ms)
    )


def _drifting(
    conn: Connection, scope: ScopeName | None, found: list[Opportunity], limit: int, now_ms: int
) -> list[Opportunity]:
    if scope is not None:
        troubled = [one for one in store.entries(conn, scope) if one.slot == "current" and trouble(one.kept)]
        return [item for one in troubled for item in drift_opportunities(standing_of(one, now_ms))]
    items: list[Opportunity] = []
    for level in range(MOST_TROUBLE, 0, -1):
        best = ranked([*found, *items], limit)
        if len(best) >= limit and drift_limit(level - 1) < best[-1].score:
            break
        for one in store.in_trouble(conn, level, _LOOKED_AT):
            items.extend(drift_opportunities(standing_of(one, now_ms)))
    return items


def standing_of(shelved: Shelved, now_ms: int) -> TroubledEntry:
    """An entry as far as drift is concerned."""
    kept, health = shelved.kept, shelved.kept.health
    seen = (health.last_success_at_ms, health.last_failure_at_ms, health.last_drift_at_ms, health.last_confirmed_at_ms)
    return TroubledEntry(
        host=shelved.scope,
        stable_id=shelved.stable_id,
        attempts=health.attempts,
        successes=health.successes,
        failures=health.failures,
        consecutive_failures=failures_in_row(kept),
        success_rate_30d=last_30_days(health, now_ms).rate,
        staleness=staleness(health, now_ms),
        distinct_sessions=0,
        last_at_ms=max((at for at in seen if at is not None), default=kept.updated_at_ms),
    )
