"""Never twice by accident, never silently less: every row of the rule."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.duplicates.rules import (
    RECENT_ELSEWHERE_MS,
    RECENT_MS,
    AlreadyDone,
    CloseAsFailedAndSend,
    InFlight,
    Recheck,
    Send,
    SendAgain,
    Suspect,
    judge_recheck,
    judge_repeat,
)
from nova_mcp.verification.model import Contract, Earlier

STATES = ("in_flight", "verified_success", "verified_fail", "indeterminate")
VERDICTS = ("satisfied", "failed", "unknown", None)
DONE_AT = 1_000_000


def earlier(state="indeterminate", **more) -> Earlier:
    return Earlier("tr_1", state, DONE_AT, Contract(), **more)


def repeat(state, *, age=0, observed=None, retry_of=None):
    at = None if observed is None else DONE_AT + observed
    return judge_repeat(earlier(state), now_ms=DONE_AT + age, observed_at_ms=at, retry_of=retry_of)


def recheck(success, forbidden, *, state="indeterminate", observed=False, retry_of=None, lost=False):
    return judge_recheck(
        earlier(state, lost_request=lost),
        success,
        forbidden,
        observed_since=observed,
        retry_of=retry_of,
    )


def test_a_first_commit_is_sent():
    assert judge_repeat(None, now_ms=0, observed_at_ms=None, retry_of="tr_9") == Send()


@pytest.mark.parametrize("retry_of", [None, "tr_1", "tr_9"])
def test_one_under_way_stays_the_only_one(retry_of):
    assert repeat("in_flight", age=10**9, observed=5, retry_of=retry_of) == InFlight(earlier("in_flight"))


@pytest.mark.parametrize("age", [0, 5000, 10**9])
@pytest.mark.parametrize("observed", [None, -5, 5])
def test_an_undecided_one_is_looked_at_first(age, observed):
    assert repeat("indeterminate", age=age, observed=observed) == Recheck(earlier())


@pytest.mark.parametrize("state", ["verified_success", "verified_fail", "indeterminate"])
def test_naming_the_earlier_one_has_it_looked_at_first(state):
    assert repeat(state, age=10**9, observed=5, retry_of="tr_1") == Recheck(earlier(state))


@pytest.mark.parametrize(
    ("age", "observed", "sent"),
    [
        (RECENT_MS, None, False),
        (RECENT_ELSEWHERE_MS - 1, None, False),
        (RECENT_ELSEWHERE_MS, None, True),
        (RECENT_MS, 0, False),
        (0, 1, True),
    ],
)
def test_one_that_another_server_verified_waits_longer_for_a_look(age, observed, sent):
    at = None if observed is None else DONE_AT + observed
    done = earlier("verified_success", elsewhere=True)
    verdict = judge_repeat(done, now_ms=DONE_AT + age, observed_at_ms=at, retry_of=None)
    assert verdict == (Send() if sent else Suspect(done, "verified_just_now"))


@pytest.mark.parametrize(
    ("age", "observed", "sent"),
    [
        (0, None, False),
        (RECENT_MS - 1, None, False),
        (RECENT_MS, None, True),
        (RECENT_MS - 1, -1, False),
        (RECENT_MS - 1, 0, False),
        (RECENT_MS - 1, 1, True),
        (-60_000, None, False),
        (-60_000, -30_000, False),
    ],
)
def test_a_verified_one_is_repeated_after_ten_seconds_or_a_look(age, observed, sent):
    known = earlier("verified_success")
    assert repeat("verified_success", age=age, observed=observed) == (
        Send() if sent else Suspect(known, "verified_just_now")
    )


def test_one_that_failed_may_be_sent_again_at_once():
    assert repeat("verified_fail") == Send()


@given(st.sampled_from(STATES), st.integers(), st.none() | st.integers(), st.sampled_from([None, "tr_1", "tr_9"]))
def test_nothing_undecided_or_under_way_is_ever_sent_unlooked(state, age, observed, retry_of):
    verdict = repeat(state, age=age, observed=observed, retry_of=retry_of)
    if state in ("in_flight", "indeterminate"):
        assert not isinstance(verdict, Send)


ROWS = list(itertools.product(VERDICTS, VERDICTS, STATES[1:], (False, True), (None, "tr_1", "tr_9"), (False, True)))


@pytest.mark.parametrize("state", STATES[1:])
def test_must_hold_for_every_recheck(state):
    for success, forbidden, _, observed, retry_of, lost in (row for row in ROWS if row[2] == state):
        verdict = recheck(success, forbidden, state=state, observed=observed, retry_of=retry_of, lost=lost)
        if isinstance(verdict, AlreadyDone):
            assert state == "indeterminate"
            assert success == "satisfied"
            assert forbidden != "satisfied"
        if isinstance(verdict, CloseAsFailedAndSend):
            assert forbidden == "satisfied"
            assert success != "satisfied"
            assert not lost
        if isinstance(verdict, SendAgain):
            assert observed
            assert retry_of == "tr_1"


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("retry_of", [None, "tr_1"])
def test_success_that_holds_by_now_answers_for_the_undecided_one(observed, retry_of):
    for forbidden in ("failed", "unknown", None):
        assert recheck("satisfied", forbidden, observed=observed, retry_of=retry_of) == AlreadyDone(earlier())


def test_a_failure_that_shows_by_now_closes_it_and_sends():
    for success in ("failed", "unknown", None):
        assert recheck(success, "satisfied") == CloseAsFailedAndSend(earlier())


def test_an_error_on_the_page_proves_nothing_where_a_request_was_lost():
    known = earlier(lost_request=True)
    assert recheck("failed", "satisfied", lost=True) == Suspect(known, "not_observed_since")
    assert recheck("failed", "satisfied", lost=True, observed=True, retry_of="tr_1") == SendAgain(known)


def test_success_and_failure_at_once_are_unclear():
    assert recheck("satisfied", "satisfied") == Suspect(earlier(), "not_observed_since")


def test_an_unclear_one_needs_a_look_and_its_name():
    assert recheck("failed", "failed") == Suspect(earlier(), "not_observed_since")
    assert recheck("failed", "failed", retry_of="tr_1") == Suspect(earlier(), "not_observed_since")
    assert recheck("unknown", None, observed=True) == Suspect(earlier(), "not_named")
    assert recheck("unknown", None, observed=True, retry_of="tr_9") == Suspect(earlier(), "not_named")
    assert recheck("unknown", None, observed=True, retry_of="tr_1") == SendAgain(earlier())


def test_a_verified_one_asked_for_again_is_never_answered_with_its_old_success():
    known = earlier("verified_success")
    assert recheck("satisfied", None, state="verified_success", retry_of="tr_1") == Suspect(known, "not_observed_since")
    again = recheck("satisfied", None, state="verified_success", observed=True, retry_of="tr_1")
    assert again == SendAgain(known)


def test_a_verified_one_that_the_page_shows_to_have_failed_is_sent_again_as_refuted():
    verified = {"state": "verified_success", "observed": True, "retry_of": "tr_1"}
    for success in ("failed", "unknown", None):
        assert recheck(success, "satisfied", **verified) == SendAgain(earlier("verified_success"), refuted=True)
    for success, forbidden in (("satisfied", "satisfied"), ("failed", "failed"), ("failed", None)):
        assert recheck(success, forbidden, **verified) == SendAgain(earlier("verified_success"))
    blind = recheck("failed", "satisfied", state="verified_success", retry_of="tr_1")
    assert blind == Suspect(earlier("verified_success"), "not_observed_since")
