"""Decides about levels: explains where entries stand, applies what their gates allow, and tells what has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, select, update

from nova_mcp.core.clock import Clock
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.fingerprints import Match, explained
from nova_mcp.memory.knowledge.matching.routes import Route
from nova_mcp.memory.knowledge.model import Phenomenon, ScopeName, StableId
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.tables import knowledge_scope
from nova_mcp.memory.promotion import event_store, promoter
from nova_mcp.memory.promotion.explain import explanation
from nova_mcp.memory.promotion.model import DAY_MS, ConsentGates, Explanation, LearningEvent
from nova_mcp.memory.promotion.promoter import Decision, Wish
from nova_mcp.memory.promotion.sightings import Unseen, unseen_at
from nova_mcp.storage.engine import Database

REVIEW_EVERY_MS: Final = 30 * 60_000
REVALIDATE_EVERY_MS: Final = 6 * 60 * 60_000
FEEDBACK_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class Turn:
    """When somebody last looked after a site, and since when it is this one's turn."""

    before_ms: int | None
    taken_at_ms: int


@dataclass(frozen=True, slots=True)
class Explained:
    """Where an entry stands and what would move it. `shelved` is the revision that counts; what is explained may be a
    newer one in review."""

    shelved: Shelved
    explanation: Explanation
    match: Match | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be said; of the site nothing is known at all unless `scope_known`."""

    scope_known: bool


class PromotionKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock, consent: ConsentGates = "standard") -> None:
        self._db = db
        self._clock = clock
        self._consent = consent

    # -- deciding

    def apply(self, conn: Connection, wish: Wish) -> tuple[Decision, ...]:
        """Decide and apply, behind the evidence of the call that asks for it."""
        return promoter.promote(conn, self._judging(wish), self._clock.now_ms())

    async def preview(self, wish: Wish) -> tuple[Decision, ...]:
        """What would be decided now; nothing is written."""
        return await self._db.read(promoter.previewed, self._judging(wish), self._clock.now_ms())

    async def promote(self, wish: Wish) -> tuple[Decision, ...]:
        """Decide and apply, in a transaction of its own."""
        return await self._db.write(promoter.promote, self._judging(wish), self._clock.now_ms())

    def _judging(self, wish: Wish) -> Wish:
        return replace(wish, consent=self._consent)

    # -- what pages still have to show

    async def unseen(self, scope: ScopeName, selector: str, route: Route) -> Unseen:
        """What learning has yet to see of a control before it is used."""
        return await self._db.read(unseen_at, scope, selector, route)

    # -- the background pass

    async def review_due(self, scope: ScopeName) -> bool:
        """Whether nobody has looked at a site's gates for a while; never where nothing is known."""
        return await self._db.read(_due, scope, self._clock.now_ms())

    async def review(self, scope: ScopeName) -> tuple[Decision, ...]:
        """Apply what the gates of a site allow, unless somebody else just has; empty then."""
        return await self._db.write(reviewed, self._judging(Wish(scope)), self._clock.now_ms())

    async def take_turn(self, scope: ScopeName) -> Turn | None:
        """The right to look after a site's entries on its page; None where somebody had it in the last hours."""
        return await self._db.write(_taken, scope, self._clock.now_ms())

    async def give_back(self, scope: ScopeName, turn: Turn) -> None:
        """Nothing came of it: the next one may try."""
        await self._db.write(_given_back, scope, turn)

    # -- telling

    def since(self, asked_ms: int | None) -> int:
        """From when on the log is told: the last week unless a beginning was asked for."""
        return max(0, self._clock.now_ms() - FEEDBACK_DAYS * DAY_MS) if asked_ms is None else asked_ms

    async def feedback(self, scope: ScopeName | None, since_ms: int | None, limit: int) -> list[LearningEvent]:
        """The promotion log of one site or all, newest first."""
        return await self._db.read(event_store.events, scope, self.since(since_ms), limit)

    async def explain(
        self, scope: ScopeName, stable_id: str, signals: Sequence[str] | None = None
    ) -> Explained | Unknown:
        return await self._db.read(told, scope, stable_id, signals, self._clock.now_ms(), self._consent)

    async def proofs(self, scope: ScopeName) -> dict[StableId, tuple[int, int]]:
        """Per shadow how many proofs it has and how many it needs."""
        return await self._db.read(promoter.proofs, scope, self._clock.now_ms(), self._consent)


def _taken(conn: Connection, scope: ScopeName, now_ms: int) -> Turn | None:
    at = knowledge_scope.c.revalidated_at_ms
    # The row is held from the update on, so of several servers one gets it.
    before = conn.execute(select(at).where(knowledge_scope.c.scope == scope).with_for_update()).one_or_none()
    if before is None or (before[0] is not None and abs(now_ms - before[0]) < REVALIDATE_EVERY_MS):
        return None
    conn.execute(update(knowledge_scope).where(knowledge_scope.c.scope == scope).values(revalidated_at_ms=now_ms))
    return Turn(before[0], now_ms)


def _given_back(conn: Connection, scope: ScopeName, turn: Turn) -> None:
    mine = (knowledge_scope.c.scope == scope, knowledge_scope.c.revalidated_at_ms == turn.taken_at_ms)
    conn.execute(update(knowledge_scope).where(*mine).values(revalidated_at_ms=turn.before_ms))


def _due(conn: Connection, scope: ScopeName, now_ms: int) -> bool:
    at = conn.execute(select(knowledge_scope.c.reviewed_at_ms).where(knowledge_scope.c.scope == scope)).one_or_none()
    # A clock that was set back must not put reviews off until it has caught up.
    return at is not None and (at[0] is None or abs(now_ms - at[0]) >= REVIEW_EVERY_MS)


def reviewed(conn: Connection, wish: Wish, now_ms: int) -> tuple[Decision, ...]:
    scope = wish.scope
    if not _due(conn, scope, now_ms):
        return ()
    store.touch_scope(conn, scope, now_ms, visible=False)
    # Asked again with the row held: another server may have been here first.
    if not _due(conn, scope, now_ms):
        return ()
    conn.execute(update(knowledge_scope).where(knowledge_scope.c.scope == scope).values(reviewed_at_ms=now_ms))
    return promoter.promote(conn, wish, now_ms)


def told(
    conn: Connection,
    scope: ScopeName,
    stable_id: str,
    signals: Sequence[str] | None,
    now_ms: int,
    consent: ConsentGates,
) -> Explained | Unknown:
    found = store.find(conn, scope, stable_id)
    if not found:
        return Unknown(store.state_rev(conn, scope) > 0)
    newest = found[-1]
    explained_now = explanation(conn, newest, now_ms, consent)
    if newest is not found[0]:
        beside = f"Revision {newest.kept.revision} is in review; revision {found[0].kept.revision} stays meanwhile. "
        explained_now = replace(explained_now, summary=beside + explained_now.summary)
    match = None
    if signals is not None and isinstance(newest.kept, Phenomenon):
        match = explained(newest.kept.content.fingerprint, signals)
    return Explained(found[0], explained_now, match)
