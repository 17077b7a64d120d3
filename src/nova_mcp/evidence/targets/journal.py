"""The memory of ids: counters that never go back, and where a target was when it was last seen."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from nova_mcp.core.values import Json
from nova_mcp.evidence.page_sights import STILL, PageLife

TargetKind = Literal["tab", "sandbox"]
EndReason = Literal["closed", "server_restart", "browser_exit", "sandbox_deleted"]


@dataclass(frozen=True, slots=True)
class TargetOpened:
    """A tab or a sandbox came to be."""

    kind: TargetKind
    target_id: str
    sandbox_id: str
    principal: str
    agent_id: str
    url: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What is still known of a target that is gone; the end is unknown while it was never recorded."""

    url: str
    ended_at_ms: int | None
    end_reason: EndReason | None

    def describe(self) -> dict[str, Json]:
        """As answers show it."""
        ended = None if self.ended_at_ms is None else datetime.fromtimestamp(self.ended_at_ms / 1000, UTC)
        return {
            "url": self.url,
            "endedAtUtc": None if ended is None else ended.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "endReason": self.end_reason,
        }


class TargetJournal(Protocol):
    """Kept in the store by the server, in memory by tests."""

    async def next_number(self, kind: TargetKind) -> int: ...

    async def opened(self, event: TargetOpened) -> None: ...

    async def resumed(self, event: TargetOpened, number: int) -> None:
        """A kept sandbox is open again under its id; its number counts as given."""
        ...

    async def moved(self, target_id: str, url: str, at_ms: int) -> None: ...

    async def ended(self, target_id: str, reason: EndReason, at_ms: int, life: PageLife = STILL) -> None:
        """`life` is what the tab remembers of its pages, where it was a tab."""
        ...

    async def last_seen(self, principal: str, target_id: str) -> LastSeen | None: ...


class MemoryJournal:
    """A journal that forgets with the process."""

    def __init__(self) -> None:
        self.numbers: dict[TargetKind, int] = {}
        self.rows: dict[str, tuple[str, LastSeen]] = {}

    async def next_number(self, kind: TargetKind) -> int:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return self.numbers[kind]

    async def opened(self, event: TargetOpened) -> None:
        self.rows[event.target_id] = (event.principal, LastSeen(event.url, None, None))

    async def resumed(self, event: TargetOpened, number: int) -> None:
        self.numbers[event.kind] = max(number, self.numbers.get(event.kind, 0))
        await self.opened(event)

    async def moved(self, target_id: str, url: str, at_ms: int) -> None:
        if (row := self.rows.get(target_id)) is not None:
            self.rows[target_id] = (row[0], replace(row[1], url=url))

    async def ended(self, target_id: str, reason: EndReason, at_ms: int, life: PageLife = STILL) -> None:
        if (row := self.rows.get(target_id)) is not None:
            self.rows[target_id] = (row[0], LastSeen(row[1].url, at_ms, reason))

    async def last_seen(self, principal: str, target_id: str) -> LastSeen | None:
        row = self.rows.get(target_id)
        return row[1] if row is not None and row[0] == principal else None
