"""Words of a text as matching compares them, the terms they are found by, and how alike two of them are; pure."""

import functools
from collections.abc import Iterable
from typing import Final

from nova_mcp.tasks.filler_words import STOPWORDS
from nova_mcp.words import every_word

PREFIX_LETTERS: Final = 4
LEAST_LIKENESS: Final = 0.5


def tokens(text: str, host: str | None = None) -> tuple[str, ...]:
    """The words that tell something, each once; those of the host a query is about are told by its domain already."""
    of_host = () if host is None else every_word(host)
    return tuple(word for word in every_word(text) if word not in STOPWORDS and word not in of_host)


def index_terms(found: Iterable[str]) -> frozenset[str]:
    """Under which terms words are found: themselves, and the beginnings of the longer ones."""
    every = frozenset(found)
    return every | {word[:PREFIX_LETTERS] for word in every if len(word) > PREFIX_LETTERS}


@functools.lru_cache(maxsize=8192)
def trigrams(token: str) -> frozenset[str]:
    padded = f" {token} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def likeness(one: str, other: str) -> float:
    """1 for the same word, else how many trigrams two words share, and 0 where that is fewer than half."""
    if one == other:
        return 1.0
    left, right = trigrams(one), trigrams(other)
    shared = len(left & right)
    dice = 2 * shared / (len(left) + len(right))
    return dice if dice >= LEAST_LIKENESS else 0.0
