"""Keeps notes about hosts; every query is limited to one principal and what is meant for everybody."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from nova_mcp.memory.notes.domain_model import DomainNote, NoteId, Wish
from nova_mcp.memory.notes.domain_rules import (
    DAY_MS,
    MOST_ENFORCED_CHARS,
    UNUSED_MS,
    Change,
    Create,
    Delete,
    Full,
    NoSuchNote,
    RevConflict,
    TooLong,
    Unchanged,
    UserOwned,
    decide_removal,
    decide_write,
)
from nova_mcp.memory.notes.model import EVERYBODY
from nova_mcp.memory.notes.tables import domain_note
from nova_mcp.storage.writer_lock import hold

WriteKind = Literal["created", "updated", "unchanged"]
STORE: Final = "domain_note"
STEP: Final = 200
# A note that is named often is not written down as delivered every time.
DELIVERED_AGAIN_MS: Final = DAY_MS

_C = domain_note.c
_OTHERS: Final = [column for column in domain_note.columns if column.name != "value"]
_WHOLE: Final = select(*_OTHERS, _C.value, func.length(_C.value).label("chars"))
# Enough for every note that can stop or warn, and for the beginning of every other.
_BRIEF: Final = select(
    *_OTHERS, func.substr(_C.value, 1, MOST_ENFORCED_CHARS).label("value"), func.length(_C.value).label("chars")
)
_MINE: Final = _C.principal.in_((bindparam("principal"), EVERYBODY))
_AT: Final = _C.domain.in_(bindparam("domains", expanding=True))
_BRIEFS: Final = _BRIEF.where(_AT, _MINE)
_ENFORCED: Final = _BRIEF.where(_C.domain == bindparam("domain"), _MINE, _C.enforcement != "none")
_NOTES: Final = _WHOLE.where(_AT, _MINE).order_by(_C.key, _C.principal)


def _note(row: Any) -> DomainNote:
    return DomainNote(
        note_id=NoteId(row.note_id),
        principal=row.principal,
        domain=row.domain,
        key=row.key,
        value=row.value,
        source=row.source,
        enforcement=row.enforcement,
        repeat_minutes=row.repeat_minutes,
        repeat_tool_calls=row.repeat_tool_calls,
        rev=row.rev,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        last_delivered_at_ms=row.last_delivered_at_ms,
        chars=row.chars,
    )


# -- reading


def notes_of(
    conn: Connection, principal: str, domains: Collection[str], key: str | None = None
) -> tuple[DomainNote, ...]:
    """Everything that principal may see of these hosts, whole; in the order of their keys."""
    wanted = _NOTES if key is None else _NOTES.where(_C.key == key)
    return tuple(map(_note, conn.execute(wanted, {"principal": principal, "domains": sorted(set(domains))})))


def briefs(conn: Connection, principal: str, domains: Collection[str]) -> tuple[DomainNote, ...]:
    """The same with the beginning of long texts."""
    return tuple(map(_note, conn.execute(_BRIEFS, {"principal": principal, "domains": sorted(set(domains))})))


def enforced(conn: Connection, principal: str, domain: str) -> tuple[DomainNote, ...]:
    """Those of one host that warn or block."""
    return tuple(map(_note, conn.execute(_ENFORCED, {"principal": principal, "domain": domain})))


def all_notes(
    conn: Connection, principal: str | None = None, domain: str | None = None, most: int | None = None
) -> tuple[DomainNote, ...]:
    """For the operator: whole notes of every principal, or of one, in all hosts or in one."""
    wanted = _WHOLE.order_by(_C.domain, _C.key, _C.principal)
    if principal is not None:
        wanted = wanted.where(_C.principal == principal)
    if domain is not None:
        wanted = wanted.where(_C.domain == domain)
    return tuple(map(_note, conn.execute(wanted.limit(most))))


def of_anybody(conn: Connection, note_id: str) -> DomainNote | None:
    """For the operator: a note whoever it is for."""
    row = conn.execute(_WHOLE.where(_C.note_id == note_id)).one_or_none()
    return None if row is None else _note(row)


# -- writing


@dataclass(frozen=True, slots=True)
class Written:
    """A note as it stands after a write, and how many its principal has for that host."""

    action: WriteKind
    note: DomainNote
    note_count: int


def put(
    conn: Connection, wish: Wish, now_ms: int, new_id: Callable[[], str]
) -> Written | RevConflict | UserOwned | TooLong | Full:
    """Create or change the note of that principal, host and key."""
    hold(conn, STORE, wish.principal)
    current = _current(conn, wish.principal, wish.domain, wish.key)
    of_host, of_principal = _counts(conn, wish.principal, wish.domain)
    match decide_write(wish, current, of_host, of_principal, now_ms):
        case Create(_, enforcement, (minutes, calls)):
            made = DomainNote(
                note_id=NoteId(new_id()),
                principal=wish.principal,
                domain=wish.domain,
                key=wish.key,
                value=wish.value,
                source=wish.source,
                enforcement=enforcement,
                repeat_minutes=minutes,
                repeat_tool_calls=calls,
                rev=1,
                created_at_ms=now_ms,
                updated_at_ms=now_ms,
                last_delivered_at_ms=None,
                chars=len(wish.value),
            )
            conn.execute(insert(domain_note), _row(made))
            return Written("created", made, of_host + 1)
        case Change(note):
            conn.execute(update(domain_note).where(_C.note_id == note.note_id).values(_changed(note)))
            return Written("updated", note, of_host)
        case Unchanged(note):
            return Written("unchanged", note, of_host)
        case refused:
            return refused


def remove(
    conn: Connection, wish_of: tuple[str, bool], domain: str, key: str, expected_rev: int | None = None
) -> Delete | NoSuchNote | RevConflict | UserOwned:
    """Delete a principal's note; `wish_of` is whose, and whether the operator asks."""
    hold(conn, STORE, wish_of[0])
    decision = decide_removal(notes_of(conn, wish_of[0], (domain,), key), wish_of, expected_rev)
    if isinstance(decision, Delete):
        conn.execute(delete(domain_note).where(_C.note_id == decision.note.note_id))
    return decision


