"""Perceived pages kept for later questions: a few per tab, for a while, and never more than a fixed weight in all."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from nova_mcp.browser.perceive.scan_values import Found, Scan, Spot

KEPT_PER_TAB: Final = 20
KEPT_MS: Final = 10 * 60 * 1000
KEPT_BYTES: Final = 64 * 1024 * 1024
# What an element and a look weigh in memory beside their texts, measured.
_ELEMENT_BYTES: Final = 900
_LOOK_BYTES: Final = 4000


IdentityKey: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One perceived page; `keys` are the identities of its elements, in their order.

    `names` and `selectors` grow while questions about it are answered.
    """

    perception_id: str
    rev: int
    epoch: int
    scan: Scan
    taken_ms: int
    keys: tuple[IdentityKey, ...] = ()
    view: tuple[object, ...] = ()
    names: dict[Spot, str] = field(default_factory=dict)
    selectors: dict[Spot, Found | None] = field(default_factory=dict)


def weight(scan: Scan) -> int:
    """Roughly how many bytes a look holds."""
    texts = sum(len(e.facts.name) + len(e.facts.row_key) + len(e.facts.href_path) + len(e.value) for e in scan.elements)
    return _LOOK_BYTES + _ELEMENT_BYTES * len(scan.elements) + texts


@dataclass(frozen=True, slots=True)
class _Kept:
    owner: int
    snapshot: Snapshot
    weight: int


class SnapshotShelf:
    """The snapshots of all tabs that share it, oldest first."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()
        self._owners = 0
        self.total_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def new_owner(self) -> int:
        self._owners += 1
        return self._owners

    def put(self, owner: int, snapshot: Snapshot) -> None:
        """Keep one more; what is too old, too many for its tab or too heavy in all goes."""
        self._kept.append(_Kept(owner, snapshot, weight(snapshot.scan)))
        mine = [kept for kept in self._kept if kept.owner == owner]
        surplus = {id(kept) for kept in mine[:-KEPT_PER_TAB]}
        oldest_ms = snapshot.taken_ms - KEPT_MS
        self._keep([k for k in self._kept if id(k) not in surplus and k.snapshot.taken_ms >= oldest_ms])
        while self.total_bytes > KEPT_BYTES and len(self._kept) > 1:
            self.total_bytes -= self._kept.popleft().weight

    def of(self, owner: int) -> tuple[Snapshot, ...]:
        return tuple(kept.snapshot for kept in self._kept if kept.owner == owner)

    def fresh(self, owner: int, now_ms: int) -> tuple[Snapshot, ...]:
        """The snapshots of a tab that are not too old yet."""
        return tuple(snapshot for snapshot in self.of(owner) if snapshot.taken_ms >= now_ms - KEPT_MS)

    def forget(self, owner: int) -> None:
        self._keep([kept for kept in self._kept if kept.owner != owner])

    def _keep(self, kept: list[_Kept]) -> None:
        self._kept = deque(kept)
        self.total_bytes = sum(one.weight for one in kept)
