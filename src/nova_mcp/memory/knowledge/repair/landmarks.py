"""Where on a redesigned page an element is to be expected: between neighbours that can be told for certain; pure."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.page.selectors import looks_generated
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.print_similarity import family, label_of, words

# Fewer landmarks than these say nothing about an order.
_FEWEST: Final = 2
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Gap:
    """The landmarks on either side, by their places in both lists; the ends of a list are landmarks too."""

    old: tuple[int, int]
    new: tuple[int, int]

    def holds(self, at: int) -> bool:
        return self.new[0] < at < self.new[1]

    def narrowed(self, index: int, old: Sequence[ElementPrint], new: Sequence[ElementPrint]) -> "Gap":
        """The very place, where as many elements between the landmarks say the same as did before."""
        said = _said(old[index])
        before = [at for at in range(self.old[0] + 1, self.old[1]) if _said(old[at]) == said]
        after = [at for at in range(self.new[0] + 1, self.new[1]) if _said(new[at]) == said]
        if not label_of(old[index]) or len(before) != len(after):
            return self
        at = after[before.index(index)]
        return Gap((index - 1, index + 1), (at - 1, at + 1))


def _by_id(seen: ElementPrint) -> Hashable:
    return seen.id if seen.id and not looks_generated(seen.id) else None


def _by_name(seen: ElementPrint) -> Hashable:
    return (seen.tag, seen.type, seen.name) if seen.name else None


def _said(seen: ElementPrint) -> tuple[str, tuple[str, ...] | str, list[str]]:
    label = label_of(seen)
    return family(seen), words(label) or label, _NUMBERS.findall(label)


def _by_label(seen: ElementPrint) -> Hashable:
    kind, said, numbers = _said(seen)
    return (kind, said, *numbers) if said else None


_KEYS: Final[tuple[Callable[[ElementPrint], Hashable], ...]] = (_by_id, _by_name, _by_label)


def _singles(keys: Iterable[Hashable]) -> dict[Hashable, int]:
    listed = list(keys)
    counts = Counter(listed)
    return {key: at for at, key in enumerate(listed) if key is not None and counts[key] == 1}


def landmarks(old: Sequence[ElementPrint], new: Sequence[ElementPrint]) -> list[tuple[int, int]]:
    """Elements that only one of either page can be, by a key that is single on both, and by no other key another."""
    pairs: set[tuple[int, int]] = set()
    for key in _KEYS:
        before, after = _singles(map(key, old)), _singles(map(key, new))
        pairs |= {(before[one], after[one]) for one in before.keys() & after.keys()}
    olds, news = Counter(one for one, _ in pairs), Counter(one for _, one in pairs)
    return sorted(pair for pair in pairs if olds[pair[0]] == 1 == news[pair[1]])


def in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of landmarks that stayed in order; the others have moved."""
    tails: list[int] = []
    chain: list[int] = []
    came_from: list[int] = []
    for index, (_, at) in enumerate(pairs):
        length = bisect_left([pairs[one][1] for one in tails], at)
        came_from.append(tails[length - 1] if length else -1)
        tails[length : length + 1] = [index]
    index = tails[-1] if tails else -1
    while index >= 0:
        chain.append(index)
        index = came_from[index]
    return [pairs[one] for one in reversed(chain)]


def slot_of(index: int, known: Sequence[tuple[int, int]], sizes: tuple[int, int]) -> Gap | None:
    """Where the old element of this place is to be expected; None where too little stayed to tell."""
    others = in_order([pair for pair in known if pair[0] != index])
    if len(others) < _FEWEST:
        return None
    before = max((pair for pair in others if pair[0] < index), default=(-1, -1))
    after = min((pair for pair in others if pair[0] > index), default=sizes)
    return Gap((before[0], after[0]), (before[1], after[1]))
