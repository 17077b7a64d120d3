"""What happened to entries, in the store: steps in their order, marks that still count, and the log of decisions."""

from dataclasses import replace

import pytest

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import DayCount, Health
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.gates.counting import LONGEST_LOOKBACK_MS, MARKS_KEPT
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.folding import Confirmed, Disproved, Observed, Retired, Reviewed, Revised, Snapshot
from nova_mcp.memory.promotion.model import DAY_MS, EvidenceCounts, Gate, LearningEvent
from promotion_kit import HERE, NOW, added, drift, failure, hint, phenomenon, replayed, seen, success

EVERY_KIND = (
    Observed(replace(success("a", NOW), replaced="b", severe=False)),
    Observed(drift("d", NOW + 1)),
    Reviewed(NOW + 2, "l1_to_l2"),
    Reviewed(NOW + 2),
    Revised(NOW + 3, changed=False, taken=True, found_again=True, unconfirmed_selectors=3),
    Confirmed(0),
    Retired(NOW + 4, "it is gone"),
    Disproved(),
)


def test_every_step_comes_back_as_it_was_and_in_its_order(db):
    for number, step in enumerate(EVERY_KIND):
        db.write_sync(steps_store.record, 7, step, NOW + number)
    db.write_sync(steps_store.record, 8, Disproved(), NOW)
    found = db.read_sync(lambda conn: list(steps_store.steps(conn, 7)))
    assert tuple(step for _, _, step in found) == EVERY_KIND
    assert [at for _, at, _ in found] == [NOW + number for number in range(len(EVERY_KIND))]
    rest = db.read_sync(lambda conn: list(steps_store.steps(conn, 7, found[5][0])))
    assert rest == found[6:]


def test_marks_are_those_of_the_last_thirty_days_in_their_order(db):
    old, edge = success("old", NOW - LONGEST_LOOKBACK_MS - 1), success("edge", NOW - LONGEST_LOOKBACK_MS)
    young = [seen("s", NOW - 5), failure("f", NOW)]
    for mark in (old, edge, *young):
        db.write_sync(steps_store.record, 7, Observed(mark), mark.at_ms)
    db.write_sync(steps_store.record, 7, Reviewed(NOW), NOW)
    assert db.read_sync(steps_store.marks, 7, NOW) == (edge, *young)


def test_no_more_marks_are_read_than_a_review_looks_at(db):
    many = [success(f"c{number}", NOW - MARKS_KEPT + number) for number in range(MARKS_KEPT + 3)]

    def write(conn):
        for mark in many:
            steps_store.record(conn, 7, Observed(mark), mark.at_ms)

    db.write_sync(write)
    assert db.read_sync(steps_store.marks, 7, NOW) == tuple(many[3:])


def test_a_snapshot_holds_the_whole_entry(db):
    health = Health(attempts=2, recent=(DayCount(4, 0, 1, 1),), clean=("a",), last_success_at_ms=9)
    put = added(db, phenomenon(health=health, level=2, deprecated_reason="why"))
    assert db.read_sync(steps_store.snapshot, put.entry_id) == (0, Snapshot(entry_of(put)))
    later = Snapshot(entry_of(put), (success("a", NOW), drift("b", NOW)))
    db.write_sync(steps_store.keep_snapshot, put.entry_id, 12, later)
    assert db.read_sync(steps_store.snapshot, put.entry_id) == (12, later)
    assert db.read_sync(steps_store.snapshot, 999) is None


def test_a_number_that_is_used_again_has_no_history(db):
    put = added(db, phenomenon())
    db.write_sync(steps_store.record, put.entry_id, Disproved(), NOW)
    db.write_sync(steps_store.born, put)
    assert db.read_sync(lambda conn: list(steps_store.steps(conn, put.entry_id))) == []


# -- what agents do to entries


def rewritten(put, **changes):
    content = replace(put.kept.content, type="paywall")
    return replace(put, kept=replace(put.kept, content=content, revision=put.kept.revision + 1, **changes))


def test_new_content_starts_over_and_is_remembered(db):
    put = added(db, phenomenon(level=0))
    after = db.write_sync(steps_store.revised, put, rewritten(put, level=1, unconfirmed=("#a",)), NOW)
    assert db.read_sync(store.find, HERE, "banner") == (after,)
    assert (after.kept.level, after.kept.revision, after.kept.standing.revised_at_ms) == (1, 2, NOW)
    assert after.kept.updated_at_ms == NOW
    assert replayed(db, put.entry_id) == entry_of(after)
    seen_now = replace(after, kept=replace(after.kept, unconfirmed=()))
    confirmed = db.write_sync(steps_store.confirmed, after, seen_now, NOW + 5)
    assert replayed(db, put.entry_id) == entry_of(confirmed)
    assert confirmed.kept.unconfirmed == ()


