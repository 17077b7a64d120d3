"""Messages about wrong arguments say what arrived and what is allowed."""

import json
import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import MAX_DEPTH, deeper_than, parse_arguments, shown
from nova_mcp.tools.spec import Params


class Sample(Params):
    mode: Literal["summary", "state"] = "summary"
    max_tokens: int = Field(1200, ge=200, le=20_000)
    note: str = Field("x", min_length=1, max_length=10)
    share: float = Field(0.5, ge=0, le=1, allow_inf_nan=False)


def refusal(**arguments: Any) -> str:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(Sample, arguments)
    assert refused.value.reason_code == "invalid_params"
    return refused.value.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "x"}, 'mode must be one of summary | state (received "x")'),
        ({"maxTokens": 199}, "maxTokens must be at least 200 (received 199)"),
        ({"maxTokens": 20_001}, "maxTokens must be at most 20000 (received 20001)"),
        ({"maxTokens": "5"}, 'maxTokens must be an integer (received "5")'),
        ({"maxTokens": True}, "maxTokens must be an integer (received true)"),
        ({"maxTokens": 1.0}, "maxTokens must be an integer (received 1.0)"),
        ({"note": ""}, 'note must be at least 1 long (received "")'),
        ({"note": None}, "note must be a string (received None)"),
        ({"share": math.nan}, "share must be a finite number (received NaN)"),
        ({"max_tokens": 300}, "max_tokens is not an argument (did you mean maxTokens?)"),
    ],
)
def test_messages(arguments: dict[str, Any], message: str) -> None:
    assert message in refusal(**arguments)


def test_many_problems_are_counted_not_listed() -> None:
    told = refusal(a=1, b=2, c=3, d=4, e=5)
    assert told.endswith("and 2 more")


def test_nesting_without_end_is_refused() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    assert refusal(note=deep) == "arguments are nested too deeply"


class Free(Params):
    value: JsonValue


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: [1, {"b": inner}]])
def test_free_json_has_a_bounded_depth(wrap: Callable[[Any], Any]) -> None:
    value = wrap(1)
    while not deeper_than(wrap(value), MAX_DEPTH - 1):
        value = wrap(value)
    assert parse_arguments(Free, {"value": value}).value == value
    with pytest.raises(InvalidParams, match="nested too deeply"):
        parse_arguments(Free, {"value": wrap(value)})


@pytest.mark.parametrize("value", [math.inf, [-math.inf], {"a": [1, {"b": math.nan}]}])
def test_free_json_holds_no_number_that_an_answer_could_not_carry(value: Any) -> None:
    with pytest.raises(InvalidParams, match="too large to be kept"):
        parse_arguments(Free, {"value": value})
    assert parse_arguments(Free, {"value": [1.5e308, -0.0]}).value == [1.5e308, -0.0]


def test_depth_is_counted_in_arrays_and_objects() -> None:
    assert not deeper_than(1, 0)
    assert not deeper_than("[[[", 0)
    assert [deeper_than(value, 1) for value in ([], [1], {"a": 1}, [[]], {"a": {}}, [{"a": 1}])] == [
        *(False, False, False),
        *(True, True, True),
    ]
    assert not deeper_than([[]], 2)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_whatever_arrives_is_parsed_or_refused_in_one_short_line(arguments: dict[str, Any]) -> None:
    told = {}
    try:
        parse_arguments(Sample, arguments)
    except InvalidParams as refused:
        told = {"message": refused.message, **refused.details}
    assert len(json.dumps(told, allow_nan=False)) < 8_000


@given(json_values)
def test_a_quoted_value_stays_on_one_line(value: Any) -> None:
    text = shown(value)
    assert "\n" not in text
    assert len(text) < 600
