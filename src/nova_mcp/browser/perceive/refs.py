"""Refs and snapshots of one tab: a number given out once never comes to mean something else."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.browser.perceive.elements import ElementFacts, identity_key
from nova_mcp.browser.perceive.rules import Expected, origin_path
from nova_mcp.browser.perceive.scan_values import Found, Scan, SeenElement, Spot
from nova_mcp.browser.read.snapshots import IdentityKey, Snapshot, SnapshotShelf

__all__ = ["Perception", "Ref", "Snapshot", "snapshot_state", "structure_hash"]

KEPT_REFS: Final = 20_000
KEPT_VIEWS: Final = 8


@dataclass(frozen=True, slots=True)
class Ref:
    """What a ref was given out for, and the node it was last seen on."""

    name: str
    key: IdentityKey
    facts: ElementFacts
    node: int
    epoch: int
    origin_path: str
    selector: Found | None = None

    @property
    def expected(self) -> Expected:
        return Expected(self.facts, self.origin_path)


@dataclass(frozen=True, slots=True)
class _Pool:
    """Everything seen in one look: which nodes are alive, and how many share an identity."""

    nodes: frozenset[Spot]
    counts: Mapping[IdentityKey, int]


def _pool(elements: Sequence[SeenElement], keys: Sequence[IdentityKey]) -> _Pool:
    counts: dict[IdentityKey, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return _Pool(frozenset(element.spot for element in elements), counts)


def snapshot_state(scan: Scan, keys: Sequence[IdentityKey]) -> tuple[object, ...]:
    """Equal for two looks that show the same controls in the same state, headings and dialogs."""
    rows = tuple((key, e.value, e.flags, e.in_dialog) for e, key in zip(scan.elements, keys, strict=True))
    layers = tuple((layer.role, layer.name) for layer in scan.layers)
    blockers = tuple((blocker.kind, blocker.blocking) for blocker in scan.blockers)
    return scan.page.url, scan.page.title, rows, scan.headings, layers, blockers


def structure_hash(scan: Scan) -> str:
    """Equal for two pages built alike, whatever they say."""
    kinds = sorted({(e.facts.tag, e.facts.role, e.facts.type, e.in_nav, e.in_main) for e in scan.elements})
    body = [kinds, sorted({landmark.role for landmark in scan.landmarks})]
    return hashlib.sha256(json.dumps(body, ensure_ascii=True).encode("ascii")).hexdigest()[:32]


class Perception:
    """Refs and snapshots of one tab, in memory."""

    def __init__(self, shelf: SnapshotShelf | None = None) -> None:
        self._shelf = SnapshotShelf() if shelf is None else shelf
        self._owner = self._shelf.new_owner()
        self.rev = 0
        self.perceived_rev: int | None = None
        self._refs: dict[str, Ref] = {}
        self._by_node: dict[tuple[int, Spot], str] = {}
        self._by_identity: dict[tuple[str, IdentityKey], list[str]] = {}
        self._last_number = 0
        self._looks = 0
        # What each way of looking showed last.
        self._states: dict[tuple[object, ...], tuple[object, ...]] = {}
        self._epoch: int | None = None

    def get(self, name: str) -> Ref | None:
        return self._refs.get(name)

    def selected_by(self, selector: str, epoch: int) -> Ref | None:
        """The latest ref of this document that was shown with this selector."""
        found = (ref for ref in reversed(self._refs.values()) if ref.selector is not None and ref.epoch == epoch)
        return next((ref for ref in found if ref.selector is not None and ref.selector.selector == selector), None)

    def note(self, target_id: str, scan: Scan, epoch: int, now_ms: int, view: tuple[object, ...] = ()) -> Snapshot:
        """Keep a look; the revision rises when it differs from the one before that was taken the same way."""
        keys = tuple(identity_key(element.facts) for element in scan.elements)
        state = (epoch, *snapshot_state(scan, keys))
        before = self._states.pop(view, None)
        self._states[view] = state
        if len(self._states) > KEPT_VIEWS:
            del self._states[next(iter(self._states))]
        # Looking in a new way tells of no change, unless the page itself is another one.
        if state != before and (before is not None or epoch != self._epoch):
            self.rev += 1
        self._epoch = epoch
        self.perceived_rev = self.rev
        self._looks += 1
        snapshot = Snapshot(f"{target_id}.p{self._looks}", self.rev, epoch, scan, now_ms, keys, view)
        self._shelf.put(self._owner, snapshot)
        return snapshot

    def unnoted(self, scan: Scan, epoch: int) -> Snapshot:
        """A look as it would be kept, for comparing it with one that is."""
        return Snapshot("", self.rev, epoch, scan, 0, tuple(identity_key(element.facts) for element in scan.elements))

    def snapshot_of(self, rev: int, view: tuple[object, ...], now_ms: int) -> Snapshot | None:
        """The newest look of that revision that was taken that way."""
        fresh = self._shelf.fresh(self._owner, now_ms)
        return next((one for one in reversed(fresh) if one.rev == rev and one.view == view), None)

    def snapshot(self, perception_id: str, now_ms: int) -> Snapshot | None:
        fresh = self._shelf.fresh(self._owner, now_ms)
        return next((one for one in fresh if one.perception_id == perception_id), None)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        return self._shelf.of(self._owner)

    def close(self) -> None:
        """The tab is gone: nobody can ask about its pages any more."""
        self._shelf.forget(self._owner)

    def name(
        self, snapshot: Snapshot, elements: Sequence[SeenElement], selectors: Mapping[Spot, Found | None]
    ) -> dict[Spot, str]:
        """A ref for each of these elements of a look that was just taken."""
        scan = snapshot.scan
        pool = _pool(scan.elements, snapshot.keys)
        paths = {frame: origin_path(scan.url_of(frame)) for frame in {element.facts.frame for element in elements}}
        for element in elements:
            path = paths[element.facts.frame]
            found = selectors.get(element.spot)
            snapshot.names[element.spot] = self._assign(element, path, snapshot.epoch, pool, found)
            snapshot.selectors[element.spot] = found
        return snapshot.names

    def name_late(self, snapshot: Snapshot, element: SeenElement) -> str:
        """A ref for an element of a kept look; what is known of newer looks stays as it is."""
        known = snapshot.names.get(element.spot)
        if known is None:
            path, key = origin_path(snapshot.scan.url_of(element.facts.frame)), identity_key(element.facts)
            known = self._known(element, key, path, snapshot.epoch)
            if known is None:
                known = self._put(self._new_name(), element, key, path, snapshot.epoch, None)
            snapshot.names[element.spot] = known
        return known

    def assign(
        self,
        elements: Sequence[SeenElement],
        url: str,
        epoch: int,
        live: Sequence[SeenElement] = (),
        selectors: Mapping[int, Found | None] | None = None,
    ) -> list[str]:
        """A ref for each element, old ones where the element is known; `live` is everything seen in the same look."""
        path = origin_path(url)
        seen = live or elements
        pool = _pool(seen, [identity_key(element.facts) for element in seen])
        given = selectors or {}
        return [self._assign(element, path, epoch, pool, given.get(element.node)) for element in elements]

    def _assign(self, element: SeenElement, path: str, epoch: int, pool: _Pool, found: Found | None) -> str:
        key = identity_key(element.facts)
        name = self._known(element, key, path, epoch) or self._returned(key, path, epoch, pool)
        return self._put(name or self._new_name(), element, key, path, epoch, found)

    def _known(self, element: SeenElement, key: IdentityKey, path: str, epoch: int) -> str | None:
        name = self._by_node.get((epoch, element.spot))
        if name is None or self._refs[name].key != key or self._refs[name].origin_path != path:
            return None
        return name

    def _returned(self, key: IdentityKey, path: str, epoch: int, pool: _Pool) -> str | None:
        """The one ref whose node is gone and whose identity only one element of this look has."""
        if pool.counts.get(key) != 1:
            return None
        gone = [
            ref
            for name in self._by_identity.get((path, key), ())
            if (ref := self._refs[name]).epoch != epoch or (ref.facts.frame, ref.node) not in pool.nodes
        ]
        return gone[0].name if len(gone) == 1 else None

    def _new_name(self) -> str:
        self._last_number += 1
        return f"e{self._last_number}"

    def _put(
        self, name: str, element: SeenElement, key: IdentityKey, path: str, epoch: int, found: Found | None
    ) -> str:
        before = self._refs.get(name)
        if before is None:
            self._by_identity.setdefault((path, key), []).append(name)
        kept = found or (before.selector if before else None)
        self._refs[name] = Ref(name, key, element.facts, element.node, epoch, path, kept)
        self._by_node[(epoch, element.spot)] = name
        if len(self._refs) > KEPT_REFS or len(self._by_node) > 2 * KEPT_REFS:
            self._forget_oldest()
        return name

    def rebind(self, name: str, node: int, epoch: int) -> None:
        """The element of a ref was rendered anew."""
        ref = self._refs[name]
        self._refs[name] = replace(ref, node=node, epoch=epoch)
        self._by_node[(epoch, (ref.facts.frame, node))] = name

    def _forget_oldest(self) -> None:
        """A forgotten ref is stale; its number is not given out again."""
        kept = list(self._refs.values())[-(KEPT_REFS * 9 // 10) :]
        self._refs = {ref.name: ref for ref in kept}
        self._by_node = {(ref.epoch, (ref.facts.frame, ref.node)): ref.name for ref in kept}
        self._by_identity = {}
        for ref in kept:
            self._by_identity.setdefault((ref.origin_path, ref.key), []).append(ref.name)
