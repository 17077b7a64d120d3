"""Calls on one page for the tests of promotion, each in the transaction of its record."""

import itertools
from typing import Any

from sqlalchemy import select

from nova_mcp.journal.collector import collecting
from nova_mcp.journal.counters import Counters
from nova_mcp.journal.store import observation
from nova_mcp.knowledge import store
from nova_mcp.knowledge.store import Shelved
from nova_mcp.observation import store as ledger
from nova_mcp.observation.model import (
    Caller,
    CallOutcome,
    CallRecord,
    Checked,
    PageState,
    ServerId,
    Signals,
    Touched,
)
from nova_mcp.promotion import steps_store
from nova_mcp.promotion.collector import HOOKS
from nova_mcp.promotion.folding import replay
from nova_mcp.promotion.model import Entry, Mark
from nova_mcp.storage.engine import Database
from promotion_entries import HERE, NOW

WORKED = Signals(label="success")
FAILED = Signals(label="failure")
SIGHTED = Signals(label="sighting")
LONG_AFTER = NOW + 20 * 86_400_000


class Site:
    """A server whose agents work on one page; everything that a call leaves is written as the server writes it."""

    def __init__(self, db: Database, build: Any, server: str = "s1") -> None:
        self.db, self.server = db, server
        self.numbers = itertools.count(1)
        self.collect = collecting(HOOKS, Counters().count)
        db.write_sync(ledger.register_server, build.server(server))

    def record(
        self, at_ms: int, signals: Signals = WORKED, selector: str | None = "#go", path: str = "/desk", **changes: Any
    ) -> CallRecord:
        url = f"https://shop.test{path}"
        page = PageState(changes.pop("target", "tab_1"), "A", url, "shop.test/desk", 1)
        verified = "verified" if signals.label == "success" else None
        fields: dict[str, Any] = {
            "caller": Caller(changes.pop("principal", "local"), changes.pop("agent", "agent"), ServerId(self.server)),
            "tool_name": "nova.click_selector",
            "effect": "act",
            "duration_ms": 0,
            "outcome": CallOutcome("ok", action_dispatched=True, verification=verified),
            "before": page,
            "after": page,
            "touched": Touched(selector, "hash", "el_1"),
            "signals": signals,
        }
        name = f"{self.server}-c{next(self.numbers)}"
        return CallRecord(call_id=name, started_at_ms=at_ms, **(fields | changes))

    def call(self, at_ms: int, signals: Signals = WORKED, selector: str | None = "#go", **changes: Any) -> str:
        made = self.record(at_ms, signals, selector, **changes)
        self.db.write_sync(self.write, made)
        return made.call_id

    def write(self, conn: Any, made: CallRecord) -> None:
        self.collect(conn, made, ledger.append_call(conn, made))

    def look(self, at_ms: int, *checks: Checked, tool: str = "nova.perceive") -> str:
        told = Signals(structure="page", checks=checks)
        return self.call(at_ms, told, None, tool_name=tool, effect="read", outcome=CallOutcome("ok"))

    def entry(self, stable_id: str = "banner") -> Shelved:
        return self.db.read_sync(store.find, HERE, stable_id)[0]

    def marks(self, shelved: Shelved, now_ms: int = LONG_AFTER) -> tuple[Mark, ...]:
        return self.db.read_sync(steps_store.marks, shelved.entry_id, now_ms)

    def observations(self) -> Any:
        return self.db.read_sync(lambda conn: conn.execute(select(observation)).mappings().all())


def replayed(db: Database, entry_id: int) -> Entry:
    """Where the recorded steps of an entry lead."""

    def read(conn: Any) -> Entry:
        found = steps_store.snapshot(conn, entry_id)
        assert found is not None
        up_to, begin = found
        return replay(begin, [step for _, _, step in steps_store.steps(conn, entry_id, up_to)]).snapshot.entry

    return db.read_sync(read)
