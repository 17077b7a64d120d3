"""Refs and snapshots of one tab: a number given out once never comes to mean something else."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.browser.elements import ElementFacts, identity
from nova_mcp.browser.rules import Expected, origin_path
from nova_mcp.browser.seen import Found, Scan, SeenElement
from nova_mcp.browser.snapshots import Snapshot, SnapshotShelf

__all__ = ["Perception", "Ref", "Snapshot", "identities", "snapshot_hash", "structure_hash"]

KEPT_REFS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Ref:
    """What a ref was given out for, and the node it was last seen on."""

    name: str
    identity: str
    facts: ElementFacts
    node: int
    epoch: int
    origin_path: str
    selector: Found | None = None

    @property
    def expected(self) -> Expected:
        return Expected(self.facts, self.origin_path)


def identities(elements: Sequence[SeenElement]) -> dict[ElementFacts, str]:
    """The identity of each element of a look, worked out once."""
    return {element.facts: identity(element.facts) for element in elements}


def snapshot_hash(scan: Scan, keys: Mapping[ElementFacts, str] | None = None) -> str:
    """Equal for two looks that show the same controls in the same state, headings and dialogs."""
    known = identities(scan.elements) if keys is None else keys
    rows = [[known[e.facts], e.value, list(e.flags), e.in_dialog] for e in scan.elements]
    body = [
        scan.page.url,
        scan.page.title,
        rows,
        [[h.level, h.text] for h in scan.headings],
        [[layer.role, layer.name] for layer in scan.layers],
    ]
    return hashlib.sha256(json.dumps(body, ensure_ascii=True).encode("ascii")).hexdigest()


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
        self._by_node: dict[tuple[int, str, int], str] = {}
        self._by_identity: dict[tuple[str, str], list[str]] = {}
        self._last_number = 0
        self._looks = 0
        self._hash = ""
        self._keys: Mapping[ElementFacts, str] = {}

    def get(self, name: str) -> Ref | None:
        return self._refs.get(name)

    def note(self, target_id: str, scan: Scan, epoch: int, now_ms: int) -> Snapshot:
        """Keep a look; the revision rises when it differs from the one before."""
        self._keys = identities(scan.elements)
        seen = f"{epoch}:{snapshot_hash(scan, self._keys)}"
        if seen != self._hash:
            self._hash = seen
            self.rev += 1
        self.perceived_rev = self.rev
        self._looks += 1
        snapshot = Snapshot(f"{target_id}.p{self._looks}", self.rev, epoch, scan, now_ms)
        self._shelf.put(self._owner, snapshot)
        return snapshot

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        return self._shelf.of(self._owner)

    def close(self) -> None:
        """The tab is gone: nobody can ask about its pages any more."""
        self._shelf.forget(self._owner)

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
        pool = live or elements
        nodes = {(element.facts.frame, element.node) for element in pool}
        counts: dict[str, int] = {}
        for element in pool:
            key = self._key(element)
            counts[key] = counts.get(key, 0) + 1
        names = []
        for element in elements:
            key = self._key(element)
            name = self._known(element, key, path, epoch) or self._returned(key, path, epoch, nodes, counts)
            found = (selectors or {}).get(element.node)
            names.append(self._put(name or self._new_name(), element, key, path, epoch, found))
        return names

    def _key(self, element: SeenElement) -> str:
        return self._keys.get(element.facts) or identity(element.facts)

    def _known(self, element: SeenElement, key: str, path: str, epoch: int) -> str | None:
        name = self._by_node.get((epoch, element.facts.frame, element.node))
        if name is None or self._refs[name].identity != key or self._refs[name].origin_path != path:
            return None
        return name

    def _returned(
        self, key: str, path: str, epoch: int, nodes: set[tuple[str, int]], counts: Mapping[str, int]
    ) -> str | None:
        """The one ref whose node is gone and whose identity only one element of this look has."""
        if counts.get(key) != 1:
            return None
        gone = [
            ref
            for name in self._by_identity.get((path, key), ())
            if (ref := self._refs[name]).epoch != epoch or (ref.facts.frame, ref.node) not in nodes
        ]
        return gone[0].name if len(gone) == 1 else None

    def _new_name(self) -> str:
        self._last_number += 1
        return f"e{self._last_number}"

    def _put(self, name: str, element: SeenElement, key: str, path: str, epoch: int, found: Found | None) -> str:
        before = self._refs.get(name)
        if before is None:
            self._by_identity.setdefault((path, key), []).append(name)
        kept = found or (before.selector if before else None)
        self._refs[name] = Ref(name, key, element.facts, element.node, epoch, path, kept)
        self._by_node[(epoch, element.facts.frame, element.node)] = name
        if len(self._refs) > KEPT_REFS or len(self._by_node) > 2 * KEPT_REFS:
            self._forget_oldest()
        return name

    def rebind(self, name: str, node: int, epoch: int) -> None:
        """The element of a ref was rendered anew."""
        ref = self._refs[name]
        self._refs[name] = replace(ref, node=node, epoch=epoch)
        self._by_node[(epoch, ref.facts.frame, node)] = name

    def _forget_oldest(self) -> None:
        """A forgotten ref is stale; its number is not given out again."""
        kept = list(self._refs.values())[-(KEPT_REFS * 9 // 10) :]
        self._refs = {ref.name: ref for ref in kept}
        self._by_node = {(ref.epoch, ref.facts.frame, ref.node): ref.name for ref in kept}
        self._by_identity = {}
        for ref in kept:
            self._by_identity.setdefault((ref.origin_path, ref.identity), []).append(ref.name)
