"""An entry's life: the same steps give the same level, one session never makes an entry active, failing ones fall."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.journal.throttle import Held, judge, throttle_key
from nova_mcp.memory.promotion.gates.counting import MARKS_KEPT, counts_for, mark_of
from nova_mcp.memory.promotion.gates.folding import (
    Confirmed,
    Disproved,
    Observed,
    Retired,
    Reviewed,
    Revised,
    Snapshot,
    Step,
    fold,
    observed,
    replay,
    revised,
)
from nova_mcp.memory.promotion.model import DAY_MS, RULES_VERSION, Entry, Mark
from promotion_kit import claim, drift, failure, reported, seen, success, written

HOUR = 3_600_000
NOW = 100 * DAY_MS
NEW = Entry("lcj_1", "shop.test", "modal", created_at_ms=NOW)
ACTIVE = replace(NEW, level=2)


def life(*steps: Step, entry: Entry = NEW) -> Entry:
    return replay(Snapshot(entry), steps).snapshot.entry


def used(make: object, count: int, *, every: int = HOUR, start: int = NOW) -> list[Step]:
    return [Observed(make(f"c{n}", start + n * every, session_id=f"s{n}")) for n in range(count)]  # type: ignore[operator]


def test_an_entry_rises_to_active_by_reviews_one_level_at_a_time():
    steps = used(success, 3)
    later = NOW + 4 * HOUR
    assert life(*steps).level == 0
    assert life(*steps, Reviewed(later)).level == 1
    assert life(*steps, Reviewed(later), Reviewed(later)).level == 2


def test_evidence_against_an_entry_takes_effect_without_a_review():
    assert life(*used(failure, 1), entry=ACTIVE).level == 2
    demoted = life(*used(failure, 2), entry=ACTIVE)
    assert (demoted.level, demoted.deprecated, demoted.unsettled_at_ms) == (1, False, NOW + HOUR)
    assert life(*used(failure, 3), entry=ACTIVE).deprecated
    assert life(Observed(drift("d", NOW)), entry=ACTIVE).level == 1


def test_a_retired_entry_comes_back_as_a_shadow_and_has_to_earn_the_rest():
    steps = [*used(failure, 3), *used(success, 2, start=NOW + DAY_MS), Reviewed(NOW + 2 * DAY_MS)]
    back = life(*steps, entry=replace(NEW, level=1))
    assert (back.level, back.deprecated) == (1, False)
    assert life(*steps, Reviewed(NOW + 2 * DAY_MS), entry=replace(NEW, level=1)).level == 1


def test_content_that_changed_starts_over_and_an_active_entry_keeps_its_own():
    shadow = replace(NEW, level=1)
    proven = used(success, 3)
    assert life(*proven, Reviewed(NOW + DAY_MS), entry=shadow).level == 2
    assert life(*proven, Revised(NOW + DAY_MS), Reviewed(NOW + DAY_MS), entry=shadow).level == 1
    assert revised(ACTIVE, Revised(NOW, found_again=True)) == ACTIVE


def test_a_retired_entry_comes_back_by_hand_only_if_the_page_shows_it():
    gone = life(Retired(NOW, "no longer there"), entry=ACTIVE)
    assert (gone.level, gone.deprecated, gone.deprecated_reason) == (0, True, "no longer there")
    kept = revised(gone, Revised(NOW, taken=True))
    assert (kept.deprecated, kept.level, kept.revision) == (True, 0, 2)
    back = revised(gone, Revised(NOW, found_again=True, unconfirmed_selectors=2))
    assert (back.level, back.deprecated, back.unconfirmed_selectors, back.revision) == (1, False, 2, 2)
    assert life(Confirmed(0), entry=back).unconfirmed_selectors == 0
    same = revised(gone, Revised(NOW + 1, changed=False, found_again=True))
    assert (same.level, same.deprecated, same.revision, same.revised_at_ms) == (1, False, 1, None)


def test_what_was_written_by_hand_is_a_shadow_and_never_more():
    assert life(Revised(NOW, changed=False, taken=True)).level == 1
    assert life(Revised(NOW)).level == 0
    for level in (0, 1, 2):
        entry = replace(NEW, level=level)
        for changed in (True, False):
            assert life(Revised(NOW, changed, taken=True), entry=entry).level == max(1, level)


def test_an_entry_that_was_brought_back_is_not_retired_again_for_what_was_before():
    gone = life(*used(failure, 3), entry=replace(NEW, level=1))
    assert gone.deprecated
    back = life(Revised(NOW + DAY_MS, found_again=True), Reviewed(NOW + 2 * DAY_MS), entry=gone)
    assert (back.level, back.deprecated) == (1, False)
    assert not life(*used(failure, 2, start=NOW + DAY_MS), entry=back).deprecated
    assert life(*used(failure, 3, start=NOW + DAY_MS), entry=back).deprecated


def test_a_review_looks_at_no_more_marks_than_it_is_meant_to():
    shadow = replace(NEW, level=1)
    bad = [Observed(failure("f1", NOW)), Observed(failure("f2", NOW + 1))]
    good = used(success, MARKS_KEPT - 1, every=60_000, start=NOW + HOUR)
    end = Reviewed(NOW + 20 * DAY_MS)
    assert life(*bad[:1], *good, end, entry=shadow).level == 2
    assert life(*bad, *good[1:], end, entry=shadow).level == 1
    # What spoke against it is not made up for by much use.
    assert life(*bad, *good, *used(success, 9, start=NOW + 2 * DAY_MS), end, entry=shadow).level == 1
    looks = [Observed(seen(f"l{number}", NOW + 2 * DAY_MS + number)) for number in range(MARKS_KEPT)]
    assert life(*good[:9], *looks, end, entry=shadow).level == 1


def test_a_disproven_candidate_stays_where_it_is():
    assert life(*used(success, 5), Disproved(), Reviewed(NOW + DAY_MS)).level == 0


def test_health_counts_an_execution_once():
    call = success("a", NOW)
    twice = [call, replace(call, kind="tob_verified"), reported("r", NOW + 1)]
    health = life(*map(Observed, twice)).health
    assert (health.attempts, health.successes) == (1, 1)
    failed = life(Observed(failure("a", NOW)), Observed(drift("a", NOW)))
    assert (failed.health.attempts, failed.health.failures) == (1, 1)
    severe = life(Observed(replace(failure("a", NOW), severe=True)))
    assert severe.health.severe_misfires == 1
    silent = life(Observed(replace(drift("a", NOW), source="check")))
    assert (silent.health.attempts, silent.health.silent_verify_fails) == (0, 1)


def test_health_remembers_the_newest_drift_that_a_use_has_met():
    met = [Observed(drift("a", NOW + HOUR)), Observed(drift("b", NOW)), *used(success, 1, start=NOW + DAY_MS)]
    assert life(*met, entry=ACTIVE).health.last_drift_at_ms == NOW + HOUR
    assert life(*used(success, 1)).health.last_drift_at_ms is None


def test_a_snapshot_of_other_rules_is_refused():
    with pytest.raises(ValueError, match="can't be continued"):
        replay(Snapshot(NEW, rules_version=RULES_VERSION + 1), ())


# -- what must hold

makers = st.sampled_from([success, success, success, failure, seen, drift, claim, reported])


@st.composite
def lives(draw: st.DrawFn, sessions: int = 4) -> list[Step]:
    """Steps in the order of time: calls minutes to days apart, reviews and revisions in between."""
    steps: list[Step] = []
    at = NOW
    for number in range(draw(st.integers(0, 30))):
        at += draw(st.sampled_from([60_000, 10 * 60_000, HOUR, DAY_MS, 6 * DAY_MS]))
        match draw(st.integers(0, 9)):
            case 0 | 1 | 2:
                steps.append(Reviewed(at))
            case 3:
                steps.append(Revised(at))
            case _:
                mark: Mark = draw(makers)(f"c{number}", at, session_id=f"s{draw(st.integers(0, sessions - 1))}")
                steps.append(Observed(replace(mark, seq=number)))
    return steps


@given(lives(), st.integers(0, 2), st.integers(0, 30))
def test_a_replay_reproduces_every_level_from_any_snapshot(steps: list[Step], level: int, cut: int):
    entry = replace(NEW, level=level)  # type: ignore[arg-type]
    whole = replay(Snapshot(entry), steps)
    assert replay(Snapshot(entry), steps) == whole
    half = replay(Snapshot(entry), steps[:cut])
    rest = replay(half.snapshot, steps[cut:])
    assert rest.snapshot.entry == whole.snapshot.entry
    assert (*half.events, *rest.events) == whole.events


@given(lives(), st.integers(0, 2))
def test_the_log_accounts_for_every_change_of_level(steps: list[Step], level: int):
    entry, marks = replace(NEW, level=level), []  # type: ignore[arg-type]
    for step in steps:
        done = fold(entry, marks, step)
        if (entry.level, entry.deprecated) != (done.entry.level, done.entry.deprecated):
            assert done.event is not None
            assert (done.event.from_level, done.event.to_level) == (entry.level, done.entry.level)
            assert any(gate.passed for gate in done.event.gates)
        else:
            assert done.event is None
        entry = done.entry
        if isinstance(step, Observed):
            marks.append(step.mark)


@given(lives(sessions=1), st.integers(0, 1))
def test_one_session_never_makes_an_entry_active(steps: list[Step], level: int):
    entry, marks = replace(NEW, level=level), []  # type: ignore[arg-type]
    for step in steps:
        entry = fold(entry, marks, step).entry
        assert entry.level < 2
        if isinstance(step, Observed):
            marks.append(step.mark)


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=40), st.integers(0, 2))
def test_claims_alone_move_nothing(calls: list[tuple[int, bool]], level: int):
    entry = replace(NEW, level=level)  # type: ignore[arg-type]
    steps: list[Step] = []
    for number, (session, look) in enumerate(calls):
        at = NOW + number * HOUR
        steps.append(Reviewed(at) if look else Observed(claim(f"c{number}", at, f"s{session}")))
    after = life(*steps, entry=entry)
    assert (after.level, after.deprecated, after.run.length) == (level, False, 0)


@given(st.lists(st.sampled_from([seen, claim]), max_size=10), st.lists(st.sampled_from([seen, claim]), max_size=10))
def test_an_active_entry_that_always_fails_is_demoted_within_two_uses(before: list[object], between: list[object]):
    kinds = [*before, failure, *between, failure]
    marks = [make(f"c{n}", NOW + n * 60_000) for n, make in enumerate(kinds)]  # type: ignore[operator]
    assert life(*map(Observed, marks), entry=ACTIVE).level < 2


def severe(call_id: str, at_ms: int) -> Mark:
    return replace(failure(call_id, at_ms), severe=True)


@given(st.lists(st.sampled_from([success, seen, failure, severe, drift]), max_size=30))
def test_an_active_entry_is_never_quarantined(kinds: list[object]):
    marks = [make(f"c{n}", NOW + n * 60_000) for n, make in enumerate(kinds)]  # type: ignore[operator]
    entry, history = ACTIVE, []
    for mark in marks:
        entry = fold(entry, history, Observed(mark)).entry
        history.append(mark)
        entry = fold(entry, history, Reviewed(mark.at_ms)).entry
        assert entry.level < 2 or entry.health.quarantined_at_ms is None


def counted(calls: list[tuple[str, Observation]], every: int = 1000) -> list[Mark]:
    """The observations of calls as the journal hands them on: nothing that was handed on is taken back."""
    rows: dict[str, Held] = {}
    marks: list[Mark] = []
    by = {}
    for number, (call_id, one) in enumerate(calls):
        key, at = throttle_key(one, "shop.test", "t1", "nova.click_selector"), NOW + number * every
        held = rows.get(key)
        match judge(held, one, at):
            case "count":
                rows[key], by[key] = Held(at, number, one.outcome), call_id
                marks.append(mark_of(written(one, call_id, at)))
            case "upgrade" if held is not None:
                rows[key] = replace(held, outcome=one.outcome)
                marks.append(mark_of(replace(written(one, call_id, at), replaced_call_id=by[key])))
                by[key] = call_id
            case _:
                pass
    return marks


def tried(call_id: str, outcome: int) -> list[tuple[str, Observation]]:
    """A call on a known entry: what is proven counts as a success and as a proof by use."""
    here = {"target_stable_id": "lcj_1", "selector_norm": "#buy"}
    shown = [(call_id, Observation("action_success", outcome, **here))]  # type: ignore[arg-type]
    return [*shown, (call_id, Observation("tob_verified", 1, **here))] if outcome else shown  # type: ignore[arg-type]


@given(st.permutations([0, 1, 0, 1, 1, 0]), st.integers(1, 4))
def test_retries_in_any_order_support_an_entry_once(outcomes: list[int], repeats: int):
    tries = [one for number, outcome in enumerate(outcomes * repeats) for one in tried(f"c{number}", outcome)]
    marks = counted(tries, every=20_000 // len(tries))
    assert max(mark.at_ms for mark in marks) < NOW + 30_000
    for kind in ("l0_to_l1", "l1_to_l2"):
        counts = counts_for(NEW, kind, marks, NOW + HOUR)  # type: ignore[arg-type]
        assert (counts.support, counts.successes, counts.success_sessions) == (1, 1, 1)


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_sightings_that_nothing_proves_count_once_within_the_window(many: list[bool]):
    marks = counted([one for number, _ in enumerate(many) for one in tried(f"c{number}", 0)])
    counts = counts_for(NEW, "l0_to_l1", marks, NOW + HOUR)
    assert (counts.support, counts.successes) == (1, 0)


def test_a_failure_between_retries_is_not_hidden_by_a_success():
    plain = Observation("action_success", 1, selector_norm="#buy")
    against = Observation("action_failure", -1, selector_norm="#buy")
    marks = counted([("a", plain), ("b", against), ("c", plain)])
    counts = counts_for(NEW, "l0_to_l1", marks, NOW + HOUR)
    assert (counts.support, counts.failures) == (1, 1)


@given(st.lists(makers, max_size=20))
def test_folding_one_observation_needs_no_history(kinds: list[object]):
    entry = ACTIVE
    marks = [make(f"c{n}", NOW + n * HOUR) for n, make in enumerate(kinds)]  # type: ignore[operator]
    for mark in marks:
        entry = observed(entry, mark).entry
    assert entry == life(*map(Observed, marks), entry=ACTIVE)
