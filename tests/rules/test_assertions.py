"""Assertions in three values: operators, Kleene's tables, timings and advice."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.contracts.evaluate import (
    conjunction,
    disjunction,
    failed_traces,
    judge_assertion,
    judge_set,
    retry_advice_for,
    same_json,
    timing,
)
from nova_mcp.verification.model import (
    OMITTED,
    Assertion,
    AssertionSet,
    Contract,
    FactAddress,
    Reading,
    Seen,
    Unseen,
    Verdict,
)

TRUTHS = (True, False, None)
WORD = {True: "satisfied", False: "failed", None: "unknown"}
ELEMENT = {"exists": True, "visible": True, "count": 1, "text": "Hi", "value": "2", "checked": None, "enabled": True}
NO_ELEMENT = {
    "exists": False,
    "visible": False,
    "count": 0,
    "text": None,
    "value": None,
    "checked": None,
    "enabled": None,
}


def passed(key, operator, value, expected=OMITTED):
    trace = judge_assertion(Assertion(key, operator, expected), {FactAddress(key): Seen(value)})
    return trace.passed, trace.error


def table(truths) -> tuple[tuple[Assertion, ...], Reading]:
    """Assertions that come out with just these truths."""
    assertions = tuple(Assertion(f"shop.f{n}", "eq", True) for n in range(len(truths)))
    reading = {
        a.address: Unseen("fact_unreadable") if truth is None else Seen(truth)
        for a, truth in zip(assertions, truths, strict=True)
    }
    return assertions, reading


def kleene_and(truths):
    return False if False in truths else None if None in truths else True


def kleene_or(truths):
    return True if True in truths else None if None in truths else False


VALUES = [None, True, False, 0, 1, 1.5, "", "ab", [], [1, "ab"], {}, {"a": [1]}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("expected", VALUES, ids=repr)
def test_every_operator_for_every_pair_of_types(value, expected):
    def result(operator):
        return passed("shop.fact", operator, value, expected)

    equal = VALUES.index(value) == VALUES.index(expected) and type(value) is type(expected)
    assert result("eq") == (equal, None)
    assert result("not_eq") == result("neq") == (not equal, None)
    assert result("exists") == (value is not None, None)
    assert result("not_exists") == (value is None, None)
    if isinstance(value, list):
        assert result("contains") == (any(same_json(item, expected) for item in value), None)
    elif isinstance(value, str) and isinstance(expected, str):
        assert result("contains") == (expected in value, None)
    else:
        assert result("contains") == (None, "type_mismatch")
    numbers = all(type(one) in (int, float) for one in (value, expected))
    for operator, true in (
        ("gt", lambda: value > expected),
        ("lt", lambda: value < expected),
        ("gte", lambda: value >= expected),
        ("lte", lambda: value <= expected),
    ):
        assert result(operator) == ((true(), None) if numbers else (None, "type_mismatch"))


def test_true_is_not_one_however_deep_and_numbers_compare_by_value():
    assert not same_json({"a": [True]}, {"a": [1]})
    assert not same_json([0], [False])
    assert same_json({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0})
    assert not same_json({"a": 1}, {"a": 1, "b": None})
    assert not same_json([1, 2], [2, 1])
    assert passed("shop.list", "contains", [1], True) == (False, None)


@pytest.mark.parametrize(
    "operator", ["eq", "not_eq", "neq", "exists", "not_exists", "contains", "gt", "lt", "gte", "lte"]
)
@pytest.mark.parametrize("error", ["fact_not_found", "stale_fact", "fact_unreadable", "frame_mismatch"])
def test_a_fact_that_cannot_be_read_is_unknown_and_says_why(operator, error):
    assertion = Assertion("dom.#x", operator, 1)
    trace = judge_assertion(assertion, {assertion.address: Unseen(error)})
    assert (trace.passed, trace.error, trace.observed) == (None, error, None)


def test_a_fact_of_another_frame_is_not_this_fact():
    assertion = Assertion("shop.a", "eq", True, frame_id="f2")
    assert judge_assertion(assertion, {FactAddress("shop.a"): Seen(True)}).error == "fact_not_found"
    assert judge_assertion(assertion, {FactAddress("shop.a", "f2"): Seen(True)}).passed is True


@pytest.mark.parametrize("operator", ["eq", "contains", "gt", "lt", "gte", "lte"])
def test_an_element_compares_on_existence_when_nothing_is_expected(operator):
    assert passed("dom.#x", operator, ELEMENT) == (True, None)
    assert passed("dom.#x", operator, NO_ELEMENT) == (False, None)


@pytest.mark.parametrize("operator", ["not_eq", "neq"])
def test_an_element_that_should_not_equal_nothing_should_not_be_there(operator):
    assert passed("dom.#x", operator, ELEMENT) == (False, None)
    assert passed("dom.#x", operator, NO_ELEMENT) == (True, None)


def test_presence_of_an_element_is_its_existence_and_not_that_of_the_answer():
    assert passed("dom.#x", "exists", ELEMENT) == (True, None)
    assert passed("dom.#x", "exists", NO_ELEMENT) == (False, None)
    assert passed("dom.#x", "not_exists", NO_ELEMENT) == (True, None)
    assert passed("dom.#x@text", "exists", NO_ELEMENT) == (False, None)
    assert passed("dom.#x@count", "exists", 0) == (False, None)
    assert passed("dom.#x@exists", "not_exists", False) == (True, None)


def test_a_boolean_for_a_whole_element_means_its_existence():
    assert passed("dom.#x", "eq", ELEMENT, True) == (True, None)
    assert passed("dom.#x", "eq", NO_ELEMENT, False) == (True, None)
    assert passed("dom.#x", "not_eq", ELEMENT, True) == (False, None)


@pytest.mark.parametrize("whole", [True, False])
def test_a_field_is_the_same_whether_the_page_sent_it_alone_or_with_its_element(whole):
    def field(name):
        return ELEMENT if whole else ELEMENT[name]

    assert passed("dom.#x@text", "contains", field("text"), "H") == (True, None)
    assert passed("dom.#x@value", "eq", field("value"), "2") == (True, None)
    assert passed("dom.#x@value", "eq", field("value"), 2) == (False, None)
    assert passed("dom.#x@count", "gte", field("count"), 1) == (True, None)
    assert passed("dom.#x@enabled", "eq", field("enabled"), True) == (True, None)


def test_a_fact_with_nothing_to_tell_is_absent_and_compares_as_unknown():
    assert passed("auth.loggedIn", "exists", None) == (False, None)
    assert passed("auth.loggedIn", "eq", None, False) == (None, "fact_not_found")
    assert passed("auth.loggedIn", "not_eq", None, True) == (None, "fact_not_found")
    assert passed("model.selected", "eq", None, None) == (True, None)


def test_no_answer_yet_is_neither_a_good_nor_a_bad_one():
    key = "network.responseOk@/api/*"
    for operator, expected in (("eq", True), ("eq", False), ("not_eq", True), ("lt", 400)):
        assert passed(key, operator, None, expected)[0] is None
    assert passed(key, "eq", 204, True) == (True, None)
    assert passed(key, "eq", 302, True) == (True, None)
    assert passed(key, "eq", 500, True) == (False, None)
    assert passed(key, "eq", 500, False) == (True, None)
    assert passed(key, "gte", 500, 500) == (True, None)
    assert passed(key, "eq", True, True) == (True, None)


def test_comparing_with_nothing_is_unknown_outside_elements():
    assert passed("page.title", "eq", "Shop") == (None, "type_mismatch")
    assert passed("dom.#x@text", "eq", "Shop") == (None, "type_mismatch")


@pytest.mark.parametrize(
    ("operator", "expected", "passed"),
    [
        ("eq", "right", True),
        ("eq", "wrong", False),
        ("not_eq", "right", False),
        ("neq", "wrong", True),
        # Not asked inside the page, so nothing is known of it.
        ("eq", "another", None),
        ("contains", "rig", None),
        ("gt", 1, None),
    ],
)
def test_a_masked_value_is_what_the_page_said_of_it_or_unknown_and_never_false_by_its_dots(operator, expected, passed):
    assertion = Assertion("dom.#pin@value", operator, expected)
    trace = judge_assertion(assertion, {assertion.address: Seen("•••", "s", {"right": True, "wrong": False})})
    assert (trace.passed, trace.observed) == (passed, "•••")
    assert trace.error == ("fact_unreadable" if passed is None else None)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_lists_follow_kleene_exactly(size):
    for truths in itertools.product(TRUTHS, repeat=size):
        assertions, reading = table(truths)
        assert judge_set(AssertionSet(all=assertions), reading) == WORD[kleene_and(truths)]
        assert judge_set(AssertionSet(any=assertions), reading) == WORD[kleene_or(truths)]
        forbidden = kleene_or(truths)
        inverse = None if forbidden is None else not forbidden
        assert judge_set(AssertionSet(forbidden=assertions), reading) == WORD[inverse]
        assert conjunction(truths) is kleene_and(truths)
        assert disjunction(truths) is kleene_or(truths)


def test_several_lists_and_joined_sets_are_one_conjunction():
    for truths in itertools.product(TRUTHS, repeat=5):
        (a, b, c, d, e), reading = table(truths)
        of = dict(zip("abcde", truths, strict=True))
        not_c = None if of["c"] is None else not of["c"]
        joined = AssertionSet((a,), (b,), (c,), also=(AssertionSet(all=(d,)),), either=(AssertionSet(any=(e,)),))
        assert judge_set(joined, reading) == WORD[kleene_and((of["a"], of["b"], not_c, of["d"], of["e"]))]
        assert joined.members == (a, b, c, d, e)


def test_alternatives_of_sets_are_a_disjunction():
    for truths in itertools.product(TRUTHS, repeat=4):
        (a, b, c, d), reading = table(truths)
        either = AssertionSet(either=(AssertionSet(all=(a, b)), AssertionSet(any=(c, d))))
        assert judge_set(either, reading) == WORD[kleene_or((kleene_and(truths[:2]), kleene_or(truths[2:])))]


def test_an_empty_set_is_absent():
    assert judge_set(AssertionSet(), {}) is None
    assert judge_set(AssertionSet(also=(AssertionSet(),)), {}) is None
    assert failed_traces(AssertionSet(), {}) == ()


truths_lists = st.lists(st.sampled_from(TRUTHS), min_size=1, max_size=6)


@given(truths_lists, st.integers(0, 6))
def test_an_unknown_more_never_makes_all_true(truths, at):
    assertions, reading = table([*truths[:at], None, *truths[at:]])
    assert judge_set(AssertionSet(all=assertions), reading) != "satisfied"


@given(truths_lists, st.integers(0, 5), st.booleans())
def test_learning_an_unknown_never_reverses_a_verdict(truths, at, learned):
    at %= len(truths)
    known = [learned if n == at and truth is None else truth for n, truth in enumerate(truths)]
    for name in ("all", "any", "forbidden"):
        before_members, before = table(truths)
        after_members, after = table(known)
        first = judge_set(AssertionSet(**{name: before_members}), before)
        second = judge_set(AssertionSet(**{name: after_members}), after)
        assert first in ("unknown", second)


@given(truths_lists)
def test_what_is_unmet_is_listed_exactly_when_the_set_does_not_hold(truths):
    assertions, reading = table(truths)
    for name in ("all", "any", "forbidden"):
        conditions = AssertionSet(**{name: assertions})
        unmet = failed_traces(conditions, reading)
        assert bool(unmet) == (judge_set(conditions, reading) != "satisfied")
        assert all(trace.passed is not (name != "forbidden") for trace in unmet)


def test_a_trip_lists_the_true_ones_only():
    (a, b, c), reading = table((True, False, None))
    assert [t.fact_key for t in failed_traces(AssertionSet(any=(a, b, c)), reading, tripped=True)] == [a.fact_key]
    either = AssertionSet(either=(AssertionSet(any=(a, c)), AssertionSet(all=(a, b))))
    assert [t.fact_key for t in failed_traces(either, reading, tripped=True)] == [a.fact_key]
    gone = AssertionSet(forbidden=(b,))
    assert [(t.fact_key, t.passed) for t in failed_traces(gone, reading, tripped=True)] == [(b.fact_key, False)]


@pytest.mark.parametrize(
    ("kind", "window", "hold"),
    [
        ("dismiss_overlay", 3000, 250),
        ("send_message", 5000, 300),
        ("submit_form", 8000, 300),
        ("select_option", 2000, 100),
        ("custom", 5000, 250),
    ],
)
def test_windows_and_holds_by_kind_of_action(kind, window, hold):
    contract = Contract(action_kind=kind)
    plain = timing(contract, commit_point=False, new_document=False)
    assert (plain.window_ms, plain.hold_ms) == (window, hold)
    assert timing(contract, commit_point=True, new_document=False).hold_ms == 1200
    assert timing(contract, commit_point=True, new_document=True).hold_ms == 0


@given(st.integers(), st.integers(), st.booleans(), st.booleans())
def test_given_times_win_within_their_bounds(window, hold, commit_point, new_document):
    times = timing(Contract(window_ms=window, hold_ms=hold), commit_point=commit_point, new_document=new_document)
    assert times.window_ms == sorted((500, window, 30_000))[1]
    assert times.hold_ms == sorted((0, hold, 5000))[1]


REASONS = ("no_signal_yet", "ambiguous_signal", "page_navigated", "frame_destroyed", "timeout", "eval_error")


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("ambiguity", ["signal", "retry_once", "abort"])
@pytest.mark.parametrize("is_retry", [False, True])
def test_advice_when_nothing_was_decided(reason, ambiguity, is_retry):
    def advice(policy):
        contract = Contract(retry_policy=policy, ambiguity_policy=ambiguity)
        return retry_advice_for(contract, Verdict("indeterminate", reason), is_retry=is_retry)

    assert advice("no_retry") == "do_not_retry"
    if reason == "ambiguous_signal" and ambiguity == "abort":
        assert advice("idempotent") == advice("non_idempotent") == "do_not_retry"
        return
    assert advice("non_idempotent") == "check_postcondition_first"
    spent = reason == "ambiguous_signal" and ambiguity == "retry_once" and is_retry
    assert advice("idempotent") == ("check_postcondition_first" if spent else "safe_to_retry")


@pytest.mark.parametrize("policy", ["idempotent", "non_idempotent", "no_retry"])
@pytest.mark.parametrize("status", ["verified_success", "verified_fail"])
def test_a_decided_action_is_not_repeated(policy, status):
    assert retry_advice_for(Contract(retry_policy=policy), Verdict(status)) == "do_not_retry"


def test_infinite_numbers_do_not_break_comparisons():
    assert passed("shop.n", "gt", math.inf, 1) == (True, None)
