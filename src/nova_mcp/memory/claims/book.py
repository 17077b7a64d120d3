"""The book of claims: who holds what right now, with every change also written to the journal."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

import anyio

from nova_mcp.core.clock import Ports
from nova_mcp.core.leases import ClaimEnd, Lease, Leased, Place, is_live
from nova_mcp.core.redaction import CLAIM_TOKEN_PREFIX
from nova_mcp.core.values import Owner
from nova_mcp.evidence.model import Caller
from nova_mcp.memory.claims import store
from nova_mcp.memory.claims.endings import ClaimEndings, Ended
from nova_mcp.memory.claims.rules import (
    MOST_CLAIMS,
    Authorization,
    Claim,
    Grant,
    NotHeld,
    NotYours,
    Occupied,
    Reclaimed,
    Releasable,
    Renewal,
    TooMany,
    Wish,
    WrongToken,
    governing,
    hash_token,
    held_by,
    held_by_other,
    judge_claim,
    judge_release,
    lapsed,
    may_mutate,
    prolonged,
    renewed,
    too_many,
    within_term,
    wrong_token,
)
from nova_mcp.memory.claims.store import NO_LEARN_MODE, Closing, EndedClaim, LearnMode, Taking, context_of
from nova_mcp.memory.journal.model import Conclusion, Coverage, FinalizeOrder, WorkContext
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

TOKEN_CHARS = 48


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim as its owner is told of it; nobody else ever sees the token."""

    claim: Claim
    token: str
    now_ms: int
    renewed: bool = False
    previous_owner_agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """A claim that was let go, and what was decided."""

    claim: Claim
    authorization: Authorization
    conclusion: Conclusion
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class NothingHeld:
    """There was no claim to let go; `ended` is how the caller's last one here came to its end."""

    ended: EndedClaim | None