def _current(conn: Connection, principal: str, domain: str, key: str) -> DomainNote | None:
    row = conn.execute(_WHOLE.where(_C.principal == principal, _C.domain == domain, _C.key == key)).one_or_none()
    return None if row is None else _note(row)


def _counts(conn: Connection, principal: str, domain: str) -> tuple[int, int]:
    """How many notes a principal has for a host, and in all."""
    of_host = func.count().filter(_C.domain == domain)
    row = conn.execute(select(of_host, func.count()).where(_C.principal == principal)).one()
    return int(row[0]), int(row[1])


def _row(note: DomainNote) -> dict[str, object]:
    return {column.name: getattr(note, column.name) for column in domain_note.columns}


def _changed(note: DomainNote) -> dict[str, object]:
    kept = ("note_id", "principal", "domain", "key", "created_at_ms", "last_delivered_at_ms")
    return {name: value for name, value in _row(note).items() if name not in kept}


# -- use

_DELIVERED: Final = (
    update(domain_note).where(_C.note_id == bindparam("of_note")).values(last_delivered_at_ms=bindparam("at_ms"))
)


def stale_deliveries(notes: Sequence[DomainNote], now_ms: int) -> tuple[NoteId, ...]:
    """Whose delivery time is worth writing down again, in the order in which rows are touched."""
    due = (
        note.note_id
        for note in notes
        if note.last_delivered_at_ms is None or now_ms - note.last_delivered_at_ms >= DELIVERED_AGAIN_MS
    )
    return tuple(sorted(due))


def delivered(conn: Connection, note_ids: Sequence[NoteId], now_ms: int) -> None:
    """These stood in an answer."""
    if note_ids:
        conn.execute(_DELIVERED, [{"of_note": note_id, "at_ms": now_ms} for note_id in note_ids])


# -- forgetting


def _unused(now_ms: int) -> Any:
    before = now_ms - UNUSED_MS
    return and_(
        _C.source == "agent",
        _C.enforcement == "none",
        _C.updated_at_ms <= before,
        or_(_C.last_delivered_at_ms.is_(None), _C.last_delivered_at_ms <= before),
    )


def forget(conn: Connection, now_ms: int) -> int:
    """One step: hints of agents that nobody changed or was told for half a year."""
    unused = select(_C.note_id).where(_unused(now_ms)).order_by(_C.note_id).limit(STEP)
    gone = list(conn.execute(unused.with_for_update(skip_locked=True)).scalars())
    if gone:
        conn.execute(delete(domain_note).where(_C.note_id.in_(gone)))
    return len(gone)


def due_to_go(conn: Connection, now_ms: int) -> int:
    """How many a run would forget."""
    return int(conn.execute(select(func.count()).select_from(domain_note).where(_unused(now_ms))).scalar_one())