def test_an_entry_that_an_agent_retires_and_finds_again_is_a_shadow(db):
    put = added(db, phenomenon(level=2))
    gone = db.write_sync(steps_store.retired, put, "it is gone", NOW)
    assert (gone.kept.level, gone.kept.deprecated_reason) == (0, "it is gone")
    assert replayed(db, put.entry_id) == entry_of(gone)
    (told,) = db.read_sync(event_store.events, HERE, 0, 9)
    assert (told.reason_kind, told.from_level, told.to_level, told.rejection) == ("deprecation", 2, 0, None)
    found = replace(gone, kept=replace(gone.kept, deprecated_reason=None, level=1))
    back = db.write_sync(steps_store.revised, gone, found, NOW + 1)
    assert (back.kept.level, back.kept.deprecated, back.kept.standing.unsettled_at_ms) == (1, False, NOW)
    assert replayed(db, put.entry_id) == entry_of(back)


def test_a_claim_that_was_disproven_stays_with_its_entry(db):
    put = added(db, phenomenon(level=0))
    after = db.write_sync(steps_store.disproved, put, NOW)
    assert after.kept.standing.disproven
    assert replayed(db, put.entry_id) == entry_of(after)


def test_hints_have_a_history_too(db):
    put = added(db, hint())
    wider = replace(put, kept=replace(put.kept, selectors=("#ad", "#ad2"), revision=2))
    after = db.write_sync(steps_store.revised, put, wider, NOW)
    assert (after.kept.selectors, after.kept.standing.revised_at_ms) == (("#ad", "#ad2"), NOW)
    assert replayed(db, put.entry_id) == entry_of(after)


@pytest.mark.parametrize("wrong", [{"level": 2}, {"revision": 9}, {"deprecated_reason": "why"}])
def test_a_write_that_no_rule_leads_to_is_refused(db, wrong):
    put = added(db, phenomenon())
    with pytest.raises(ValueError, match="no revision"):
        db.write_sync(steps_store.revised, put, replace(put, kept=replace(put.kept, **wrong)), NOW)
    assert db.read_sync(store.find, HERE, "banner") == (put,)


# -- the log

GATES = (Gate("successes", 3, 1, False, 2), Gate("confidence", 0.7, 0.75, True, 0))


def event(number, **changes):
    counts = EvidenceCounts(support=number, last_drift_at_ms=5)
    made = LearningEvent("banner", HERE, 1, 1, "l1_to_l2", NOW + number, GATES, counts, rejection="successes")
    return replace(made, **changes)


def test_the_log_tells_the_newest_first_of_one_site_or_all(db):
    here = [event(number) for number in range(4)]
    other = event(9, host="b.test", stable_id="x", reason_kind="learn_generate", rejection=None, gates=())
    for one in (*here, other):
        db.write_sync(event_store.add, one)
    assert db.read_sync(event_store.events, HERE, NOW + 1, 2) == [here[3], here[2]]
    assert db.read_sync(event_store.events, None, NOW + 3, 9) == [other, here[3]]
    assert db.read_sync(event_store.events, "nowhere.test", 0, 9) == []


def test_events_of_one_moment_stand_in_the_order_of_writing(db):
    both = [event(0), event(0, to_level=2, rejection=None)]
    for one in both:
        db.write_sync(event_store.add, one)
    assert db.read_sync(event_store.events, HERE, 0, 9) == both[::-1]


def test_the_last_decision_is_that_of_the_entry_and_transition(db):
    for one in (event(0), event(1, rejection="failures"), event(2, reason_kind="demotion"), event(3, stable_id="x")):
        db.write_sync(event_store.add, one)
    assert db.read_sync(event_store.last, HERE, "banner", "l1_to_l2") == event(1, rejection="failures")
    assert db.read_sync(event_store.last, HERE, "banner", "revive") is None


def test_days_of_health_survive_a_rewrite(db):
    put = added(db, phenomenon(health=Health(attempts=3, recent=(DayCount(NOW // DAY_MS, 0, 3, 0),))))
    after = db.write_sync(steps_store.revised, put, rewritten(put), NOW)
    assert after.kept.health == put.kept.health
