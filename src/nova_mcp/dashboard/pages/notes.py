"""What agents are told beside knowledge: notes about sites, working rules, and what a user wants remembered."""

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection

from nova_mcp.dashboard.data.principals import principals
from nova_mcp.memory.notes import domain_store, memory_store, operator_store
from nova_mcp.memory.notes.domain_model import DomainNote
from nova_mcp.memory.notes.model import MemoryRow, OperatorNote
from nova_mcp.memory.notes.rules import decay_score
from nova_mcp.memory.notes.tables import browser_memory, operator_note

Kind = Literal["domain", "operator", "memory"]
KINDS: Final[tuple[Kind, ...]] = ("domain", "operator", "memory")
LISTED: Final = 60


@dataclass(frozen=True, slots=True)
class Remembered:
    row: MemoryRow
    # How fresh it is, in percent; at 5 it is forgotten.
    fresh: int


@dataclass(frozen=True, slots=True)
class NotesView:
    """Notes of one kind, of every principal; `more` when not all of them are shown."""

    kind: Kind
    domain: str
    sites: tuple[DomainNote, ...] = ()
    rules: tuple[OperatorNote, ...] = ()
    memories: tuple[Remembered, ...] = ()
    more: bool = False


def notes(conn: Connection, kind: Kind, domain: str, now_ms: int) -> NotesView:
    host = domain.strip().lower()
    match kind:
        case "domain":
            found = domain_store.all_notes(conn, domain=host or None, most=LISTED + 1)
            return NotesView(kind, host, sites=found[:LISTED], more=len(found) > LISTED)
        case "operator":
            rules = _rules(conn)
            return NotesView(kind, "", rules=tuple(rules[:LISTED]), more=len(rules) > LISTED)
        case "memory":
            rows = _memories(conn, host or None)
            told = tuple(_remembered(one, now_ms) for one in rows[:LISTED])
            return NotesView(kind, host, memories=told, more=len(rows) > LISTED)


def _rules(conn: Connection) -> list[OperatorNote]:
    found: list[OperatorNote] = []
    for name in principals(conn, operator_note.c.principal):
        found += operator_store.every(conn, name, LISTED + 1)
    return sorted(found, key=lambda one: (-one.updated_at_ms, one.note_id))


def _memories(conn: Connection, host: str | None) -> list[MemoryRow]:
    found: list[MemoryRow] = []
    for name in principals(conn, browser_memory.c.principal):
        found += memory_store.every(conn, name, host, LISTED + 1 - len(found))
        if len(found) > LISTED:
            break
    return found


def _remembered(one: MemoryRow, now_ms: int) -> Remembered:
    return Remembered(one, round(100 * decay_score(one.memory_type, one.expires_at_ms, now_ms)))
