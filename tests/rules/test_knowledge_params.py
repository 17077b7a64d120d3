"""Every bound of what callers may send about knowledge: taken at the edge, refused one past it and named."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.knowledge.model import Action, Context, Fingerprint, Playbook, Signal, VerifyStep
from nova_mcp.memory.knowledge.writes.rules import KEPT, Patch
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.knowledge import params as given
from nova_mcp.tools.learning.telemetry import FeaturesParams
from nova_mcp.tools.spec import Params
from nova_mcp.verification.model import Assertion

SIGNAL: dict[str, Any] = {"kind": "dom", "match": "#bar"}
CLICK: dict[str, Any] = {"action": "click", "selector": "#no"}
# The smallest instance of every nested model, and what single values need beside them.
SMALLEST: dict[type[Params], dict[str, Any]] = {
    given.SignalParams: SIGNAL,
    given.FingerprintParams: {"signals": [SIGNAL]},
    given.ActionParams: CLICK,
    given.VerifyParams: {"type": "absent", "selector": "#bar"},
    given.PlaybookParams: {"policy": "dismiss"},
    given.PlaceParams: {},
    given.RoutePlaceParams: {},
    given.ContextParams: {},
    given.PhenomenonParams: {"type": "modal", "fingerprint": {"signals": [SIGNAL]}},
    given.PatchParams: {"deprecated": False},
    given.HintParams: {"kind": "result_item", "selectors": ["#ad"]},
    given.ObservationParams: {},
    given.AliasParams: {"kind": "script_host", "value": "cdn.example"},
    FeaturesParams: {},
}
NEEDS: dict[tuple[type[Params], str], dict[str, Any]] = {
    (given.ActionParams, "type"): {"valueSource": "agent_supplied", "valueName": "query"},
    (given.ActionParams, "press_key"): {"key": "Escape"},
    (given.VerifyParams, "fact"): {"assertion": {"factKey": "page.title", "operator": "exists"}},
}
PLAIN: dict[str, Any] = {"signals": SIGNAL, "actions": CLICK, "verify": {"type": "scroll_unlocked"}, "routes": "feed"}


def parsed(model: type[Params], change: dict[str, Any]) -> Params:
    return parse_arguments(model, {**SMALLEST[model], **change})


def fields() -> Iterator[tuple[type[Params], str, dict[str, Any]]]:
    for model in SMALLEST:
        schema = model.model_json_schema(by_alias=True)
        for name, field in schema["properties"].items():
            arms = [arm for arm in field.get("anyOf", [field]) if arm.get("type") != "null"]
            arm = schema["$defs"][arms[0]["$ref"].rsplit("/", 1)[1]] if "$ref" in arms[0] else arms[0]
            yield model, name, arm


def edges() -> Iterator[Any]:
    for model, name, arm in fields():
        here = f"{model.__name__}-{name}"
        match arm.get("type"):
            case "integer" | "number":
                inside = [arm[key] for key in ("minimum", "maximum") if key in arm]
                outside = [arm[key] + step for key, step in (("minimum", -1), ("maximum", 1)) if key in arm]
            case "string" if "enum" in arm:
                inside, outside = list(arm["enum"]), ["not-one-of-these", arm["enum"][0].upper()]
            case "string" if "maxLength" in arm and name != "locale":
                most = arm["maxLength"]
                inside, outside = ["x", "x" * most], ["x" * (most + 1), "a\x00b"]
                outside += [""] if arm.get("minLength") else []
            case "array":
                item = PLAIN.get(name, "#a" if name != "presentSignals" else "x")
                most = arm["maxItems"]
                inside, outside = [[item] * most], [[item] * (most + 1)]
                outside += [[]] if arm.get("minItems") else []
            case _:
                continue
        for index, value in enumerate(inside):
            yield pytest.param(model, name, value, True, id=f"{here}-edge{index}")
        for index, value in enumerate(outside):
            yield pytest.param(model, name, value, False, id=f"{here}-past{index}")


@pytest.mark.parametrize(("model", "name", "value", "fits"), list(edges()))
def test_bounds_hold_at_the_edge_and_one_past_it(model: type[Params], name: str, value: Any, fits: bool) -> None:
    extra = NEEDS.get((model, value), {}) if isinstance(value, str) else {}
    if fits:
        parsed(model, {name: value, **extra})
        return
    with pytest.raises(InvalidParams) as refused:
        parsed(model, {name: value, **extra})
    assert refused.value.reason_code == "invalid_params"
    assert name in refused.value.message


WRONG: dict[str, list[Any]] = {
    "integer": ["5", 1.5, True, [], {}, math.nan],
    "number": ["five", "0.5", True, [], {}, math.nan, math.inf],
    "string": [5, True, [], {}, math.nan],
    "boolean": ["false", 0, 1, True, [], {}],
    "object": ["x", 5, []],
    "array": ["x", 5, {}],
}


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        pytest.param(model, name, value, id=f"{model.__name__}-{name}-{index}")
        for model, name, arm in fields()
        for index, value in enumerate(WRONG[arm.get("type", "object")])
    ],
)
def test_wrong_json_types_are_refused_not_converted(model: type[Params], name: str, value: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        parsed(model, {name: value})
    assert name in refused.value.message


@pytest.mark.parametrize("model", SMALLEST, ids=lambda model: model.__name__)
def test_nothing_unknown_is_taken_at_any_depth(model: type[Params]) -> None:
    with pytest.raises(InvalidParams, match="surprise is not an argument"):
        parsed(model, {"surprise": 1})


@pytest.mark.parametrize(
    ("action", "named"),
    [
        ({"action": "click"}, "selector"),
        ({"action": "type", "selector": "#a"}, "valueSource"),
        ({"action": "type", "valueSource": "secret"}, "selector"),
        ({"action": "type", "selector": "#a", "valueSource": "secret"}, "valueName"),
        ({"action": "type", "selector": "#a", "valueSource": "secret", "value": "hunter2"}, "value"),
        ({"action": "press_key"}, "key"),
        ({"action": "dismiss", "fallbackSelectors": ["#a"]}, "fallbackSelectors"),
        ({**CLICK, "fallbackSelectors": ["#a"] * 6}, "fallbackSelectors"),
        ({**CLICK, "declaredPolarity": "yes"}, "declaredPolarity"),
        ({**CLICK, "waitMs": -1}, "waitMs"),
    ],
)
def test_an_action_says_all_that_it_takes_and_never_a_value(action: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParams, match=named):
        parse_arguments(given.ActionParams, action)


@pytest.mark.parametrize(
    "step",
    [
        {"type": "absent"},
        {"type": "present"},
        {"type": "fact"},
        {"type": "absent", "selector": "#a", "assertion": {"factKey": "page.title", "operator": "exists"}},
        {"type": "fact", "assertion": {"factKey": "page.titel", "operator": "exists"}},
        {"type": "obstruction_cleared", "threshold": 1.1},
        {"type": "absent", "selector": "#a", "fallbackSelectors": ["#b"]},
    ],
)
def test_a_verify_step_is_complete_and_has_no_fallbacks(step: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        parse_arguments(given.VerifyParams, step)


@pytest.mark.parametrize("name", ["type", "fingerprint", "playbook", "deprecated"])
def test_only_the_context_can_be_cleared(name: str) -> None:
    with pytest.raises(InvalidParams, match=name):
        parse_arguments(given.PatchParams, {name: None})
    cleared = parse_arguments(given.PatchParams, {"context": None})
    assert cleared.patch(None) == Patch(context=None)
    with pytest.raises(InvalidParams, match="at least one"):
        parse_arguments(given.PatchParams, {})
    with pytest.raises(InvalidParams, match="deprecated"):
        parse_arguments(given.PatchParams, {"deprecated": True})


@pytest.mark.parametrize("name", ["two words", "zeile\n", "\u202eevil", "caf\u00e9", ""])
def test_an_id_can_not_be_read_as_a_sentence(name: str) -> None:
    with pytest.raises(InvalidParams, match="id"):
        parsed(given.PhenomenonParams, {"id": name})


def test_an_entry_becomes_what_the_rules_work_on() -> None:
    sent = {
        "id": "cmp",
        "type": "consent_cmp",
        "fingerprint": {
            "signals": [SIGNAL, {"kind": "text", "match": " cookies ", "locale": "de-AT"}],
            "minConfidence": 1,
        },
        "playbook": {
            "policy": "custom",
            "actions": [
                {
                    **CLICK,
                    "fallbackSelectors": ["#x", "#x"],
                    "declaredPolarity": "reject",
                    "elementPrint": {"tag": "a"},
                },
                {"action": "type", "selector": "#q", "valueSource": "agent_supplied", "valueName": "query"},
                {"action": "wait", "waitMs": 50},
            ],
            "verify": [
                {"type": "obstruction_cleared", "threshold": 0},
                {"type": "fact", "assertion": {"factKey": "page.title", "operator": "eq", "expected": "Hi"}},
            ],
        },
        "context": {"device": "mobile", "routes": ["feed", "in/*"]},
    }
    wish = parse_arguments(given.PhenomenonParams, sent).wish()
    assert (wish.stable_id, wish.level) == ("cmp", 1)
    assert wish.fingerprint == Fingerprint((Signal("dom", "#bar"), Signal("text", "cookies", "de-AT")), 1.0)
    assert wish.context == Context("mobile", routes=("feed", "in/*"))
    assert wish.playbook == Playbook(
        "custom",
        (
            Action("click", "#no", ("#x",), polarity="reject"),
            Action("type", "#q", value_source="agent_supplied", value_name="query"),
            Action("wait", wait_ms=50),
        ),
        (
            VerifyStep("obstruction_cleared", threshold=0.0),
            VerifyStep("fact", assertion=Assertion("page.title", "eq", "Hi")),
        ),
    )
    least = parsed(given.PhenomenonParams, {})
    assert isinstance(least, given.PhenomenonParams)
    assert (least.wish().playbook, least.wish().context) == (KEPT, KEPT)


def test_a_derived_id_belongs_to_the_situation_and_not_to_the_order_of_its_signs() -> None:
    one, other = Signal("dom", "#a"), Signal("dom", "#b")
    first = given.derived_id("modal", Fingerprint((one, other)))
    assert first == given.derived_id("modal", Fingerprint((other, one), 0.9))
    assert first != given.derived_id("modal", Fingerprint((one,)))
    assert len(first) <= 128


def test_an_aliased_host_is_spelled_one_way() -> None:
    alias = parse_arguments(given.AliasParams, {"kind": "script_host", "value": " CDN.Example "}).alias()
    assert alias.value == "cdn.example"


def test_a_category_is_one_that_exists() -> None:
    assert given.known_categories(["banking", "health"]) == ["banking", "health"]
    with pytest.raises(ValueError, match="nonsense"):
        given.known_categories(["nonsense"])


def test_texts_are_found_wherever_they_are() -> None:
    assert json.dumps(sorted(given.texts_in({"a": ["b", {"c": "d"}], "e": 1}))) == '["a", "b", "c", "d", "e"]'
