"""Every published bound of every tool: accepted at the edge, refused one past it, without any page."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import accepted_names, parse_arguments
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.spec import ToolSpec

CATALOGUE = load_catalogue()

_SIGNAL = {"kind": "dom", "match": "#bar"}
_CHANGE = {"instanceId": "0" * 32, "expectedInstanceRev": 0, "clientEventId": "e"}
# The smallest call of every tool; a tool that is missing here fails the first test below.
SMALLEST: dict[str, dict[str, Any]] = {
    "ask_human": {"why": "log in"},
    "back": {},
    "call": {"tool": "nova.tabs"},
    "capture_screenshot": {},
    "choose_option": {"selector": "#size", "text": "x"},
    "dismiss_blockers": {},
    "domain_note": {"domain": "a.example", "key": "K", "value": "x"},
    "domain_note_ack": {"domain": "a.example", "key": "K"},
    "domain_note_delete": {"domain": "a.example", "key": "K"},
    "domain_notes_list": {"domain": "a.example"},
    "click_selector": {"selector": "#go"},
    "coverage_scan": {"scanId": "nova_full_page_text_v1"},
    "eval": {"expression": "1"},
    "explain": {"scope": "shop.test", "stableId": "lcj_1"},
    "extract_table": {},
    "file_upload": {"selector": "#file", "paths": ["a.txt"]},
    "forward": {},
    "get_instructions": {},
    "goal_register": {"op": "query"},
    "guarded_login": {},
    "guarded_send_message": {"text": "x"},
    "guarded_submit_form": {},
    "guarded_switch_model": {"model": "x"},
    "guarded_switch_sandbox": {"workspace": "x"},
    "hover": {"selector": "#go"},
    "input_key": {"key": "Enter"},
    "learn_feedback": {},
    "learn_generate": {"scope": "shop.test"},
    "learn_promote": {"scope": "shop.test"},
    "learn_resolve_opportunity": {"opportunityId": "sem:x", "verdict": "defer"},
    "learn_suggest": {},
    "memory_add_candidate": {"targetId": "tab_1", "component": "consent", "claim": "It closes."},
    "memory_forget": {"memoryId": 1},
    "memory_note": {"content": "x"},
    "memory_recall": {},
    "memory_stats": {},
    "navigate": {"url": "http://127.0.0.1/"},
    "ok_facts": {},
    "ok_observe": {"claims": [{"signalKey": "core.ui.theme", "value": "dark"}]},
    "ok_signal_schema": {},
    "operator_notes_delete": {"id": "0" * 32},
    "operator_notes_list": {},
    "operator_notes_query": {"keywords": ["x"]},
    "operator_notes_store": {"content": "x", "tags": ["x"]},
    "page_info": {},
    "perceive": {},
    "perceive_snapshot_query": {"perceptionId": "tab_1.p1"},
    "phenomenon_apply": {"phenomenonId": "p"},
    "pks_deprecate": {"scope": "a.example", "phenomenonId": "p", "reason": "gone"},
    "pks_get": {"scope": "a.example"},
    "pks_list": {},
    "pks_match": {},
    "pks_patch": {"scope": "a.example", "phenomenonId": "p", "patch": {"deprecated": False}},
    "pks_platform_get": {"stableId": "onetrust"},
    "pks_platform_list": {},
    "pks_platform_seed": {"stableId": "acme", "displayName": "Acme"},
    "pks_upsert": {"scope": "a.example", "phenomenon": {"type": "custom", "fingerprint": {"signals": [_SIGNAL]}}},
    "pks_upsert_hint": {"scope": "a.example", "domainHint": {"kind": "noise_region", "selectors": ["#ad"]}},
    "read_text": {},
    "reload": {},
    "revalidate": {"targetId": "tab_1"},
    "run_sequence": {"steps": [{"tool": "nova.perceive"}]},
    "sandbox_create": {},
    "sandbox_delete": {"sandboxId": "A", "confirm": True},
    "sandbox_list": {},
    "scroll_smart": {"selector": "#go"},
    "search_text": {"text": "x"},
    "set_active_tab": {"targetId": "tab_1"},
    "tab_claim": {},
    "tab_close": {},
    "tab_new": {},
    "tab_release": {},
    "tabs": {},
    "task_guidance_log_add": {
        "guidanceKind": "style",
        "sourceKind": "user",
        "payload": {"text": "Short."},
        "profileId": "abc",
    },
    "task_guidance_logs": {},
    "task_match": {"taskDescription": "xyz"},
    "task_profile_get": {"profileId": "abc"},
    "task_profile_upsert": {},
    "task_profiles": {},
    "task_promote_guidance": {"guidanceLogId": "0" * 32, "profileId": "abc"},
    "task_promotion_candidates": {"profileId": "abc"},
    "task_search": {"query": "x"},
    "telemetry_report": {"scope": "a.example", "phenomenonId": "p", "outcome": "success"},
    "task_instance_abort": {**_CHANGE, "reason": "gone"},
    "task_instance_complete": _CHANGE,
    "task_instance_create": {"profileId": "abc"},
    "task_instance_get": {"instanceId": "0" * 32},
    "task_instance_progress": _CHANGE,
    "task_instance_verify": {"instanceId": "0" * 32},
    "tools_bundle": {},
    "type_selector": {"selector": "#name", "text": "x"},
    "type_selector_secret": {"selector": "#name", "secretName": "shop"},
    "wait_for_selector": {"selector": "#go"},
}

# Arguments that only make sense together with another one.
COMPANIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("click_selector", "promptText"): {"onDialog": "accept"},
    ("input_key", "promptText"): {"onDialog": "accept"},
    ("type_selector", "promptText"): {"onDialog": "accept"},
    ("guarded_submit_form", "promptText"): {"onDialog": "accept"},
}
_CREATE = {"op": "create", "summary": "x"}
_ANNOTATE = {"op": "annotate", "goalId": "g", "content": "x"}
COMPANIONS |= {
    ("goal_register", name): _CREATE
    for name in (
        *("summary", "mode", "preconditions", "ownerAgentId", "sidecarSessionId", "leaseMs", "steps"),
        *("preconditionsJson", "ownerAgent", "ownerSession", "leaseTimeoutMs"),
    )
}
COMPANIONS |= {("goal_register", name): _ANNOTATE for name in ("content", "source")}
COMPANIONS[("goal_register", "state")] = {"op": "close", "goalId": "g"}
COMPANIONS[("tab_release", "finalizeOutboxJobType")] = {"finalizeDecision": "commit"}
# What one value of an argument asks for.
VALUE_COMPANIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("goal_register", "create"): _CREATE,
    ("goal_register", "close"): {"goalId": "g", "state": "failed"},
    ("goal_register", "annotate"): _ANNOTATE,
}
COMPANIONS[("task_promote_guidance", "decision")] = {"reason": "Not ours."}
VALUE_COMPANIONS[("perceive_snapshot_query", "search")] = {"query": "x"}
VALUE_COMPANIONS[("perceive_snapshot_query", "read_ref")] = {"ref": "e1"}
REPLACES: dict[str, str] = {"ref": "selector"}
# Of these exactly one is given.
WISHES = {
    "choose_option": frozenset({"text", "value", "index", "texts", "values", "checked"}),
    "scroll_smart": frozenset({"deltaY", "deltaX", "to", "selector", "ref"}),
}


def arm_of(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    arms = [arm for arm in field.get("anyOf", [field]) if arm.get("type") != "null"]
    arm = arms[0]
    return defs[arm["$ref"].rsplit("/", 1)[1]] if "$ref" in arm else arm


def arguments() -> Iterator[tuple[ToolSpec, str, dict[str, Any]]]:
    for spec in CATALOGUE:
        schema = spec.params.model_json_schema(by_alias=True)
        for name, field in schema.get("properties", {}).items():
            yield spec, name, arm_of(field, schema.get("$defs", {}))


def call_with(spec: ToolSpec, name: str, value: Any) -> dict[str, Any]:
    base = dict(SMALLEST[spec.name])
    if (replaced := REPLACES.get(name)) is not None:
        base.pop(replaced, None)
    if name in (wishes := WISHES.get(spec.name, frozenset())):
        base = {key: given for key, given in base.items() if key not in wishes}
    if name in ("frameId", "nth"):
        base.setdefault("selector", "#go")
    if name == "op" and isinstance(value, str):
        base |= VALUE_COMPANIONS.get((spec.name, value), {})
    return {**base, **COMPANIONS.get((spec.name, name), {}), name: value}


def text_of(name: str, length: int) -> str:
    return ("http://127.0.0.1/" + "x" * length)[:length] if name in ("url", "startUrl", "targetUrl") else "x" * length


def edges() -> Iterator[Any]:
    for spec, name, arm in arguments():
        if arm.get("type") in ("integer", "number"):
            inside = [arm[key] for key in ("minimum", "maximum") if key in arm]
            outside = [arm[key] + step for key, step in (("minimum", -1), ("maximum", 1)) if key in arm]
        elif arm.get("type") == "string" and "enum" not in arm and "pattern" not in arm:
            inside = [text_of(name, arm[key]) for key in ("minLength", "maxLength") if key in arm]
            outside = [
                text_of(name, arm[key] + step)
                for key, step in (("minLength", -1), ("maxLength", 1))
                if key in arm and arm[key] + step >= 0
            ]
        else:
            inside, outside = list(arm.get("enum", [])), ["not-one-of-these"] if "enum" in arm else []
        for index, value in enumerate(inside):
            yield pytest.param(spec, name, value, True, id=f"{spec.name}-{name}-edge{index}")
        for index, value in enumerate(outside):
            yield pytest.param(spec, name, value, False, id=f"{spec.name}-{name}-past{index}")


WRONG_TYPES: dict[str, list[Any]] = {
    "integer": ["5", 1.5, True, [], {}, math.nan],
    # A number in a string is taken where a number is meant, and only there.
    "number": ["five", True, [], {}, math.nan, math.inf],
    "string": [5, True, [], {}, math.nan],
    "boolean": ["true", 1, 0, [], {}],
    "object": ["x", 5, []],
    "array": ["x", 5, {}],
}


def wrong_types() -> Iterator[Any]:
    for spec, name, arm in arguments():
        kind = arm.get("type", "object")
        for index, value in enumerate(WRONG_TYPES[kind]):
            yield pytest.param(spec, name, value, id=f"{spec.name}-{name}-{kind}{index}")


def test_every_tool_has_a_smallest_call() -> None:
    assert set(SMALLEST) == set(CATALOGUE.tools)


@pytest.mark.parametrize("spec", list(CATALOGUE), ids=lambda spec: spec.name)
def test_the_smallest_call_is_accepted_and_meta_is_welcome(spec: ToolSpec) -> None:
    parsed = parse_arguments(spec.params, SMALLEST[spec.name])
    assert parse_arguments(spec.params, {**SMALLEST[spec.name], "_meta": {"any": "thing"}}) == parsed


@pytest.mark.parametrize(("spec", "name", "value", "fits"), list(edges()))
def test_bounds_hold_at_the_edge_and_one_past_it(spec: ToolSpec, name: str, value: Any, fits: bool) -> None:
    if fits:
        parse_arguments(spec.params, call_with(spec, name, value))
        return
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(spec.params, call_with(spec, name, value))
    assert name in refused.value.message
    assert len(refused.value.message) < 600


@pytest.mark.parametrize(("spec", "name", "value"), list(wrong_types()))
def test_wrong_json_types_are_refused_not_converted(spec: ToolSpec, name: str, value: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(spec.params, call_with(spec, name, value))
    assert name in refused.value.message


# Older clients send more than is asked for; the contract lets them.
TOLERANT = "learn_resolve_opportunity"


@pytest.mark.parametrize("spec", [one for one in CATALOGUE if one.name != TOLERANT], ids=lambda spec: spec.name)
def test_an_unknown_argument_is_named_with_the_accepted_ones(spec: ToolSpec) -> None:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(spec.params, {**SMALLEST[spec.name], "surprise": 1})
    assert refused.value.reason_code == "invalid_params"
    assert refused.value.error_code == -32602
    assert "surprise is not an argument" in refused.value.message
    for name in accepted_names(spec.params):
        assert name in refused.value.message


@pytest.mark.parametrize("agent_id", ["", "a b", "x" * 65, "ä", "a\nb", "a/b"])
def test_an_agent_id_of_the_wrong_shape_is_refused(agent_id: str) -> None:
    with pytest.raises(InvalidParams):
        parse_arguments(CATALOGUE.tools["tabs"].params, {"agentId": agent_id})


@pytest.mark.parametrize("name", ["click_selector", "type_selector"])
@pytest.mark.parametrize(
    "given", [{}, {"selector": "#a", "ref": "e1"}, {"ref": "12"}, {"ref": "e0"}, {"ref": "e1", "nth": 1}]
)
def test_acting_needs_exactly_one_element(name: str, given: dict[str, Any]) -> None:
    base = {"text": "x"} if name == "type_selector" else {}
    with pytest.raises(InvalidParams):
        parse_arguments(CATALOGUE.tools[name].params, {**base, **given})


@pytest.mark.parametrize("url", ["example.com", "/path", "", "  ", "localhost:8080", "//host/x"])
@pytest.mark.parametrize("name", ["navigate", "tab_new"])
def test_only_absolute_addresses_are_opened(name: str, url: str) -> None:
    with pytest.raises(InvalidParams, match="url"):
        parse_arguments(CATALOGUE.tools[name].params, {"url": url})


def test_a_huge_string_is_refused_with_a_short_message() -> None:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(CATALOGUE.tools["navigate"].params, {"url": "x" * 10_000_000})
    assert "10000000 characters" in refused.value.message
    assert len(refused.value.message) < 300


def test_prompt_text_needs_accept() -> None:
    with pytest.raises(InvalidParams, match="promptText"):
        parse_arguments(CATALOGUE.tools["click_selector"].params, {"selector": "#a", "promptText": "x"})
