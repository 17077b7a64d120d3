"""Words of a text as matching compares them, the terms they are found by, and how alike two of them are; pure."""

import functools
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from nova_mcp.core.keywords import every_word
from nova_mcp.memory.tasks.profiles.filler_words import STOPWORDS

PREFIX_LETTERS: Final = 4
LEAST_LIKENESS: Final = 0.5
# Credits stand in the index as whole numbers.
FULL_CREDIT: Final = 10


def tokens(text: str, host: str | None = None) -> tuple[str, ...]:
    """The words that tell something, each once; those of the host a query is about are told by its domain already."""
    of_host = () if host is None else every_word(host)
    return tuple(word for word in every_word(text) if word not in STOPWORDS and word not in of_host)


def prefix_of(word: str) -> str | None:
    """The beginning that a longer word is found by as well."""
    return word[:PREFIX_LETTERS] if len(word) > PREFIX_LETTERS else None


def index_terms(found: Iterable[str]) -> frozenset[str]:
    """Under which terms words are found: themselves, and the beginnings of the longer ones."""
    every = frozenset(found)
    return every | {word[:PREFIX_LETTERS] for word in every if len(word) > PREFIX_LETTERS}


def term_credits(words: Mapping[str, float]) -> dict[str, int]:
    """The terms of a text whose words are worth so much, each with the most that is to be had under it."""
    found: dict[str, int] = {}
    for word, credit in words.items():
        worth = round(credit * FULL_CREDIT)
        for term in (word, prefix_of(word)):
            if term is not None:
                found[term] = max(worth, found.get(term, 0))
    return found


# Room for the words of a large task memory, a few megabytes of it.
@functools.lru_cache(maxsize=32_768)
def grams_of(token: str) -> tuple[str, ...]:
    """The trigrams of a word with a blank on either side, each once."""
    padded = f" {token} "
    # Words share most of them.
    return tuple(dict.fromkeys(sys.intern(padded[at : at + 3]) for at in range(len(padded) - 2)))


def trigrams(token: str) -> frozenset[str]:
    return frozenset(grams_of(token))


def likeness(one: str, other: str) -> float:
    """1 for the same word, else how many trigrams two words share, and 0 where that is fewer than half."""
    if one == other:
        return 1.0
    left, right = trigrams(one), trigrams(other)
    return dice(len(left & right), len(left), len(right))


def dice(shared: int, left: int, right: int) -> float:
    """How alike two words with so many trigrams are that share so many."""
    found = 2 * shared / (left + right)
    return found if found >= LEAST_LIKENESS else 0.0
