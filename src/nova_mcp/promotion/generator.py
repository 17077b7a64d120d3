"""Finds what recurs: ranks patterns worth a look, and turns them into candidates."""

from typing import Final

from sqlalchemy import Connection

from nova_mcp.clock import Clock
from nova_mcp.knowledge import store
from nova_mcp.knowledge.health import MOST_TROUBLE, failures_in_row, last_30_days, staleness, trouble
from nova_mcp.knowledge.model import ScopeName
from nova_mcp.knowledge.store import Shelved
from nova_mcp.promotion import cluster_store
from nova_mcp.promotion.model import ClusterKey, Opportunity
from nova_mcp.promotion.scoring import SUGGESTIONS, Standing, drift_limit, drift_opportunities, ranked
from nova_mcp.storage.engine import Database

# Entries of one degree of trouble that are looked at; more say nothing more to one who asks for twenty at most.
_LOOKED_AT: Final = 64


class Generator:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def suggest(self, scope: ScopeName | None, limit: int = SUGGESTIONS) -> tuple[Opportunity, ...]:
        """What deserves a look, of one site or of all, the most deserving first."""
        return await self._db.read(suggestions, scope, limit, self._clock.now_ms())


def suggestions(conn: Connection, scope: ScopeName | None, limit: int, now_ms: int) -> tuple[Opportunity, ...]:
    found = cluster_store.best(conn, scope, limit, now_ms)
    return ranked([*found, *_drifting(conn, scope, found, limit, now_ms)], limit)


def _drifting(
    conn: Connection, scope: ScopeName | None, found: list[Opportunity], limit: int, now_ms: int
) -> list[Opportunity]:
    if scope is not None:
        troubled = [one for one in store.entries(conn, scope) if one.slot == "current" and trouble(one.kept)]
        return [item for one in troubled for item in drift_opportunities(standing_of(conn, one, now_ms))]
    items: list[Opportunity] = []
    for level in range(MOST_TROUBLE, 0, -1):
        best = ranked([*found, *items], limit)
        if len(best) >= limit and drift_limit(level - 1) < best[-1].score:
            break
        for one in store.in_trouble(conn, level, _LOOKED_AT):
            items.extend(drift_opportunities(standing_of(conn, one, now_ms)))
    return items


def standing_of(conn: Connection, shelved: Shelved, now_ms: int) -> Standing:
    """An entry as far as drift is concerned."""
    kept, health = shelved.kept, shelved.kept.health
    seen = (health.last_success_at_ms, health.last_failure_at_ms, health.last_drift_at_ms, health.last_confirmed_at_ms)
    return Standing(
        host=shelved.scope,
        stable_id=shelved.stable_id,
        attempts=health.attempts,
        successes=health.successes,
        failures=health.failures,
        consecutive_failures=failures_in_row(kept),
        success_rate_30d=last_30_days(health, now_ms).rate,
        staleness=staleness(health, now_ms),
        distinct_sessions=cluster_store.sessions_of(conn, ClusterKey(shelved.scope, shelved.stable_id), now_ms),
        last_at_ms=max((at for at in seen if at is not None), default=kept.updated_at_ms),
    )
