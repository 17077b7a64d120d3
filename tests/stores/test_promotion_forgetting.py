"""What learning forgets: old steps go into the beginning of a replay, and no level is lost with them."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import func, insert, select, update

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion import event_store, promoter, retention, steps_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.folding import Snapshot
from nova_mcp.memory.promotion.gates.gates import TRANSITIONS
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS, RULES_VERSION, LearningEvent
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.replay import replay_levels
from nova_mcp.memory.promotion.tables import learning_event, learning_step, revalidation_check, telemetry_backing
from promotion_kit import HERE, NOW, added, checked, drift, failure, hint, phenomenon, seen, success

GOOD = (success, success, success, seen)
BAD = (failure, failure, drift, checked, success, seen)


def rows(db, table):
    return db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(table)).scalar_one())


def moves(db):
    """Every transition that was applied."""
    told = db.read_sync(event_store.events, HERE, 0, 9999)
    return {one.reason_kind for one in told if one.rejection is None}


def lived(db, shelved, days=200, seed=1):
    """Uses, looks and reviews over many days, as calls and the background pass leave them; the last moment."""
    made = random.Random(seed)

    def write(conn):
        at = NOW
        while at < NOW + days * DAY_MS:
            at += made.choice((HOUR_MS, DAY_MS, 3 * DAY_MS))
            found = store.find(conn, HERE, shelved.stable_id)
            if made.random() < 0.4:
                promoter.promote(conn, Wish(HERE, (shelved.stable_id,)), at)
            else:
                make = made.choice(BAD if (at - NOW) // (30 * DAY_MS) % 2 else GOOD)
                witnessed(conn, found[0], [make(f"{shelved.entry_id}-{at}", at, session_id=f"s{at // DAY_MS}")])
        return at

    return db.write_sync(write)


def forget(db, now_ms, days=90):
    gone = 0
    while step := db.write_sync(retention.forgetting(days), now_ms):
        gone += step
    return gone


@pytest.mark.parametrize("seed", range(3))
def test_no_level_is_lost_with_the_steps_that_led_to_it(db, seed):
    put = added(db, phenomenon(level=0))
    end = lived(db, put, seed=seed)
    before = db.read_sync(store.find, HERE, "banner")
    marks = db.read_sync(steps_store.marks, put.entry_id, end)
    due = db.read_sync(retention.due_to_go, end, 90)
    steps = rows(db, learning_step)
    assert moves(db) == set(TRANSITIONS)
    assert db.read_sync(replay_levels).differences == ()
    assert 0 < due == forget(db, end)
    assert 0 < rows(db, learning_step) < steps
    assert db.read_sync(retention.due_to_go, end, 90) == 0
    assert db.read_sync(store.find, HERE, "banner") == before
    assert db.read_sync(steps_store.marks, put.entry_id, end) == marks
    told = db.read_sync(replay_levels)
    assert (told.entries, told.differences) == (1, ())


def test_what_comes_later_continues_from_where_the_forgotten_ended(db):
    put = added(db, phenomenon(level=0))
    end = lived(db, put)
    for _ in range(3):
        forget(db, end)
        end += 40 * DAY_MS
        lived(db, put, days=60, seed=end)
        assert db.read_sync(replay_levels).differences == ()


def test_marks_that_a_gate_may_look_at_are_kept_however_short_the_retention(db):
    put = added(db, phenomenon())
    marks = [success("a", NOW - 32 * DAY_MS), success("b", NOW - 30 * DAY_MS), success("c", NOW)]
    db.write_sync(witnessed, put, marks)
    assert forget(db, NOW, days=0) == 1
    assert db.read_sync(steps_store.marks, put.entry_id, NOW) == tuple(marks[1:])
    assert db.read_sync(replay_levels).differences == ()


def test_a_clock_that_was_put_back_forgets_nothing_that_is_young(db):
    put = added(db, phenomenon())
    young, old = success("a", NOW), success("b", NOW - 200 * DAY_MS)
    db.write_sync(witnessed, put, [young, old])
    assert forget(db, NOW) == 0
    assert db.read_sync(steps_store.marks, put.entry_id, NOW) == (young,)


def test_steps_of_entries_that_are_gone_go(db):
    put = added(db, phenomenon())
    db.write_sync(witnessed, put, [success("a", NOW - 200 * DAY_MS)])
    db.write_sync(store.remove, put.entry_id)
    assert forget(db, NOW) == 1
    assert rows(db, learning_step) == 0


def test_a_beginning_by_other_rules_is_left_alone_and_told(db):
    put = added(db, phenomenon())
    db.write_sync(witnessed, put, [success("a", NOW - 200 * DAY_MS)])
    other = Snapshot(entry_of(put), rules_version=RULES_VERSION + 1)
    db.write_sync(steps_store.keep_snapshot, put.entry_id, 0, other)
    assert forget(db, NOW) == 0
    (one,) = db.read_sync(replay_levels).differences
    assert (one.field, one.stored, one.replayed) == ("rules", str(RULES_VERSION + 1), str(RULES_VERSION))


def test_old_decisions_and_what_was_spent_go(db):
    def write(conn):
        for age in (91, 89):
            told = LearningEvent("banner", HERE, 0, 1, "l0_to_l1", NOW - age * DAY_MS)
            event_store.add(conn, told)
        for age in (3, 1):
            at = NOW - age * DAY_MS
            conn.execute(insert(revalidation_check).values(at_ms=at, scope=HERE, target_id="t"))
            conn.execute(insert(telemetry_backing).values(call_id=f"c{age}", report_call_id="r", at_ms=at))

    db.write_sync(write)
    assert db.read_sync(retention.due_to_go, NOW, 90) == 3
    assert forget(db, NOW) == 3
    assert [rows(db, table) for table in (learning_event, revalidation_check, telemetry_backing)] == [1, 1, 1]


def test_servers_that_forget_together_fold_each_step_once(store_url, open_db):
    stores = [open_db(store_url) for _ in range(3)]
    every = [added(stores[0], phenomenon(f"e{number}", selector=f"#e{number}", level=0)) for number in range(4)]
    end = max(lived(stores[0], put, days=120, seed=number) for number, put in enumerate(every))
    start = Barrier(len(stores))

    def race(db):
        start.wait(30)
        return forget(db, end, 31)

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(race, stores))
    assert stores[0].read_sync(retention.due_to_go, end, 31) == 0
    assert stores[0].read_sync(replay_levels).differences == ()


# -- playing back


def test_a_replay_looks_at_every_entry_revision_and_hint(db):
    added(db, phenomenon(level=2))
    added(db, phenomenon(selector="#new", revision=2), Birth(slot="pending"))
    put = added(db, hint())
    db.write_sync(witnessed, put, [success("a", NOW)])
    told = db.read_sync(replay_levels)
    assert (told.entries, told.steps, told.differences) == (3, 1, ())


@pytest.mark.parametrize(
    ("changed", "field", "stored", "replayed"),
    [
        ({"level": 2}, "level", "2", "1"),
        ({"deprecated_reason": "by hand"}, "deprecated", "yes", "no"),
        ({"revision": 7}, "revision", "7", "1"),
    ],
)
def test_what_was_changed_behind_the_history_is_found(db, changed, field, stored, replayed):
    added(db, phenomenon())
    added(db, phenomenon("other", selector="#o"))
    where = knowledge_entry.c.stable_id == "banner"
    db.write_sync(lambda conn: conn.execute(update(knowledge_entry).where(where).values(**changed)))
    (one,) = db.read_sync(replay_levels).differences
    assert (one.scope, one.stable_id, one.slot) == (HERE, "banner", "current")
    assert (one.field, one.stored, one.replayed) == (field, stored, replayed)


def test_an_entry_without_a_beginning_is_found(db):
    db.write_sync(store.add, HERE, phenomenon(), Birth())
    (one,) = db.read_sync(replay_levels).differences
    assert one.field == "beginning"


def test_more_entries_than_one_page_are_all_looked_at(db, monkeypatch):
    monkeypatch.setattr("nova_mcp.memory.promotion.replay.PAGE", 2)
    for number in range(5):
        added(db, phenomenon(f"e{number}", selector=f"#e{number}"))
    assert db.read_sync(replay_levels).entries == 5


def test_what_agents_wrote_is_played_back_too(db):
    put = added(db, phenomenon(level=0))
    content = replace(put.kept.content, type="paywall")
    new = replace(put, kept=replace(put.kept, content=content, revision=2, level=1, unconfirmed=("#x",)))
    after = db.write_sync(steps_store.revised, put, new, NOW)
    gone = db.write_sync(steps_store.retired, after, "it is gone", NOW + 1)
    db.write_sync(
        steps_store.revised, gone, replace(gone, kept=replace(gone.kept, deprecated_reason=None, level=1)), NOW
    )
    assert db.read_sync(replay_levels).differences == ()
