"""What the tools of live facts refuse and say, without a page."""

import json
from typing import Any

import pytest

from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.facts import ObserveParams, ok_observe

TOKEN = "ghp_0123456789abcdefabcdef0123456789"


def observe(*claims: dict[str, Any], **more: Any) -> ObserveParams:
    return parse_arguments(ObserveParams, {"claims": list(claims), **more})


def claim(key: str = "shop.note", value: Any = "x", **more: Any) -> dict[str, Any]:
    return {"signalKey": key, "value": value, **more}


@pytest.mark.parametrize(
    ("where", "claims", "more"),
    [
        ("perceptionId", [claim()], {"perceptionId": TOKEN}),
        ("claims[0].signalKey", [claim(f"shop.{TOKEN}")], {}),
        ("claims[1].value", [claim(), claim(value={"a": [{TOKEN: {}}]})], {}),
        ("claims[1].evidence", [claim(), claim(evidence=f"the page shows {TOKEN}.")], {}),
    ],
)
def test_a_secret_anywhere_in_the_call_refuses_it_and_is_not_repeated(where: str, claims: Any, more: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        ok_observe.check(observe(*claims, **more), None)  # type: ignore[arg-type]
    error = refused.value
    assert error.reason_code == "ok.sensitive_value"
    assert error.message.startswith(f"{where} looks like ")
    assert TOKEN not in json.dumps([error.message, error.hint, error.details])


@pytest.mark.parametrize("size", [16_384, 16_385])
@pytest.mark.parametrize("sign", ["a", "ä", "\U0001f600"])
def test_a_value_is_measured_in_characters_whatever_they_weigh(sign: str, size: int) -> None:
    value = sign * (size - 2)
    if size > 16_384:
        with pytest.raises(InvalidParams, match="16384"):
            observe(claim(value=value))
    else:
        assert observe(claim(value=value)).claims[0].value == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [[float("-inf")]], "\ud800"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParams):
        observe(claim(value=value))


def test_a_value_nested_without_end_is_refused() -> None:
    bomb: Any = 1
    for _ in range(5_000):
        bomb = [bomb]
    with pytest.raises(InvalidParams):
        observe(claim(value=bomb))
