"""Whether what Nova leaves out of a short answer can still be reached."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.peers import Hand, Said, TooSlow, WentWrong

QUERY: Final = "perceive_snapshot_query"
PAGE_SIZE: Final = 200
MAX_PAGES: Final = 300
_LINE: Final = re.compile(r'(?m)^(e\d+) (\w+) "((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class Room:
    """A page with the controls it is known to have; `far` are names of some that a look cannot hold."""

    page: str
    there: int
    far: Sequence[str] = ()


@dataclass(slots=True)
class Reach:
    """Controls shown at once, those that further questions to the same look gave, and a sample of those beyond it."""

    page: str
    there: int
    tokens: int = 0
    shown: int = 0
    listed: int = 0
    far: int = 0
    far_tried: int = 0
    note: str = ""

    @property
    def complete(self) -> bool:
        """Every control has a ref, or the look was cut short and every one that was tried had its own."""
        whole = self.listed >= self.there
        return not self.note and (whole or 0 < self.far_tried == self.far)


@dataclass(slots=True)
class _Found:
    refs: set[str] = field(default_factory=set)

    def add(self, said: Said) -> None:
        self.refs.update(found.group(1) for found in _LINE.finditer(said.text))


async def reach(hand: Hand, room: Room, url: str) -> Reach:
    """Open a page, look once, leaf through the rest of what that look holds, and search for what it left out."""
    told = Reach(room.page, room.there)
    found = _Found()
    try:
        await hand.open(url)
        look = await hand.look()
        found.add(look)
        told.tokens, told.shown = look.read, len(found.refs)
        await _leaf_through(hand, str(look.structured["perceptionId"]), found)
        told.listed = len(found.refs)
        for name in room.far:
            told.far_tried += 1
            told.far += await _is_found(hand, name)
    except (TooSlow, WentWrong) as problem:
        told.note = " ".join(str(problem).split())[:110]
    return told


async def _leaf_through(hand: Hand, perception_id: str, found: _Found) -> None:
    offset: int | None = 0
    for _ in range(MAX_PAGES):
        wanted = {"perceptionId": perception_id, "op": "elements", "offset": offset, "limit": PAGE_SIZE}
        answer = await _unlisted(hand, QUERY, {**wanted, "maxTokens": 20_000})
        found.add(answer)
        offset = answer.structured.get("nextOffset")
        if offset is None:
            return


async def _is_found(hand: Hand, name: str) -> bool:
    """One element says exactly this, and a ref for it is alive."""
    answer = await hand.server.call("nova.search_text", {"text": name, "match": "exact"})
    matches = answer.structured["matches"]
    if len(matches) != 1:
        return False
    ref = matches[0]["ref"]
    seen = await _unlisted(hand, "perceive", {"mode": "state", "resolveRefs": [ref]})
    resolved: list[dict[str, Any]] = seen.structured.get("resolved", [])
    return any(one["ref"] == ref and one["live"] for one in resolved)


async def _unlisted(hand: Hand, tool: str, arguments: dict[str, Any]) -> Said:
    return await hand.server.call("nova.call", {"tool": tool, "args": arguments})
