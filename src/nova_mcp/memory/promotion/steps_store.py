"""Keeps what happened to entries: every step while the entry's row is held, and where a replay begins."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy import text as sql

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.knowledge.model import DomainHint, Phenomenon
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion import event_store
from nova_mcp.memory.promotion.drafts.earlier_evidence import inherited
from nova_mcp.memory.promotion.gates.counting import LONGEST_LOOKBACK_MS, MARKS_KEPT, newest
from nova_mcp.memory.promotion.gates.entries import entry_of, with_entry
from nova_mcp.memory.promotion.gates.folding import (
    Confirmed,
    Disproved,
    Observed,
    Retired,
    Reviewed,
    Revised,
    Snapshot,
    Step,
    fold,
)
from nova_mcp.memory.promotion.model import LearningEvent, Mark
from nova_mcp.memory.promotion.tables import learning_snapshot, learning_step
from nova_mcp.storage.prepared import Prepared

_KINDS: Final[dict[str, type[Step]]] = {
    "observed": Observed,
    "reviewed": Reviewed,
    "revised": Revised,
    "confirmed": Confirmed,
    "retired": Retired,
    "disproved": Disproved,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


# -- steps

_RECORD: Final = Prepared(insert(learning_step), ("entry_id", "kind", "at_ms", "body"))


def record(conn: Connection, entry_id: int, step: Step, at_ms: int) -> None:
    """One step more; the caller holds the entry's row, so that the order of steps is the order of what they did."""
    values = {"entry_id": entry_id, "kind": _NAMES[type(step)], "at_ms": at_ms, "body": encoded(step)}
    _RECORD.run(conn, values)


def steps(conn: Connection, entry_id: int, after: int = 0, limit: int | None = None) -> Iterator[tuple[int, int, Step]]:
    """Number, time and content of the steps behind one, in their order."""
    found = learning_step.c
    rows = conn.execute(
        select(found.step_id, found.kind, found.at_ms, found.body)
        .where(found.entry_id == entry_id, found.step_id > after)
        .order_by(found.step_id)
        .limit(limit)
    )
    for number, kind, at_ms, body in rows:
        yield number, at_ms, decoded(_KINDS[kind], body)


def latest(conn: Connection, entry_id: int, most: int) -> list[tuple[int, Step]]:
    """Time and content of the newest steps, in their order."""
    found = learning_step.c
    rows = conn.execute(
        select(found.kind, found.at_ms, found.body)
        .where(found.entry_id == entry_id)
        .order_by(found.step_id.desc())
        .limit(most)
    ).all()
    return [(at_ms, decoded(_KINDS[kind], body)) for kind, at_ms, body in reversed(rows)]


_MARKS: Final = Prepared(
    sql(
        "SELECT body, step_id FROM learning_step WHERE entry_id = :entry AND kind = 'observed' AND at_ms >= :since "
        "ORDER BY step_id DESC LIMIT :most"
    )
)
# As `encoded` spells it.
_AGAINST: Final = Prepared(
    sql(
        "SELECT body FROM learning_step WHERE entry_id = :entry AND kind = 'observed' AND at_ms >= :since "
        "AND step_id < :before AND body LIKE :against ORDER BY step_id DESC LIMIT :most"
    )
)


def marks(conn: Connection, entry_id: int, now_ms: int) -> tuple[Mark, ...]:
    """What a review looks at: the newest marks of the last thirty days, in their order, those that the entry began
    with among them."""
    since = now_ms - LONGEST_LOOKBACK_MS
    asked = {"entry": entry_id, "since": since, "most": MARKS_KEPT}
    rows = _MARKS.run(conn, asked).fetchall()
    if len(rows) == MARKS_KEPT:
        rows += _AGAINST.run(conn, asked | {"before": rows[-1][1], "against": '%"outcome":-1%'}).fetchall()
    begin = _SNAPSHOT.run(conn, {"entry": entry_id}).fetchone()
    # A mark has plain fields alone, and a review of a whole site reads thousands of them.
    first = [] if begin is None else [Mark(**one) for one in json.loads(begin[1]).get("marks", ())]
    later = (Mark(**json.loads(row[0])["mark"]) for row in reversed(rows))
    return newest([*(one for one in first if one.at_ms >= since), *later])


# -- snapshots

