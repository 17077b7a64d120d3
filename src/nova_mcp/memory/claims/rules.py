"""Who may change a tab: the pure rules of leases and claims."""

import hashlib
import hmac
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.core.leases import IMPLICIT_LEASE_MS, Lease, Place, is_live
from nova_mcp.core.values import Owner
from nova_mcp.errors import ClaimHeld, ClaimMismatch, Fix, TooManyClaims

MIN_TTL_MS: Final = 5_000
MAX_TTL_MS: Final = 1_800_000
DEFAULT_TTL_MS: Final = 120_000
MOST_CLAIMS: Final = 32

AgentRole = Literal["actor", "archivist", "mcp"]
Authorization = Literal["owner", "token", "none"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease that was asked for: a work context with an id and a token, on a tab or on a whole sandbox."""

    task_id: str
    target_id: str
    sandbox_id: str
    owner: Owner
    token_hash: str
    acquired_at_ms: int
    expires_at_ms: int
    ttl_ms: int = DEFAULT_TTL_MS
    agent_role: AgentRole = "actor"
    debug_label: str | None = None

    @property
    def whole_sandbox(self) -> bool:
        return self.target_id == self.sandbox_id

    @property
    def lease(self) -> Lease:
        return Lease(self.owner, self.expires_at_ms, implicit=False, ttl_ms=self.ttl_ms)


@dataclass(frozen=True, slots=True)
class Foreign:
    """Somebody else holds the tab."""

    owner_agent_id: str
    lease_remaining_ms: int


# -- leases


def may_mutate(lease: Lease | None, owner: Owner, now_ms: int) -> Foreign | None:
    """None when the owner may go ahead, otherwise who is in the way and for how long."""
    if lease is None or lease.expires_at_ms <= now_ms or lease.owner == owner:
        return None
    return Foreign(lease.owner[1], lease.expires_at_ms - now_ms)


def renewed(lease: Lease | None, owner: Owner, now_ms: int) -> Lease:
    """The lease after a call by someone who may mutate: prolonged if theirs, taken implicitly otherwise."""
    if lease is not None and lease.owner == owner and lease.expires_at_ms > now_ms:
        return replace(lease, expires_at_ms=max(lease.expires_at_ms, now_ms + lease.ttl_ms))
    return Lease(owner, now_ms + IMPLICIT_LEASE_MS)


def held_by_other(foreign: Foreign, agent_id: str, place: Place | None = None) -> ClaimHeld:
    """What a call is told that would change what somebody else works on."""
    whole = place is not None and place.whole_sandbox
    return ClaimHeld(
        "claim.owner_mismatch",
        f'Agent "{foreign.owner_agent_id}" is working on {"this tab" if place is None else place}.',
        f"Open a {'sandbox' if whole else 'tab'} of your own, wait for the lease to run out, or take it over: "
        "nova.tab_claim with reclaimReason.",
        stage="gate",
        retry_after_ms=foreign.lease_remaining_ms,
        # Another tab in the same sandbox would be refused as well.
        fix=None if whole else Fix("nova.tab_new", {"agentId": agent_id}),
        details={"ownerAgentId": foreign.owner_agent_id, "leaseRemainingMs": foreign.lease_remaining_ms},
    )


def too_many(held: int) -> TooManyClaims:
    return TooManyClaims(
        "claim.too_many",
        f"You hold {held} claims, which is the limit.",
        stage="precondition",
    )


def wrong_token(place: Place) -> ClaimMismatch:
    return ClaimMismatch(
        "claim.finalization_token_mismatch",
        f"The finalizationToken is not the one of your claim on {place}.",
        stage="precondition",
    )


# -- claims that stand


Claims = Mapping[str, Claim]


def owner_key(owner: Owner) -> str:
    """The owner as the journal keeps it: the same for the same owner, and nobody's name."""
    return hashlib.sha256(json.dumps(owner).encode()).hexdigest()


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def token_fits(claim: Claim, token: str) -> bool:
    return hmac.compare_digest(claim.token_hash, hash_token(token))


def governing(claims: Claims, place: Place, now_ms: int) -> Claim | None:
    """The live claim over a place: its own, or the one on its whole sandbox."""
    for key in (place.target_id, place.sandbox_id):
        claim = claims.get(key)
        if claim is not None and is_live(claim, now_ms):
            return claim
    return None


def held_by(claims: Claims, owner: Owner, now_ms: int) -> list[Claim]:
    return [claim for claim in claims.values() if claim.owner == owner and is_live(claim, now_ms)]


def prolonged(claim: Claim, now_ms: int) -> Claim:
    """After a call by its owner. Its own term from now is also the most: a clock set back must not stretch it."""
    return replace(claim, expires_at_ms=now_ms + claim.ttl_ms)


def within_term(claim: Claim, now_ms: int) -> Claim:
    """No claim runs longer than its term from now, even if the clock was set back since it was taken."""
    latest = now_ms + claim.ttl_ms
    return claim if claim.expires_at_ms <= latest else replace(claim, expires_at_ms=latest)


def lapsed(claims: Claims, now_ms: int) -> list[Claim]:
    return [claim for claim in claims.values() if not is_live(claim, now_ms)]


def touching(claims: Iterable[Claim], place: Place) -> list[Claim]:
    """Claims that share at least one tab with a place."""
    return [
        claim
        for claim in claims
        if claim.sandbox_id == place.sandbox_id
        and (place.whole_sandbox or claim.whole_sandbox or claim.target_id == place.target_id)
    ]


# -- taking


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller asks for; a reason lets it take over what somebody else holds."""

    place: Place
    owner: Owner
    ttl_ms: int | None = None
    agent_role: AgentRole = "actor"
    debug_label: str | None = None
    reclaim_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A new claim may be taken; `displaced` claims end by it, and `previous` held the place before."""

    ttl_ms: int
    displaced: tuple[Claim, ...] = ()
    previous: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True)
