"""Dispatch, effect and verdict decide status, advice and learning label, for every combination."""

import itertools
from typing import get_args

import pytest

from nova_mcp.verification.outcome import (
    TABLE,
    Dispatch,
    EffectSeen,
    Outcome,
    Verdict,
    already_done,
    already_set,
    combinations,
    judge_outcome,
)

ALL = list(combinations())
PROOF = {"readback_match", "verified_success"}
REFUTED = {"readback_differs", "verified_fail"}


def test_every_combination_is_answered_by_some_row():
    expected = set(itertools.product(get_args(Dispatch), get_args(EffectSeen), get_args(Verdict)))
    assert set(ALL) == expected
    assert len(ALL) == 144
    for combination in ALL:
        assert any(row.covers(*combination) for row in TABLE)
        judge_outcome(*combination)


def test_every_row_decides_something():
    for index, row in enumerate(TABLE):
        assert any(row.covers(*c) and not any(earlier.covers(*c) for earlier in TABLE[:index]) for c in ALL)


@pytest.mark.parametrize("repeat_safe", [False, True])
@pytest.mark.parametrize("combination", ALL, ids="-".join)
def test_must_hold(combination: tuple[Dispatch, EffectSeen, Verdict], repeat_safe: bool):
    dispatch, effect, verdict = combination
    outcome = judge_outcome(dispatch, effect, verdict, repeat_safe)
    reached = dispatch != "not_dispatched"

    assert (outcome.verify_state == "verified") == (reached and verdict in PROOF)
    assert (outcome.learning_label == "success") == (outcome.verify_state == "verified")
    assert (outcome.learning_label == "failure") == (dispatch == "dispatched" and verdict in REFUTED)
    assert (outcome.learning_label == "none") == (not reached)
    # A contract that was not met leaves a call partial, however likely its outcome is.
    assert (outcome.status == "ok") == (outcome.verify_state in ("verified", "likely") and verdict != "likely")
    if outcome.status == "ok":
        assert outcome.reason_code is None
        assert not outcome.retryable
    if outcome.verify_state == "likely":
        assert effect == "strong" or verdict == "likely"
    if outcome.verify_state == "uncertain":
        assert outcome.status == "partial"
    if not reached:
        assert outcome.status in ("failed", "blocked")
        assert outcome.retry_advice == "safe_to_retry"
        assert outcome.retryable
    elif not repeat_safe:
        assert outcome.retry_advice != "safe_to_retry"
    if reached and verdict in ("verified_success", "verified_fail"):
        assert outcome.retry_advice == "do_not_retry"


def test_effect_never_changes_what_a_verdict_decided():
    for dispatch in get_args(Dispatch):
        for verdict in set(get_args(Verdict)) - {"none", "skipped"}:
            assert len({judge_outcome(dispatch, effect, verdict) for effect in get_args(EffectSeen)}) == 1


@pytest.mark.parametrize(
    ("dispatch", "effect", "verdict", "expected"),
    [
        ("dispatched", "strong", "none", Outcome("ok", "likely", "check_postcondition_first", "sighting")),
        (
            "dispatched",
            "none",
            "none",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting", "action.no_effect_observed"),
        ),
        (
            "dispatched",
            "weak",
            "none",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting", "action.no_effect_observed"),
        ),
        (
            "assumed",
            "unknown",
            "none",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting", "action.no_effect_observed"),
        ),
        (
            "dispatched",
            "pending",
            "none",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting", "action.request_pending"),
        ),
        (
            "dispatched",
            "error_signal",
            "none",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting", "action.error_signal"),
        ),
        ("dispatched", "none", "readback_match", Outcome("ok", "verified", "do_not_retry", "success")),
        (
            "dispatched",
            "strong",
            "readback_differs",
            Outcome("partial", "failed", "check_postcondition_first", "failure"),
        ),
        ("dispatched", "strong", "verified_success", Outcome("ok", "verified", "do_not_retry", "success")),
        (
            "dispatched",
            "strong",
            "verified_fail",
            Outcome("failed", "failed", "do_not_retry", "failure", "guarded_commit.postcondition_failed"),
        ),
        (
            "assumed",
            "strong",
            "verified_fail",
            Outcome("failed", "failed", "do_not_retry", "sighting", "guarded_commit.postcondition_failed"),
        ),
        (
            "dispatched",
            "strong",
            "indeterminate",
            Outcome("partial", "uncertain", "check_postcondition_first", "sighting"),
        ),
        ("not_dispatched", "unknown", "none", Outcome("failed", "failed", "safe_to_retry", "none")),
        ("not_dispatched", "none", "skipped", Outcome("blocked", "failed", "safe_to_retry", "none")),
    ],
)
def test_row_reads(dispatch: Dispatch, effect: EffectSeen, verdict: Verdict, expected: Outcome):
    assert judge_outcome(dispatch, effect, verdict) == expected


def test_repeat_safe_actions_may_be_repeated_unless_a_contract_decided():
    assert judge_outcome("dispatched", "none", "none", repeat_safe=True).retry_advice == "safe_to_retry"
    assert judge_outcome("dispatched", "none", "readback_match", repeat_safe=True).retry_advice == "safe_to_retry"
    assert judge_outcome("dispatched", "none", "indeterminate", repeat_safe=True).retry_advice == "safe_to_retry"
    assert judge_outcome("dispatched", "none", "verified_fail", repeat_safe=True).retry_advice == "do_not_retry"


def test_state_that_was_there_before_is_ok_and_teaches_nothing():
    assert already_set() == Outcome("ok", "verified", "safe_to_retry", "none")
    assert already_set(repeat_safe=False).retry_advice == "do_not_retry"
    assert already_done() == Outcome("ok", "verified", "do_not_retry", "none", "guarded_commit.already_done")
    assert not already_set().retryable