_SNAPSHOT: Final = Prepared(
    select(learning_snapshot.c.up_to_step, learning_snapshot.c.body).where(
        learning_snapshot.c.entry_id == bindparam("entry")
    )
)
_TAKE_SNAPSHOT: Final = Prepared(
    select(learning_snapshot.c.up_to_step, learning_snapshot.c.body)
    .where(learning_snapshot.c.entry_id == bindparam("entry"))
    .with_for_update()
)
# Both databases read this sentence the same way.
_KEEP: Final = Prepared(
    sql(
        "INSERT INTO learning_snapshot (entry_id, up_to_step, body) VALUES (:entry, :step, :body) "
        "ON CONFLICT (entry_id) DO UPDATE SET up_to_step = excluded.up_to_step, body = excluded.body"
    )
)


def snapshot(conn: Connection, entry_id: int, *, lock: bool = False) -> tuple[int, Snapshot] | None:
    """Where a replay of an entry begins, and the last step that it covers."""
    row = (_TAKE_SNAPSHOT if lock else _SNAPSHOT).run(conn, {"entry": entry_id}).fetchone()
    return None if row is None else (int(row[0]), decoded(Snapshot, row[1]))


def keep_snapshot(conn: Connection, entry_id: int, up_to_step: int, begin: Snapshot) -> None:
    _KEEP.run(conn, {"entry": entry_id, "step": up_to_step, "body": encoded(begin)})


def forget_entry(conn: Connection, entry_id: int) -> None:
    """An entry that is gone has no history; its number may be given to another."""
    # The snapshot first, as whoever folds old steps into it takes it first.
    for table in (learning_snapshot, learning_step):
        conn.execute(delete(table).where(table.c.entry_id == entry_id))


# -- what others do to entries; they hold the scope's row and call these instead of saving the entry themselves


def born(conn: Connection, shelved: Shelved) -> None:
    """An entry was added; its history begins here, with what was seen of its controls before."""
    forget_entry(conn, shelved.entry_id)
    keep_snapshot(conn, shelved.entry_id, 0, Snapshot(entry_of(shelved), inherited(conn, shelved)))


def revised(conn: Connection, before: Shelved, after: Shelved, now_ms: int) -> Shelved:
    """An entry was written anew in its own row, content, level or retirement; saves it with what that means for its
    standing, and gives back what was saved."""
    told = entry_of(after)
    step = Revised(
        at_ms=now_ms,
        changed=content_of(before.kept) != content_of(after.kept),
        taken=not before.kept.deprecated and before.kept.level == 0 and after.kept.level == 1,
        found_again=before.kept.deprecated and not after.kept.deprecated,
        unconfirmed_selectors=told.unconfirmed_selectors,
        phenomenon_type=None if told.phenomenon_type == entry_of(before).phenomenon_type else told.phenomenon_type,
    )
    return _stepped(conn, before, after, step, now_ms)


def confirmed(conn: Connection, before: Shelved, after: Shelved, now_ms: int) -> Shelved:
    """Selectors that nobody had seen yet have been seen."""
    return _stepped(conn, before, after, Confirmed(entry_of(after).unconfirmed_selectors), now_ms)


def retired(conn: Connection, shelved: Shelved, reason: str, now_ms: int) -> Shelved:
    """An agent deprecated an entry, with a reason that was accepted."""
    gone = _stepped(conn, shelved, shelved, Retired(now_ms, reason), now_ms)
    told = LearningEvent(shelved.stable_id, shelved.scope, shelved.kept.level, gone.kept.level, "deprecation", now_ms)
    event_store.add(conn, told)
    return gone


def disproved(conn: Connection, shelved: Shelved, now_ms: int) -> Shelved:
    """The claim behind a candidate was disproven."""
    return _stepped(conn, shelved, shelved, Disproved(), now_ms)


def content_of(kept: Phenomenon | DomainHint) -> object:
    """What an agent may write of an entry."""
    if isinstance(kept, Phenomenon):
        return kept.content
    return kept.kind, kept.selectors, kept.mode, kept.extract, kept.enumerate_max


def _stepped(conn: Connection, before: Shelved, after: Shelved, step: Step, now_ms: int) -> Shelved:
    entry = fold(entry_of(before), (), step).entry
    told = entry_of(after)
    stands = (entry.level, entry.deprecated, entry.revision)
    if isinstance(step, Revised) and stands != (told.level, told.deprecated, told.revision):
        # Else a replay would come to something that was never stored.
        raise ValueError(f"{after.stable_id} was written as {told}, which no revision of {entry} comes to")
    kept = with_entry(after, replace(entry, health=told.health), now_ms)
    store.save(conn, kept, visible=True)
    record(conn, after.entry_id, step, now_ms)
    return kept
