"""The facts of one frame as its page tells them: what it is asked, and what its answers mean."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nova_mcp.core.values import Json
from nova_mcp.verification.contracts.fact_keys import FactRef, to_page
from nova_mcp.verification.model import Fact, FactAddress, Seen, TraceError, Unseen
from nova_mcp.verification.witness import FactHints

_ERRORS: Final[Mapping[str, TraceError]] = {
    "fact_not_found": "fact_not_found",
    "fact_unreadable": "fact_unreadable",
    "stale_fact": "stale_fact",
}


@dataclass(slots=True)
class FrameFacts:
    """One frame's facts and how far it has told them; `frame_id` is None for the page's main frame.

    `base` is what the page remembered when it was first asked; it is handed to the documents that follow.
    """

    frame_id: str | None
    refs: Mapping[FactAddress, FactRef]
    facts: Mapping[FactAddress, Fact] = field(default_factory=dict)
    base: Json = None
    ready: bool = False
    changed: bool = False
    # What an earlier document of this frame had seen of the action; the next one can't know.
    carried: bool = False
    gone: bool = False
    # The page has to be asked (again): it was never armed, or its document is another one.
    due: bool = True
    watch_id: str = ""
    seq: int = -1

    def renew(self) -> None:
        """Another document: what the old one said is no longer known."""
        self.facts = self.all_unseen("fact_unreadable")
        self.carried = self.carried or self.changed
        self.ready = False
        self.due = True
        self.watch_id = secrets.token_hex(8)
        self.seq = -1

    def lose(self) -> None:
        """The frame is no longer in the page."""
        self.facts = self.all_unseen("frame_mismatch")
        self.gone, self.due = True, False

    def all_unseen(self, error: TraceError) -> dict[FactAddress, Fact]:
        return dict.fromkeys(self.refs, Unseen(error))

    def take(self, told: Json) -> bool:
        """Take over what the page told, unless something newer is known; False when it was not an answer."""
        if not isinstance(told, dict) or not isinstance(values := told.get("values"), list):
            return False
        if len(values) != len(self.refs):
            return False
        self.due = False
        seq = told.get("seq")
        if isinstance(seq, int):
            if seq < self.seq:
                return True
            self.seq = seq
        self.facts = {address: _fact(value) for address, value in zip(self.refs, values, strict=True)}
        self.base = told.get("base")
        self.ready = told.get("ready") is True
        self.changed = self.carried or told.get("changed") is True
        return True


def question(frame: FrameFacts, hints: FactHints) -> dict[str, Json]:
    """What the page is asked for all facts of one frame at once."""
    asked: list[Json] = [
        {**to_page(ref), "compare": list(hints.compared[ref.key])} if ref.key in hints.compared else to_page(ref)
        for ref in frame.refs.values()
    ]
    return {"facts": asked, "text": hints.text, "label": hints.label, "base": frame.base}


def _fact(told: Json) -> Fact:
    if not isinstance(told, dict) or "v" not in told:
        error = told.get("e") if isinstance(told, dict) else None
        return Unseen(_ERRORS.get(str(error), "fact_unreadable"))
    return Seen(told["v"], str(told.get("s") or ""), _masked(told.get("m")))


def _masked(told: Json) -> dict[str, bool] | None:
    """What the page said of a value it keeps to itself: each text it was compared with, and whether it is the same."""
    if not isinstance(told, list):
        return None
    pairs = [pair for pair in told if isinstance(pair, list) and len(pair) == 2]
    return {str(text): same is True for text, same in pairs}
