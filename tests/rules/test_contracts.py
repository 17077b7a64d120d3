"""Contracts as JSON and joined ones."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.contracts.codec import (
    BadContract,
    both,
    check_contract,
    contract_from_json,
    contract_to_json,
    one_of,
    tighten,
)
from nova_mcp.verification.contracts.evaluate import conjunction, disjunction, judge_set
from nova_mcp.verification.contracts.fact_keys import UnknownFact
from nova_mcp.verification.duplicates.identity import identity_hash
from nova_mcp.verification.model import OMITTED, Assertion, AssertionSet, CommitIdentity, Contract, Seen, Unseen

OPERATORS = ("eq", "not_eq", "neq", "exists", "not_exists", "contains", "gt", "lt", "gte", "lte")
TRUTH = {"satisfied": True, "failed": False, "unknown": None}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
assertions = st.builds(
    Assertion,
    st.sampled_from(["shop.a", "shop.b", "dom.#x"]),
    st.sampled_from(OPERATORS),
    st.just(OMITTED) | json_values,
    st.none() | st.just("frame"),
)
lists = st.lists(assertions, max_size=2).map(tuple)
plain_sets = st.builds(AssertionSet, lists, lists, lists)
joined_sets = st.recursive(
    plain_sets,
    lambda inner: st.builds(
        AssertionSet,
        lists,
        lists,
        lists,
        st.lists(inner, max_size=2).map(tuple),
        st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=3,
)


def contracts(sets, *, stored):
    return st.builds(
        Contract,
        st.sampled_from(["custom", "submit_form"]),
        sets,
        sets,
        sets,
        sets,
        st.sampled_from(["idempotent", "non_idempotent", "no_retry"]),
        st.just(True),
        st.sampled_from(["signal", "retry_once", "abort"]),
        st.none() | st.integers(0, 99_999),
        st.none() | st.integers(0, 99_999),
        st.booleans() if stored else st.just(False),
    )


@given(contracts(plain_sets, stored=False))
def test_a_callers_contract_survives_json(contract):
    assert contract_from_json(contract_to_json(contract)) == contract


@given(contracts(joined_sets.map(lambda s: both(AssertionSet(), s)), stored=True))
def test_a_stored_contract_says_the_same_again(contract):
    body = contract_to_json(contract)
    assert contract_to_json(contract_from_json(body, stored=True)) == body


def test_defaults_are_left_out_and_null_is_not_nothing():
    assert contract_to_json(Contract()) == {}
    contract = Contract(success=AssertionSet(all=(Assertion("shop.a", "eq", None), Assertion("dom.#x", "exists"))))
    assert contract_to_json(contract) == {
        "postconditions": {
            "success": {
                "all": [
                    {"factKey": "shop.a", "operator": "eq", "expected": None},
                    {"factKey": "dom.#x", "operator": "exists"},
                ]
            }
        }
    }
    assert contract_from_json({"retryPolicy": "non_idempotent"}).retry_policy_given
    assert not contract_from_json({}).retry_policy_given


A = {"factKey": "shop.a", "operator": "eq", "expected": 1}


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"postCondition": {}},
        {"postconditions": {"succes": {}}},
        {"postconditions": []},
        {"preconditions": {"al": []}},
        {"preconditions": {"all": A}},
        {"preconditions": {"all": [{**A, "value": 1}]}},
        {"preconditions": {"all": [{"operator": "eq"}]}},
        {"preconditions": {"all": [{"factKey": "shop.a", "operator": "is"}]}},
        {"preconditions": {"all": [{**A, "frameId": 3}]}},
        {"preconditions": {"also": []}},
        {"postconditions": {"success": {"either": []}}},
        {"freshOnly": True},
        {"actionKind": "other"},
        {"retryPolicy": None},
        {"stabilityMs": 1.5},
        {"stabilityWindowMs": True},
    ],
    ids=repr,
)
def test_what_is_no_contract_is_refused_and_not_ignored(body):
    with pytest.raises(BadContract):
        contract_from_json(body)


def test_facts_nobody_can_read_and_comparisons_with_nothing_are_refused():
    def check(*args):
        check_contract(Contract(preconditions=AssertionSet(any=(Assertion(*args),))))

    check("dom.#x", "eq")
    check("page.title", "exists")
    with pytest.raises(UnknownFact):
        check("page.tittle", "exists")
    with pytest.raises(BadContract, match=r"page\.title"):
        check("page.title", "eq")
    with pytest.raises(UnknownFact):
        check_contract(Contract(ambiguous=AssertionSet(either=(AssertionSet(all=(Assertion("auth.x", "exists"),)),))))


def readings(*sets):
    addresses = sorted({a.address for s in sets for a in s.members}, key=repr)
    for values in itertools.product((Seen(1), Seen("x"), Unseen("fact_unreadable")), repeat=len(addresses)):
        yield dict(zip(addresses, values, strict=True))


@given(joined_sets, joined_sets)
def test_joining_sets_is_conjunction_and_disjunction_whatever_they_hold(first, second):
    for reading in readings(first, second):
        verdicts = [judge_set(s, reading) for s in (first, second)]
        truths = [TRUTH[verdict] for verdict in verdicts if verdict is not None]
        for joined, law in ((both(first, second), conjunction), (one_of(first, second), disjunction)):
            verdict = judge_set(joined, reading)
            assert verdict is None if not truths else TRUTH[verdict] is law(truths)


@given(contracts(plain_sets, stored=True), contracts(plain_sets, stored=False))
def test_a_callers_contract_only_tightens(own, given_contract):
    joined = tighten(own, given_contract)
    for reading in readings(own.success, given_contract.success):
        if judge_set(joined.success, reading) == "satisfied":
            assert judge_set(own.success, reading) in ("satisfied", None)
            assert judge_set(given_contract.success, reading) in ("satisfied", None)
    for reading in readings(own.forbidden, given_contract.forbidden):
        if "satisfied" in (judge_set(own.forbidden, reading), judge_set(given_contract.forbidden, reading)):
            assert judge_set(joined.forbidden, reading) == "satisfied"
    assert joined.fresh_only is own.fresh_only
    assert joined.action_kind == own.action_kind


def test_policies_and_times_of_the_caller_win_only_where_given():
    own = Contract(retry_policy="idempotent", ambiguity_policy="abort", window_ms=900, hold_ms=50, fresh_only=True)
    kept = tighten(own, Contract())
    assert kept == own
    changed = tighten(
        own,
        Contract(
            retry_policy="no_retry", retry_policy_given=True, ambiguity_policy="retry_once", window_ms=700, hold_ms=0
        ),
    )
    assert (changed.retry_policy, changed.ambiguity_policy) == ("no_retry", "retry_once")
    assert (changed.window_ms, changed.hold_ms, changed.fresh_only) == (700, 0, True)


names = st.text(max_size=4)


@given(
    st.tuples(names, names, names, names, st.none() | names),
    st.tuples(names, names, names, names, st.none() | names),
)
def test_commits_have_the_same_hash_exactly_when_they_are_the_same(first, second):
    def means(p, o, c, f, key):
        return (p, o, key) if key is not None else (p, o, c, f, None)

    hashes = [identity_hash(CommitIdentity(*parts)) for parts in (first, second)]
    assert (hashes[0] == hashes[1]) == (means(*first) == means(*second))
    assert all(len(one) == 64 and set(one) <= set("0123456789abcdef") for one in hashes)


def test_the_border_between_parts_belongs_to_the_hash():
    assert identity_hash(CommitIdentity("ab", "c", "d", "e")) != identity_hash(CommitIdentity("a", "bc", "d", "e"))
    assert identity_hash(CommitIdentity("a", "b", "c", "d", "k")) == identity_hash(
        CommitIdentity("a", "b", "x", "y", "k")
    )
    assert identity_hash(CommitIdentity("a", "b", "c", "\ud800"))
