"""Letters that look like Latin ones: what a word spelt with them is seen as, and which words mix alphabets."""

import functools
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_LATIN: Final = re.compile(r"[a-z]")
_LETTER: Final = re.compile(r"[^\W\d_]")
# Alphabets with letters that pass for Latin ones. Those that nobody takes for them may stand beside them.
_PASSING: Final = re.compile(
    r"[\u0250-\u02af\u0370-\u058f\u10a0-\u10ff\u13a0-\u13ff\u1d00-\u1dbf\u2c80-\u2d2f\ua4d0-\ua4ff\ua720-\ua7ff"
    r"\uab30-\uabbf]"
)


@functools.cache
def _seen_as() -> Mapping[int, int]:
    """The table by small letters; the page reads the same one.

    Where a capital and its small letter look like two Latin ones, it holds the one that words of consent need.
    """
    raw = json.loads(files("nova_mcp.core.page").joinpath("data/look_alikes.json").read_text("utf-8"))
    return str.maketrans(raw["from"], raw["to"])


def as_seen(words: tuple[str, ...]) -> tuple[str, ...]:
    """The same words in Latin letters, where every letter of a word can be taken for one."""
    return tuple(_latin(word) for word in words)


def _latin(word: str) -> str:
    if _LETTER.search(word) is None:
        return word
    seen = word.translate(_seen_as())
    return seen if seen.isascii() else word


def mixes_alphabets(words: tuple[str, ...]) -> bool:
    """Whether a word is spelt with letters of two alphabets that look alike, which no honest word is."""
    return any(_LATIN.search(word) is not None and _PASSING.search(word) is not None for word in words)
