"""From samples to a verdict: holds, windows, baselines, requests and what outranks what."""

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.verification.contracts.evaluate import judge_set
from nova_mcp.verification.model import (
    Assertion,
    AssertionSet,
    Contract,
    FactAddress,
    Sample,
    Seen,
    SentRequest,
    Unseen,
    Verdict,
)
from nova_mcp.verification.observation import Plan, State, advance, begin, judge, make_plan, next_wake

GOOD, BAD, ODD = (Assertion(f"shop.{name}", "eq", True) for name in ("good", "bad", "odd"))
CONTRACT = Contract(
    success=AssertionSet(any=(GOOD,)), forbidden=AssertionSet(any=(BAD,)), ambiguous=AssertionSet(any=(ODD,))
)
POST = SentRequest("POST", "https://shop.test/api/orders?token=secret")
OK = SentRequest("POST", POST.url, status=201)
REFUSED = SentRequest("POST", POST.url, status=422)
LOST = SentRequest("POST", POST.url, failed=True)


def read(good=False, bad=False, odd=False, *, stamp="", bad_stamp=""):
    values = {GOOD: (good, stamp), BAD: (bad, bad_stamp), ODD: (odd, "")}
    return {a.address: v if isinstance(v, Unseen) else Seen(v, s) for a, (v, s) in values.items()}


def look(at, good=False, bad=False, odd=False, *, document=1, requests=(), changed=False, lost=None, **stamps):
    return Sample(at, read(good, bad, odd, **stamps), document, tuple(requests), changed, lost)


@dataclass(frozen=True)
class Run:
    verdict: Verdict
    at: float
    state: State


def plan_of(contract=CONTRACT, before=None, *, commit_point=False) -> Plan:
    return make_plan(contract, read() if before is None else before, 1, started_ms=0, commit_point=commit_point)


def run(*samples, contract=CONTRACT, before=None, commit_point=False) -> Run:
    """As the verifier does it: wake when told to, or when the next sample comes."""
    plan = plan_of(contract, before, commit_point=commit_point)
    state, now, queue = begin(plan), 0.0, list(samples)
    for _ in range(10_000):
        if (verdict := judge(plan, state, now)) is not None:
            return Run(verdict, now, state)
        wake = next_wake(plan, state, now)
        assert wake > now
        if queue and queue[0].at_ms <= wake:
            sample = queue.pop(0)
            now = max(now, sample.at_ms)
            state = advance(plan, state, sample)
        else:
            now = wake
    raise AssertionError("never decided")


def ended(*args, **kwargs):
    result = run(*args, **kwargs)
    return result.verdict.status, result.verdict.reason, result.at


SUCCESS, FAIL = ("verified_success", None), ("verified_fail", None)


def undecided(reason):
    return ("indeterminate", reason)


# -- the plain verdicts


def test_success_counts_once_it_has_held():
    assert ended(look(100, good=True)) == (*SUCCESS, 350)
    assert ended(look(100, good=True), commit_point=True) == (*SUCCESS, 1300)


def test_a_hold_begins_anew_whenever_success_is_gone():
    assert ended(look(100, good=True), look(300), look(400, good=True)) == (*SUCCESS, 650)


def test_an_optimistic_page_that_rolls_back_is_no_success():
    result = run(look(100, good=True), look(1200, good=False), commit_point=True)
    assert (result.verdict.status, result.verdict.reason, result.at) == (*undecided("no_signal_yet"), 5000)
    assert [t.fact_key for t in result.verdict.failed_assertions] == [GOOD.fact_key]
    assert result.verdict.outcome_verdict == "unknown"
    assert result.verdict.diagnostics.success == "failed"


def test_success_in_a_new_document_needs_no_hold():
    assert ended(look(700, good=True, document=2), commit_point=True) == (*SUCCESS, 700)
    given_hold = Contract(success=CONTRACT.success, hold_ms=400)
    assert ended(look(700, good=True, document=2), contract=given_hold) == (*SUCCESS, 1100)


