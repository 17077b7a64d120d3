"""The gates between levels: every number at its edge and one past it, and what must hold of all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.knowledge.model import FailureRun
from nova_mcp.memory.promotion.gates.counting import after, confidence, counts_for, evidence_score, mark_of
from nova_mcp.memory.promotion.gates.explanations import BY_CLICK, Judging, explain, remedy
from nova_mcp.memory.promotion.gates.gates import (
    TRANSITIONS,
    applied,
    evaluate,
    event_of,
    gates_of,
    review,
    worth_logging,
)
from nova_mcp.memory.promotion.model import (
    DAY_MS,
    Entry,
    EvidenceCounts,
    Hold,
    Lower,
    Mark,
    Promote,
    Reject,
    TransitionKind,
)
from promotion_kit import MARKS, claim, drift, failure, good, seen, success, written

NOW = 100 * DAY_MS
KNOWN = Entry("lcj_1", "shop.test", "modal")


def at_level(level: int, **changes: object) -> Entry:
    return replace(KNOWN, level=level, **changes)  # type: ignore[arg-type]


def judged(entry: Entry, kind: TransitionKind, *marks: Mark, now: int = NOW) -> Promote | Lower | Hold | Reject:
    ordered = [replace(mark, seq=number) for number, mark in enumerate(marks)]
    for mark in ordered:
        hard = mark.kind == "selector_drift" and mark.severity == 2
        at = max(mark.at_ms, entry.last_hard_drift_at_ms or 0) if hard else entry.last_hard_drift_at_ms
        entry = replace(entry, run=after(entry.run, mark), last_hard_drift_at_ms=at)
    return evaluate(entry, kind, ordered, now)


def passes(verdict: object) -> bool:
    return isinstance(verdict, Promote | Lower)


def failed_gate(verdict: object) -> str:
    assert isinstance(verdict, Hold)
    return verdict.reason


HOUR = 3_600_000
AGO = NOW - HOUR

# -- candidate to shadow


def test_a_candidate_rises_with_two_successes_and_no_failure():
    verdict = judged(at_level(0), "l0_to_l1", success("a", AGO), success("b", AGO))
    assert isinstance(verdict, Promote)
    assert (verdict.from_level, verdict.to_level) == (0, 1)


@pytest.mark.parametrize(
    ("marks", "gate"),
    [
        (good(2, AGO), None),
        ([success("a", AGO)], "support"),
        ([seen("a", AGO), seen("b", AGO)], "success_support"),
        ([success("a", AGO), seen("b", AGO)], "confidence"),
        ([success("a", AGO), success("b", AGO), success("c", AGO), failure("d", AGO)], "confidence"),
    ],
)
def test_each_gate_to_shadow_holds_alone(marks: list[Mark], gate: str | None):
    verdict = judged(at_level(0), "l0_to_l1", *marks)
    assert passes(verdict) if gate is None else failed_gate(verdict) == gate


def test_confidence_of_seven_tenths_is_enough_and_a_failure_more_is_not():
    counts = [confidence(6, 2), confidence(6, 1)]
    assert counts == [0.7, pytest.approx(7 / 9)]
    assert passes(judged(at_level(0), "l0_to_l1", *good(6, AGO), failure("f", AGO), failure("g", AGO)))
    three = [failure(name, AGO) for name in "fgh"]
    assert failed_gate(judged(at_level(0), "l0_to_l1", *good(6, AGO), *three)) == "confidence"


def test_the_evidence_score_needs_fifty_five_hundredths():
    # 0.40·(2/5) + 0.30·1 + 0.30·0.75 = 0.685, and with sightings the share of successes falls.
    assert evidence_score(EvidenceCounts(support=2, successes=2)) == 0.685
    assert evidence_score(EvidenceCounts(support=5, successes=0)) == 0.55
    assert evidence_score(EvidenceCounts(support=4, successes=0)) == 0.47
    assert evidence_score(EvidenceCounts()) == 0.15


@pytest.mark.parametrize(("support", "passed", "missing"), [(5, True, 0), (4, False, 0.08)])
def test_the_evidence_score_is_a_gate_of_its_own(support: int, passed: bool, missing: float):
    rows = gates_of(at_level(0), "l0_to_l1", EvidenceCounts(support=support))
    row = next(gate for gate in rows if gate.name == "evidence_score")
    assert (row.required, row.passed, row.delta_to_pass) == (0.55, passed, missing)


def test_a_disproven_candidate_never_rises():
    assert failed_gate(judged(at_level(0, disproven=True), "l0_to_l1", *good(9, AGO))) == "not_disproven"


@pytest.mark.parametrize(("age", "counted"), [(14 * DAY_MS, True), (14 * DAY_MS + 1, False)])
def test_a_candidate_is_judged_by_fourteen_days(age: int, counted: bool):
    assert passes(judged(at_level(0), "l0_to_l1", *good(2, NOW - age))) is counted


def test_failures_are_no_support():
    counts = counts_for(KNOWN, "l0_to_l1", [failure("a", AGO), seen("b", AGO), success("c", AGO)], NOW)
    assert (counts.support, counts.successes, counts.failures) == (2, 1, 1)


# -- shadow to active


def spread(count: int, sessions: int, at_ms: int = AGO) -> list[Mark]:
    return [success(f"c{number}", at_ms, f"s{number % sessions}") for number in range(count)]


@pytest.mark.parametrize(
    ("kind", "count", "sessions", "failures", "gate"),
    [
        ("modal", 3, 2, 0, None),
        ("modal", 3, 2, 1, None),
        ("modal", 2, 2, 0, "successes"),
        ("modal", 3, 1, 0, "success_sessions"),
        ("modal", 3, 2, 2, "failures"),
        ("consent_cmp", 3, 2, 1, None),
        ("consent_cmp", 2, 2, 0, "successes"),
        ("consent_cmp", 3, 1, 0, "success_sessions"),
        ("consent_cmp", 3, 2, 2, "failures"),
    ],
)
def test_a_shadow_becomes_active_at_the_numbers_and_not_one_before(
    kind: str, count: int, sessions: int, failures: int, gate: str | None
):
    marks = [*(failure(f"f{number}", AGO) for number in range(failures)), *spread(count, sessions)]
    verdict = judged(at_level(1, phenomenon_type=kind), "l1_to_l2", *marks)
    assert passes(verdict) if gate is None else failed_gate(verdict) == gate


@pytest.mark.parametrize(
    ("kind", "count", "sessions", "failures", "gate"),
    [
        ("consent_cmp", 5, 3, 0, None),
        ("consent_cmp", 4, 3, 0, "successes"),
        ("consent_cmp", 5, 2, 0, "success_sessions"),
        ("consent_cmp", 5, 3, 1, "failures"),
        ("modal", 3, 2, 1, None),
    ],
)
def test_stricter_consent_gates_are_a_choice_and_concern_banners_alone(
    kind: str, count: int, sessions: int, failures: int, gate: str | None
):
    marks = [*(failure(f"f{number}", AGO) for number in range(failures)), *spread(count, sessions)]
    entry = at_level(1, phenomenon_type=kind)
    verdict = evaluate(entry, "l1_to_l2", marks, NOW, "strict")
    assert passes(verdict) if gate is None else failed_gate(verdict) == gate
    told = explain(entry, marks, NOW, Judging("l1_to_l2", "strict"))
    assert ("stricter gates" in told.summary) is (kind == "consent_cmp")
    assert next(one.required for one in told.gates if one.name == "successes") == (3 if kind == "modal" else 5)


@pytest.mark.parametrize("kind", ["l1_to_l2", "revive"])
@pytest.mark.parametrize("severity", [1, 2])
@pytest.mark.parametrize(("age", "clear"), [(7 * DAY_MS, False), (7 * DAY_MS + 1, True)])
def test_a_drift_blocks_rising_for_seven_days(kind: TransitionKind, severity: int, age: int, clear: bool):
    entry = at_level(1) if kind == "l1_to_l2" else at_level(0, deprecated=True)
    verdict = judged(entry, kind, drift("d", NOW - age, severity), *spread(3, 2))
    assert passes(verdict) if clear else failed_gate(verdict) == "drift_7d"


@pytest.mark.parametrize(("age", "counted"), [(30 * DAY_MS, True), (30 * DAY_MS + 1, False)])
def test_a_shadow_is_judged_by_thirty_days(age: int, counted: bool):
    assert passes(judged(at_level(1), "l1_to_l2", *spread(3, 2, NOW - age))) is counted


def test_selectors_that_nobody_has_seen_keep_a_shadow_a_shadow():
    assert (
        failed_gate(judged(at_level(1, unconfirmed_selectors=1), "l1_to_l2", *spread(9, 3))) == "unconfirmed_selectors"
    )


@pytest.mark.parametrize("since", ["unsettled_at_ms", "revised_at_ms"])
def test_what_was_before_a_fall_or_a_revision_does_not_help(since: str):
    entry = at_level(1, **{since: AGO})
    assert failed_gate(judged(entry, "l1_to_l2", *spread(3, 2, AGO))) == "successes"
    assert passes(judged(entry, "l1_to_l2", *spread(3, 2, AGO + 1)))


def test_new_content_is_not_blamed_for_the_drift_of_the_old_but_a_fallen_entry_is():
    marks = [drift("d", AGO), *spread(3, 2, AGO + 1)]
    assert passes(judged(at_level(1, revised_at_ms=AGO), "l1_to_l2", *marks))
    assert failed_gate(judged(at_level(1, unsettled_at_ms=AGO), "l1_to_l2", *marks)) == "drift_7d"


# -- stepping down, retiring, coming back


@pytest.mark.parametrize(
    ("level", "kind", "failures", "due"),
    [
        (2, "demotion", 1, False),
        (2, "demotion", 2, True),
        (1, "deprecation", 2, False),
        (1, "deprecation", 3, True),
        (2, "deprecation", 4, False),
        (2, "deprecation", 5, True),
    ],
)
def test_failures_in_a_row_lower_an_entry(level: int, kind: TransitionKind, failures: int, due: bool):
    marks = [failure(f"f{number}", AGO) for number in range(failures)]
    assert passes(judged(at_level(level), kind, *marks)) is due


@pytest.mark.parametrize(("age", "due"), [(DAY_MS, True), (DAY_MS + 1, False)])
def test_a_hard_drift_demotes_for_a_day(age: int, due: bool):
    assert passes(judged(at_level(2), "demotion", drift("d", NOW - age))) is due


def test_a_fallback_that_worked_demotes_nothing():
    assert not passes(judged(at_level(2), "demotion", drift("d", AGO, 1), drift("e", AGO, 1), drift("f", AGO, 1)))


@pytest.mark.parametrize(("count", "sessions", "gate"), [(2, 2, None), (1, 1, "successes"), (2, 1, "success_sessions")])
def test_what_was_retired_comes_back_with_two_successes_of_two_sessions(count: int, sessions: int, gate: str | None):
    verdict = judged(at_level(0, deprecated=True), "revive", *spread(count, sessions))
    assert passes(verdict) if gate is None else failed_gate(verdict) == gate


@pytest.mark.parametrize(("age", "counted"), [(30 * DAY_MS, True), (30 * DAY_MS + 1, False)])
def test_a_retired_entry_is_judged_by_thirty_days(age: int, counted: bool):
    assert passes(judged(at_level(0, deprecated=True), "revive", *spread(2, 2, NOW - age))) is counted


def test_down_comes_before_up_and_only_one_step_is_taken():
    five = FailureRun(uses=5)
    active = at_level(2, run=five, last_hard_drift_at_ms=AGO)
    assert getattr(review(active, (), NOW), "kind", None) == "deprecation"
    assert getattr(review(replace(active, run=FailureRun()), (), NOW), "kind", None) == "demotion"
    shadow = at_level(1, run=FailureRun(uses=3))
    verdict = review(shadow, spread(9, 3), NOW)
    assert isinstance(verdict, Lower)
    after_it = applied(shadow, verdict, NOW)
    assert (after_it.level, after_it.deprecated, after_it.unsettled_at_ms) == (0, True, NOW)


@pytest.mark.parametrize(
    ("level", "deprecated", "possible"),
    [
        (0, False, {"l0_to_l1"}),
        (1, False, {"l1_to_l2", "deprecation"}),
        (2, False, {"demotion", "deprecation"}),
        (0, True, {"revive"}),
    ],
)
def test_a_transition_from_another_level_is_not_applicable(level: int, deprecated: bool, possible: set[str]):
    entry = at_level(level, deprecated=deprecated)
    refused = {kind for kind in TRANSITIONS if isinstance(evaluate(entry, kind, (), NOW), Reject)}
    assert refused == set(TRANSITIONS) - possible


# -- what counts as what


def test_one_execution_never_counts_twice():
    both = [success("a", AGO), replace(success("a", AGO), kind="tob_verified")]
    report = replace(success("r", AGO), kind="telemetry_confirmed", source="report")
    assert counts_for(KNOWN, "l1_to_l2", [*both, report], NOW).successes == 1
    assert counts_for(KNOWN, "l1_to_l2", [*both, report, replace(report, call_id="r2")], NOW).successes == 2


def test_a_report_repeats_the_failure_it_speaks_of():
    reported = replace(drift("r", AGO), source="report")
    marks = [failure("a", AGO), reported, failure("b", AGO), replace(reported, call_id="q")]
    run = FailureRun()
    for mark in marks:
        run = after(run, mark)
    assert run.length == 2
    assert counts_for(KNOWN, "l1_to_l2", marks, NOW).failures == 2


def test_a_sighting_ends_silent_failures_but_no_failed_uses():
    silent = replace(drift("c", AGO), source="check")
    run = FailureRun()
    for mark in (failure("a", AGO), silent, replace(silent, call_id="d"), seen("e", AGO)):
        run = after(run, mark)
    assert run.length == 1
    assert after(run, success("g", AGO)).length == 0


def test_a_call_that_failed_in_two_ways_failed_once():
    run = after(after(FailureRun(), failure("a", AGO)), drift("a", AGO))
    assert run.length == 1


def test_a_mark_says_where_its_observation_came_from():
    hard = Observation("selector_drift", -1, 2)
    sources = {"revalidate": "check", "perceive": "check", "telemetry_report": "report", "click_selector": "use"}
    for tool, source in sources.items():
        assert mark_of(written(hard, "c", 5, f"nova.{tool}")).source == source
    misfire = Observation("action_failure", -1, payload={"contract": "verified_fail"})
    mark = mark_of(written(misfire, "c", 5))
    assert (mark.seq, mark.at_ms, mark.call_id, mark.session_id, mark.severe) == (7, 5, "c", "s0", True)


# -- what must hold

levels = st.sampled_from([at_level(0), at_level(1), at_level(2), at_level(0, deprecated=True)]) | st.sampled_from(
    [at_level(1, phenomenon_type="consent_cmp"), at_level(1, unsettled_at_ms=NOW - 5 * DAY_MS)]
)
histories = st.lists(MARKS, max_size=12)
places = st.integers(0, 12)
RAISING: tuple[TransitionKind, ...] = ("l0_to_l1", "l1_to_l2", "revive")
FALLING: tuple[TransitionKind, ...] = ("demotion", "deprecation")


def with_one_more(history: list[Mark], place: int, mark: Mark) -> list[Mark]:
    at = min(place, len(history))
    return [*history[:at], mark, *history[at:]]


@given(levels, histories, places, st.integers(0, 40), st.sampled_from(["s0", "s1", "new"]))
def test_one_more_success_never_hinders_rising_nor_causes_a_fall(
    entry: Entry, history: list[Mark], place: int, days: int, session: str
):
    more = with_one_more(history, place, success("extra", NOW - days * DAY_MS, session))
    for kind in RAISING:
        assert passes(judged(entry, kind, *more)) >= passes(judged(entry, kind, *history))
    for kind in FALLING:
        assert passes(judged(entry, kind, *more)) <= passes(judged(entry, kind, *history))


@given(levels, histories, places, st.integers(0, 40), st.booleans())
def test_one_more_failure_never_helps_rising_nor_prevents_a_fall(
    entry: Entry, history: list[Mark], place: int, days: int, drifting: bool
):
    at = NOW - days * DAY_MS
    more = with_one_more(history, place, drift("extra", at) if drifting else failure("extra", at))
    for kind in RAISING:
        assert passes(judged(entry, kind, *more)) <= passes(judged(entry, kind, *history))
    for kind in FALLING:
        assert passes(judged(entry, kind, *more)) >= passes(judged(entry, kind, *history))


@given(levels, histories, places, st.integers(0, 40))
def test_a_claim_changes_no_verdict(entry: Entry, history: list[Mark], place: int, days: int):
    more = with_one_more(history, place, claim("extra", NOW - days * DAY_MS))
    for kind in TRANSITIONS:
        before, now = judged(entry, kind, *history), judged(entry, kind, *more)
        assert type(before) is type(now)
        assert getattr(before, "counts", None) == getattr(now, "counts", None)


@given(levels, histories)
def test_every_gate_says_what_is_missing(entry: Entry, history: list[Mark]):
    for kind in TRANSITIONS:
        verdict = judged(entry, kind, *history)
        for gate in getattr(verdict, "gates", ()):
            assert gate.passed is (gate.delta_to_pass == 0)
            assert gate.delta_to_pass in (0, pytest.approx(abs(gate.required - gate.observed), abs=1e-4))


@given(levels, histories)
def test_every_entry_can_be_explained(entry: Entry, history: list[Mark]):
    told = explain(entry, history, NOW)
    assert told.summary.startswith("This entry is ")
    verdict = review(entry, history, NOW)
    assert told.transition == verdict.kind
    if isinstance(verdict, Hold) and verdict.kind not in FALLING:
        # Two gates that the same figure opens are remedied by one sentence.
        assert len(told.remediation) == len({remedy(gate, verdict.counts, NOW, BY_CLICK) for gate in verdict.missing})
        assert "Nothing to do." not in told.remediation
        assert all(gate.name in told.summary for gate in verdict.missing)


def test_the_same_refusal_is_logged_once():
    entry = at_level(1)
    held = evaluate(entry, "l1_to_l2", spread(2, 2), NOW)
    assert isinstance(held, Hold)
    event = event_of(entry, held, NOW)
    assert (event.from_level, event.to_level, event.rejection) == (1, 1, "successes")
    assert worth_logging(held, None)
    assert not worth_logging(held, event)
    other = evaluate(entry, "l1_to_l2", spread(3, 1), NOW)
    assert worth_logging(other, event)
    assert not worth_logging(Reject("revive", "not_applicable"), None)


def test_the_remedy_for_a_drift_says_how_long_to_wait():
    told = explain(at_level(1), [drift("d", NOW - 6 * DAY_MS), *spread(3, 2)], NOW)
    assert "let 25 hour(s) pass" in told.remediation[0]


@pytest.mark.parametrize("kind", ["demotion", "deprecation"])
def test_an_entry_that_need_not_step_down_leaves_no_event(kind: TransitionKind) -> None:
    assert not worth_logging(Hold(kind, 2, (), EvidenceCounts()), None)
