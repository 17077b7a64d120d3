"""Keeps working rules that apply across tasks; a principal sees its own and those written for everybody."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, select, update

from nova_mcp.core.keywords import plain
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.notes.model import EVERYBODY, OperatorNote, Source
from nova_mcp.memory.notes.rules import folded_identity, pick_idle
from nova_mcp.memory.notes.tables import operator_note
from nova_mcp.storage.writer_lock import hold

PER_PRINCIPAL: Final = 500
MOST_TAGS: Final = 20
_ROWS: Final = operator_note.c


@dataclass(frozen=True, slots=True)
class Draft:
    """A note as it is handed in; without a category, one that is there stays."""

    principal: str
    content: str
    tags: tuple[str, ...]
    category: str | None
    source: Source
    note_id: str | None = None
    expected_rev: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    action: Literal["created", "updated", "unchanged"]
    note: OperatorNote
    count: int
    deduplicated: bool = False
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a note stays as it is."""

    why: Literal["missing", "user_owned", "full"]


@dataclass(frozen=True, slots=True)
class Stale:
    """The note is not as the writer knows it; revision 0 where there is none."""

    note_id: str | None
    current_rev: int

    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason("rev_conflict")


Outcome = Stored | Refused | Stale


def _note(row: Row[Any]) -> OperatorNote:
    return OperatorNote(
        note_id=row.note_id,
        principal=row.principal,
        content=row.content,
        tags=tuple(json.loads(row.tags)),
        category=row.category,
        source=row.source,
        rev=row.rev,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        last_matched_at_ms=row.last_matched_at_ms,
        match_count=row.match_count,
    )


def _values(note: OperatorNote) -> dict[str, Any]:
    return {
        "principal": note.principal,
        "content": note.content,
        "tags": json.dumps(note.tags, ensure_ascii=False, separators=(",", ":")),
        "category": note.category,
        "source": note.source,
        "rev": note.rev,
        "created_at_ms": note.created_at_ms,
        "updated_at_ms": note.updated_at_ms,
        "last_matched_at_ms": note.last_matched_at_ms,
        "match_count": note.match_count,
        "identity_hash": folded_identity(note.content),
    }


def _visible(principal: str) -> ColumnElement[bool]:
    return _ROWS.principal.in_(sorted({principal, EVERYBODY}))


# -- reading


def find(conn: Connection, principal: str, note_id: str) -> OperatorNote | None:
    row = conn.execute(select(operator_note).where(_visible(principal), _ROWS.note_id == note_id)).one_or_none()
    return None if row is None else _note(row)


def visible_to(conn: Connection, principal: str) -> list[OperatorNote]:
    return [_note(row) for row in conn.execute(select(operator_note).where(_visible(principal)))]


def page(conn: Connection, principal: str, offset: int, limit: int) -> tuple[list[OperatorNote], int]:
    """Notes from `offset` on, the last updated first, and how many there are."""
    found = select(operator_note).where(_visible(principal)).order_by(_ROWS.updated_at_ms.desc(), _ROWS.note_id)
    total = conn.execute(select(func.count()).select_from(operator_note).where(_visible(principal))).scalar_one()
    return [_note(row) for row in conn.execute(found.offset(offset).limit(limit))], int(total)


def of_anybody(conn: Connection, note_id: str) -> OperatorNote | None:
    """For the operator: a note whoever it is for."""
    row = conn.execute(select(operator_note).where(_ROWS.note_id == note_id)).one_or_none()
    return None if row is None else _note(row)


def every(conn: Connection, principal: str | None, limit: int) -> list[OperatorNote]:
    """For the operator: notes of all principals or of one, the last updated first."""
    found = select(operator_note).order_by(_ROWS.updated_at_ms.desc(), _ROWS.note_id)
    if principal is not None:
        found = found.where(_ROWS.principal == principal)
    return [_note(row) for row in conn.execute(found.limit(limit))]


def matched(conn: Connection, notes: Sequence[OperatorNote], now_ms: int) -> None:
    """Note that notes were asked for; it keeps them from being thrown out and never makes them rank higher."""
    # Always by id: principals share some notes, and writers that take rows in different orders could block each other.
    for note_id in sorted(one.note_id for one in notes):
        conn.execute(_MATCHED, {"which": note_id, "at": now_ms})


_MATCHED: Final = (
    update(operator_note)
    .where(_ROWS.note_id == bindparam("which"))
    .values(match_count=_ROWS.match_count + 1, last_matched_at_ms=bindparam("at"))
)


# -- writing