class Renewal:
    """The caller has it already: the same claim for another term."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Occupied:
    foreign: Foreign


@dataclass(frozen=True, slots=True)
class TooMany:
    held: int


def judge_claim(
    wish: Wish, claims: Claims, leases: Collection[Lease], now_ms: int, most: int = MOST_CLAIMS
) -> Grant | Renewal | Occupied | TooMany:
    """Whether a place can be claimed, given every claim that stands and the implicit leases on the place's tabs."""
    live = [claim for claim in claims.values() if is_live(claim, now_ms)]
    others = [claim for claim in touching(live, wish.place) if claim.owner != wish.owner]
    foreign = [claim.lease for claim in others]
    foreign += [lease for lease in leases if may_mutate(lease, wish.owner, now_ms) is not None]
    if foreign and wish.reclaim_reason is None:
        longest = max(foreign, key=lambda lease: lease.expires_at_ms)
        return Occupied(Foreign(longest.owner[1], longest.expires_at_ms - now_ms))
    own = claims.get(wish.place.target_id)
    if own is not None and own.owner == wish.owner and is_live(own, now_ms):
        return Renewal(_renewed_claim(own, wish, now_ms))
    held = sum(claim.owner == wish.owner for claim in live)
    if held >= most:
        return TooMany(held)
    previous = tuple(dict.fromkeys(lease.owner for lease in foreign))
    return Grant(wish.ttl_ms or DEFAULT_TTL_MS, tuple(others), previous)


def _renewed_claim(own: Claim, wish: Wish, now_ms: int) -> Claim:
    # A renewal that names no term never shortens the one that was asked for before.
    ttl_ms = wish.ttl_ms or max(own.ttl_ms, DEFAULT_TTL_MS)
    label = wish.debug_label if wish.debug_label and wish.debug_label.strip() else own.debug_label
    return replace(own, ttl_ms=ttl_ms, expires_at_ms=now_ms + ttl_ms, agent_role=wish.agent_role, debug_label=label)


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Word for an owner that somebody took over what it held."""

    target_id: str
    by_agent_id: str


# -- letting go


@dataclass(frozen=True, slots=True)
class Releasable:
    claim: Claim
    authorization: Authorization


@dataclass(frozen=True, slots=True)
class NotHeld:
    """Nobody holds it by a claim."""


@dataclass(frozen=True, slots=True)
class NotYours:
    foreign: Foreign


@dataclass(frozen=True, slots=True)
class WrongToken:
    """The owner, but not with this claim's token."""


def judge_release(
    claim: Claim | None, owner: Owner, token: str | None, now_ms: int
) -> Releasable | NotHeld | NotYours | WrongToken:
    """Only the owner releases; a token is not needed for that, but one that is given must be the claim's."""
    if claim is None or not is_live(claim, now_ms):
        return NotHeld()
    if claim.owner != owner:
        return NotYours(Foreign(claim.owner[1], claim.expires_at_ms - now_ms))
    if token is None:
        return Releasable(claim, "owner")
    return Releasable(claim, "token") if token_fits(claim, token) else WrongToken()
