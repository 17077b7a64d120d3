"""What recurs, on both databases: counted as it comes, once, whoever writes; the best are found among any number."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from nova_mcp.evidence import store
from nova_mcp.evidence.model import CallOutcome, Checked, Signals, Touched
from nova_mcp.memory.journal import collector, throttle
from nova_mcp.memory.journal import store as journal
from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.knowledge import store as knowledge
from nova_mcp.memory.knowledge.model import (
    Content,
    DayCount,
    FailureRun,
    Fingerprint,
    Health,
    Phenomenon,
    ScopeName,
    Signal,
    StableId,
    Standing,
)
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion.drafts import cluster_store
from nova_mcp.memory.promotion.drafts.clusters import cluster_of, with_observation
from nova_mcp.memory.promotion.drafts.generator import suggestions
from nova_mcp.memory.promotion.drafts.scoring import from_cluster, ranked
from nova_mcp.memory.promotion.model import DAY_MS, ClusterDay, ClusterKey
from nova_mcp.memory.promotion.tables import learning_cluster, learning_cluster_day

T0 = 20_000 * DAY_MS
MINUTE = 60_000
HOST = "shop.test"
COUNTING = collector.Hooks(learn=(lambda conn, record, seen: cluster_store.count(conn, seen),))

PROVEN = {}
FAILED = {"outcome": CallOutcome("partial", action_dispatched=True), "signals": Signals(label="failure")}
SIGHTED = {"outcome": CallOutcome("ok", action_dispatched=True, verification="likely"), "signals": Signals("sighting")}
LOOKED = {
    "tool_name": "nova.perceive", "effect": "read", "outcome": CallOutcome("ok"),
    "touched": Touched(), "signals": Signals(structure="s1"),
}  # fmt: skip


class Desk:
    """One server whose calls are counted."""

    def __init__(self, db, build, server_id="s1"):
        self.db, self.build, self.server_id, self.made = db, build, server_id, 0
        db.write_sync(store.register_server, build.server(server_id))

    def call(self, at_ms=T0, selector="#go", **changes):
        self.made += 1
        if "touched" not in changes:
            changes["touched"] = Touched(selector, "hash", "el_1")
        record = self.build.page_call(self.server_id, f"{self.server_id}-{self.made}", at_ms, **changes)
        self.db.write_sync(self._record, record)

    def _record(self, conn, record):
        collector.derive(conn, record, store.append_call(conn, record), COUNTING)

    def cluster(self, key="#go", now_ms=T0):
        return self.db.read_sync(cluster_store.cluster, ClusterKey(HOST, key), now_ms)


@pytest.fixture
def desk(db, build):
    return Desk(db, build)


def recounted(db, key, now_ms):
    """The same from the observations themselves, all of them at once."""
    days = {}
    rows = db.read_sync(
        lambda conn: conn.execute(select(journal.observation).where(journal.observation.c.cluster_key == key)).all()
    )
    for row in rows:
        day = row.created_at_ms // DAY_MS
        seen = Observation(row.kind, row.outcome, row.severity)
        days[day] = with_observation(days.get(day), seen, row.activity_session_id, row.created_at_ms)
    return cluster_of(ClusterKey(HOST, key), days.values(), now_ms)


# -- counting


def test_counting_as_it_comes_equals_counting_what_was_written(desk):
    made, at_ms = random.Random(3), T0 - 40 * DAY_MS
    while at_ms < T0:
        at_ms += made.choice((5_000, 40_000, 45 * MINUTE, DAY_MS))
        changes = made.choice((PROVEN, PROVEN, FAILED, SIGHTED, LOOKED))
        desk.call(at_ms, made.choice(("#go", "#stay")), **changes)
    for key in ("#go", "#stay"):
        found = desk.cluster(key, at_ms)
        assert found is not None
        assert found == recounted(desk.db, key, at_ms)


def test_looking_at_a_page_alone_makes_no_cluster(desk):
    for number in range(5):
        desk.call(T0 + number * MINUTE, **LOOKED)
    assert desk.db.read_sync(suggestions, None, 20, T0 + 5 * MINUTE) == ()


def test_looks_at_an_entry_support_its_cluster_once_something_else_has_made_it_one(desk):
    def look(number):
        told = Signals(structure="s1", checks=(Checked("bar", "seen"),))
        desk.call(T0 + number * MINUTE, **(LOOKED | {"tool_name": "nova.revalidate", "signals": told}))

    look(0)
    look(1)
    assert desk.cluster("bar") is None
    desk.call(T0 + 2 * MINUTE, **(FAILED | {"signals": Signals(label="failure", target_stable_id="bar")}))
    found = desk.cluster("bar")
    assert (found.support, found.failures) == (3, 1)
    assert found == recounted(desk.db, "bar", T0)


def test_a_proof_that_took_the_place_of_a_sighting_is_counted_once(desk):
    desk.call(T0, **SIGHTED)
    desk.call(T0 + 5_000)
    assert desk.cluster() is None
    desk.call(T0 + throttle.WINDOW_MS + 5_000)
    found = desk.cluster()
    assert (found.support, found.successes) == (2, 2)


def test_writers_at_the_same_time_neither_lose_nor_double_anything(store_url, open_db, build):
    desks = [Desk(open_db(store_url), build, f"s{number}") for number in range(3)]

    def work(desk):
        for number in range(25):
            desk.call(T0 + number * MINUTE, f"#b{number % 2}", **(PROVEN if number % 5 else FAILED))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, desks))
    for key in ("#b0", "#b1"):
        found = desks[0].cluster(key, T0 + DAY_MS)
        assert found == recounted(desks[0].db, key, T0 + DAY_MS)
    total = [desks[0].cluster(key, T0 + DAY_MS).support for key in ("#b0", "#b1")]
    assert sum(total) == 75


# -- the best


def filled(db, count, now_ms, seed):
    """Clusters of all ages, many of them with the same rank."""
    made = random.Random(seed)
    keys = []
    for number in range(count):
        key = ClusterKey(f"h{made.randrange(3)}.test", f"#c{number}")
        keys.append(key)
        seen = []
        for _ in range(made.choice((1, 2, 2, 3, 9))):
            at_ms = now_ms - made.choice((0, 2, 5, 20, 29, 33)) * DAY_MS - made.randrange(DAY_MS // 4)
            seen.append((at_ms, made.choice((1, 1, -1, 0)), made.choice("ab")))
        db.write_sync(_kept, key, seen)
    return keys


def _kept(conn, key, seen):
    days = {}
    for at_ms, outcome, session in seen:
        kind = "action_failure" if outcome < 0 else "action_success"
        days[at_ms // DAY_MS] = with_observation(days.get(at_ms // DAY_MS), Observation(kind, outcome), session, at_ms)
    last = max(at for at, _, _ in seen)
    name = {"host": key.host, "key": key.key}
    cluster_store._TAKE.run(conn, name | {"rank": -1.0, "first_day": min(days), "last_at_ms": last})
    for day in days.values():
        cluster_store._KEEP_DAY.run(conn, name | {"day": day.day, "body": cluster_store._written(day)})
    cluster_store._rank(conn, key, days.values(), last)


def test_the_best_are_the_best_of_all(db):
    keys = filled(db, 250, T0, seed=11)
    # Once ranked anew, a rank says what it said when everything was counted.
    while db.write_sync(cluster_store.forget, T0):
        pass
    for host in (None, "h0.test", "h1.test"):
        every = [db.read_sync(cluster_store.cluster, key, T0) for key in keys if host in (None, key.host)]
        expected = ranked([from_cluster(one, T0, known=False) for one in every if one is not None], 20)
        for limit in (1, 5, 20):
            assert tuple(db.read_sync(cluster_store.best, host, limit, T0)) == expected[:limit]


def test_what_fell_out_of_the_month_is_no_longer_suggested_even_before_it_is_forgotten(desk):
    for number in range(3):
        desk.call(T0 + number * MINUTE)
    assert len(desk.db.read_sync(suggestions, None, 5, T0)) == 1
    assert desk.db.read_sync(suggestions, None, 5, T0 + 32 * DAY_MS) == ()


def test_forgetting_takes_old_days_out_and_ranks_the_rest_anew(desk):
    for number in range(4):
        desk.call(T0 + number * MINUTE)
    desk.call(T0 + 20 * DAY_MS)
    desk.call(T0 + 20 * DAY_MS + MINUTE)
    desk.call(T0 + MINUTE, "#old")
    later = T0 + 35 * DAY_MS
    assert desk.db.write_sync(cluster_store.forget, later) == 2
    assert desk.db.write_sync(cluster_store.forget, later) == 0
    rows = desk.db.read_sync(lambda conn: conn.execute(select(learning_cluster)).all())
    assert [(row.key, row.first_day, row.rank) for row in rows] == [("#go", 20_020, 3.0)]
    assert desk.db.read_sync(lambda conn: conn.execute(select(learning_cluster_day.c.day)).scalars().all()) == [20_020]


def test_a_drift_of_a_known_entry_weighs_most(desk):
    drift = {"signals": Signals(drift="hard", target_stable_id="banner")}
    for number in range(2):
        desk.call(T0 + number * MINUTE, **drift)
        desk.call(T0 + number * MINUTE, "#new")
    first, second = desk.db.read_sync(suggestions, ScopeName(HOST), 5, T0)
    assert (first.candidate_key, second.candidate_key) == ("#new", "banner")
    desk.db.write_sync(knowledge.add, ScopeName(HOST), entry("banner"), Birth())
    desk.call(T0 + 3 * MINUTE, **drift)
    first, _ = desk.db.read_sync(suggestions, ScopeName(HOST), 5, T0)
    assert (first.candidate_key, dict(first.breakdown)["driftSignal"]) == ("banner", 3.0)


# -- knowledge that needs a look


def entry(stable_id, **changes):
    content = Content("custom", Fingerprint((Signal("dom", f"#{stable_id}"),)))
    return replace(Phenomenon(StableId(stable_id), content, 1, T0, T0), **changes)


FAILING = Health(attempts=6, successes=1, failures=5, recent=(DayCount(20_000, 0, 1, 5),), last_confirmed_at_ms=T0)
STALE = Standing(run=FailureRun(checks=3))


@pytest.mark.parametrize("scope", [None, ScopeName(HOST)])
def test_failing_and_stale_entries_are_items(db, scope):
    kept = [
        entry("failing", health=FAILING),
        entry("stale", standing=STALE),
        entry("both", health=replace(FAILING, last_confirmed_at_ms=None), standing=STALE),
        entry("fine", health=Health(attempts=9, successes=9, last_confirmed_at_ms=T0)),
        entry("candidate", level=0, standing=STALE),
        entry("retired", deprecated_reason="old", standing=STALE),
    ]
    for one in kept:
        db.write_sync(knowledge.add, ScopeName(HOST), one, Birth())
    db.write_sync(knowledge.add, ScopeName(HOST), entry("stale", standing=STALE), Birth(slot="pending"))
    found = db.read_sync(suggestions, scope, 20, T0)
    assert [(one.candidate_key, one.dominant_kind) for one in found] == [
        ("both", "silent_verify_drift"),
        ("stale", "silent_verify_drift"),
        ("both", "active_failure_drift"),
        ("failing", "active_failure_drift"),
    ]
    assert [one.score for one in found] == [4.5, 4.5, 4.33, 2.83]


def test_an_entry_that_recovers_is_no_item_any_more(db):
    put = db.write_sync(knowledge.add, ScopeName(HOST), entry("stale", standing=STALE), Birth())
    assert len(db.read_sync(suggestions, None, 5, T0)) == 1
    db.write_sync(knowledge.save, replace(put, kept=entry("stale")), visible=False)
    assert db.read_sync(suggestions, None, 5, T0) == ()


def test_the_best_are_read_by_an_index(sqlite_url, open_db):
    db = open_db(sqlite_url)
    asked = {"below": 5.0, "host": "h", "most": 5}
    for one in (cluster_store._NEXT, cluster_store._NEXT_OF):
        sentence = text(f"EXPLAIN QUERY PLAN {one._statement.text}")
        names = {name: value for name, value in asked.items() if f":{name}" in one._statement.text}
        rows = db.read_sync(lambda conn, sentence=sentence, names=names: conn.execute(sentence, names).all())
        plan = [row.detail for row in rows]
        assert sum("SEARCH learning_cluster USING" in step for step in plan) == 2, plan
        assert not any("SCAN learning_cluster" in step or "TEMP" in step for step in plan), plan


def test_ranks_that_promise_more_than_is_left_take_nobodys_place(db):
    """Ranked a month ago and not looked at since: half of what they were counted by is gone."""
    keys = filled(db, 250, T0, seed=5)
    every = [db.read_sync(cluster_store.cluster, key, T0) for key in keys]
    expected = ranked([from_cluster(one, T0, known=False) for one in every if one is not None], 20)
    found = db.read_sync(cluster_store.best, None, 20, T0)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.candidate_key for one in found} <= {key.key for key in keys}
    assert found[0].score == expected[0].score


def test_a_day_reads_back_as_it_was_written():
    day = ClusterDay(5, (("action_failure", 1), ("action_success", 2)), 2, 1, 0, ("a", "b"), 9)
    assert cluster_store._told(5, cluster_store._written(day)) == day