def test_forbidden_counts_once_it_has_stood_and_a_flash_does_not():
    result = run(look(100, bad=True))
    assert (result.verdict.status, result.at) == ("verified_fail", 200)
    assert [(t.fact_key, t.passed) for t in result.verdict.failed_assertions] == [(BAD.fact_key, True)]
    assert result.verdict.outcome_verdict == "failed"
    assert ended(look(100, bad=True), look(199), look(300, good=True)) == (*SUCCESS, 550)


def test_forbidden_at_the_end_of_the_window_still_has_to_stand():
    assert ended(look(4950, bad=True)) == (*FAIL, 5050)


def test_success_does_not_count_while_forbidden_stands():
    assert ended(look(100, good=True), look(340, good=True, bad=True)) == (*FAIL, 440)


def test_ambiguous_waits_for_something_better():
    result = run(look(100, odd=True))
    assert (result.verdict.reason, result.at) == ("ambiguous_signal", 1100)
    assert [t.fact_key for t in result.verdict.failed_assertions] == [ODD.fact_key]
    assert ended(look(100, odd=True), look(900, good=True, odd=True)) == (*SUCCESS, 1150)
    assert ended(look(100, odd=True), look(900, odd=True, bad=True)) == (*FAIL, 1000)
    assert ended(look(4500, odd=True)) == (*undecided("ambiguous_signal"), 5000)
    slow = Contract(ambiguous=CONTRACT.ambiguous, hold_ms=2000)
    assert ended(look(100, odd=True), contract=slow) == (*undecided("ambiguous_signal"), 2100)


def test_no_sample_at_all_is_no_signal():
    result = run()
    assert (result.verdict.reason, result.at) == ("no_signal_yet", 5000)
    assert (result.verdict.diagnostics.readable, result.verdict.diagnostics.unreadable) == (3, 0)


@pytest.mark.parametrize("bucket", ["forbidden", "ambiguous"])
def test_without_a_success_bucket_silence_is_never_success(bucket):
    contract = Contract(**{bucket: AssertionSet(any=(BAD,))})
    assert ended(look(100, changed=True), contract=contract) == (*undecided("no_signal_yet"), 5000)


def test_a_fact_that_cannot_be_read_at_the_end_is_a_timeout():
    result = run(look(100, bad=Unseen("fact_unreadable")))
    assert (result.verdict.reason, result.verdict.diagnostics.unreadable) == ("timeout", 1)
    assert ended(look(100, good=True, bad=Unseen("frame_mismatch"))) == (*SUCCESS, 350)


@pytest.mark.parametrize("loss", ["page_navigated", "frame_destroyed", "eval_error"])
def test_facts_lost_at_the_end_say_how(loss):
    result = run(look(100, good=True), look(200, lost=loss))
    assert (result.verdict.reason, result.at) == (loss, 5000)
    assert result.verdict.diagnostics.readable == 0
    assert ended(look(100, lost=loss), look(300, good=True, document=2)) == (*SUCCESS, 300)
    assert ended(look(100, bad=True), look(150, lost=loss)) == (*undecided(loss), 5000)


def test_a_success_that_came_in_time_may_finish_its_hold():
    assert ended(look(4900, good=True)) == (*SUCCESS, 5150)
    assert ended(look(4900, good=True), look(5100)) == (*undecided("no_signal_yet"), 5100)
    short = Contract(success=CONTRACT.success, window_ms=500)
    assert ended(look(400, good=True), contract=short, commit_point=True) == (*SUCCESS, 1600)


# -- every combination of buckets


@pytest.mark.parametrize(("good", "bad", "odd"), list(itertools.product([True, False, None], repeat=3)))
def test_precedence(good, bad, odd):
    def value(truth):
        return Unseen("fact_unreadable") if truth is None else truth

    verdict = run(look(10, value(good), value(bad), value(odd))).verdict
    if bad:
        assert (verdict.status, verdict.reason) == FAIL
    elif good:
        assert (verdict.status, verdict.reason) == SUCCESS
    elif odd:
        assert (verdict.status, verdict.reason) == undecided("ambiguous_signal")
    elif None in (good, bad, odd):
        assert (verdict.status, verdict.reason) == undecided("timeout")
    else:
        assert (verdict.status, verdict.reason) == undecided("no_signal_yet")


# -- what already stood before


