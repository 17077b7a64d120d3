"""Deciding about levels: through gates only, once however many decide, and every decision can be read afterwards."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import text

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, ElementPrint, FailureRun, Playbook, ScopeName, Standing
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion import event_store, promoter, steps_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS, Lower
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.service import Explained, PromotionKeeper, Unknown
from promotion_kit import HERE, NOW, added, failure, hint, phenomenon, replayed, success


class Clock:
    def __init__(self):
        self.now = NOW

    def now_ms(self):
        return self.now

    def monotonic_ms(self):
        return float(self.now)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keeper(db, clock):
    return PromotionKeeper(db, clock)


def proven(db, shelved, count=3, sessions=2, make=success, start=NOW - HOUR_MS):
    """Marks of successes, as calls leave them."""

    marks = [
        make(f"{shelved.entry_id}-{make.__name__}{number}", start + number * 60_000, session_id=f"s{number % sessions}")
        for number in range(count)
    ]

    def write(conn):
        (kept,) = store.by_ids(conn, [shelved.entry_id])
        return witnessed(conn, kept, marks)

    return db.write_sync(write)


def found(db, stable_id="banner"):
    return db.read_sync(store.find, HERE, stable_id)


def events(db):
    return db.read_sync(event_store.events, HERE, 0, 99)


# -- deciding


async def test_what_passes_its_gates_rises_one_level_and_the_log_says_why(db, keeper):
    put = proven(db, added(db, phenomenon(level=0)))
    (first,) = await keeper.promote(Wish(HERE))
    assert (first.stable_id, first.approved, first.applied, first.from_level, first.to_level) == (
        "banner",
        True,
        True,
        0,
        1,
    )
    (second,) = await keeper.promote(Wish(HERE))
    assert (second.verdict.kind, second.applied, second.to_level) == ("l1_to_l2", True, 2)
    (third,) = await keeper.promote(Wish(HERE))
    assert (third.verdict.kind, third.applied, third.skipped_because) == ("demotion", False, "not_approved")
    (kept,) = found(db)
    assert (kept.kept.level, kept.kept.updated_at_ms) == (2, NOW)
    told = [(one.reason_kind, one.from_level, one.to_level, one.rejection) for one in events(db)]
    # An entry that stays where it is leaves no event.
    assert told == [("l1_to_l2", 1, 2, None), ("l0_to_l1", 0, 1, None)]
    assert (events(db)[0].counts.successes, events(db)[0].gates[0].observed) == (3, 3)
    assert replayed(db, put.entry_id) == entry_of(kept)


async def test_a_preview_decides_the_same_and_writes_nothing(db, keeper):
    put = proven(db, added(db, phenomenon()))
    other = added(db, phenomenon("other", selector="#o"))
    before = db.read_sync(store.state_rev, HERE)
    banner, missing = await keeper.preview(Wish(HERE, transition="l1_to_l2"))
    assert (banner.approved, banner.applied, banner.skipped_because, banner.to_level) == (True, False, "dry_run", 2)
    assert (missing.approved, missing.skipped_because, missing.rejection) == (False, "not_approved", "successes")
    assert found(db) == (put,)
    assert found(db, "other") == (other,)
    assert (events(db), db.read_sync(store.state_rev, HERE)) == ([], before)


async def test_only_the_named_entries_are_looked_at_in_the_order_of_asking(db, keeper):
    for name in ("a", "b", "c"):
        added(db, phenomenon(name, selector=f"#{name}"))
    decisions = await keeper.promote(Wish(HERE, ("c", "nobody", "a", "c")))
    assert [(one.stable_id, one.rejection) for one in decisions] == [
        ("c", "successes"),
        ("nobody", "not_found"),
        ("a", "successes"),
    ]
    assert {one.stable_id for one in events(db)} == {"a", "c"}


async def test_a_transition_of_another_level_does_not_apply(db, keeper):
    added(db, phenomenon(level=2))
    (one,) = await keeper.promote(Wish(HERE, transition="l0_to_l1"))
    assert (one.rejection, one.from_level, one.to_level, one.skipped_because) == (
        "not_applicable",
        2,
        2,
        "not_approved",
    )
    assert events(db) == []


async def test_asking_about_a_site_that_nothing_is_known_of_leaves_nothing_behind(db, keeper):
    assert await keeper.promote(Wish(HERE)) == ()
    assert await keeper.review(HERE) == ()
    assert not await keeper.review_due(HERE)
    assert db.read_sync(store.scope_row, HERE) is None


async def test_falling_comes_before_rising(db, keeper):
    put, run = proven(db, added(db, phenomenon())), FailureRun(uses=3)
    failing = replace(put, kept=replace(put.kept, standing=Standing(run=run)))
    db.write_sync(store.save, failing, visible=False)
    (one,) = await keeper.promote(Wish(HERE))
    assert isinstance(one.verdict, Lower)
    (gone,) = found(db)
    assert (gone.kept.level, gone.kept.deprecated_reason) == (0, "3 failures in a row")
    assert gone.kept.standing.run == run


async def test_a_retired_entry_comes_back_through_its_gate(db, keeper):
    gone = added(db, phenomenon(level=0, deprecated_reason="old", standing=Standing(unsettled_at_ms=NOW - DAY_MS)))
    proven(db, gone, 2, 1)
    (held,) = await keeper.promote(Wish(HERE))
    assert (held.verdict.kind, held.rejection) == ("revive", "success_sessions")
    proven(db, gone, 2, 2, start=NOW - 100)
    await keeper.promote(Wish(HERE))
    (back,) = found(db)
    assert (back.kept.level, back.kept.deprecated) == (1, False)


async def test_hints_go_through_the_same_gates(db, keeper):
    proven(db, added(db, hint()))
    (one,) = await keeper.promote(Wish(HERE))
    assert (one.stable_id, one.to_level, one.applied) == ("ads", 2, True)
    assert found(db, "ads")[0].kept.level == 2


async def test_a_refusal_is_logged_once_until_its_reason_changes(db, keeper):
    put = added(db, phenomenon())
    for _ in range(3):
        await keeper.promote(Wish(HERE))
    assert [one.rejection for one in events(db)] == ["successes"]
    proven(db, put, 3, 1)
    for _ in range(2):
        await keeper.promote(Wish(HERE))
    assert [one.rejection for one in events(db)] == ["success_sessions", "successes"]


async def test_a_revision_that_earns_its_level_takes_the_place_of_the_old_one(db, keeper):
    old = added(db, phenomenon(level=2))
    new = proven(db, added(db, phenomenon(selector="#new", revision=2), Birth(slot="pending")))
    db.write_sync(store.keep_surroundings, new.entry_id, [ElementPrint("a")], NOW)
    (one,) = await keeper.promote(Wish(HERE, ("banner",), "l1_to_l2"))
    assert (one.from_level, one.to_level, one.applied) == (1, 2, True)
    (kept,) = found(db)
    assert (kept.entry_id, kept.slot, kept.kept.level, kept.kept.revision) == (new.entry_id, "current", 2, 2)
    assert db.read_sync(steps_store.snapshot, old.entry_id) is None
    assert db.read_sync(store.surroundings, new.entry_id) == (ElementPrint("a"),)
    assert [one.stable_id for one in db.read_sync(store.owners, HERE, "#go")] == []
    assert replayed(db, new.entry_id) == entry_of(kept)


async def test_of_two_revisions_the_one_that_moves_is_told_else_the_one_in_review(db, keeper):
    old = added(db, phenomenon(level=2))
    added(db, phenomenon(selector="#new", revision=2), Birth(slot="pending"))
    (one,) = await keeper.promote(Wish(HERE))
    assert (one.verdict.kind, one.rejection) == ("l1_to_l2", "successes")
    falling = replace(old.kept, standing=Standing(run=FailureRun(uses=2)))
    db.write_sync(store.save, replace(old, kept=falling), visible=False)
    (one,) = await keeper.promote(Wish(HERE))
    assert (one.verdict.kind, one.applied) == ("demotion", True)
    assert [one.kept.level for one in found(db)] == [1, 1]


async def test_an_entry_that_cannot_be_written_does_not_stop_the_others(db, keeper):
    for name in ("a", "b", "c"):
        proven(db, added(db, phenomenon(name, selector=f"#{name}")))
    db.write_sync(refuse_writing_b, db.dialect)
    decisions = await keeper.promote(Wish(HERE))
    assert [(one.stable_id, one.applied, one.skipped_because) for one in decisions] == [
        ("a", True, None),
        ("b", False, "write_failed"),
        ("c", True, None),
    ]
    assert "not this one" in decisions[1].write_error
    assert [found(db, name)[0].kept.level for name in ("a", "b", "c")] == [2, 1, 2]
    assert {one.stable_id for one in events(db)} == {"a", "c"}


def refuse_writing_b(conn, dialect):
    if dialect == "sqlite":
        conn.execute(
            text(
                "CREATE TRIGGER no_b BEFORE UPDATE ON knowledge_entry WHEN old.stable_id = 'b' "
                "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
            )
        )
        return
    conn.execute(
        text(
            "CREATE FUNCTION no_b() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$ LANGUAGE plpgsql"
        )
    )
    conn.execute(
        text(
            "CREATE TRIGGER no_b BEFORE UPDATE ON knowledge_entry FOR EACH ROW WHEN (old.stable_id = 'b') "
            "EXECUTE FUNCTION no_b()"
        )
    )


# -- many at once


def test_racing_promoters_apply_a_transition_once(store_url, open_db):
    stores = [open_db(store_url) for _ in range(4)]
    names = [f"e{number}" for number in range(6)]
    for name in names:
        proven(stores[0], added(stores[0], phenomenon(name, selector=f"#{name}")))
    start = Barrier(len(stores))

    def race(db):
        start.wait(30)
        return db.write_sync(promoter.promote, Wish(HERE, transition="l1_to_l2"), NOW)

    with ThreadPoolExecutor(len(stores)) as threads:
        every = [one for decisions in threads.map(race, stores) for one in decisions]
    assert sorted(one.stable_id for one in every if one.applied) == names
    assert sorted(one.rejection for one in every if not one.applied) == ["not_applicable"] * 18
    assert sorted(one.stable_id for one in events(stores[0])) == names
    assert [found(stores[0], name)[0].kept.level for name in names] == [2] * 6


def test_what_is_learned_while_others_promote_is_not_lost(store_url, open_db):
    first, second = open_db(store_url), open_db(store_url)
    put = proven(first, added(first, phenomenon(level=2)))
    start = Barrier(2)

    def fall(db):
        start.wait(30)
        for number in range(20):
            db.write_sync(promoter.promote, Wish(HERE), NOW + number)

    def fail(db):
        def write(conn, number):
            store.touch_scope(conn, HERE, NOW, visible=False)
            (kept,) = store.find(conn, HERE, "banner", lock=True)
            run = FailureRun(uses=kept.kept.standing.run.uses + 1)
            standing = replace(kept.kept.standing, run=run)
            store.save(conn, replace(kept, kept=replace(kept.kept, standing=standing)), visible=False)

        start.wait(30)
        for number in range(20):
            db.write_sync(write, number)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(fall, first), threads.submit(fail, second)]:
            done.result(60)
    (kept,) = found(first)
    assert (kept.entry_id, kept.kept.standing.run.uses) == (put.entry_id, 20)


# -- the background pass


async def test_a_site_is_reviewed_at_most_every_half_hour(db, keeper, clock):
    proven(db, added(db, phenomenon(level=0)))
    assert await keeper.review_due(HERE)
    (one,) = await keeper.review(HERE)
    assert (one.applied, one.to_level) == (True, 1)
    clock.now += 30 * 60_000 - 1
    assert not await keeper.review_due(HERE)
    assert await keeper.review(HERE) == ()
    clock.now += 1
    assert await keeper.review_due(HERE)
    (one,) = await keeper.review(HERE)
    assert (one.applied, one.to_level) == (True, 2)
    clock.now -= 10 * DAY_MS
    assert await keeper.review_due(HERE)


def test_of_servers_that_review_together_one_does(store_url, open_db):
    from nova_mcp.memory.promotion.service import reviewed

    stores = [open_db(store_url) for _ in range(3)]
    proven(stores[0], added(stores[0], phenomenon(level=0)))
    start = Barrier(len(stores))

    def race(db):
        start.wait(30)
        return db.write_sync(reviewed, Wish(HERE), NOW)

    with ThreadPoolExecutor(len(stores)) as threads:
        done = [decisions for decisions in threads.map(race, stores) if decisions]
    assert len(done) == 1
    assert found(stores[0])[0].kept.level == 1


# -- telling


async def test_the_log_of_the_last_week_unless_a_beginning_is_given(db, keeper, clock):
    added(db, phenomenon())
    await keeper.promote(Wish(HERE))
    clock.now += 7 * DAY_MS
    assert len(await keeper.feedback(HERE, None, 20)) == 1
    assert len(await keeper.feedback(None, None, 20)) == 1
    clock.now += 1
    assert await keeper.feedback(HERE, None, 20) == []
    assert len(await keeper.feedback(HERE, NOW, 20)) == 1
    assert await keeper.feedback(ScopeName("b.test"), NOW, 20) == []


async def test_an_entry_is_explained_with_its_gates_and_how_the_page_fits(db, keeper):
    put = proven(db, added(db, phenomenon()), 1, 1)
    told = await keeper.explain(HERE, "banner", ["dom:#layer", "nothing"])
    assert isinstance(told, Explained)
    assert told.shelved == put
    assert told.explanation.transition == "l1_to_l2"
    assert [(gate.name, gate.observed) for gate in told.explanation.gates][:2] == [
        ("successes", 1),
        ("success_sessions", 1),
    ]
    assert [(one.signal.match, one.matched) for one in told.match.signals] == [("#layer", True), ("Newsletter", False)]
    assert (await keeper.explain(HERE, "banner")).match is None


async def test_what_is_unknown_is_told_apart_from_an_unknown_site(db, keeper):
    assert await keeper.explain(HERE, "banner") == Unknown(scope_known=False)
    added(db, hint())
    assert await keeper.explain(HERE, "banner") == Unknown(scope_known=True)
    assert (await keeper.explain(HERE, "ads", ["dom:#x"])).match is None


async def test_a_revision_in_review_is_what_is_explained(db, keeper):
    added(db, phenomenon(level=2))
    added(db, phenomenon(selector="#new", revision=2), Birth(slot="pending"))
    told = await keeper.explain(HERE, "banner")
    assert (told.shelved.kept.level, told.explanation.transition) == (2, "l1_to_l2")
    assert told.explanation.summary.startswith("Revision 2 is in review; revision 1 stays meanwhile.")


async def test_a_choice_that_only_the_writer_vouches_for_is_explained_as_such(db, keeper):
    told = phenomenon(type="consent_cmp")
    press = Action("click", "#no", element=ElementPrint("button", text="Hafna öllu"), polarity="reject")
    content = replace(told.content, playbook=Playbook("reject_preferred", (press,)))
    added(db, replace(told, content=content))
    *_, doubt = (await keeper.explain(HERE, "banner")).explanation.remediation
    assert "#no" in doubt
    assert "only claimed" in doubt


async def test_shadows_tell_how_many_proofs_they_have_of_how_many(db, keeper):
    proven(db, added(db, phenomenon("a", selector="#a")), 2, 1)
    proven(db, added(db, phenomenon("b", selector="#b", type="consent_cmp")), 9, 1)
    added(db, phenomenon("c", selector="#c", level=0))
    added(db, phenomenon("d", selector="#d", level=2))
    added(db, phenomenon("e", selector="#e", deprecated_reason="gone"))
    proven(db, added(db, hint()), 1, 1, make=failure)
    assert await keeper.proofs(HERE) == {"a": (2, 3), "b": (3, 3), "ads": (0, 3)}
