"""Promotion without a browser: entries as their writers put them, marks by what they mean, calls on one page."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import select

from nova_mcp.core.clock import system_ports
from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.decision import Write
from nova_mcp.evidence.model import (
    Caller,
    CallOutcome,
    CallRecord,
    Checked,
    Link,
    PageState,
    ServerId,
    Signals,
    Touched,
)
from nova_mcp.evidence.outage import Also
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.memory.journal.collector import collecting
from nova_mcp.memory.journal.evidence import Observation, Occasion, Seen, ToolEvent
from nova_mcp.memory.journal.statistics.counters import Counters
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    Context,
    DomainHint,
    ElementPrint,
    Fingerprint,
    HintId,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.store import Birth, Shelved
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.gates.folding import replay
from nova_mcp.memory.promotion.model import DAY_MS, Entry, Mark
from nova_mcp.storage.engine import Database

HERE = ScopeName("shop.test")
NOW = 100 * DAY_MS


def phenomenon(stable_id: str = "banner", selector: str = "#go", **changes: object) -> Phenomenon:
    routes = changes.pop("routes", ())
    content = Content(
        changes.pop("type", "modal"),  # type: ignore[arg-type]
        Fingerprint((Signal("dom", "#layer"), Signal("text", "Newsletter", "en")), 0.6),
        Playbook("dismiss", (Action("click", selector, ("#fallback",), ElementPrint("button", text="Go")),)),
        Context(routes=routes),  # type: ignore[arg-type]
    )
    made = Phenomenon(StableId(stable_id), content, level=1, created_at_ms=NOW - DAY_MS, updated_at_ms=NOW - DAY_MS)
    return replace(made, **changes)  # type: ignore[arg-type]


def hint(hint_id: str = "ads", **changes: object) -> DomainHint:
    made = DomainHint(HintId(hint_id), "ad_container", ("#ad",), NOW - DAY_MS, NOW - DAY_MS)
    return replace(made, **changes)  # type: ignore[arg-type]


def added(db: Database, kept: Phenomenon | DomainHint, birth: Birth | None = None, scope: ScopeName = HERE) -> Shelved:
    def write(conn):  # type: ignore[no-untyped-def]
        put = store.add(conn, scope, kept, birth or Birth())
        steps_store.born(conn, put)
        return put

    return db.write_sync(write)  # type: ignore[no-any-return]


# -- marks

LINK = Link(ServerId("s"), 1, "c", b"", b"")


def written(one: Observation, call_id: str, at_ms: int, tool: str = "nova.click_selector") -> Seen:
    """An observation as the journal hands it on."""
    event = ToolEvent(call_id, "me", "me", None, "t1", tool, True, 0, None, "shop.test", "{}", at_ms)
    return Seen(7, one, Occasion(event, "shop.test", "t1", "s0", LINK))


def success(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_success", 1, call_id, session_id)


def good(count: int, at_ms: int) -> list[Mark]:
    return [success(f"g{number}", at_ms) for number in range(count)]


def failure(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_failure", -1, call_id, session_id)


def seen(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_success", 0, call_id, session_id)


def drift(call_id: str, at_ms: int, severity: int = 2, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "selector_drift", -1, call_id, session_id, 2 if severity == 2 else 1)


def claim(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "telemetry_confirmed", 0, call_id, session_id, source="report")


def reported(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "telemetry_confirmed", 1, call_id, session_id, source="report")


def checked(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "selector_drift", -1, call_id, session_id, 2, source="check")


MARKS = st.builds(
    lambda make, call, days, session: make(f"c{call}", NOW - days * DAY_MS, session_id=f"s{session}"),
    st.sampled_from([success, success, success, failure, seen, drift, claim, reported, checked]),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 3),
)


# -- calls

WORKED = Signals(label="success")
FAILED = Signals(label="failure")
SIGHTED = Signals(label="sighting")
LONG_AFTER = NOW + 20 * 86_400_000


class Site:
    """A server whose agents work on one page; everything that a call leaves is written as the server writes it."""

    def __init__(self, db: Database, build: Any, server: str = "s1") -> None:
        self.db, self.server = db, server
        self.numbers = itertools.count(1)
        collect = collecting(HOOKS, Counters().count)
        self.recorder = Recorder(db, system_ports(), ServerId(server), also=(collect,))
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

    def write(self, conn: Any, made: CallRecord, also: Sequence[Also] = (), write: Write[Any] | None = None) -> Any:
        """What `write` came to, once the record and all that is derived from it is written."""
        every = (*self.recorder._also, *also)
        if write is None:
            return self.recorder._append(conn, made, every)
        return self.recorder._append_written(conn, made, every, write)

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
