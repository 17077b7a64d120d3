"""What callers have heard of notes and answered for; forgotten with the process, and with each target that closes."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, TypeVar

from nova_mcp.notes.domain_model import Ack, DomainNote, Form, Heard, NoteId
from nova_mcp.notes.domain_rules import after_telling, form_of
from nova_mcp.observation.model import Owner

K = TypeVar("K")
V = TypeVar("V")

# Whoever drops out of these is told in full again, or has to answer again: safe, and rare.
HEARD_KEPT: Final = 20_000
ACKS_KEPT: Final = 2_000


@dataclass(slots=True)
class _Target:
    """One target: interaction calls that were dispatched on it, who answered for what, who was warned of what."""

    calls: int = 0
    acks: OrderedDict[tuple[Owner, NoteId], Ack] = field(default_factory=OrderedDict)
    warned: OrderedDict[tuple[Owner, NoteId], Ack] = field(default_factory=OrderedDict)


class Deliveries:
    """One per server. A caller is a principal and the agent it speaks for."""

    def __init__(self) -> None:
        self._heard: OrderedDict[tuple[Owner, NoteId], Heard] = OrderedDict()
        self._targets: dict[str, _Target] = {}

    # -- texts

    def form(self, owner: Owner, note: DomainNote) -> Form:
        return form_of(self._heard.get((owner, note.note_id)), note.rev)

    def is_delivered(self, owner: Owner, note: DomainNote) -> bool:
        """Whether that caller has the current text in full."""
        heard = self._heard.get((owner, note.note_id))
        return heard is not None and heard.rev == note.rev

    def sent(self, owner: Owner, note: DomainNote, form: Form) -> None:
        """An answer that holds the note has been made."""
        now = after_telling(self._heard.pop((owner, note.note_id), None), note.rev, form)
        if now is not None:
            _keep(self._heard, (owner, note.note_id), now, HEARD_KEPT)

    # -- targets

    def calls(self, target_id: str) -> int:
        target = self._targets.get(target_id)
        return 0 if target is None else target.calls

    def dispatched(self, target_id: str) -> None:
        """An interaction call has reached that target's page."""
        self._target(target_id).calls += 1

    def ack(self, owner: Owner, target_id: str, note: DomainNote) -> Ack | None:
        target = self._targets.get(target_id)
        return None if target is None else target.acks.get((owner, note.note_id))

    def acknowledge(self, owner: Owner, target_id: str, note: DomainNote, now_ms: int) -> None:
        target = self._target(target_id)
        _keep(target.acks, (owner, note.note_id), Ack(note.rev, now_ms, target.calls), ACKS_KEPT)

    def last_warning(self, owner: Owner, target_id: str, note: DomainNote) -> Ack | None:
        target = self._targets.get(target_id)
        return None if target is None else target.warned.get((owner, note.note_id))

    def warned(self, owner: Owner, target_id: str, note: DomainNote, now_ms: int) -> None:
        target = self._target(target_id)
        _keep(target.warned, (owner, note.note_id), Ack(note.rev, now_ms, target.calls), ACKS_KEPT)

    def closed(self, target_id: str) -> None:
        self._targets.pop(target_id, None)

    def _target(self, target_id: str) -> _Target:
        return self._targets.setdefault(target_id, _Target())


def _keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
