"""How alike two fingerprints are: what they name, by weight, and how their texts read; pure."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from nova_mcp.memory.knowledge.matching.fingerprints import WEIGHTS, plain, spelled
from nova_mcp.memory.knowledge.model import Signal

COVERED: Final = 0.92
PATCH: Final = 0.88
_BITS: Final = 64


def similarity(one: Iterable[Signal], other: Iterable[Signal]) -> float:
    """From 0 to 1; texts that are nearly the same count for something even where no signal is."""
    left, right = tuple(one), tuple(other)
    named = jaccard(left, right)
    words = [" ".join(plain(signal.match) for signal in side if signal.kind == "text") for side in (left, right)]
    if not all(words):
        return named
    return 0.7 * named + 0.3 * likeness(simhash(words[0]), simhash(words[1]))


def jaccard(one: Iterable[Signal], other: Iterable[Signal]) -> float:
    left, right = ({(signal.kind, spelled(signal.kind, signal.match)) for signal in side} for side in (one, other))
    both, either = (sum(WEIGHTS[kind] for kind, _ in named) for named in (left & right, left | right))
    return both / either if either else 0.0


def simhash(text: str) -> int:
    """A number whose bits mostly stay when a few words change."""
    words = plain(text).split()
    features = Counter([*words, *(" ".join(pair) for pair in pairwise(words))])
    votes = [0] * _BITS
    for feature, weight in features.items():
        drawn = int.from_bytes(hashlib.sha256(feature.encode("utf-8", "replace")).digest()[: _BITS // 8], "big")
        for bit in range(_BITS):
            votes[bit] += weight if drawn >> bit & 1 else -weight
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def likeness(one: int, other: int) -> float:
    return 1 - (one ^ other).bit_count() / _BITS
