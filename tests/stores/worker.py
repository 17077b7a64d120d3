"""A second process for store tests: appends, opens or holds a store as told on the command line."""

import os
import sqlite3
import sys

from nova_mcp.clock import system_ports
from nova_mcp.facts import store as facts
from nova_mcp.facts.model import Observation, Page, Scope
from nova_mcp.observation import store
from nova_mcp.observation.model import Caller, CallOutcome, CallRecord, ServerId
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


COMMANDS = {
    "append": append,
    "observe": observe,
    "open": open_store,
    "open-unprivileged": open_unprivileged,
    "hold": hold,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
