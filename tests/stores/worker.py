"""A second process for store tests: appends, opens or holds a store as told on the command line."""

import os
import sqlite3
import sys

import anyio

from nova_mcp.core.clock import Ports, SystemClock, SystemIds, system_ports
from nova_mcp.evidence import store
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.memory.facts import store as facts
from nova_mcp.memory.facts.model import Observation, Page, Scope
from nova_mcp.memory.journal import collector, service
from nova_mcp.memory.journal.model import WorkContext
from nova_mcp.memory.journal.outbox_worker import OutboxWorker
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import Tally
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.rules import FoundUnit, Report, UnitName
from nova_mcp.memory.tasks.runs.transactions import Change, Occasion, Runs
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.schema import current_revision


def server(server_id, **changes):
    fields = {"started_at_ms": 1_000, "pid": 1, "process_started_ms": 1, "host": "test", "version": "0"}
    return store.ServerInfo(server_id=ServerId(server_id), **(fields | changes))


def call(server_id, call_id, **changes):
    fields = {
        "caller": Caller("local", "agent", ServerId(server_id)),
        "tool_name": "click_selector",
        "effect": "act",
        "started_at_ms": 1_000,
        "duration_ms": 5,
        "outcome": CallOutcome("ok"),
    }
    return CallRecord(call_id=call_id, **(fields | changes))


def eraser(server_id, **changes):
    fields = {"server_id": ServerId(server_id), "new_call_id": system_ports().ids.call_id, "who": "a test"}
    return Eraser(**(fields | changes))


def say(text):
    print(text, flush=True)


def append(url, server_id, count):
    ids = system_ports().ids
    with Database.open(url) as db:
        db.write_sync(store.register_server, server(server_id))
        say("ready")
        sys.stdin.readline()
        for number in range(int(count)):
            kind = "intent" if number % 5 == 0 else "call"
            link = db.write_sync(store.append_call, call(server_id, ids.call_id(), kind=kind))
            say(link.call_id)


def observe(url, number, count):
    """Claims about the same three slots of one scope, as if several servers had one tab."""
    scope, page = Scope("tab_1", "A", "local", "shop.test"), Page("https://shop.test/", "h", "shop.test/")
    levels = ("certain", "likely", "tentative")
    with Database.open(url) as db:
        say("ready")
        sys.stdin.readline()
        for turn in range(int(count)):
            made = [
                Observation(
                    key,
                    str((turn + int(number)) % 3),
                    levels[turn % 3],
                    "agent",
                    f"{number}-{turn}",
                    page,
                    turn * 90_000,
                )
                for key in ("shop.a", "shop.b", "shop.c")
            ]
            db.write_sync(facts.note, scope, made)


def open_store(url):
    say("ready")
    sys.stdin.readline()
    with Database.open(url) as db:
        say(f"revision {db.read_sync(current_revision)}")


def open_unprivileged(url):
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        Database.open(url).close_sync()
    except StoreUnavailable as error:
        say(error.reason)
    else:
        say("opened")


def hold(path):
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
    say("ready")
    sys.stdin.readline()
    conn.close()


class Telling:
    """Says where the program has come to, and goes on when told to."""

    def __init__(self, stops):
        self._stops = stops

    def hit(self, point):
        if point in self._stops:
            say(point)
            sys.stdin.readline()


def leave_a_mark(conn, job, now_ms):
    """A job that shows how often it was done."""
    bump(conn, "marks", Tally(totals={("mark", job.job_key): 1}))


def work(url, name, *stops):
    """Do jobs until none is due; stops at the named points."""
    clock = SystemClock()
    ports = Ports(clock, SystemIds(clock), Telling(stops))
    say("ready")
    sys.stdin.readline()

    async def until_done(db):
        worker = OutboxWorker(db, ports, name, {"finalize.noop": leave_a_mark})
        while await worker.step():
            pass

    with Database.open(url) as db:
        anyio.run(until_done, db)


def count_calls(url, server_id, count):
    """Count calls on shared figures, with labels that others use too."""
    with Database.open(url) as db:
        say("ready")
        sys.stdin.readline()
        for number in range(int(count)):
            labels = {("tool.scrollSmart.host", 5, f"h{(number * 7) % 11}"): (1, 1), ("tool", 5, ""): (1, 0)}
            totals = {("tool", ""): 1, ("observation", ""): 1}
            db.write_sync(bump, server_id, Tally(labels, {("tool.scrollSmart", 5, number % 3): 1}, totals))


def page_call(server_id, call_id, at_ms, **changes):
    """A click on the desk page that was proven to have worked."""
    page = PageState(f"tab_{server_id}", "A", "https://shop.test/desk", "shop.test/desk", 1)
    fields = {
        "tool_name": "nova.click_selector",
        "started_at_ms": at_ms,
        "duration_ms": 0,
        "outcome": CallOutcome("ok", action_dispatched=True, verification="verified"),
        "before": page,
        "after": page,
        "touched": Touched("#go", "hash", "el_1"),
        "signals": Signals(label="success"),
    }
    return call(server_id, call_id, **(fields | changes))


def record_page_call(conn, record):
    collector.derive(conn, record, store.append_call(conn, record))


def learn(url, server_id, count, start_ms):
    """Calls that succeed, fail and commit on one host, each with everything that is derived from it."""
    ids = system_ports().ids
    failed = {"outcome": CallOutcome("failed", -32003, "action.disabled"), "signals": Signals()}
    proven = {"tool_name": "nova.guarded_submit_form", "signals": Signals(label="success", high_signal=True)}
    with Database.open(url) as db:
        db.write_sync(store.register_server, server(server_id))
        say("ready")
        sys.stdin.readline()
        for number in range(int(count)):
            changes = ({}, failed, proven)[number % 3]
            record = page_call(server_id, ids.call_id(), int(start_ms) + number, **changes)
            db.write_sync(record_page_call, record)
            context = WorkContext(f"claim_{server_id}", f"tab_{server_id}", "A", "local", server_id, 0)
            noted = service.Claimed("desk", "Codes are digits.", "unverified", 0.5, "shop.test")
            kept = db.write_sync(service.add_candidate, context, noted, int(start_ms) + number)
            say(f"{kept.candidate.candidate_id} {kept.created}")


class NothingSeen:
    """Nobody looks at any page."""

    def fill(self, conn, instance_id, unit_keys, now_ms):
        return

    def fill_for(self, conn, instance_id, owner, now_ms):
        return

    def refresh(self, conn, instance_id, now_ms, lives):
        return


def report(url, instance_id):
    """Progress of a run, one unit after the other, until somebody ends it."""
    runs, at = Runs("block", NothingSeen()), Occasion(("local", "ada"), 1_700_000_000_000)
    with Database.open(url) as db:
        say("ready")
        sys.stdin.readline()
        for number in range(100_000):
            event_id = f"worker-{number}"
            said = Report(discovered=(FoundUnit(UnitName(key=f"u{number % 4000}")),), note=event_id)
            change = Change("progress", instance_id, number, event_id, payload_hash("progress", {"payload": event_id}))
            done = db.write_sync(runs.progress, at, change, said)
            assert done.instance_rev == number + 1
            say(event_id)


COMMANDS = {
    "report": report,
    "learn": learn,
    "append": append,
    "observe": observe,
    "work": work,
    "count": count_calls,
    "open": open_store,
    "open-unprivileged": open_unprivileged,
    "hold": hold,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
