"""What the browser asks of claims and tells them of tabs; `memory.claims` answers, without them every tab is free."""

from collections.abc import Collection, Sequence
from typing import Protocol

from nova_mcp.core.leases import ClaimEnd, Lease, Leased, Place
from nova_mcp.core.values import Json, Owner


class ClaimedTarget(Protocol):
    """A tab or sandbox that an owner holds by a claim."""

    @property
    def target_id(self) -> str: ...


class PastClaim(Protocol):
    """A claim that is over."""

    def describe(self) -> dict[str, Json]: ...


class TabClaims(Protocol):
    """Who holds which tab. Looking never waits; only `last_ended` and `settle` go to the store."""

    def held_by(self, owner: Owner) -> Sequence[ClaimedTarget]: ...

    def lease_on(self, tab: Leased) -> Lease | None:
        """Who holds a tab: by a claim on it or its sandbox, otherwise by working on it."""

    def any_live(self) -> bool: ...

    def require_free(self, owner: Owner, sandbox_id: str) -> None:
        """Refuse what would add to a sandbox that another agent has claimed."""

    def foreign_within(self, owner: Owner, sandbox_id: str, tabs: Collection[Leased]) -> None:
        """Refuse what would end a sandbox while another agent works in it."""

    def opened(self, tab: Leased) -> None: ...

    def gone(self, target_id: str, reason: ClaimEnd) -> None:
        """A tab or sandbox has ended, and with it the claim on it."""

    async def last_ended(self, owner: Owner, place: Place) -> PastClaim | None: ...

    async def settle(self) -> None:
        """Write down what time and pages did to claims."""


class NoClaims:
    """For a browser without agents: nobody claims anything, and whoever works on a tab holds it."""

    def held_by(self, owner: Owner) -> Sequence[ClaimedTarget]:
        return ()

    def lease_on(self, tab: Leased) -> Lease | None:
        return tab.lease

    def any_live(self) -> bool:
        return False

    def require_free(self, owner: Owner, sandbox_id: str) -> None:
        return None

    def foreign_within(self, owner: Owner, sandbox_id: str, tabs: Collection[Leased]) -> None:
        return None

    def opened(self, tab: Leased) -> None:
        return None

    def gone(self, target_id: str, reason: ClaimEnd) -> None:
        return None

    async def last_ended(self, owner: Owner, place: Place) -> PastClaim | None:
        return None

    async def settle(self) -> None:
        return None
