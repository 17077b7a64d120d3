"""Ids of frames, short enough to stand in every line that needs one."""

from collections.abc import Iterable
from typing import Final

# The browser's own ids are long and random, so their beginnings tell the frames of a page apart.
SHOWN_CHARS: Final = 8


def shown_id(frame_id: str) -> str:
    """The beginning of an id, as it is given out."""
    return frame_id[:SHOWN_CHARS]


def whole_id(given: str, known: Iterable[str]) -> str | None:
    """The one known id that is meant: the same, or the only one that begins so."""
    candidates = set(known)
    if given in candidates:
        return given
    found = [one for one in candidates if one.startswith(given)] if len(given) >= SHOWN_CHARS else []
    return found[0] if len(found) == 1 else None
