"""What changed between two looks at a page: what came, what changed its state, what is gone."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.browser.read.snapshots import IdentityKey, Snapshot

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Delta(Generic[K, V]):
    """The way from one list to another; both are read as one entry per key."""

    added: Mapping[K, V]
    changed: Mapping[K, V]
    removed: tuple[K, ...]


def difference(old: Mapping[K, V], new: Mapping[K, V]) -> Delta[K, V]:
    return Delta(
        added={key: value for key, value in new.items() if key not in old},
        changed={key: value for key, value in new.items() if key in old and old[key] != value},
        removed=tuple(key for key in old if key not in new),
    )


def applied(old: Mapping[K, V], delta: Delta[K, V]) -> dict[K, V]:
    """The new list: what stayed in its old order, then what came."""
    gone = set(delta.removed)
    kept = {key: delta.changed.get(key, value) for key, value in old.items() if key not in gone}
    return kept | dict(delta.added)


ElementKey = tuple[IdentityKey, int, str]
ElementState = tuple[str, tuple[str, ...], bool]


def element_states(
    snapshot: Snapshot, repeated: frozenset[IdentityKey]
) -> dict[ElementKey, tuple[ElementState, SeenElement]]:
    """Elements of a look by what tells them apart: their identity, and their node only where an identity repeats."""
    states = {}
    for element, key in zip(snapshot.scan.elements, snapshot.keys, strict=True):
        if not element.behind:
            apart = (key, element.node, element.facts.frame) if key in repeated else (key, 0, "")
            states[apart] = ((element.value, element.flags, element.in_dialog), element)
    return states


def repeated_keys(*snapshots: Snapshot) -> frozenset[IdentityKey]:
    found: set[IdentityKey] = set()
    for snapshot in snapshots:
        found |= {key for key, count in Counter(snapshot.keys).items() if count > 1}
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Changes:
    """The elements behind a delta; `removed` as they were last seen."""

    added: tuple[SeenElement, ...]
    changed: tuple[SeenElement, ...]
    removed: tuple[SeenElement, ...]

    @property
    def total(self) -> int:
        return len(self.added) + len(self.changed) + len(self.removed)


def changes(old: Snapshot, new: Snapshot) -> Changes:
    """Elements that came, changed their state or went between two looks."""
    repeated = repeated_keys(old, new)
    before, after = element_states(old, repeated), element_states(new, repeated)
    delta = difference(
        {key: state for key, (state, _) in before.items()}, {key: state for key, (state, _) in after.items()}
    )
    return Changes(
        added=_elements(after, tuple(delta.added)),
        changed=_elements(after, tuple(delta.changed)),
        removed=_elements(before, delta.removed),
    )


def _elements(
    states: Mapping[ElementKey, tuple[ElementState, SeenElement]], keys: Sequence[ElementKey]
) -> tuple[SeenElement, ...]:
    return tuple(states[key][1] for key in keys)
