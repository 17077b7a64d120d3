"""When a run is done: every row of the evaluator, the gate, and what to do next about each reason."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.evidence.grades import Claimed, EvidenceSummary, Grade
from nova_mcp.memory.tasks.model import Check, CompletionCondition, EvidencePolicy, VerificationStep
from nova_mcp.memory.tasks.runs.completion import (
    CoverageTally,
    Reason,
    Standing,
    StepResult,
    Tally,
    evaluate_completion,
    metric,
    shadow_refusal,
    url_gate,
)
from nova_mcp.memory.tasks.runs.next_actions import MOST, NextAction, Pointers, next_actions
from nova_mcp.tools.catalogue import load_catalogue

POLICY = EvidencePolicy("require_observed")
PAGES = CompletionCondition("exhaustive", "page", "all_units_processed", None, POLICY)
ITEMS = CompletionCondition("exhaustive", "item", "all_units_processed", None, EvidencePolicy("none"))
ORDER = (
    *("pending_mandatory_checks", "discovery_not_frozen", "no_units_discovered", "units_blocked_or_failed"),
    *("units_remaining", "no_units_checked", "threshold_not_met", "minimum_not_met", "url_units_remaining"),
    *("evidence_gap", "verification_failed"),
)


def seen(claimed: int = 0, observed: int = 0) -> EvidenceSummary:
    return EvidenceSummary(claimed, observed, observed, 0, claimed - observed, 0, 0.0, ingestion_complete=True)


def standing(condition: CompletionCondition = PAGES, **changes) -> Standing:
    """A run of two pages that is done."""
    done = Standing(
        condition=condition,
        checks=((Check("c1", "x"), "satisfied"), (Check("c2", "x", required=False), "pending")),
        discovery="frozen",
        tally=Tally(checked=1, excluded=1),
        coverage=CoverageTally(2, 1, 1) if condition.counts_urls else CoverageTally(),
        gate_mode="block",
        evidence=seen(1, 1),
        steps=(StepResult("s1", True, "passed", True, ""), StepResult("s2", False, "failed", True, "")),
    )
    return replace(done, **changes)


def codes(now: Standing) -> list[str]:
    return [one.reason_code for one in evaluate_completion(now)]


def test_a_run_that_holds_everything_is_done():
    assert codes(standing()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"checks": ((Check("c1", "x"), "pending"),)}, ["pending_mandatory_checks"]),
        ({"checks": ((Check("c1", "x"), "failed"),)}, ["pending_mandatory_checks"]),
        ({"checks": ((Check("c1", "x"), "waived"), (Check("c2", "x"), "not_applicable"))}, []),
        ({"checks": ((Check("c1", "x", required=False), "failed"),)}, []),
        ({"discovery": "partial"}, ["discovery_not_frozen"]),
        ({"discovery": "unknown"}, ["discovery_not_frozen"]),
        (
            {"tally": Tally(), "coverage": CoverageTally(), "evidence": seen()},
            ["no_units_discovered", "no_units_checked"],
        ),
        ({"tally": Tally(checked=1, blocked=1)}, ["units_blocked_or_failed"]),
        ({"tally": Tally(checked=1, failed=1)}, ["units_blocked_or_failed"]),
        ({"tally": Tally(checked=1, remaining=1)}, ["units_remaining"]),
        ({"tally": Tally(excluded=2)}, ["no_units_checked"]),
        ({"coverage": CoverageTally(2, 1, 0)}, ["url_units_remaining"]),
        ({"coverage": CoverageTally(2, 1, 0), "gate_mode": "warn"}, []),
        ({"coverage": CoverageTally(2, 1, 0), "gate_mode": "shadow_block"}, []),
        ({"coverage": CoverageTally(2, 1, 0), "gate_mode": "off"}, []),
        ({"evidence": seen(2, 1)}, ["evidence_gap"]),
        ({"evidence": seen(0, 0)}, []),
        ({"steps": (StepResult("s1", True, "skipped", False, ""),)}, ["verification_failed"]),
        ({"steps": (StepResult("s1", True, "inconclusive", False, ""),)}, ["verification_failed"]),
        ({"steps": (StepResult("s1", False, "skipped", False, ""),)}, []),
    ],
)
def test_each_row_for_exhaustive_runs(changes, expected):
    assert codes(standing(**changes)) == expected


def condition(
    mode: str, stop: str, value: int | None, evidence: str = "none", kind: str = "item"
) -> CompletionCondition:
    return CompletionCondition(mode, kind, stop, value, EvidencePolicy(evidence))


@pytest.mark.parametrize(("mode", "code"), [("threshold", "threshold_not_met"), ("exploratory", "minimum_not_met")])
@pytest.mark.parametrize(
    ("stop", "evidence", "tally", "reached"),
    [
        ("checked_units", "none", Tally(checked=2), 2),
        ("distinct_findings", "none", Tally(findings=2), 2),
        ("distinct_findings", "require_observed", Tally(findings=9, proven_findings=2), 2),
        ("distinct_findings", "require_strong", Tally(findings=9, proven_findings=1), 1),
    ],
)
def test_other_runs_are_done_when_their_metric_is_reached(mode, code, stop, evidence, tally, reached):
    wanted = condition(mode, stop, 2, evidence)
    # Neither discovery nor open units matter to them.
    now = standing(wanted, tally=replace(tally, remaining=3, blocked=1), discovery="unknown")
    assert metric(now) == reached
    assert codes(now) == ([] if reached >= 2 else [code])


def test_the_gap_that_is_allowed_is_counted_in_whole_numbers():
    third = replace(PAGES, evidence=EvidencePolicy("require_observed", max_gap_percent=33))
    assert codes(standing(third, evidence=seen(3, 2))) == ["evidence_gap"]
    assert codes(standing(third, evidence=seen(100, 67))) == []


def test_only_exhaustive_runs_of_pages_are_judged_by_the_gate():
    for mode in ("warn", "shadow_block", "block"):
        assert url_gate(ITEMS, mode, 3) == "not_applicable"
        assert url_gate(condition("threshold", "checked_units", 1, kind="page"), mode, 3) == "not_applicable"
        assert url_gate(PAGES, mode, 0) == "passed"
    assert url_gate(PAGES, "off", 3) == "not_applicable"
    assert [url_gate(PAGES, mode, 3) for mode in ("warn", "shadow_block", "block")] == [
        "warned",
        "shadow_blocked",
        "blocked",
    ]


def test_a_gate_on_trial_says_what_it_would_have_refused():
    open_pages = {"coverage": CoverageTally(2, 1, 0)}
    assert shadow_refusal(standing(**open_pages, gate_mode="shadow_block")) == Reason(
        "url_units_remaining", "1 of 2 pages have no accepted scan"
    )
    assert shadow_refusal(standing(**open_pages, gate_mode="warn")) is None
    assert shadow_refusal(standing(gate_mode="shadow_block")) is None


COUNTS = st.integers(0, 6)
TALLIES = st.builds(Tally, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
STANDINGS = st.builds(
    Standing,
    condition=st.sampled_from(
        [
            PAGES,
            ITEMS,
            condition("threshold", "checked_units", 3),
            condition("exploratory", "distinct_findings", 1, kind="url"),
        ]
    ),
    checks=st.lists(
        st.tuples(
            st.builds(Check, st.sampled_from("abc"), st.just("x"), st.booleans()),
            st.sampled_from(["pending", "satisfied", "failed", "waived"]),
        ),
        max_size=3,
    ).map(tuple),
    discovery=st.sampled_from(["unknown", "partial", "frozen"]),
    tally=TALLIES,
    coverage=st.builds(CoverageTally, st.integers(6, 9), st.integers(0, 3), st.integers(0, 3)),
    gate_mode=st.sampled_from(["off", "warn", "shadow_block", "block"]),
    evidence=st.builds(lambda a, b: seen(a + b, a), COUNTS, COUNTS),
    steps=st.lists(
        st.builds(
            StepResult,
            st.sampled_from("st"),
            st.booleans(),
            st.sampled_from(["passed", "skipped"]),
            st.booleans(),
            st.just(""),
        ),
        max_size=2,
    ).map(tuple),
)


@given(STANDINGS)
def test_reasons_come_in_their_order_and_each_but_once(now):
    found = codes(now)
    assert found == sorted(set(found), key=ORDER.index)


@given(STANDINGS, st.randoms(use_true_random=False))
def test_the_order_of_what_is_judged_makes_no_difference(now, random):
    checks, steps = list(now.checks), list(now.steps)
    random.shuffle(checks)
    random.shuffle(steps)
    assert evaluate_completion(replace(now, checks=tuple(checks), steps=tuple(steps))) == evaluate_completion(now)


@given(STANDINGS)
def test_no_exhaustive_run_is_done_with_anything_open(now):
    if not now.condition.exhaustive or evaluate_completion(now):
        return
    tally = now.tally
    assert tally.checked >= 1
    assert tally.remaining == tally.blocked == tally.failed == 0
    assert now.discovery == "frozen"
    if now.condition.counts_urls and now.gate_mode == "block":
        assert now.coverage.remaining == 0


@given(TALLIES)
def test_counts_add_up(tally):
    assert tally.total == tally.checked + tally.excluded + tally.remaining + tally.blocked + tally.failed
    assert 0 <= tally.percent_complete <= 100
    assert (tally.percent_complete == 100) == (tally.total > 0 and tally.checked + tally.excluded == tally.total)


def test_covered_is_counted_among_what_is_not_excluded():
    assert CoverageTally(10, 2, 1).percent_covered == 22.2
    assert CoverageTally(3, 0, 3).percent_covered == 0.0
    assert CoverageTally(10, 2, 1).remaining == 7


# -- what to do next

STEP = VerificationStep("s1", "nova.read_text", "x", "has_results", page_url="https://shop.example/end")
NAMES = Pointers(
    "0" * 32,
    remaining=tuple(f"https://shop.example/{n}" for n in range(5)),
    stuck=("https://shop.example/b",),
    uncovered=("https://shop.example/u",),
    unproven=("https://shop.example/p",),
    steps=(STEP,),
    scan_id="nova_structured_dom_v1",
)


@given(STANDINGS)
def test_every_reason_has_an_action_with_a_tool_that_exists(now):
    reasons = evaluate_completion(now)
    actions = next_actions(now, reasons, NAMES)
    assert bool(actions) == bool(reasons)
    assert len(actions) <= MOST
    assert {one.tool for one in actions} <= {spec.canonical for spec in load_catalogue()} | {"nova.coverage_scan"}


@pytest.mark.parametrize(
    ("lacking", "tool"),
    [
        ([Grade("unknown", "no_locator")], "nova.task_instance_create"),
        ([Grade("unknown", "no_locator"), Grade("none", "no_matching_observation")], "nova.perceive"),
        ([], "nova.perceive"),
    ],
)
def test_nobody_is_sent_to_look_at_what_can_not_be_seen(lacking, tool):
    short = tuple(Claimed(f"u{number}", one) for number, one in enumerate(lacking))
    now = standing(ITEMS, evidence=replace(seen(2, 0), top_exceptions=short))
    (action,) = next_actions(now, [Reason("evidence_gap", "")], NAMES)
    assert action.tool == tool
    assert ("no locator" in action.why) is (tool == "nova.task_instance_create")


def test_actions_name_what_is_to_be_done():
    def act(code: str, now: Standing | None = None) -> NextAction:
        (action,) = next_actions(now or standing(), [Reason(code, "")], NAMES)
        return action

    assert act("units_remaining").why.startswith("open https://shop.example/0, https://shop.example/1,")
    assert "and 2 more" in act("units_remaining").why
    assert act("units_remaining", standing(ITEMS)).tool == "nova.task_instance_progress"
    assert "https://shop.example/b" in act("units_blocked_or_failed").why
    scan = act("url_units_remaining")
    assert (scan.tool, "nova_structured_dom_v1" in scan.why) == ("nova.coverage_scan", True)
    assert "https://shop.example/p" in act("evidence_gap").why
    open_step = standing(steps=(StepResult("s1", True, "skipped", False, ""),))
    step = act("verification_failed", open_step)
    assert (step.tool, "s1 on https://shop.example/end" in step.why) == ("nova.read_text", True)
    assert "c1" in act("pending_mandatory_checks", standing(checks=((Check("c1", "x"), "pending"),))).why