@pytest.mark.parametrize("name", ["bad", "odd"])
def test_what_stood_before_is_not_held_against_the_action(name):
    before = read(**{name: True})
    assert ended(look(100, good=True, **{name: True}), before=before) == (*SUCCESS, 350)
    assert ended(look(100, **{name: True}), before=before) == (*undecided("no_signal_yet"), 5000)


def test_an_error_counts_again_after_it_was_gone_once():
    before = read(bad=True)
    assert ended(look(100), look(200, bad=True), before=before) == (*FAIL, 300)
    unreadable = look(100, bad=Unseen("fact_unreadable"))
    assert ended(unreadable, look(200, bad=True), before=before) == (*undecided("no_signal_yet"), 5000)


def test_another_error_of_the_same_words_counts():
    before = read(bad=True, bad_stamp="1")
    assert ended(look(100, bad=True, bad_stamp="2"), before=before) == (*FAIL, 200)
    assert ended(look(100, bad=True, bad_stamp="1"), before=before) == (*undecided("no_signal_yet"), 5000)


def test_an_error_of_a_new_document_counts():
    assert ended(look(100, bad=True, document=2), before=read(bad=True)) == (*FAIL, 200)


def test_only_the_alternative_that_is_news_is_named():
    contract = Contract(forbidden=AssertionSet(any=(BAD, ODD)))
    verdict = run(look(100, bad=True, odd=True), contract=contract, before=read(bad=True)).verdict
    assert [t.fact_key for t in verdict.failed_assertions] == [ODD.fact_key]


def test_a_conjunction_is_news_as_soon_as_one_part_is():
    contract = Contract(forbidden=AssertionSet(all=(BAD, ODD)))
    assert ended(look(100, bad=True, odd=True), contract=contract, before=read(bad=True)) == (*FAIL, 200)
    both_before = read(bad=True, odd=True)
    silent = ended(look(100, bad=True, odd=True), contract=contract, before=both_before)
    assert silent == (*undecided("no_signal_yet"), 5000)


def test_the_absence_of_something_trips_when_it_went_and_not_when_it_never_was():
    contract = Contract(forbidden=AssertionSet(forbidden=(GOOD,)))
    assert ended(look(100), contract=contract, before=read(good=True)) == (*FAIL, 200)
    assert ended(look(100), contract=contract, before=read()) == (*undecided("no_signal_yet"), 5000)


def test_something_redrawn_does_not_make_an_old_absence_news():
    contract = Contract(forbidden=AssertionSet(forbidden=(GOOD,)))
    redrawn = ended(look(100, stamp="2"), contract=contract, before=read(stamp="1"))
    assert redrawn == (*undecided("no_signal_yet"), 5000)


def test_either_of_two_joined_buckets_trips_alone():
    contract = Contract(forbidden=AssertionSet(either=(AssertionSet(all=(BAD,)), AssertionSet(all=(ODD, GOOD)))))
    assert ended(look(100, bad=True), contract=contract) == (*FAIL, 200)
    assert ended(look(100, odd=True), contract=contract) == (*undecided("no_signal_yet"), 5000)
    assert ended(look(100, bad=True), contract=contract, before=read(bad=True)) == (*undecided("no_signal_yet"), 5000)


def test_success_that_stood_before_needs_a_visible_change():
    before = read(good=True)
    assert ended(look(100, good=True), before=before) == (*undecided("no_signal_yet"), 5000)
    assert ended(look(100, good=True, changed=True), before=before) == (*SUCCESS, 350)
    assert ended(look(100, good=True, changed=True), look(200, good=True), before=before) == (*SUCCESS, 350)
    assert ended(look(100), look(200, good=True), before=before) == (*SUCCESS, 450)
    assert ended(look(100, good=True, document=2), before=before) == (*SUCCESS, 100)
    assert ended(look(100, good=True, stamp="new"), before=before) == (*SUCCESS, 350)


def test_a_macro_takes_no_success_that_stood_before():
    contract = Contract(success=CONTRACT.success, fresh_only=True)
    silent = ended(look(100, good=True, changed=True), contract=contract, before=read(good=True))
    assert silent == (*undecided("no_signal_yet"), 5000)
    assert ended(look(100, good=True), contract=contract) == (*SUCCESS, 350)


