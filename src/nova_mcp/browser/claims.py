"""Who may change a tab: the pure rules of implicit leases."""

from dataclasses import dataclass, replace

IMPLICIT_LEASE_MS = 120_000

Owner = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lease:
    """An owner's hold on a tab until a moment in time."""

    owner: Owner
    expires_at_ms: int
    implicit: bool = True
    ttl_ms: int = IMPLICIT_LEASE_MS


@dataclass(frozen=True, slots=True)
class Foreign:
    """Somebody else holds the tab."""

    owner_agent_id: str
    lease_remaining_ms: int


def is_live(lease: Lease | None, now_ms: int) -> bool:
    return lease is not None and lease.expires_at_ms > now_ms


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
