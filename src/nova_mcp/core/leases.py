"""Leases: who holds a tab or a sandbox until when; pure."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from nova_mcp.core.values import Owner

IMPLICIT_LEASE_MS: Final = 120_000

# How a claim, a lease that was asked for, comes to its end.
ClaimEnd = Literal["released", "expired", "reclaimed", "tab_closed", "sandbox_deleted", "server_restart"]


@dataclass(frozen=True, slots=True)
class Lease:
    """An owner's hold on a tab until a moment in time."""

    owner: Owner
    expires_at_ms: int
    implicit: bool = True
    ttl_ms: int = IMPLICIT_LEASE_MS


@dataclass(frozen=True, slots=True)
class Place:
    """What can be claimed: a tab in its sandbox, or the sandbox itself."""

    target_id: str
    sandbox_id: str

    def __str__(self) -> str:
        return f"sandbox {self.sandbox_id}" if self.whole_sandbox else self.target_id

    @property
    def whole_sandbox(self) -> bool:
        return self.target_id == self.sandbox_id


class Leased(Protocol):
    """As much of a tab as claims look at."""

    target_id: str
    sandbox_id: str
    lease: Lease | None


class Expiring(Protocol):
    """A lease, or a claim, which is one."""

    @property
    def expires_at_ms(self) -> int: ...


def is_live(lease: Expiring | None, now_ms: int) -> bool:
    return lease is not None and lease.expires_at_ms > now_ms
