"""The short form compiles to the contract it reads like."""

import pytest

from nova_mcp.verification.contracts.codec import check_contract
from nova_mcp.verification.contracts.evaluate import judge_set
from nova_mcp.verification.contracts.expect import BadExpectation, compile_expect
from nova_mcp.verification.contracts.fact_keys import parse_fact
from nova_mcp.verification.model import Assertion, AssertionSet, Contract, Seen


@pytest.mark.parametrize(
    ("line", "assertions"),
    [
        ("text:Saved", [("page.shows@Saved", "eq", True)]),
        ("text: 100% = done: é ", [("page.shows@100%25%20%3D%20done%3A%20%C3%A9", "eq", True)]),
        ("url:/orders/*", [("page.urlMatches@%2Forders%2F%2A", "eq", True)]),
        ("gone:#dialog", [("dom.#dialog@gone", "eq", True)]),
        ("visible:.toast", [("dom..toast@visible", "eq", True)]),
        ('visible:a[href="me@text"]', [('dom.a[href="me@text"]@visible', "eq", True)]),
        ("value:#qty=2", [("dom.#qty@value", "eq", "2")]),
        ("value:#qty=", [("dom.#qty@value", "eq", "")]),
        ("value:#q=a=b", [("dom.#q@value", "eq", "a=b")]),
        ('value:input[name="a=b"]=it\'s', [('dom.input[name="a=b"]@value', "eq", "it's")]),
        ("value:[data-x=y]=z", [("dom.[data-x=y]@value", "eq", "z")]),
        (
            "response:POST /api/* 2xx",
            [
                ("network.response@POST%20%2Fapi%2F%2A", "gte", 200),
                ("network.response@POST%20%2Fapi%2F%2A", "lte", 299),
            ],
        ),
        ("response:post /api/* 201", [("network.response@POST%20%2Fapi%2F%2A", "eq", 201)]),
        ("response:/api", [("network.response@%2Fapi", "gte", 200), ("network.response@%2Fapi", "lte", 299)]),
        (
            "response:PUT https://x.test/*",
            [
                ("network.response@PUT%20https%3A%2F%2Fx.test%2F%2A", "gte", 200),
                ("network.response@PUT%20https%3A%2F%2Fx.test%2F%2A", "lte", 299),
            ],
        ),
    ],
)
def test_each_kind_of_line(line, assertions):
    made = tuple(Assertion(key, operator, expected) for key, operator, expected in assertions)
    contract = compile_expect([line])
    assert contract == Contract(success=AssertionSet(all=made))
    check_contract(contract)
    refused = compile_expect([f"! {line}"])
    assert refused == Contract(forbidden=AssertionSet(all=made))


def test_several_lines_must_all_come_true_and_no_refused_one_may():
    contract = compile_expect(["text:Saved", "!visible:.error", "gone:#dialog", "!text:Sorry"])
    assert [a.fact_key for a in contract.success.all] == ["page.shows@Saved", "dom.#dialog@gone"]
    assert [a.fact_key for a in contract.forbidden.any] == ["dom..error@visible", "page.shows@Sorry"]


def test_a_refused_range_trips_only_inside_it_and_beside_other_lines():
    contract = compile_expect(["!response:POST /api 5xx", "!text:Sorry"])
    response, sorry = parse_fact("network.response@POST%20%2Fapi"), parse_fact("page.shows@Sorry")

    def verdict(status, shown):
        facts = {response.key: status, sorry.key: shown}
        return judge_set(contract.forbidden, {a.address: Seen(facts[a.fact_key]) for a in contract.forbidden.members})

    assert verdict(503, False) == "satisfied"
    assert verdict(200, True) == "satisfied"
    assert verdict(200, False) == verdict(404, False) == "failed"
    assert verdict(None, False) == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "!",
        "Saved",
        "texts:Saved",
        "Text:Saved",
        "text:",
        "text:  ",
        "!text:",
        "gone:",
        "visible: ",
        "visible:#x@text",
        "visible:[a",
        "visible:a]",
        "gone:a[x='1]",
        "value:#qty",
        "value:=2",
        "value:[a=b]",
        "response:POST",
        "response:2xx",
        "response:POST /a /b",
        "response:POST /api 9xx",
        "response:POST /api 20",
    ],
)
def test_a_line_that_says_nothing_is_refused_by_name(line):
    with pytest.raises(BadExpectation) as refused:
        compile_expect(["text:fine", line])
    assert f'"{line}"' in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("count", [0, 7])
def test_one_to_six_lines(count):
    with pytest.raises(BadExpectation, match="1 to 6"):
        compile_expect(["text:x"] * count)
    compile_expect(["text:x"] * 6)