class ClaimBook:
    """Claims live in memory, because tabs do; the journal explains them to later servers.

    Claims of one principal change one after the other; looking at them never waits.
    """

    def __init__(
        self,
        ports: Ports,
        db: Database | None = None,
        server_id: str = "",
        learn: LearnMode = NO_LEARN_MODE,
    ) -> None:
        self._ports = ports
        self._db = db
        self._server_id = server_id
        self._learn = learn
        self._ends = ClaimEndings(ports, db, learn)
        self._claims: dict[str, Claim] = {}
        self._homes: dict[str, str] = {}
        self._words: dict[Owner, list[Reclaimed]] = {}
        self._changing: dict[str, anyio.Lock] = {}
        self._prolonged: set[str] = set()
        self._key: bytes | None = None

    # -- looking

    def over(self, place: Place) -> Claim | None:
        """The live claim that covers a place."""
        now = self._now()
        claim = governing(self._claims, place, now)
        if claim is not None and (bounded := within_term(claim, now)) is not claim:
            claim = self._claims[claim.target_id] = bounded
        return claim

    def lease_on(self, tab: Leased) -> Lease | None:
        """Who holds a tab: by a claim on it or its sandbox, otherwise by working on it."""
        claim = self.over(Place(tab.target_id, tab.sandbox_id))
        return tab.lease if claim is None else claim.lease

    def held_by(self, owner: Owner) -> list[Claim]:
        return held_by(self._claims, owner, self._now())

    def any_live(self) -> bool:
        now = self._now()
        return any(is_live(claim, now) for claim in self._claims.values())

    def work_context(self, caller: Caller, target_id: str) -> WorkContext | None:
        """The caller's own live claim over a tab or sandbox; nobody else's counts, and neither does a mere lease."""
        claim = self.over(Place(target_id, self._homes.get(target_id, target_id)))
        return context_of(claim) if claim is not None and claim.owner == caller.owner else None

    def require_free(self, owner: Owner, sandbox_id: str) -> None:
        """Refuse what would add to a sandbox that another agent has claimed."""
        place = Place(sandbox_id, sandbox_id)
        claim = self.over(place)
        foreign = may_mutate(claim.lease, owner, self._now()) if claim is not None else None
        if foreign is not None:
            raise held_by_other(foreign, owner[1], place)

    def require_room(self, owner: Owner) -> None:
        if (held := len(self.held_by(owner))) >= MOST_CLAIMS:
            raise too_many(held)

    def foreign_within(self, owner: Owner, sandbox_id: str, tabs: Collection[Leased]) -> None:
        """Refuse what would end a sandbox while another agent works in it."""
        leases = [lease for lease in (self.lease_on(tab) for tab in tabs) if lease is not None]
        place = Place(sandbox_id, sandbox_id)
        match judge_claim(Wish(place, owner), self._claims, leases, self._now()):
            case Occupied(foreign):
                raise held_by_other(foreign, owner[1], place)

    # -- what tabs and calls report

    def opened(self, tab: Leased) -> None:
        self._homes[tab.target_id] = tab.sandbox_id

    def gone(self, target_id: str, reason: ClaimEnd) -> None:
        """A tab or sandbox ended by itself: its claim is over, and is finalized as soon as the store allows."""
        self._homes.pop(target_id, None)
        claim = self._claims.pop(target_id, None)
        if claim is None:
            return
        if is_live(claim, self._now()):
            self._ends.gone(claim, reason)
        else:
            self._ends.lapsed(claim)

    def touched(self, tab: Leased, owner: Owner, *, take: bool) -> None:
        """A call by somebody on a tab: it renews what is theirs; one that changes the tab takes it while it is free."""
        now, mine = self._now(), False
        for key in (tab.target_id, tab.sandbox_id):
            claim = self._claims.get(key)
            if claim is not None and claim.owner == owner and is_live(claim, now):
                self._claims[key] = prolonged(claim, now)
                self._prolonged.add(key)
                mine = True
        if mine or may_mutate(self.lease_on(tab), owner, now) is not None:
            return
        if take or is_live(tab.lease, now):
            tab.lease = renewed(tab.lease, owner, now)

    def words_for(self, owner: Owner) -> tuple[Reclaimed, ...]:
        return tuple(self._words.get(owner, ()))

    def told(self, owner: Owner, words: Collection[Reclaimed]) -> None:
        left = [word for word in self._words.pop(owner, ()) if word not in words]
        if left:
            self._words[owner] = left

    # -- taking

    async def claim(self, wish: Wish, tabs: Collection[Leased]) -> Claimed:
        """Take or renew a claim; `tabs` are the ones it would cover."""
        async with self._alone(wish.owner):
            await self._settle_ended()
            now = self._now()
            leases = [tab.lease for tab in tabs if tab.lease is not None]
            match judge_claim(wish, self._claims, leases, now):
                case Occupied(foreign):
                    raise held_by_other(foreign, wish.owner[1], wish.place)
                case TooMany(held):
                    raise too_many(held)
                case Renewal(claim):
                    await self._install(claim, (), partial(self._renewed, claim))
                    return Claimed(claim, self._token(claim.task_id), now, renewed=True)
                case Grant() as grant:
                    claim = self._new_claim(wish, grant, now)
                    await self._install(claim, grant.displaced, partial(self._taken, wish, claim, grant, now))
                    self._tell_displaced(wish, grant)
                    for tab in tabs:
                        tab.lease = None
                    previous = grant.previous[0][1] if grant.previous else None
                    return Claimed(claim, self._token(claim.task_id), now, previous_owner_agent_id=previous)

    def _new_claim(self, wish: Wish, grant: Grant, now_ms: int) -> Claim:
        task_id = f"claim_{self._ports.ids.token(8)}"
        label = wish.debug_label if wish.debug_label and wish.debug_label.strip() else None
        return Claim(
            task_id=task_id,
            target_id=wish.place.target_id,
            sandbox_id=wish.place.sandbox_id,
            owner=wish.owner,
            token_hash=hash_token(self._token(task_id)),
            acquired_at_ms=now_ms,
            expires_at_ms=now_ms + grant.ttl_ms,
            ttl_ms=grant.ttl_ms,
            agent_role=wish.agent_role,
            debug_label=label,
        )

    async def _install(self, claim: Claim, displaced: tuple[Claim, ...], write: Callable[[], Awaitable[None]]) -> None:
        """Put a claim in place before the journal knows, so that nobody slips in; undone if the journal fails."""
        before = self._claims.get(claim.target_id)
        for old in displaced:
            self._claims.pop(old.target_id, None)
        self._claims[claim.target_id] = claim
        try:
            with anyio.CancelScope(shield=True):
                await write()
        except BaseException:
            self._claims.pop(claim.target_id, None)
            self._claims |= {old.target_id: old for old in displaced}
            if before is not None:
                self._claims[before.target_id] = before
            raise

    async def _renewed(self, claim: Claim) -> None:
        if self._db is not None:
            await self._db.write(store.claims_renewed, [claim])

    async def _taken(self, wish: Wish, claim: Claim, grant: Grant, now_ms: int) -> None:
        if self._db is not None:
            reason = wish.reclaim_reason if grant.previous else None
            taking = Taking(claim, self._server_id, reason, grant.displaced)
            await self._db.write(store.claim_taken, taking, now_ms, self._learn)

    def _tell_displaced(self, wish: Wish, grant: Grant) -> None:
        lost = [(claim.owner, claim.target_id) for claim in grant.displaced]
        claimants = {owner for owner, _ in lost}
        lost += [(owner, wish.place.target_id) for owner in grant.previous if owner not in claimants]
        for owner, target_id in lost:
            self._words.setdefault(owner, []).append(Reclaimed(target_id, wish.owner[1]))

    def _token(self, task_id: str) -> str:
        """Derived from a key that lives as long as the server, so that no claim's token is kept anywhere."""
        if self._key is None:
            self._key = self._ports.ids.token(32).encode()
        digest = hmac.new(self._key, task_id.encode(), hashlib.sha256).hexdigest()
        return CLAIM_TOKEN_PREFIX + digest[:TOKEN_CHARS]

    # -- letting go

    async def release(
        self, owner: Owner, place: Place, order: FinalizeOrder, token: str | None, tabs: Collection[Leased]
    ) -> Released | NothingHeld:
        """Let a claim go and decide about its learning; a failure of either leaves both as they were."""
        async with self._alone(owner):
            await self._settle_ended()
            now = self._now()
            match judge_release(self.over(place), owner, token, now):
                case NotHeld():
                    return NothingHeld(await self.last_ended(owner, place))
                case NotYours(foreign):
                    raise held_by_other(foreign, owner[1], place)
                case WrongToken():
                    raise wrong_token(place)
                case Releasable(claim, authorization):
                    ended = await self._close(self._ends.closing(claim, "released", order))
                    for tab in tabs:
                        if tab.lease is not None and tab.lease.owner == owner:
                            tab.lease = None
                    return Released(claim, authorization, ended.conclusion, ended.coverage)

    async def finish(self, owner: Owner, tab: Leased) -> Conclusion | None:
        """Finalize the claim on a tab that is about to be closed, by Nova's own plan; None without one."""
        async with self._alone(owner):
            # While this waited for its turn somebody else may have taken the tab over.
            if (foreign := may_mutate(self.lease_on(tab), owner, self._now())) is not None:
                raise held_by_other(foreign, owner[1])
            claim = self._claims.get(tab.target_id)
            if claim is None or not is_live(claim, self._now()):
                return None
            ended = await self._close(self._ends.closing(claim, "tab_closed", FinalizeOrder()))
            return ended.conclusion

    async def _close(self, closing: Closing) -> Ended:
        with anyio.CancelScope(shield=True):
            ended = await self._ends.write(closing)
            self._claims.pop(closing.claim.target_id, None)
        return ended

    async def last_ended(self, owner: Owner, place: Place) -> EndedClaim | None:
        return await self._ends.last(owner, place)

    # -- background care

    async def settle(self) -> None:
        """Write down what time and pages did: claims that ran out, ended with their tab, or were renewed."""
        await self._settle_ended()
        keys, self._prolonged = self._prolonged, set()
        claims = [self._claims[key] for key in keys if key in self._claims]
        if not claims or self._db is None:
            return
        try:
            await self._db.write(store.claims_renewed, claims)
        except StoreUnavailable:
            self._prolonged |= keys
            raise

    async def _settle_ended(self) -> None:
        for claim in lapsed(self._claims, self._now()):
            self._ends.lapsed(self._claims.pop(claim.target_id))
        await self._ends.settle()

    def _alone(self, owner: Owner) -> anyio.Lock:
        return self._changing.setdefault(owner[0], anyio.Lock())

    def _now(self) -> int:
        return self._ports.clock.now_ms()
