"""Live facts on both kinds of store: one current fact for each key whoever writes, history closed and never edited."""

import random

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from nova_mcp.evidence.targets.store import OpenedTarget, target_ended, target_journal, target_opened
from nova_mcp.memory.facts import retention, store
from nova_mcp.memory.facts.model import MOST_CUSTOM, Observation, Page, Scope
from nova_mcp.memory.facts.reader import FactFilter, listed
from nova_mcp.memory.facts.replay import replay
from nova_mcp.memory.facts.rules import canonical
from nova_mcp.memory.facts.tables import fact, fact_account, fact_binding, fact_observation

NOW = 1_800_000_000_000
PAGE = Page("https://shop.test/cart", "h1", "shop.test/cart")
SCOPE = Scope("tab_1", "A", "local", "shop.test")


def seen(value, key="shop.slot", certainty="certain", call="c1", at=NOW, source="agent"):
    return Observation(key, canonical(value), certainty, source, call, PAGE, at)


def rows(db, table, *where):
    return db.read_sync(lambda conn: conn.execute(select(table).where(*where)).all())


def note(db, *observations, scope=SCOPE):
    return db.write_sync(store.note, scope, observations)


def current(db, scope=SCOPE):
    facts = db.read_sync(store.current_facts, scope.binding_id)
    return {key: one.value for key, one in facts.items()}


def test_what_is_written_comes_back_whole(db):
    (told,) = note(db, seen({"a": ["ä\x00", 1.5, None]}))
    assert (told.state, told.is_new) == ("fresh", True)
    (held,) = db.read_sync(store.current_facts, SCOPE.binding_id).values()
    assert (held.value, held.version, held.corroborated, held.url_hash) == (
        canonical({"a": ["ä\x00", 1.5, None]}),
        1,
        False,
        "h1",
    )
    (kept,) = rows(db, fact_observation)
    assert store.to_observation(kept) == seen({"a": ["ä\x00", 1.5, None]})


def test_claims_of_one_call_build_on_each_other(db):
    told = note(db, seen("a", certainty="tentative"), seen("b", certainty="likely"), seen("b", certainty="likely"))
    assert [one.state for one in told] == ["fresh", "fresh", "fresh"]
    assert [one.superseded for one in told] == [False, True, False]
    old, new = rows(db, fact, fact.c.signal_key == "shop.slot")
    assert (old.superseded_by, old.valid_to_ms, new.support) == (2, NOW, 2)


def test_the_store_itself_refuses_a_second_current_fact(db):
    note(db, seen("a"))
    (row,) = rows(db, fact)
    with pytest.raises(IntegrityError):
        db.write_sync(lambda conn: conn.execute(insert(fact), {**row._asdict(), "version": 2}))


def test_closed_versions_are_never_edited(db):
    note(db, seen("a", certainty="likely"))
    note(db, seen("b", call="c2"))
    before = rows(db, fact, fact.c.version == 1)
    for number in range(3):
        note(db, seen("b", call=f"d{number}"), seen("a", call=f"e{number}", certainty="tentative"))
    assert rows(db, fact, fact.c.version == 1) == before


def test_what_nova_sees_otherwise_leaves_no_trace_on_an_agents_fact(db):
    note(db, seen("logged_in", "core.login_state", certainty="tentative"))
    before = rows(db, fact), rows(db, fact_observation), rows(db, fact_binding)
    for number in range(3):
        look = seen("logged_out", "core.login_state", call=f"d{number}", at=NOW + number * 10**7, source="system")
        assert note(db, look) == ()
    assert (rows(db, fact), rows(db, fact_observation), rows(db, fact_binding)) == before
    note(db, seen("logged_in", "core.login_state", certainty="likely", call="e1", source="system"))
    (held,) = db.read_sync(store.current_facts, SCOPE.binding_id).values()
    assert (held.state, held.support, held.source) == ("confirmed", 2, "agent")


def test_a_full_scope_takes_no_more_custom_keys(db):
    for start in range(0, MOST_CUSTOM, 100):
        note(db, *(seen(1, f"shop.k{number}") for number in range(start, start + 100)))
    told = note(db, seen(1, "shop.over"), seen("x", "core.ui.theme"), seen(2, "shop.k3", call="c2"))
    assert [(one.state, one.stored) for one in told] == [("scope_full", False), ("fresh", True), ("conflicted", True)]
    assert len(current(db)) == MOST_CUSTOM + 1
    assert note(db, seen(1, "shop.over"), scope=Scope("tab_2", "A", "local", "shop.test"))[0].stored


def test_scopes_do_not_touch_each_other(db):
    other = Scope("tab_1", "A", "local", "else.test")
    note(db, seen("a"))
    note(db, seen("b"), scope=other)
    assert (current(db), current(db, other)) == ({"shop.slot": '"a"'}, {"shop.slot": '"b"'})


def test_a_target_that_ended_takes_nothing_more(db):
    for target_id in ("tab_1", "tab_2"):
        opened = OpenedTarget(target_id, "A", "s1", "local", None, NOW)
        db.write_sync(target_opened, opened)
    note(db, seen("a"))
    db.write_sync(retention.target_ended, "tab_1", NOW + 5, "closed")
    db.write_sync(target_ended, "tab_2", NOW + 5, "closed")
    assert note(db, seen("b", at=NOW + 6)) is None
    assert note(db, seen("b", at=NOW + 6), scope=Scope("tab_2", "A", "local", "shop.test")) is None
    (row,) = rows(db, fact)
    assert (row.value, row.valid_to_ms, row.superseded_by) == ('"a"', NOW + 5, None)
    assert current(db) == {}


