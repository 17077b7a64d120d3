"""Servers on one store that count in the same place: one writes an entry, others act on it, none waits in a circle."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from nova_mcp.evidence.model import CallOutcome, Signals, Touched
from nova_mcp.memory.journal.statistics.counters import shard_of
from nova_mcp.memory.journal.statistics.tables import statistic_total
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Context
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.entry_write import entry_write
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Patch, Written
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.promoter import Wish, promote
from promotion_kit import FAILED, HERE, NOW, WORKED, Site, added, phenomenon

WRITER = Writer(steps_store)
CHECK = PageCheck(NOW, {"#layer": LiveLook(1), "#go": LiveLook(1, True), "#fallback": LiveLook(1)})
MINUTE = 60_000
ROUNDS = 15
# Names of servers that all count in one place.
TOGETHER = [name for name in (f"s{number}" for number in range(200)) if shard_of(name) == shard_of("s0")]


def wait_for_a_blocked_session(conn, other):
    """Come back once somebody waits for a lock, or the other party ended without ever waiting."""
    while not other.done() and not conn.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar():
        pass


def told(site, number, principal, tool="nova.pks_patch"):
    """The record of a call that writes about the site; each principal has a tab and a session of its own."""
    return site.record(
        NOW + number * MINUTE,
        Signals(),
        None,
        tool_name=tool,
        effect="write",
        outcome=CallOutcome("ok"),
        touched=Touched(),
        principal=principal,
        target=f"tab_{principal}",
    )


def patching(number, principal):
    patch = Patch(context=Context(routes=(f"{principal}-{number}", "desk")))
    return entry_write(lambda conn: WRITER.patch(conn, HERE, "banner", patch, CHECK))


@pytest.mark.postgres
@pytest.mark.parametrize("asks", ["patch", "promote"])
def test_a_call_that_waits_for_an_entry_keeps_nothing_that_its_writer_still_needs(postgres_url, open_db, build, asks):
    writing, acting = (Site(open_db(postgres_url), build, name) for name in TOGETHER[:2])
    added(writing.db, phenomenon())
    with ThreadPoolExecutor(1) as thread:
        began = []

        def meanwhile(conn):
            other = thread.submit(acting.call, NOW, principal="bob", target="tab_bob")
            began.append(other)
            wait_for_a_blocked_session(conn, other)

        def patched(conn, record):
            done = patching(1, "ann")(conn, record)
            meanwhile(conn)
            return done

        def promoted(conn, record, link):
            promote(conn, Wish(HERE), NOW)
            meanwhile(conn)

        also, write = ((promoted,), None) if asks == "promote" else ((), patched)
        writing.db.write_sync(writing.write, told(writing, 1, "ann"), also, write)
        began[0].result(30)
    assert writing.entry().kept.health.successes == 1


def test_servers_that_write_promote_and_act_at_once_all_finish_and_nothing_is_lost(store_url, open_db, build):
    one, two, three, four = (Site(open_db(store_url), build, name) for name in TOGETHER[:4])
    added(one.db, phenomenon(level=2))
    failures = []

    def patch():
        for number in range(ROUNDS):
            done = one.db.write_sync(one.write, told(one, number, "ann"), (), patching(number, "ann"))
            if not isinstance(done, Written):
                failures.append(done)

    def decide():
        for number in range(ROUNDS):
            decisions = []

            def promoted(conn, record, link, at_ms=NOW + number * MINUTE, decisions=decisions):
                decisions.extend(promote(conn, Wish(HERE), at_ms))

            made = told(two, number, "bob", "nova.learn_promote")
            made = replace(made, before=replace(made.before, url=None), after=replace(made.after, url=None))
            two.db.write_sync(two.write, made, (promoted,))
            failures.extend(found for found in decisions if found.write_error)

    def act(site, principal):
        for number in range(ROUNDS):
            signals = FAILED if number % 5 == 4 else WORKED
            site.call(NOW + number * MINUTE, signals, principal=principal, target=f"tab_{principal}")

    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(patch), threads.submit(decide)]
        work += [threads.submit(act, three, "cy"), threads.submit(act, four, "dee")]
        for done in work:
            done.result(120)
    assert failures == []
    found = one.db.read_sync(store.find, HERE, "banner")
    assert max(row.kept.revision for row in found) == 1 + ROUNDS
    seen = [row for row in one.observations() if row["kind"] in ("action_success", "action_failure")]
    assert {row["target_stable_id"] for row in seen} == {"banner"}
    assert len(seen) == 2 * ROUNDS
    total = select(statistic_total.c.count).where(statistic_total.c.name == "tool", statistic_total.c.label == "")
    assert one.db.read_sync(lambda conn: sum(conn.execute(total).scalars())) == 4 * ROUNDS
