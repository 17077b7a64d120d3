"""Words of a text as matching compares them, the terms they are found by, and how alike two of them are; pure."""

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from nova_mcp.tasks.words import STOPWORDS

PREFIX_LETTERS: Final = 4
LEAST_LIKENESS: Final = 0.5

_WORD: Final = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """One spelling for what reads the same; folding may undo the normal form, so that comes last again."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> tuple[str, ...]:
    """Every word of two letters or more, folded, in the order of the text."""
    return tuple(word for word in _WORD.findall(folded(text)) if len(word) > 1)


def tokens(text: str, host: str | None = None) -> tuple[str, ...]:
    """The words that tell something, each once; those of the host a query is about are told by its domain already."""
    of_host = frozenset(words(host)) if host is not None else frozenset()
    return tuple(dict.fromkeys(word for word in words(text) if word not in STOPWORDS and word not in of_host))


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
