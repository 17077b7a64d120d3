"""Plays every entry back from what was written down, and says where that is not what is stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, select

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.folding import replay
from nova_mcp.memory.promotion.model import RULES_VERSION, Entry

PAGE: Final = 200
Field = Literal["level", "deprecated", "revision", "beginning", "rules"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is stored of an entry and that its history does not lead to."""

    scope: str
    stable_id: str
    slot: str
    field: Field
    stored: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Levels:
    """What a replay of every entry came to."""

    entries: int
    steps: int
    differences: tuple[Difference, ...]


def replay_levels(conn: Connection) -> Levels:
    entries = steps = 0
    found: list[Difference] = []
    for shelved in _every(conn):
        taken, differences = _compared(conn, shelved)
        entries, steps = entries + 1, steps + taken
        found += differences
    return Levels(entries, steps, tuple(found))


def _every(conn: Connection) -> Iterator[Shelved]:
    last = 0
    while True:
        number = knowledge_entry.c.entry_id
        page = conn.execute(select(number).where(number > last).order_by(number).limit(PAGE)).scalars().all()
        if not page:
            return
        yield from store.by_ids(conn, page)
        last = page[-1]


def _compared(conn: Connection, shelved: Shelved) -> tuple[int, list[Difference]]:
    begin = steps_store.snapshot(conn, shelved.entry_id)
    if begin is None:
        return 0, [_difference(shelved, "beginning", "none", "needed")]
    up_to, start = begin
    if start.rules_version != RULES_VERSION:
        return 0, [_difference(shelved, "rules", str(start.rules_version), str(RULES_VERSION))]
    steps = [step for _, _, step in steps_store.steps(conn, shelved.entry_id, up_to)]
    stored, played = _told(entry_of(shelved)), _told(replay(start, steps).snapshot.entry)
    return len(steps), [
        _difference(shelved, name, stored[name], played[name]) for name in stored if stored[name] != played[name]
    ]


def _told(entry: Entry) -> dict[Field, str]:
    return {
        "level": str(entry.level),
        "deprecated": "yes" if entry.deprecated else "no",
        "revision": str(entry.revision),
    }


def _difference(shelved: Shelved, field: Field, stored: str, replayed: str) -> Difference:
    return Difference(shelved.scope, shelved.stable_id, shelved.slot, field, stored, replayed)
