"""What connections have been told of notes, and what callers have answered for; forgotten with the process."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.values import Owner
from nova_mcp.memory.notes.domain_model import Ack, DomainNote, Form, Heard, NoteId
from nova_mcp.memory.notes.domain_rules import after_telling, form_of

# A caller whose answer drops out of these has to answer again: safe, and rare.
ACKS_KEPT: Final = 2_000


@dataclass(slots=True)
class _Target:
    """One target: interaction calls that were dispatched on it, and who answered for what."""

    calls: int = 0
    acks: OrderedDict[tuple[Owner, NoteId], Ack] = field(default_factory=OrderedDict)


def _text(note: DomainNote) -> Hashable:
    return "site note", note.note_id


def _warning(target_id: str, note: DomainNote) -> Hashable:
    return "site note warning", target_id, note.note_id


class Deliveries:
    """One per server. Texts belong to a connection; an answer belongs to a caller, a principal and its agent."""

    def __init__(self) -> None:
        self._targets: dict[str, _Target] = {}

    # -- texts

    def form(self, connection: AgentConnection, note: DomainNote) -> Form:
        return form_of(_heard(connection, note), note.rev)

    def is_delivered(self, connection: AgentConnection, note: DomainNote) -> bool:
        """Whether that connection has the current text in full."""
        heard = _heard(connection, note)
        return heard is not None and heard.rev == note.rev

    def sent(self, connection: AgentConnection, note: DomainNote, form: Form) -> None:
        """An answer that holds the note has been made."""
        now = after_telling(_heard(connection, note), note.rev, form)
        if now is not None:
            connection.deliver(_text(note), now)

    # -- targets

    def calls(self, target_id: str) -> int:
        target = self._targets.get(target_id)
        return 0 if target is None else target.calls

    def dispatched(self, target_id: str) -> None:
        """An interaction call has reached that target's page."""
        self._target(target_id).calls += 1

    def ack(self, connection: AgentConnection, target_id: str, note: DomainNote) -> Ack | None:
        """What the caller answered for; it counts for a connection that was sent the text, not for a later one."""
        target = self._targets.get(target_id)
        if target is None or not self.is_delivered(connection, note):
            return None
        return target.acks.get((connection.owner, note.note_id))

    def acknowledge(self, owner: Owner, target_id: str, note: DomainNote, now_ms: int) -> None:
        target = self._target(target_id)
        target.acks[owner, note.note_id] = Ack(note.rev, now_ms, target.calls)
        target.acks.move_to_end((owner, note.note_id))
        while len(target.acks) > ACKS_KEPT:
            target.acks.popitem(last=False)

    def last_warning(self, connection: AgentConnection, target_id: str, note: DomainNote) -> Ack | None:
        return connection.delivered(_warning(target_id, note), None)

    def warned(self, connection: AgentConnection, target_id: str, note: DomainNote, now_ms: int) -> None:
        connection.deliver(_warning(target_id, note), Ack(note.rev, now_ms, self.calls(target_id)))

    def closed(self, target_id: str) -> None:
        self._targets.pop(target_id, None)

    def _target(self, target_id: str) -> _Target:
        return self._targets.setdefault(target_id, _Target())


def _heard(connection: AgentConnection, note: DomainNote) -> Heard | None:
    nothing: Heard | None = None
    return connection.delivered(_text(note), nothing)
