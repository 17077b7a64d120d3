"""Notes about hosts on both kinds of store: whole, limited to their principal, and right whoever writes at once."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import insert, select

from nova_mcp.memory.notes import domain_store as store
from nova_mcp.memory.notes.domain_model import Wish
from nova_mcp.memory.notes.domain_rules import DAY_MS, Delete, Full, NoSuchNote, RevConflict, TooLong, UserOwned
from nova_mcp.memory.notes.tables import domain_note

NOW = 1_800_000_000_000
_ids = itertools.count(1)


def new_id():
    return f"{next(_ids):032x}"


def wish(key="K", value="text", **changes):
    return replace(Wish("local", "shop.test", key, value, "agent"), **changes)


def put(db, one, at=NOW):
    return db.write_sync(store.put, one, at, new_id)


def kept(db, principal=None):
    return db.read_sync(store.all_notes, principal)


def fill(db, count, principal="local", domain="shop.test"):
    row = {
        "principal": principal,
        "domain": domain,
        "value": "x",
        "source": "agent",
        "enforcement": "none",
        "rev": 1,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    rows = [{**row, "note_id": new_id(), "key": f"k{number}"} for number in range(count)]
    db.write_sync(lambda conn: conn.execute(insert(domain_note), rows))


def test_a_note_comes_back_whole_and_counts_its_changes(db):
    first = put(db, wish(value="ä 漢 🙂\n" * 10, enforcement="block", repeat_minutes=5))
    assert (first.action, first.note.rev, first.note_count) == ("created", 1, 1)
    assert kept(db) == (first.note,)
    assert first.note.chars == len(first.note.value) == 60
    same = put(db, wish(value="ä 漢 🙂\n" * 10), NOW + 5)
    assert (same.action, same.note) == ("unchanged", first.note)
    changed = put(db, wish(value="other"), NOW + 9)
    assert (changed.action, changed.note.rev, changed.note.repeat_minutes) == ("updated", 2, 5)
    assert kept(db) == (replace(first.note, value="other", chars=5, rev=2, updated_at_ms=NOW + 9),)


def test_a_refused_write_leaves_the_store_as_it_was(db):
    put(db, wish())
    put(db, wish("USER", source="user"))
    before = kept(db)
    assert put(db, wish(value="other", expected_rev=4)) == RevConflict(1)
    assert put(db, wish("NEW", expected_rev=1)) == RevConflict(0)
    assert put(db, wish("USER")) == UserOwned()
    assert put(db, wish(value="x" * 2001, enforcement="warn")) == TooLong(2001)
    assert db.write_sync(store.remove, ("local", False), "shop.test", "USER") == UserOwned()
    assert db.write_sync(store.remove, ("local", False), "shop.test", "K", 3) == RevConflict(1)
    assert db.write_sync(store.remove, ("local", False), "shop.test", "NOPE") == NoSuchNote()
    assert kept(db) == before


def test_caps_hold_for_a_host_and_for_a_principal_and_nothing_is_pushed_out(db):
    fill(db, 20)
    assert put(db, wish("ONE_MORE")) == Full(20, per_host=True)
    assert put(db, wish("k3", "changed")).action == "updated"
    assert put(db, wish("ONE", principal="*", source="user")).note_count == 1
    for number in range(99):
        fill(db, 20, domain=f"h{number}.test")
    assert put(db, wish("ONE_MORE", domain="last.test")) == Full(2_000, per_host=False)
    assert put(db, wish("ONE_MORE", domain="last.test", principal="them")).action == "created"
    assert len(kept(db, "local")) == 2_000


def test_every_query_is_limited_to_a_principal_and_what_is_for_everybody(db):
    for principal in ("local", "them", "*"):
        put(db, wish(principal=principal, source="user", enforcement="block"))
        put(db, wish("HINT", principal=principal, domain="parent.test"))
    domains = ("shop.test", "parent.test")
    seen = {(one.principal, one.key) for one in db.read_sync(store.notes_of, "local", domains)}
    assert seen == {(who, key) for who in ("local", "*") for key in ("K", "HINT")}
    assert {one.principal for one in db.read_sync(store.briefs, "local", domains)} == {"local", "*"}
    assert [one.principal for one in db.read_sync(store.enforced, "nobody", "shop.test")] == ["*"]
    assert db.read_sync(store.enforced, "local", "parent.test") == ()
    assert [one.key for one in db.read_sync(store.notes_of, "nobody", domains, "HINT")] == ["HINT"]


def test_hosts_are_compared_whole(db):
    put(db, wish(domain="a.shop.test", enforcement="block"))
    for other in ("shop.test", "aa.shop.test", "b.a.shop.test", "a.shop.test.evil.test"):
        assert db.read_sync(store.enforced, "local", other) == ()
        assert db.read_sync(store.briefs, "local", (other,)) == ()


def test_long_texts_are_brief_where_only_their_beginning_is_wanted(db):
    put(db, wish(value="é" * 90_000))
    (brief,) = db.read_sync(store.briefs, "local", ("shop.test",))
    assert (brief.value, brief.chars) == ("é" * 2_000, 90_000)
    (whole,) = db.read_sync(store.notes_of, "local", ("shop.test",))
    assert whole.value == "é" * 90_000


def test_deleting_takes_only_the_own_note(db):
    for principal in ("local", "them", "*"):
        put(db, wish(principal=principal, source="agent"))
    assert isinstance(db.write_sync(store.remove, ("local", False), "shop.test", "K"), Delete)
    assert {one.principal for one in kept(db)} == {"them", "*"}
    assert isinstance(db.write_sync(store.remove, ("*", True), "shop.test", "K"), Delete)
    assert {one.principal for one in kept(db)} == {"them"}


def test_delivery_is_written_down_once_a_day_and_changes_nothing_else(db):
    note = put(db, wish()).note
    assert store.stale_deliveries([note], NOW) == (note.note_id,)
    db.write_sync(store.delivered, (note.note_id,), NOW)
    (told,) = kept(db)
    assert told == replace(note, last_delivered_at_ms=NOW)
    assert store.stale_deliveries([told], NOW + DAY_MS - 1) == ()
    assert store.stale_deliveries([told], NOW + DAY_MS) == (note.note_id,)


def test_only_hints_of_agents_that_nobody_needed_for_half_a_year_go(db):
    old, now = NOW - 180 * DAY_MS, NOW
    for key, changes in {
        "USER": {"source": "user"},
        "WARN": {"enforcement": "warn"},
        "BLOCK": {"enforcement": "block"},
        "IDLE": {},
        "TOLD": {},
        "TOLD_LONG_AGO": {},
    }.items():
        put(db, wish(key, **changes), old)
    put(db, wish("YOUNG"), old + 1)
    ids = {one.key: one.note_id for one in kept(db)}
    db.write_sync(store.delivered, (ids["TOLD"],), old + 1)
    db.write_sync(store.delivered, (ids["TOLD_LONG_AGO"],), old)
    assert db.read_sync(store.due_to_go, now) == 2
    assert db.write_sync(store.forget, now) == 2
    assert db.write_sync(store.forget, now) == 0
    assert {one.key for one in kept(db)} == {"USER", "WARN", "BLOCK", "TOLD", "YOUNG"}


# -- races


@pytest.fixture
def servers(store_url, open_db):
    return [open_db(store_url) for _ in range(4)]


def race(servers, work):
    with ThreadPoolExecutor(len(servers)) as threads:
        return [one for done in threads.map(work, servers, range(len(servers))) for one in done]


def test_of_many_writers_at_once_no_change_is_lost(servers):
    def write(db, number):
        return [put(db, wish(value=f"{number}-{turn}")) for turn in range(15)]

    told = race(servers, write)
    assert sorted(one.note.rev for one in told) == list(range(1, 61))
    assert sum(one.action == "created" for one in told) == 1
    (last,) = kept(servers[0])
    assert last.rev == 60


def test_of_many_writers_that_expect_one_revision_exactly_one_writes(servers):
    put(servers[0], wish())
    told = race(servers, lambda db, number: [put(db, wish(value=f"v{number}", expected_rev=1))])
    assert sorted(type(one).__name__ for one in told) == ["RevConflict"] * 3 + ["Written"]
    assert kept(servers[0])[0].rev == 2


def test_racing_writers_never_get_past_a_cap(servers):
    fill(servers[0], 15)
    told = race(servers, lambda db, number: [put(db, wish(f"n{number}-{turn}")) for turn in range(5)])
    assert sum(isinstance(one, Full) for one in told) == 15
    assert len(kept(servers[0])) == 20


def test_telling_writing_and_forgetting_at_once_come_to_an_end(servers):
    fill(servers[0], 10)
    ids = tuple(sorted(one.note_id for one in kept(servers[0])))

    def work(db, number):
        for turn in range(10):
            db.write_sync(store.delivered, ids, NOW + turn)
            put(db, wish(f"k{turn}", value=f"{number}-{turn}"))
            db.write_sync(store.forget, NOW)
        return [number]

    assert sorted(race(servers, work)) == [0, 1, 2, 3]
    found = servers[0].read_sync(lambda conn: conn.execute(select(domain_note)).all())
    assert {row.rev for row in found} == {5}