def store(conn: Connection, draft: Draft, now_ms: int, new_id: Callable[[], str]) -> Outcome:
    """Create a note, change the named one, or find that it is there already."""
    hold(conn, "operator_note", draft.principal)
    if draft.note_id is not None:
        return _change(conn, draft, now_ms)
    same = _same_text(conn, draft)
    if same is not None:
        return _again(conn, same, draft, now_ms)
    if draft.expected_rev is not None:
        return Stale(None, 0)
    return _create(conn, draft, now_ms, new_id)


def _change(conn: Connection, draft: Draft, now_ms: int) -> Outcome:
    known = find(conn, draft.principal, draft.note_id or "")
    if known is None:
        return Refused("missing")
    if known.source == "user" and draft.source == "agent":
        return Refused("user_owned")
    if draft.expected_rev not in (None, known.rev):
        return Stale(known.note_id, known.rev)
    changed = replace(
        known,
        content=draft.content,
        tags=draft.tags,
        category=draft.category if draft.category is not None else known.category,
        source=draft.source,
    )
    if changed == known:
        return Stored("unchanged", known, _count(conn, draft.principal))
    return Stored("updated", _update(conn, changed, now_ms), _count(conn, draft.principal))


def _again(conn: Connection, known: OperatorNote, draft: Draft, now_ms: int) -> Outcome:
    if known.source == "user" and draft.source == "agent":
        return Stored("unchanged", known, _count(conn, draft.principal), deduplicated=True)
    if draft.expected_rev not in (None, known.rev):
        return Stale(known.note_id, known.rev)
    changed = replace(
        known,
        tags=united(known.tags, draft.tags),
        category=draft.category if draft.category is not None else known.category,
        source=draft.source,
    )
    return Stored("updated", _update(conn, changed, now_ms), _count(conn, draft.principal), deduplicated=True)


def _create(conn: Connection, draft: Draft, now_ms: int, new_id: Callable[[], str]) -> Outcome:
    count = _count(conn, draft.principal)
    over = count + 1 - PER_PRINCIPAL
    going: tuple[str, ...] | None = ()
    if over > 0:
        own = select(operator_note).where(_ROWS.principal == draft.principal)
        going = pick_idle([_note(row) for row in conn.execute(own)], over, now_ms)
    if going is None:
        return Refused("full")
    if going:
        conn.execute(delete(operator_note).where(_ROWS.note_id.in_(going)))
    note = OperatorNote(
        note_id=new_id(),
        principal=draft.principal,
        content=draft.content,
        tags=draft.tags,
        category=draft.category,
        source=draft.source,
        rev=1,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        last_matched_at_ms=None,
        match_count=0,
    )
    conn.execute(insert(operator_note).values(note_id=note.note_id, **_values(note)))
    return Stored("created", note, count + 1 - len(going), evicted=len(going))


def united(held: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Tags of both, each once however it is spelled, the first twenty."""
    found: dict[str, str] = {}
    for tag in (*held, *given):
        found.setdefault(plain(tag), tag)
    return tuple(found.values())[:MOST_TAGS]


def _update(conn: Connection, note: OperatorNote, now_ms: int) -> OperatorNote:
    changed = replace(note, rev=note.rev + 1, updated_at_ms=now_ms)
    # How often a note was found is counted by the finding alone: somebody may be finding it right now.
    found = {"match_count", "last_matched_at_ms"}
    values = {name: value for name, value in _values(changed).items() if name not in found}
    conn.execute(update(operator_note).where(_ROWS.note_id == note.note_id).values(values))
    return changed


def _same_text(conn: Connection, draft: Draft) -> OperatorNote | None:
    """A note of the same wording: what a user wrote counts before what agents did."""
    # The operator writes for one principal or for all; a note for all does not stand in for one of a principal's own.
    where = _visible(draft.principal) if draft.source == "agent" else _ROWS.principal == draft.principal
    same = select(operator_note).where(where, _ROWS.identity_hash == folded_identity(draft.content))
    found = sorted((_note(row) for row in conn.execute(same)), key=lambda one: (one.source != "user", one.note_id))
    return found[0] if found else None


def _count(conn: Connection, principal: str) -> int:
    own = select(func.count()).select_from(operator_note).where(_ROWS.principal == principal)
    return int(conn.execute(own).scalar_one())


def remove(
    conn: Connection, principal: str, note_id: str, source: Source
) -> Literal["deleted", "missing", "user_owned"]:
    known = find(conn, principal, note_id)
    if known is None:
        return "missing"
    if known.source == "user" and source == "agent":
        return "user_owned"
    gone = conn.execute(delete(operator_note).where(_ROWS.note_id == note_id, _ROWS.principal == known.principal))
    return "deleted" if gone.rowcount else "missing"