def test_a_stale_alternative_does_not_stand_in_for_a_fresh_one():
    contract = Contract(success=AssertionSet(all=(ODD,), any=(GOOD, BAD)), fresh_only=True)
    before = read(good=True)
    stale = ended(look(100, good=True, odd=True, changed=True), contract=contract, before=before)
    assert stale == (*undecided("no_signal_yet"), 5000)
    assert ended(look(100, good=True, bad=True, odd=True), contract=contract, before=before) == (*SUCCESS, 350)


def test_a_stale_part_of_a_conjunction_does_not_hinder_a_fresh_one():
    contract = Contract(success=AssertionSet(all=(GOOD, ODD)), fresh_only=True)
    assert ended(look(100, good=True, odd=True), contract=contract, before=read(good=True)) == (*SUCCESS, 350)


# -- requests


def test_success_waits_for_the_answer_and_holds_after_it():
    pending = look(100, good=True, requests=[POST])
    assert ended(pending, look(900, good=True, requests=[OK])) == (*SUCCESS, 1150)


def test_a_pending_request_extends_the_window_once():
    result = run(look(100, good=True, requests=[POST]))
    assert (result.verdict.reason, result.at, result.verdict.lost_request) == ("timeout", 7000, True)
    assert result.verdict.diagnostics.pending_requests == ("POST /api/orders",)
    late = look(6500, good=True, requests=[OK])
    assert ended(look(100, good=True, requests=[POST]), late) == (*SUCCESS, 6750)
    another = look(6500, good=True, requests=[OK, SentRequest("POST", "https://shop.test/b")])
    assert ended(look(100, requests=[POST]), another) == (*undecided("timeout"), 7000)


def test_an_answer_within_the_extension_leaves_time_to_show_itself():
    samples = (look(100, requests=[POST]), look(5200, requests=[OK]), look(5600, good=True, requests=[OK]))
    assert ended(*samples) == (*SUCCESS, 5850)


def test_a_request_that_begins_after_the_window_does_not_extend_it():
    samples = (look(4900, good=True), look(5050, good=True, requests=[POST]))
    assert ended(*samples) == (*undecided("timeout"), 5050)


def test_a_refused_request_is_forbidden_unless_the_contract_judges_it_itself():
    result = run(look(100, good=True, requests=[REFUSED]))
    assert (result.verdict.status, result.at) == ("verified_fail", 200)
    (trace,) = result.verdict.failed_assertions
    assert (trace.fact_key, trace.observed, trace.passed) == ("network.response@POST%20%2Fapi%2Forders", 422, True)
    for glob, end in (("/api/*", (*SUCCESS, 350)), ("/other", (*FAIL, 200))):
        own = Contract(success=AssertionSet(any=(GOOD, Assertion(f"network.responseOk@{glob}", "eq", True))))
        assert ended(look(100, good=True, requests=[REFUSED]), contract=own) == end


def test_an_error_page_the_action_led_to_is_a_failure_and_its_load_is_waited_for():
    on_its_way = SentRequest("GET", "https://shop.test/crash", leads=True)
    arrived = SentRequest("GET", "https://shop.test/crash", status=500, leads=True)
    samples = (look(100, good=True, requests=[on_its_way]), look(900, good=True, requests=[arrived], document=2))
    assert ended(*samples) == (*FAIL, 1000)


def test_a_refused_request_that_the_page_repeats_with_success_is_no_failure():
    samples = (
        look(100, requests=[REFUSED]),
        look(150, requests=[REFUSED, POST]),
        look(900, good=True, requests=[REFUSED, OK]),
    )
    assert ended(*samples) == (*SUCCESS, 1150)


@pytest.mark.parametrize(
    "request_",
    [
        SentRequest("GET", "https://shop.test/x"),
        SentRequest("GET", "https://shop.test/x", status=500),
        SentRequest("POST", "https://beacon.test/x", reports=False),
        SentRequest("POST", "https://beacon.test/x", status=500, reports=False),
        SentRequest("POST", "https://beacon.test/x", failed=True, reports=False),
    ],
)
def test_requests_that_change_nothing_or_never_report_decide_nothing(request_):
    assert ended(look(100, good=True, requests=[request_])) == (*SUCCESS, 350)


