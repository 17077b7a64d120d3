"""Words of failure in four languages, from a list shipped as data."""

import functools
import json
import re
from importlib.resources import files

_NOT_WORD = re.compile(r"[^\w']+")


def _folded(text: str) -> str:
    return f" {_NOT_WORD.sub(' ', text.casefold().replace('’', chr(39))).strip()} "


@functools.cache
def _phrases() -> tuple[str, ...]:
    lists = json.loads(files("nova_mcp.browser").joinpath("data/error_words.json").read_text(encoding="utf-8"))
    return tuple(sorted({_folded(phrase) for phrases in lists.values() for phrase in phrases}))


def says_error(text: str) -> bool:
    """Whether a text contains a word of failure, as whole words."""
    folded = _folded(text)
    return any(phrase in folded for phrase in _phrases())
