"""A contract that says something nobody can check is refused before anything runs."""

from typing import Any

import pytest

from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.guarded.contract_params import EXAMPLE, MAX_ASSERTIONS, AssertionSetParams, TransitionContractParams
from nova_mcp.verification.contracts.codec import contract_from_json, contract_to_json
from nova_mcp.verification.model import OMITTED

ONE = {"factKey": "page.urlChanged", "operator": "eq", "expected": True}


def contract(**fields: Any) -> TransitionContractParams:
    return parse_arguments(TransitionContractParams, fields)


def refusal(params: Any, body: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(params, body)
    assert refused.value.error_code == -32602
    return refused.value.message


def test_the_published_example_is_a_contract() -> None:
    assert TransitionContractParams.model_validate_json(EXAMPLE).to_contract().has_outcome


def test_the_published_example_proves_by_a_message_and_never_by_a_changed_address() -> None:
    example = TransitionContractParams.model_validate_json(EXAMPLE).to_contract()
    assert "page.urlChanged" not in {one.fact_key for one in example.outcome_members}
    assert {one.fact_key for one in example.success.members} == {"form.successIndicator.visible"}
    assert {one.fact_key for one in example.forbidden.members} == {"form.errorBanner.visible"}


@pytest.mark.parametrize(
    ("key", "operator", "expected"),
    [
        *[("form.gone", operator, 1) for operator in ("gt", "lt", "gte", "lte")],
        ("dom.#x@text", "gt", 1),
        ("dom.#x@count", "gt", "1"),
        ("dom.#x@count", "contains", "1"),
        ("dom.#x", "gt", 1),
        ("dom.#x@visible", "eq", "true"),
        ("dom.#x@value", "eq", 2),
        ("dom.#x@value", "contains", 2),
        ("page.title", "eq", True),
        ("network.responseOk@*", "eq", "200"),
        ("runtime.domEpoch", "not_eq", "x"),
    ],
)
def test_a_comparison_that_no_page_could_decide_is_refused(key: str, operator: str, expected: Any) -> None:
    body = {"all": [{"factKey": key, "operator": operator, "expected": expected}]}
    assert key in refusal(AssertionSetParams, body)


@pytest.mark.parametrize(
    ("key", "operator", "expected"),
    [
        ("dom.#x@count", "gte", 2),
        ("dom.#x@value", "eq", None),
        ("dom.#x", "eq", {"count": 1}),
        ("network.responseOk@*", "eq", True),
        ("network.responseOk@*", "lt", 400),
        ("shop.total", "gt", 3),
        ("shop.total", "contains", ["a"]),
    ],
)
def test_a_comparison_that_may_come_out_either_way_is_taken(key: str, operator: str, expected: Any) -> None:
    body = {"all": [{"factKey": key, "operator": operator, "expected": expected}]}
    assert parse_arguments(AssertionSetParams, body).to_set().all[0].fact_key == key


def test_every_field_reaches_the_contract_and_json_tells_the_same() -> None:
    body = {
        "actionKind": "submit_form",
        "preconditions": {"all": [ONE], "forbidden": [{"factKey": "dom.#x", "operator": "exists"}]},
        "postconditions": {"success": {"any": [ONE]}, "forbidden": {"any": [ONE]}, "ambiguous": {"all": [ONE]}},
        "retryPolicy": "no_retry",
        "ambiguityPolicy": "abort",
        "stabilityWindowMs": 900,
        "stabilityMs": 100,
    }
    built = contract(**body).to_contract()
    assert built == contract_from_json(body)
    assert contract_to_json(built) == body
    assert built.retry_policy_given


def test_a_retry_policy_nobody_gave_is_not_taken_for_the_callers_word() -> None:
    assert not contract().to_contract().retry_policy_given


def test_an_expected_null_is_not_an_omitted_one() -> None:
    given = {"factKey": "dom.#x@value", "operator": "eq", "expected": None}
    bare = {"factKey": "dom.#x", "operator": "exists"}
    found = parse_arguments(AssertionSetParams, {"all": [given, bare]}).to_set().all
    assert [one.expected for one in found] == [None, OMITTED]


@pytest.mark.parametrize("value", [-5, 0, 499, 30_001, 10**12])
def test_stability_values_are_taken_whatever_they_are(value: int) -> None:
    built = contract(stabilityWindowMs=value, stabilityMs=value).to_contract()
    assert (built.window_ms, built.hold_ms) == (value, value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"extra": 1}, "extra is not an argument; accepted: actionKind"),
        ({"postconditions": {"sucess": {}}}, "postconditions.sucess is not an argument (did you mean success?)"),
        ({"preconditions": {"some": []}}, "preconditions.some is not an argument; accepted: all, any, forbidden"),
        ({"preconditions": {"all": [{**ONE, "more": 1}]}}, "all.0.more is not an argument; accepted: factKey"),
        ({"preconditions": {"all": [{"factKey": "page.url"}]}}, "operator is required"),
        ({"preconditions": {"all": [{"factKey": "page.url", "operator": "is"}]}}, "operator must be one of eq | "),
        ({"preconditions": {"all": [{"factKey": "page.urll", "operator": "exists"}]}}, "Did you mean page.url"),
        ({"preconditions": {"all": [{"factKey": "page.url", "operator": "eq"}]}}, "needs an expected value"),
        ({"preconditions": {"all": [{"factKey": "", "operator": "exists"}]}}, "factKey must be at least 1 long"),
        ({"actionKind": "buy"}, "actionKind must be one of"),
        ({"stabilityMs": "5"}, "stabilityMs must be an integer"),
        ({"stabilityMs": 1.5}, "stabilityMs must be an integer"),
        ({"retryPolicy": None}, "retryPolicy must be one of"),
        ({"preconditions": []}, "preconditions must be an object"),
        ({"preconditions": {"all": {}}}, "preconditions.all must be an array"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_is_allowed(body: dict[str, Any], words: str) -> None:
    assert words in refusal(TransitionContractParams, body)


def test_a_set_has_room_for_so_many_conditions_and_no_more() -> None:
    parse_arguments(AssertionSetParams, {"all": [ONE] * MAX_ASSERTIONS})
    assert f"at most {MAX_ASSERTIONS}" in refusal(AssertionSetParams, {"all": [ONE] * (MAX_ASSERTIONS + 1)})
