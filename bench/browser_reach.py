"""Whether what Nova leaves out of a short answer can still be reached."""

import re
from dataclasses import dataclass

from bench.peers import Hand, TooSlow, WentWrong

QUERY = "perceive_snapshot_query"
PAGE_SIZE = 200
MAX_PAGES = 300
_REF = re.compile(r"(?m)^(e\d+) ")


@dataclass(frozen=True, slots=True)
class Reach:
    """Controls of a page that were shown at once, and those that further questions to the same look gave."""

    page: str
    there: int
    tokens: int
    shown: int
    listed: int
    note: str = ""


async def reach(hand: Hand, page: str, url: str, there: int) -> Reach:
    """Open a page, look once, and leaf through the rest of what that look holds."""
    shown: set[str] = set()
    listed: set[str] = set()
    read, note = 0, ""
    try:
        await hand.open(url)
        look = await hand.look()
        read, shown = look.read, set(_REF.findall(look.text))
        listed = await _listed(hand, str(look.structured["perceptionId"]))
    except (TooSlow, WentWrong) as problem:
        note = " ".join(str(problem).split())[:110]
    return Reach(page, there, read, len(shown), len(listed | shown), note)


async def _listed(hand: Hand, perception_id: str) -> set[str]:
    found: set[str] = set()
    offset: int | None = 0
    for _ in range(MAX_PAGES):
        wanted = {"perceptionId": perception_id, "op": "elements", "offset": offset, "limit": PAGE_SIZE}
        answer = await hand.server.call("nova.call", {"tool": QUERY, "args": {**wanted, "maxTokens": 20_000}})
        found.update(_REF.findall(answer.text))
        offset = answer.structured.get("nextOffset")
        if offset is None:
            break
    return found
