"""The journal's figures: what each event moves, and that adding up equals counting anew."""

import random
from collections import Counter
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.memory.journal.model import Decision
from nova_mcp.memory.journal.outbox_store import TRIES, pause_ms
from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.counting import (
    CAPPED,
    CandidateStand,
    Tally,
    bucket_middle,
    bucket_of,
    hour_of,
    of_call,
    of_candidate,
    of_curated,
    of_decision,
    of_job_done,
    of_observations,
    percentile,
    runtime_of,
)
from nova_mcp.memory.journal.statistics.reader import _PLAIN, _STANDINGS, _TOTALS
from nova_mcp.memory.journal.statistics.report import (
    OutboxState,
    Reading,
    RuntimeReading,
    outbox_health,
    rate,
    report,
    rollout,
)

HOUR = names.HOUR_MS


def a_call(tool: str = "nova.click_selector", **changes: object) -> CallRecord:
    plain = CallRecord(
        call_id="c",
        caller=Caller("p", "a", ServerId("s")),
        tool_name=tool,
        effect="act",
        started_at_ms=5 * HOUR,
        duration_ms=12,
        outcome=CallOutcome("ok", action_dispatched=True, verification="verified"),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def hourly(tally: Tally, name: str, label: str = "") -> tuple[int, int]:
    found = [figures for (key, _, tag), figures in tally.hours.items() if (key, tag) == (name, label)]
    return (sum(count for count, _ in found), sum(good for _, good in found))


# -- calls -----------------------------------------------------------------------------------------------------------

outcomes = st.builds(
    CallOutcome,
    st.sampled_from(["ok", "failed", "partial", "blocked_preflight", "invalid", "crashed", "cancelled"]),
    reason_code=st.sampled_from(
        [None, "action.no_effect_observed", "guarded_commit.postcondition_failed", "element.obstructed"]
    ),
    action_dispatched=st.sampled_from([None, True, False]),
    verification=st.sampled_from([None, "verified", "likely", "uncertain", "failed"]),
)
pages = st.builds(PageState, route_key=st.sampled_from([None, "shop.example/a", "shop.example/b", "news.example"]))
calls = st.builds(
    CallRecord,
    call_id=st.just("c"),
    caller=st.just(Caller("p", "a", ServerId("s"))),
    tool_name=st.sampled_from(
        [
            *("nova.click_selector", "nova.scroll_smart", "nova.dismiss_blockers", "nova.capture_screenshot"),
            *("nova.perceive", "nova.run_sequence", "nova.guarded_submit_form"),
        ]
    ),
    effect=st.sampled_from(["read", "act", "commit", "navigate", "write"]),
    started_at_ms=st.integers(0, 6 * HOUR),
    duration_ms=st.integers(0, 60_000),
    outcome=outcomes,
    kind=st.sampled_from(["call", "call", "intent", "recovery"]),
    before=pages,
    after=pages,
    touched=st.builds(
        Touched,
        selector=st.sampled_from([None, "#go", "a.next"]),
        flags=st.sampled_from([frozenset(), frozenset({"navigation_committed"})]),
    ),
    arguments=st.sampled_from([None, {"waitForNavigation": True}, {"waitForNavigation": False}]),
    closes=st.sampled_from([None, "i"]),
    signals=st.builds(
        Signals, contract=st.sampled_from([None, "verified_success", "verified_fail", "indeterminate", "skipped"])
    ),
)


def recounted(records: list[CallRecord]) -> dict[str, int]:
    """The same figures, said as questions to a list of records."""
    closed = [one for one in records if one.kind != "intent"]
    ran = [one for one in closed if one.outcome.kind not in ("blocked_preflight", "invalid")]
    acts = [
        one
        for one in closed
        if one.effect in ("act", "commit") and one.tool_name not in ("nova.scroll_smart", "nova.run_sequence")
    ]
    sent = [one for one in acts if one.outcome.action_dispatched]
    believed = [
        one
        for one in sent
        if one.tool_name != "nova.guarded_login"
        and one.outcome.reason_code in (None, "guarded_commit.postcondition_failed")
    ]
    return {
        "events": len(closed),
        "ran": len(ran),
        "ran well": sum(one.outcome.kind == "ok" for one in ran),
        "verified": sum(one.outcome.verification == "verified" for one in sent),
        "caught": sum(one.signals.contract == "verified_fail" for one in believed),
    }


@given(st.lists(calls, max_size=30), st.randoms(use_true_random=False))
def test_adding_up_calls_in_any_order_equals_counting_the_records(
    records: list[CallRecord], order: random.Random
) -> None:
    shuffled = list(records)
    order.shuffle(shuffled)
    total = sum((of_call(one) for one in shuffled), Tally())
    expected = recounted(records)
    assert hourly(total, names.EVENT)[0] == expected["events"] == total.totals.get((names.EVENT, ""), 0)
    assert hourly(total, names.RUN) == (expected["ran"], expected["ran well"])
    assert hourly(total, names.VERIFIED)[0] == expected["verified"]
    assert hourly(total, names.CAUGHT)[0] == expected["caught"]


@given(st.lists(calls, max_size=30))
def test_runtime_figures_and_their_lists_agree(records: list[CallRecord]) -> None:
    total = sum((of_call(one) for one in records), Tally())
    for name in names.RUNTIME:
        mine = [verdict for one in records if (verdict := runtime_of(one)) is not None and verdict[0] == name]
        attempts, successes = hourly(total, f"tool.{name}")
        assert (attempts, successes) == (len(mine), sum(good for _, good in mine))
        timed = [count for (key, _, _), count in total.latencies.items() if key == f"tool.{name}"]
        assert sum(timed) == attempts
        for kind in ("route", "host", "selector"):
            listed = [figures for (key, _, _), figures in total.hours.items() if key == f"tool.{name}.{kind}"]
            assert sum(count for count, _ in listed) <= attempts
            assert sum(good for _, good in listed) <= successes


@given(calls)
def test_a_call_counts_in_the_hour_it_began(record: CallRecord) -> None:
    assert {hour for _, hour, _ in of_call(record).hours} <= {hour_of(record.started_at_ms)}


@given(calls)
def test_figures_of_a_call_sort_after_all_others(record: CallRecord) -> None:
    others = (
        of_observations(0)
        + of_candidate(None, CandidateStand("x", "unverified", promotable=True), 0)
        + of_curated("x", 0)
        + of_decision(Decision("skip", "auto", "no_candidates"), 0)
        + of_job_done(0)
    )
    first = {name for name, _, _ in others.hours} | {name for name, _ in others.totals}
    moved = of_call(record)
    last = {name for name, _, _ in moved.hours} | {name for name, _ in moved.totals}
    assert not last or max(first) < min(last)


def test_an_intent_counts_nothing() -> None:
    assert of_call(a_call(kind="intent")) == Tally()


@pytest.mark.parametrize("kind", ["blocked_preflight", "invalid"])
def test_a_call_that_was_stopped_is_an_event_and_no_run(kind: str) -> None:
    moved = of_call(a_call("nova.scroll_smart", outcome=CallOutcome(kind)))  # type: ignore[arg-type]
    assert hourly(moved, names.EVENT) == (1, 0)
    assert hourly(moved, names.RUN) == (0, 0)
    assert not moved.latencies


@pytest.mark.parametrize(
    ("contract", "figures"),
    [
        ("verified_success", (1, 1)),
        ("verified_fail", (1, 0)),
        ("indeterminate", (1, 0)),
        ("skipped", (0, 0)),
        (None, (0, 0)),
    ],
)
def test_only_what_a_contract_judged_counts_for_it(contract: str | None, figures: tuple[int, int]) -> None:
    assert hourly(of_call(a_call(signals=Signals(contract=contract))), names.CONTRACT) == figures


_REFUTED = "guarded_commit.postcondition_failed"


@pytest.mark.parametrize(
    ("tool", "contract", "reason_code", "caught"),
    [
        ("nova.guarded_submit_form", "verified_fail", _REFUTED, 1),
        ("nova.click_selector", "verified_fail", _REFUTED, 1),
        # The page says openly that the password was wrong.
        ("nova.guarded_login", "verified_fail", _REFUTED, 0),
        # Announced as such; nobody believed it.
        ("nova.click_selector", None, "action.no_effect_observed", 0),
        ("nova.click_selector", "indeterminate", "guarded_commit.no_signal_yet", 0),
        # An error was raised.
        ("nova.type_selector", "verified_fail", "type.value_mismatch", 0),
        ("nova.click_selector", "verified_success", None, 0),
    ],
)
def test_a_false_success_is_caught_only_where_an_act_would_have_been_believed(
    tool: str, contract: str | None, reason_code: str | None, caught: int
) -> None:
    outcome = CallOutcome("failed", reason_code=reason_code, action_dispatched=True, verification="failed")
    record = a_call(tool, outcome=outcome, signals=Signals(contract=contract))
    assert hourly(of_call(record), names.CAUGHT) == (caught, 0)


def test_an_act_that_a_dead_server_left_behind_is_a_contract_that_proved_nothing() -> None:
    left = a_call(kind="recovery", closes="i", outcome=CallOutcome("crashed", verification="indeterminate"))
    assert hourly(of_call(left), names.CONTRACT) == (1, 0)


@pytest.mark.parametrize("tool", ["nova.scroll_smart", "nova.hover", "nova.run_sequence"])
def test_moving_about_and_summing_up_are_no_verified_actions(tool: str) -> None:
    assert hourly(of_call(a_call(tool)), names.VERIFIED) == (0, 0)


def test_only_who_knows_what_was_proven_before_can_say_that_it_was_contradicted() -> None:
    moved = of_call(a_call("nova.telemetry_report", effect="write", signals=Signals(telemetry="refuted")))
    assert hourly(moved, names.CONTRADICTED) == (0, 0)
    assert hourly(names.of_contradiction(0, 2), names.CONTRADICTED) == (2, 0)


def test_a_click_is_about_navigation_when_it_led_somewhere_or_was_meant_to() -> None:
    led = Touched(flags=frozenset({"navigation_committed"}))
    assert runtime_of(a_call()) is None
    assert runtime_of(a_call(touched=led)) == ("clickNavigation", True)
    assert runtime_of(a_call(arguments={"waitForNavigation": True})) == ("clickNavigation", False)
    assert runtime_of(a_call(touched=led, outcome=CallOutcome("partial"))) == ("clickNavigation", False)


def test_labels_fit_every_database() -> None:
    odd = a_call("nova.scroll_smart", touched=Touched(selector="#a\x00b\ud800" + "x" * 500))
    (kept,) = [label for name, _, label in of_call(odd).hours if name == "tool.scrollSmart.selector"]
    assert len(kept) <= names.LABEL_LIMIT
    assert "\x00" not in kept
    assert kept.encode()


def test_whatever_pages_and_callers_can_invent_is_capped() -> None:
    odd = a_call(
        touched=Touched(selector="#a", flags=frozenset({"navigation_committed"})),
        before=PageState(route_key="h/r"),
        outcome=CallOutcome("failed", reason_code="x"),
    )
    moved = of_call(odd) + of_decision(Decision("skip", "caller", "mine"), 0)
    assert {name for name, _, label in moved.hours if label} <= CAPPED


# -- candidates, decisions, jobs -------------------------------------------------------------------------------------

stands = st.builds(
    CandidateStand,
    st.sampled_from(["consent", "navigation"]),
    st.sampled_from(["unverified", "verified", "disproven"]),
    st.booleans(),
)


@given(st.lists(st.lists(stands, min_size=1, max_size=5), max_size=8))
def test_standing_figures_equal_a_count_of_how_candidates_stand(histories: list[list[CandidateStand]]) -> None:
    total = Tally()
    for history in histories:
        component = history[0].component
        before = None
        for stand in (replace(one, component=component) for one in history):
            total += of_candidate(before, stand, 0)
            before = stand
    now = [replace(history[-1], component=history[0].component) for history in histories]
    for label, members in (("", now), *((c, [x for x in now if x.component == c]) for c in ("consent", "navigation"))):
        assert total.totals.get((names.CANDIDATE, label), 0) == len(members)
        by_status = Counter(one.status for one in members)
        for status in ("unverified", "verified", "disproven"):
            assert total.totals.get((f"{names.CANDIDATE}.{status}", label), 0) == by_status[status]
        assert total.totals.get((names.PROMOTABLE, label), 0) == sum(one.promotable for one in members)
    assert hourly(total, names.CANDIDATE)[0] == len(now)


def test_a_candidate_that_goes_takes_its_figures_along() -> None:
    stand = CandidateStand("consent", "verified", promotable=True)
    assert set((of_candidate(None, stand, 0) + of_candidate(stand, None, 0)).totals.values()) == {0}


def test_decisions_count_commits_and_name_the_reasons_of_the_others() -> None:
    both = of_decision(Decision("commit", "auto"), 0) + of_decision(Decision("skip", "auto", "no_candidates"), 0)
    assert hourly(both, names.DECISION) == (2, 1)
    assert hourly(both, names.SKIP_REASON, "no_candidates") == (1, 0)
    assert hourly(of_decision(Decision("skip", "caller"), 0), names.SKIP_REASON, "unstated") == (1, 0)


# -- latencies -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3_000_000), min_size=1, max_size=200), st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_within_a_tenth_of_the_true_one(durations: list[int], share: float) -> None:
    buckets = Counter(bucket_of(one) for one in durations)
    true = sorted(durations)[ceil(share * len(durations)) - 1]
    found = percentile(buckets, share)
    assert found is not None
    assert abs(found - true) <= max(0.5, 0.1 * true)


def test_no_calls_have_no_percentile() -> None:
    assert percentile({}, 0.5) is None


def test_a_call_that_took_no_time_stays_at_nothing() -> None:
    assert bucket_middle(bucket_of(0)) == 0


# -- what the figures say --------------------------------------------------------------------------------------------


def a_reading(window: dict[str, tuple[int, int]] | None = None, totals: dict[str, int] | None = None) -> Reading:
    return Reading(
        window=dict.fromkeys(_PLAIN, (0, 0)) | (window or {}),
        totals=dict.fromkeys((*_TOTALS, *_STANDINGS), 0) | (totals or {}),
        chosen=dict.fromkeys(_STANDINGS, 0),
        components=(),
        skip_reasons=(),
        outbox=OutboxState(),
        runtime={name: RuntimeReading({}) for name in names.RUNTIME},
    )


def test_rates_without_a_base_are_unknown_and_not_nothing() -> None:
    kpis = report(a_reading()).kpis
    for unknown in (
        kpis.commit_rate,
        kpis.verification_rate,
        kpis.disproven_rate,
        kpis.curation_rate,
        kpis.outbox_health,
        kpis.tool_success_rate,
        kpis.verified_action_rate,
    ):
        assert unknown is None
    assert kpis.false_success_caught == 0


def test_every_rate_is_the_part_of_its_own_base() -> None:
    reading = a_reading(
        {
            names.DECISION: (10, 3),
            names.RUN: (8, 6),
            names.CONTRACT: (5, 4),
            names.CAUGHT: (7, 0),
            "tool.scrollSmart": (4, 1),
        },
        {
            names.CANDIDATE: 20,
            "candidate.verified": 5,
            "candidate.disproven": 2,
            names.CURATED: 1,
            names.JOB_DONE: 3,
        },
    )
    told = report(reading)
    kpis = told.kpis
    assert (kpis.commit_rate, kpis.tool_success_rate, kpis.verified_action_rate) == (0.3, 0.75, 0.8)
    assert (kpis.verification_rate, kpis.disproven_rate, kpis.curation_rate) == (0.25, 0.1, 0.2)
    assert (kpis.outbox_health, kpis.false_success_caught) == (1.0, 7)
    assert told.runtime["scrollSmart"].success_rate == 0.25


@given(st.integers(-5, 100), st.integers(-5, 100))
def test_a_rate_stays_between_nothing_and_all(part: int, base: int) -> None:
    found = rate(part, base)
    assert (found is None) is (base <= 0)
    assert found is None or 0 <= found <= 1


def test_failed_jobs_and_those_that_wait_too_long_are_what_ails_an_outbox() -> None:
    assert outbox_health(OutboxState(), 0) is None
    assert outbox_health(OutboxState(pending=3, failed=1, overdue=2), 6) == 0.7
    assert outbox_health(OutboxState(pending=3, leased=1), 0) == 1.0


@pytest.mark.parametrize(
    ("verified", "contradicted", "health", "broken", "blockers"),
    [
        (50, 0, 0.95, False, ()),
        (50, 0, None, False, ()),
        (100, 1, 1.0, False, ()),
        (49, 0, 1.0, False, ("too_few_verified_actions",)),
        (100, 2, 1.0, False, ("contradicted_successes",)),
        (50, 0, 0.9499, False, ("outbox_unhealthy",)),
        (50, 0, 1.0, True, ("chain_break",)),
        (
            0,
            1,
            0.0,
            True,
            ("too_few_verified_actions", "contradicted_successes", "outbox_unhealthy", "chain_break"),
        ),
    ],
)
def test_a_rollout_needs_every_condition(
    verified: int, contradicted: int, health: float | None, broken: bool, blockers: tuple[str, ...]
) -> None:
    verdict = rollout(verified, contradicted, health, chain_broken=broken)
    assert (verdict.ready, verdict.blockers, verdict.sample_size) == (not blockers, blockers, verified)


def test_readiness_is_the_share_of_conditions_met() -> None:
    assert report(a_reading({names.VERIFIED: (50, 50)})).kpis.runtime_readiness == 1.0
    assert report(a_reading()).kpis.runtime_readiness == 0.75
    assert report(replace(a_reading(), chain_broken=True)).kpis.runtime_readiness == 0.5


def test_a_job_rests_from_one_second_to_five_minutes() -> None:
    pauses = [pause_ms(attempt) for attempt in range(1, TRIES)]
    assert (pauses[0], pauses[-1], len(pauses)) == (1_000, 300_000, 7)
    assert pauses == sorted(set(pauses))