def test_a_lost_request_leaves_success_open():
    result = run(look(100, good=True, requests=[LOST]))
    assert (result.verdict.reason, result.verdict.lost_request, result.at) == ("timeout", True, 5000)
    assert result.verdict.diagnostics.success == "satisfied"
    assert result.verdict.diagnostics.lost_requests == ("POST /api/orders",)


def test_a_new_document_outweighs_a_lost_request_and_another_good_answer_does_not():
    assert ended(look(100, good=True, requests=[LOST], document=2)) == (*SUCCESS, 100)
    assert ended(look(100, good=True, requests=[LOST, OK])) == (*undecided("timeout"), 5000)


def test_an_error_shown_after_a_lost_request_is_no_proof_of_failure():
    result = run(look(100, bad=True, requests=[LOST]))
    assert (result.verdict.status, result.verdict.reason) == undecided("ambiguous_signal")
    assert result.verdict.lost_request
    assert result.verdict.outcome_verdict == "unknown"
    assert [t.fact_key for t in result.verdict.failed_assertions] == [BAD.fact_key]


def test_an_error_shown_before_the_server_answered_waits_for_the_answer():
    impatient = look(100, bad=True, requests=[POST])
    assert ended(impatient, look(800, bad=True, requests=[OK])) == (*FAIL, 800)
    assert ended(impatient, look(800, good=True, requests=[OK])) == (*SUCCESS, 1050)
    result = run(impatient)
    assert (result.verdict.reason, result.verdict.lost_request, result.at) == ("ambiguous_signal", True, 7000)


def test_ambiguous_does_not_decide_early_while_a_request_is_pending():
    assert ended(look(100, odd=True, requests=[POST])) == (*undecided("ambiguous_signal"), 7000)


def test_samples_out_of_order_do_not_turn_time_back():
    plan = plan_of()
    state = advance(plan, begin(plan), look(500, good=True))
    state = advance(plan, state, look(100, good=True))
    assert state.at_ms == 500
    assert judge(plan, state, 0) is None


# -- for all inputs

facts = st.sampled_from([True, False, Unseen("fact_unreadable")])
request_lists = st.lists(st.sampled_from([POST, OK, REFUSED, LOST]), max_size=2)
losses = st.sampled_from([None, None, None, "page_navigated", "eval_error"])


@st.composite
def traces(draw):
    at, document, samples = 0, 1, []
    for _ in range(draw(st.integers(0, 8))):
        at += draw(st.sampled_from([1, 20, 99, 100, 250, 1000, 2500]))
        document += draw(st.sampled_from([0, 0, 0, 1]))
        samples.append(
            look(
                at,
                draw(facts),
                draw(facts),
                draw(facts),
                document=document,
                requests=draw(request_lists),
                changed=draw(st.booleans()),
                lost=draw(losses),
            )
        )
    return samples


buckets = st.sampled_from([AssertionSet(), AssertionSet(any=(BAD,)), AssertionSet(all=(BAD, ODD))])
successes = st.sampled_from(
    [
        AssertionSet(),
        AssertionSet(all=(GOOD,)),
        AssertionSet(any=(GOOD, ODD)),
        AssertionSet(all=(GOOD,), forbidden=(ODD,)),
        AssertionSet(also=(AssertionSet(any=(GOOD,)), AssertionSet(any=(ODD, BAD)))),
    ]
)
any_contract = st.builds(
    Contract,
    success=successes,
    forbidden=buckets,
    ambiguous=buckets,
    window_ms=st.sampled_from([None, 500, 2000]),
    hold_ms=st.sampled_from([None, 0, 400]),
    fresh_only=st.booleans(),
)
before = st.builds(read, facts, facts, facts)


