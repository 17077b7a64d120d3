"""How an entry does: rates, states, quarantine and how it is left, trust, drift, silent checks and their budget."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.knowledge.drift import (
    GATE,
    HOUR_MS,
    Check,
    PastCheck,
    after_sighting,
    budget,
    check_order,
    distance,
    drift_problem,
    gate,
    has_selector,
    health_outcome,
    judged,
    telemetry_of,
)
from nova_mcp.memory.knowledge.health import (
    DAY_MS,
    HealthEvent,
    after_event,
    last_30_days,
    staleness,
    state,
    success_rate,
    trust_of,
)
from nova_mcp.memory.knowledge.matching.fingerprints import match, told
from nova_mcp.memory.knowledge.model import Action, Content, Fingerprint, Health, Phenomenon, Playbook, Signal

NOW = 20_000 * DAY_MS
UNBORN = Health()
FRESH = Health(last_confirmed_at_ms=NOW)


def lived(*outcomes, start=UNBORN, at=NOW, step=1):
    health = start
    for index, outcome in enumerate(outcomes):
        health = after_event(health, HealthEvent(outcome, at + index * step))
    return health


def entry(name="a", *, level=2, health=FRESH, retired=None, kind="modal", debt=0.0):
    content = Content(kind, Fingerprint((Signal("dom", "#x"),)))
    return Phenomenon(name, content, level, NOW, NOW, health=health, deprecated_reason=retired, drift_debt=debt)


WON, LOST = "success", "failure"


# -- states


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((), "healthy"),
        ((WON,), "healthy"),
        ((LOST,), "watch"),
        ((LOST, LOST), "watch"),
        ((LOST, LOST, LOST), "quarantined"),
        ((LOST, LOST, WON, LOST), "watch"),
        ((*(WON,) * 19, LOST), "healthy"),
        ((*(WON,) * 18, LOST), "watch"),
        ((*(WON,) * 4, LOST), "watch"),
        ((*(WON,) * 3, LOST, LOST), "quarantined"),
        ((*(WON,) * 2, LOST, LOST), "watch"),
        (("misfire",), "quarantined"),
        ((*(WON,) * 50, "misfire"), "quarantined"),
        (("silent_drift",) * 5, "healthy"),
        (("not_applicable",) * 9, "healthy"),
    ],
)
def test_the_state_follows_from_what_happened(outcomes, expected):
    assert state(lived(*outcomes), NOW + 1000) == expected


def test_counters_say_what_happened():
    health = lived(WON, LOST, "misfire", "silent_drift", "silent_ok", "not_applicable")
    assert (health.attempts, health.successes, health.failures, health.consecutive_failures) == (3, 1, 2, 2)
    assert (health.severe_misfires, health.silent_verify_fails) == (1, 1)
    assert (health.last_success_at_ms, health.last_failure_at_ms) == (NOW, NOW + 2)
    assert (health.last_drift_at_ms, health.last_confirmed_at_ms) == (NOW + 3, NOW + 4)


def test_the_rate_looks_back_thirty_days():
    health = lived(LOST, LOST, at=NOW)
    assert success_rate(Health(), NOW) is None
    assert success_rate(health, NOW + 29 * DAY_MS) == 0.0
    assert success_rate(health, NOW + 30 * DAY_MS) is None
    assert state(health, NOW + 30 * DAY_MS) == "healthy"
    later = lived(WON, start=health, at=NOW + 29 * DAY_MS)
    assert success_rate(later, NOW + 29 * DAY_MS) == pytest.approx(1 / 3)
    assert last_30_days(later, NOW + 31 * DAY_MS).attempts == 1


@given(st.lists(st.tuples(st.sampled_from([WON, LOST]), st.integers(0, 90)), max_size=60))
def test_the_memory_of_days_stays_small(events):
    health = Health()
    for outcome, day in sorted(events, key=lambda pair: pair[1]):
        health = after_event(health, HealthEvent(outcome, NOW + day * DAY_MS))
    assert len({one.day for one in health.recent}) <= 31
    assert health.attempts == health.successes + health.failures == len(events)


@pytest.mark.parametrize(("days", "expected"), [(0, 0.0), (15, 0.5), (30, 1.0), (300, 1.0), (-1, 0.0)])
def test_staleness_grows_for_thirty_days(days, expected):
    assert staleness(Health(last_confirmed_at_ms=NOW), NOW + days * DAY_MS) == expected


def test_what_was_never_confirmed_is_stale():
    assert staleness(Health(), NOW) == 1.0


# -- quarantine


def test_three_clean_confirmations_leave_quarantine_and_two_do_not():
    ill = lived(LOST, LOST, LOST)
    two = lived("silent_ok", "silent_ok", start=ill, at=NOW + 10)
    assert state(two, NOW + 20) == "quarantined"
    out = lived("silent_ok", start=two, at=NOW + 20)
    assert (state(out, NOW + 21), out.consecutive_failures, out.failures) == ("watch", 0, 3)


@pytest.mark.parametrize("between", [LOST, "misfire", "silent_drift"])
def test_confirmations_have_to_be_in_a_row(between):
    ill = lived("misfire")
    health = lived("silent_ok", "silent_ok", between, "silent_ok", "silent_ok", start=ill, at=NOW + 10)
    assert state(health, NOW + 20) == "quarantined"


def test_neither_time_nor_a_success_makes_an_entry_ill():
    mixed = lived(*(WON,) * 20, at=NOW)
    mixed = lived(LOST, WON, WON, LOST, WON, start=mixed, at=NOW + 25 * DAY_MS)
    assert state(mixed, NOW + 25 * DAY_MS + 10) == "watch"
    # The good days are out of sight: three of five are left.
    assert state(mixed, NOW + 40 * DAY_MS) == "watch"
    assert state(lived(WON, start=mixed, at=NOW + 40 * DAY_MS), NOW + 41 * DAY_MS) == "watch"
    assert state(lived(LOST, start=mixed, at=NOW + 40 * DAY_MS), NOW + 41 * DAY_MS) == "quarantined"


def test_a_success_does_not_end_quarantine():
    assert state(lived("misfire", *(WON,) * 30), NOW + 100) == "quarantined"


def test_confirmations_on_one_occasion_count_once():
    health = lived("misfire")
    for index in range(5):
        health = after_event(health, HealthEvent("silent_ok", NOW + index, occasion="visit-1"))
    assert state(health, NOW + 10) == "quarantined"
    for occasion in ("visit-2", "visit-3"):
        health = after_event(health, HealthEvent("silent_ok", NOW + 10, occasion=occasion))
    assert state(health, NOW + 11) == "watch"


def test_after_quarantine_an_entry_is_judged_by_what_comes():
    out = lived("silent_ok", "silent_ok", "silent_ok", start=lived(*(LOST,) * 8), at=NOW + 10)
    assert state(lived(*(WON,) * 4, start=out, at=NOW + 20), NOW + 30) == "watch"
    assert state(lived(*(WON,) * 5, start=out, at=NOW + 20), NOW + 30) == "healthy"
    assert state(lived(LOST, LOST, LOST, start=out, at=NOW + 20), NOW + 30) == "quarantined"


def test_quarantine_outlives_the_window():
    assert state(lived(LOST, LOST, LOST), NOW + 300 * DAY_MS) == "quarantined"


outcomes = st.lists(st.sampled_from([WON, LOST, "misfire", "silent_ok", "silent_drift", "not_applicable"]), max_size=25)


@given(outcomes)
def test_a_failure_more_never_makes_an_entry_healthier(before):
    rank = {"healthy": 0, "watch": 1, "quarantined": 2}
    health = lived(*before)
    then, now = state(health, NOW + 100), state(lived(LOST, start=health, at=NOW + 100), NOW + 101)
    assert rank[now] >= rank[then]
    assert now != "healthy" or health.attempts >= 19


# -- trust


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], "unknown"),
        ([entry(level=0)], "unknown"),
        ([entry(level=1, retired="x")], "unknown"),
        ([entry(level=0), entry(level=1)], "low"),
        ([entry(level=1), entry()], "medium"),
        ([entry(), entry()], "medium"),
        ([entry(), entry(), entry()], "high"),
        ([entry(), entry(), entry(), entry(health=lived(LOST))], "medium"),
        ([entry(), entry(), entry(retired="x")], "medium"),
        ([entry(), entry(), entry(), entry(retired="x", health=lived(LOST))], "high"),
    ],
)
def test_trust_follows_from_the_entries(entries, expected):
    assert trust_of(entries, NOW + 10) == expected


# -- drift

A, B, C = Signal("dom", "#a"), Signal("dom", "#b"), Signal("text", "c", "fr")


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ((A, B), (A, B), 0.0),
        ((A, B), (A,), 0.5),
        ((A,), (B,), 1.0),
        ((A, B), (), 1.0),
        ((), (), 0.0),
        ((A,), (A, B), 0.5),
    ],
)
def test_distance_is_what_both_do_not_share(then, now, expected):
    assert distance(then, now) == expected


def test_texts_of_another_language_are_no_drift():
    assert distance((A, C), (A,), "de") == 0.0
    assert distance((A, C), (A,), "fr") == 0.5


def test_debt_moves_by_three_tenths():
    assert after_sighting(0.0, 1.0) == 0.3
    assert after_sighting(0.3, 1.0) == 0.51
    assert after_sighting(1.0, 0.0) == 0.7


@pytest.mark.parametrize(
    ("debt", "mode", "expected"), [(0.39, "refuse", "pass"), (0.4, "refuse", "refuse"), (0.4, "warn", "warn")]
)
def test_the_gate_closes_at_its_number(debt, mode, expected):
    assert GATE == 0.40
    assert gate(debt, mode) == expected
    assert (drift_problem(entry(debt=debt), mode) is not None) is (expected == "refuse")


@given(st.floats(0, 1), st.floats(0, 1))
def test_debt_stays_a_share_between_what_was_and_what_is(debt, moved):
    assert min(debt, moved) - 1e-6 <= after_sighting(debt, moved) <= max(debt, moved) + 1e-6


# -- silent checks


def check(confidence_of, *, resolve=True, need=1.0, error=None):
    print_ = Fingerprint((Signal("dom", "#a"), Signal("dom", "#b")), need)
    return Check(match(print_, [told(one) for one in confidence_of]), resolve, error)


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("modal", check(["#a", "#b"]), "healthy"),
        ("modal", check(["#a", "#b"], resolve=False), "drift"),
        ("modal", check(["#a"]), "drift"),
        ("modal", check([]), "unknown"),
        ("consent_cmp", check([]), "unknown"),
        ("nav_link", check([]), "gone"),
        ("spa_route", check([]), "gone"),
        ("custom", check([]), "gone"),
        ("custom", check(["#a"]), "drift"),
        ("modal", check(["#a"], need=0.5), "healthy"),
        ("modal", check([], need=0.0), "unknown"),
        ("nav_link", check(["#a"], error="stalled"), "error"),
    ],
)
def test_a_silent_check_says_what_it_can_prove(kind, found, expected):
    assert judged(kind, found) == expected


@pytest.mark.parametrize(
    ("verdict", "telemetry", "outcome"),
    [
        ("healthy", "silent_verify_ok", "silent_ok"),
        ("drift", "silent_verify_drift", "silent_drift"),
        ("gone", "silent_verify_drift", "silent_drift"),
        ("unknown", None, "not_applicable"),
        ("error", None, "not_applicable"),
    ],
)
def test_only_what_is_proven_is_written_back(verdict, telemetry, outcome):
    assert (telemetry_of(verdict), health_outcome(verdict)) == (telemetry, outcome)


def test_failing_entries_are_checked_first_and_then_the_stalest():
    aged = {name: Health(last_confirmed_at_ms=NOW - days * DAY_MS) for name, days in (("new", 1), ("old", 20))}
    failing = replace(aged["new"], consecutive_failures=1)
    entries = [
        entry("new", health=aged["new"]),
        entry("cand", level=0),
        entry("old", level=1, health=aged["old"]),
        entry("gone", retired="x"),
        entry("never", health=Health()),
        entry("failing", health=failing),
    ]
    assert [one.stable_id for one in check_order(entries, NOW)] == ["failing", "never", "old", "new"]


def test_a_text_alone_names_no_element():
    playbook = Playbook("dismiss", (Action("click", "#ok", ("#alt",)), Action("wait"), Action("click", "#ok")))
    one = replace(entry(), content=Content("modal", Fingerprint((Signal("text", "t"),)), playbook))
    assert not has_selector(one)
    assert has_selector(entry())


def past(count, scope="s.test", target="t1", at=NOW):
    return [PastCheck(at + index, scope, target) for index in range(count)]


@pytest.mark.parametrize(
    ("spent", "wanted", "allowed", "remaining", "denied"),
    [
        ([], 3, 3, 3, ()),
        (past(3), 3, 3, 0, ()),
        (past(4), 3, 2, 0, ("budget_target",)),
        (past(6), 1, 0, 0, ("budget_target",)),
        (past(11, target="t9"), 3, 1, 0, ("budget_scope",)),
        (past(12, target="t9"), 3, 0, 0, ("budget_scope",)),
        (past(59, "o.test", "t9"), 3, 1, 0, ("budget_total",)),
        (past(60, "o.test", "t9"), 1, 0, 0, ("budget_total",)),
        (past(6, at=NOW - HOUR_MS - 10), 3, 3, 3, ()),
        (past(60), 1, 0, 0, ("budget_scope", "budget_target", "budget_total")),
    ],
)
def test_checks_have_an_hourly_budget(spent, wanted, allowed, remaining, denied):
    found = budget(spent, "s.test", "t1", wanted, NOW + 100)
    assert (found.allowed, found.remaining, found.denied) == (allowed, remaining, denied)
    assert (found.retry_after_ms is not None) is bool(denied)


def test_waiting_as_long_as_told_makes_room():
    spent = past(6)
    found = budget(spent, "s.test", "t1", 1, NOW + 100)
    assert budget(spent, "s.test", "t1", 1, NOW + 100 + found.retry_after_ms).allowed == 1
    assert budget(spent, "s.test", "t1", 1, NOW + 99 + found.retry_after_ms).allowed == 0