def test_what_a_dead_server_left_open_is_closed(db):
    db.write_sync(target_opened, OpenedTarget("tab_1", "A", "s1", "local", None, NOW))
    note(db, seen("a"))
    note(db, seen("a"), scope=Scope("tab_2", "A", "local", "shop.test"))
    ended = update(target_journal).values(ended_at_ms=NOW + 1, end_reason="server_restart")
    db.write_sync(lambda conn: conn.execute(ended))
    assert db.write_sync(retention.close_ended_targets, NOW + 9) == 1
    assert db.write_sync(retention.close_ended_targets, NOW + 10) == 0
    assert {row.binding_id: row.valid_to_ms for row in rows(db, fact)} == {
        "tab_1/shop.test": NOW + 9,
        "tab_2/shop.test": None,
    }


def test_a_deleted_sandbox_leaves_nothing_and_others_stay(db):
    mail = seen("ada@x.org", "core.account.email")
    for target, sandbox in (("tab_1", "A"), ("tab_2", "B"), ("tab_3", "B")):
        note(db, mail, scope=Scope(target, sandbox, "local", "shop.test"))
    note(db, seen("bob@x.org", "core.account.email"), scope=Scope("tab_4", "B", "local", "else.test"))
    db.write_sync(retention.target_ended, "tab_2", NOW, "closed")
    db.write_sync(retention.target_ended, "B", NOW, "sandbox_deleted")
    for table in (fact_binding, fact, fact_observation):
        assert [row.binding_id for row in rows(db, table)] == ["tab_1/shop.test"]
    assert [row.service_key for row in rows(db, fact_account)] == ["shop.test"]


def test_scopes_closed_long_ago_are_forgotten(db):
    for target, closed in (("tab_1", NOW), ("tab_2", NOW + 5 * retention.DAY_MS), ("tab_3", None)):
        note(db, seen("a"), scope=Scope(target, "A", "local", "shop.test"))
        if closed is not None:
            db.write_sync(retention.close_target, target, closed)
    chore = retention.forgetting(3)
    assert db.write_sync(chore, NOW + 4 * retention.DAY_MS) == 1
    assert sorted(row.target_id for row in rows(db, fact_binding)) == ["tab_2", "tab_3"]


def test_an_account_follows_the_strongest_sign_of_it(db):
    note(db, seen("Ada", "core.account.display_name"))
    (before,) = rows(db, fact_binding)
    note(db, seen("ada@x.org", "core.account.email", call="c2"))
    (after,) = rows(db, fact_binding)
    assert before.account_hash != after.account_hash
    assert {row.account_hash for row in rows(db, fact_account)} == {before.account_hash, after.account_hash}


def test_listing_shows_current_facts_and_history_on_request(db):
    note(db, seen("a", certainty="likely"), seen(1, "shop.b"))
    note(db, seen("b", call="c2"))
    plain = db.read_sync(listed, FactFilter())
    assert [(one.fact.key, one.fact.version, list(one.history)) for one in plain] == [
        ("shop.b", 1, []),
        ("shop.slot", 2, []),
    ]
    deep = db.read_sync(listed, FactFilter(target_id="tab_1", service_key="shop.test", history=True))
    assert [[old.value for old in one.history] for one in deep] == [[], ['"a"']]
    db.write_sync(retention.close_target, "tab_1", NOW)
    assert db.read_sync(listed, FactFilter()) == []
    assert len(db.read_sync(listed, FactFilter(closed=True))) == 2


def test_a_random_history_replays_exactly_and_a_changed_fact_is_found(db):
    made = random.Random(11)
    for number in range(300):
        stream = [
            seen(
                made.choice("abc"),
                made.choice(["shop.slot", "core.page.type", "shop.b"]),
                made.choice(["certain", "likely", "tentative"]),
                f"c{number}",
                NOW + number * made.choice([1, 1_000, 100_000]),
                made.choice(["agent", "agent", "system"]),
            )
            for _ in range(made.randrange(1, 4))
        ]
        note(db, *stream, scope=Scope(made.choice(["tab_1", "tab_2"]), "A", "local", "shop.test"))
    db.write_sync(retention.close_target, "tab_2", NOW)
    done = db.read_sync(replay)
    assert (done.bindings, done.differences) == (2, ())
    assert done.observations >= 300
    db.write_sync(lambda conn: conn.execute(update(fact).where(fact.c.version == 1).values(support=99)))
    changed = db.read_sync(replay).differences
    assert changed
    assert {one.field for one in changed} == {"support"}


def test_racing_processes_leave_one_current_fact_for_each_key(store_url, open_db, spawn):
    workers = [spawn("observe", store_url, number, 60) for number in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=120)
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    db = open_db(store_url)
    open_rows = [row.signal_key for row in rows(db, fact, fact.c.valid_to_ms.is_(None))]
    assert sorted(open_rows) == ["shop.a", "shop.b", "shop.c"]
    assert len(rows(db, fact_observation)) == 4 * 60 * 3
    (binding,) = rows(db, fact_binding)
    assert binding.custom_facts == 3
    assert db.read_sync(replay).differences == ()