@settings(max_examples=500)
@given(traces(), any_contract, before, st.booleans())
def test_success_is_never_claimed_unless_it_held_to_the_end_of_its_hold(samples, contract, baseline, commit_point):
    result = run(*samples, contract=contract, before=baseline, commit_point=commit_point)
    if result.verdict.status != "verified_success":
        return
    looked = [sample for sample in samples if sample.at_ms <= result.state.at_ms]
    last = looked[-1]
    begun = result.at - plan_of(contract, baseline, commit_point=commit_point).hold_ms(last.document)
    standing = [s for n, s in enumerate(looked) if s is last or looked[n + 1].at_ms > begun]
    assert contract.success
    assert standing
    for sample in standing:
        assert judge_set(contract.success, sample.reading) == "satisfied"
        assert sample.lost is None
        assert not any(request.pending for request in sample.requests)
    assert judge_set(contract.success, last.reading) == "satisfied"
    assert not last.requests or last.requests[-1] is not REFUSED
    if contract.fresh_only and last.document == 1:
        assert any(s.reading != baseline for s in looked)


@settings(max_examples=300)
@given(traces(), any_contract, before, st.booleans())
def test_every_trial_ends_in_time_and_says_why(samples, contract, baseline, commit_point):
    result = run(*samples, contract=contract, before=baseline, commit_point=commit_point)
    plan = plan_of(contract, baseline, commit_point=commit_point)
    assert result.at <= plan.window_ends_ms + 2000 + max(plan.hold_ms(1), 2500)
    assert (result.verdict.reason is None) == (result.verdict.status != "indeterminate")
    if result.verdict.status == "verified_fail":
        assert result.verdict.failed_assertions
        assert not any(request.failed or request.pending for request in result.state.requests)


@given(traces(), before)
def test_a_failure_that_stands_at_the_verdict_is_never_called_success(samples, baseline):
    result = run(*samples, before=baseline)
    if result.state.forbidden_since is not None:
        assert result.verdict.status != "verified_success"


@given(traces(), before)
def test_an_unknown_condition_more_never_makes_a_success(samples, baseline):
    unknown = Assertion("shop.nobody_knows", "eq", True)
    contract = Contract(success=AssertionSet(all=(GOOD, unknown)))
    assert FactAddress("shop.nobody_knows") not in baseline
    assert run(*samples, contract=contract, before=baseline).verdict.status != "verified_success"


# -- likely, and what an anchor proves


LIKELY = Contract(
    success=AssertionSet(any=(GOOD,)), ambiguous=AssertionSet(any=(BAD,)), likely=AssertionSet(all=(ODD,))
)


def test_what_only_speaks_for_success_ends_the_wait_as_likely():
    result = run(look(100, odd=True), contract=LIKELY)
    assert (result.verdict.reason, result.verdict.likely, result.at) == ("no_signal_yet", True, 1100)
    assert ended(look(100, odd=True), look(900, good=True, odd=True), contract=LIKELY) == (*SUCCESS, 1150)


def test_a_message_that_warns_is_not_likely():
    result = run(look(100, odd=True), look(600, odd=True, bad=True), contract=LIKELY)
    assert (result.verdict.reason, result.verdict.likely) == ("ambiguous_signal", False)


def test_a_request_without_an_answer_makes_nothing_likely():
    result = run(look(100, odd=True, requests=[LOST]), contract=LIKELY)
    assert (result.verdict.status, result.verdict.likely) == ("indeterminate", False)


MOVED = Assertion("page.urlChanged", "eq", True)


def moved(at, *, anchor_only, shown=False):
    reading = {MOVED.address: Seen(True, "#x"), GOOD.address: Seen(shown)}
    return Sample(at, reading, 1, changed=True, anchor_only=anchor_only)


BEFORE = {MOVED.address: Seen(False, ""), GOOD.address: Seen(False)}


def test_an_address_that_changed_by_its_anchor_alone_is_likely_at_most():
    by_address = Contract(success=AssertionSet(any=(MOVED, GOOD)))
    result = run(moved(100, anchor_only=True), contract=by_address, before=BEFORE)
    assert (result.verdict.status, result.verdict.likely, result.at) == ("indeterminate", True, 1100)
    assert ended(moved(100, anchor_only=False), contract=by_address, before=BEFORE) == (*SUCCESS, 350)
    # What else was promised and came true is proof whatever the anchor did.
    assert ended(moved(100, anchor_only=True, shown=True), contract=by_address, before=BEFORE) == (*SUCCESS, 350)
