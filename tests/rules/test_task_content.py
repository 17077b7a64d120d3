"""What a task needs: which conditions there are, what is refused and why, and JSON that reads back as it was."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.tasks import content_codec as codec
from nova_mcp.memory.tasks.condition_rules import AskedCondition, BadCondition, settled_condition
from nova_mcp.memory.tasks.model import (
    Check,
    CompletionCondition,
    EvidencePolicy,
    Guidance,
    TaskContent,
    VerificationStep,
)
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.tasks import content_params
from nova_mcp.tools.tasks.content_params import AdHocContextParams

CATALOGUE = load_catalogue()
PAGES = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
TASK = {"taskType": "audit", "displayName": "Spelling", "goal": "Find typos", "completionCondition": PAGES}


def content_of(**given: Any) -> TaskContent:
    parsed = parse_arguments(AdHocContextParams, {**TASK, **given})
    parsed.check_content(CATALOGUE)
    return parsed.content()


def refused(**given: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        content_of(**given)
    return caught.value


def condition(coverage: str, metric: str, value: Any = None, kind: str = "item", **policy: Any) -> dict[str, Any]:
    base = {"coverageMode": coverage, "unitKind": kind, "stopMetric": metric, "stopValue": value}
    return {**base, **({"evidencePolicy": policy} if policy else {})}


# -- completion conditions


@pytest.mark.parametrize(
    ("asked", "stop"),
    [
        (condition("exhaustive", "all_units_processed"), None),
        (condition("threshold", "checked_units", 3), 3),
        (condition("threshold", "distinct_findings", 1), 1),
        (condition("exploratory", "checked_units"), 1),
        (condition("exploratory", "distinct_findings", 4), 4),
    ],
)
def test_a_condition_that_exists_is_taken(asked: dict[str, Any], stop: int | None) -> None:
    assert content_of(completionCondition=asked).completion_condition.stop_value == stop


@pytest.mark.parametrize(
    "asked",
    [
        condition("exhaustive", "all_units_processed", 1),
        condition("exhaustive", "checked_units"),
        condition("exhaustive", "distinct_findings", 2),
        condition("threshold", "all_units_processed"),
        condition("threshold", "all_units_processed", 2),
        condition("threshold", "checked_units"),
        condition("threshold", "checked_units", 0),
        condition("threshold", "distinct_findings", -1),
        condition("exploratory", "all_units_processed"),
        condition("exploratory", "checked_units", 0),
    ],
)
def test_any_other_combination_is_no_condition(asked: dict[str, Any]) -> None:
    assert refused(completionCondition=asked).reason_code == "invalid_completion_condition"


@pytest.mark.parametrize(
    "asked",
    [
        {**PAGES, "coverageMode": "complete"},
        {**PAGES, "unitKind": "pages"},
        {**PAGES, "stopMetric": "all"},
        {**PAGES, "stopValue": "3"},
        {**PAGES, "extra": 1},
        {key: value for key, value in PAGES.items() if key != "unitKind"},
        condition("threshold", "checked_units", 1, maxGapPercent=101),
        condition("threshold", "checked_units", 1, maxGapPercent=-1),
        condition("threshold", "checked_units", 1, mode="observed"),
        condition("threshold", "checked_units", 1, treatUnknownAs="maybe"),
    ],
)
def test_a_word_or_number_that_no_condition_knows_is_an_invalid_argument(asked: dict[str, Any]) -> None:
    assert refused(completionCondition=asked).reason_code == "invalid_params"


@pytest.mark.parametrize(
    ("kind", "mode"), [("page", "require_observed"), ("url", "require_observed"), ("file", "none"), ("item", "none")]
)
def test_what_can_be_observed_has_to_be_unless_said_otherwise(kind: str, mode: str) -> None:
    asked = condition("threshold", "checked_units", 1, kind)
    assert content_of(completionCondition=asked).completion_condition.evidence == EvidencePolicy(mode, 0, "gap")
    partly = condition("threshold", "checked_units", 1, kind, maxGapPercent=20, treatUnknownAs="pass")
    assert content_of(completionCondition=partly).completion_condition.evidence == EvidencePolicy(mode, 20, "pass")
    strictly = condition("threshold", "checked_units", 1, kind, mode="require_strong")
    assert content_of(completionCondition=strictly).completion_condition.evidence.mode == "require_strong"


@given(
    st.builds(
        AskedCondition,
        st.sampled_from(["exhaustive", "threshold", "exploratory"]),
        st.sampled_from(["page", "url", "selector", "file", "item", "state", "modal", "role"]),
        st.sampled_from(["all_units_processed", "checked_units", "distinct_findings"]),
        st.none() | st.integers(-3, 9),
    )
)
def test_every_settled_condition_is_one_of_the_table(asked: AskedCondition) -> None:
    settled = settled_condition(asked)
    if isinstance(settled, BadCondition):
        assert settled.message
    elif settled.exhaustive:
        assert (settled.stop_metric, settled.stop_value) == ("all_units_processed", None)
    else:
        assert settled.stop_metric in ("checked_units", "distinct_findings")
        assert settled.stop_value is not None
        assert settled.stop_value >= 1


# -- lists and sizes


def many(count: int, **entry: Any) -> list[dict[str, Any]]:
    return [
        {key: value.format(n) if isinstance(value, str) else value for key, value in entry.items()}
        for n in range(count)
    ]


LISTS = {
    "stableGuidance": (50, {"kind": "style", "text": "rule {}"}),
    "mandatoryChecks": (50, {"checkId": "c{}", "description": "d"}),
    "knownExceptions": (50, {"text": "exception {}"}),
}
STEP = {"stepId": "s{}", "tool": "read_text", "description": "d", "assertionType": "has_results"}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_is_taken_at_its_limit_and_refused_past_it(name: str) -> None:
    most, entry = LISTS[name]
    content_of(**{name: many(most, **entry)})
    error = refused(**{name: many(most + 1, **entry)})
    assert (error.reason_code, error.details["limit"], error.details["received"]) == ("size_limit", most, most + 1)


def test_twenty_steps_are_taken_and_no_more() -> None:
    assert len(content_of(verification={"steps": many(20, **STEP)}).verification) == 20
    assert refused(verification={"steps": many(21, **STEP)}).reason_code == "size_limit"


def test_a_profile_is_at_most_64_kib_of_json() -> None:
    step = {**STEP, "stepId": "s", "args": {"text": "ä" * 33_000}}
    assert refused(verification={"steps": [step]}).reason_code == "size_limit"
    content_of(verification={"steps": [{**step, "args": {"text": "a" * 33_000}}]})


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("mandatoryChecks", [{"checkId": "c", "description": "a"}, {"checkId": "c", "description": "b"}]),
        ("stableGuidance", [{"guidanceId": "g", "text": "a"}, {"guidanceId": "g", "text": "b"}]),
        ("mandatoryChecks", [{"checkId": "No", "description": "a"}]),
        ("mandatoryChecks", [{"checkId": "c", "description": "   "}]),
        ("mandatoryChecks", [{"checkId": "c", "description": "x" * 501}]),
        ("stableGuidance", [{"text": "x" * 501}]),
        ("stableGuidance", [{"kind": "style"}]),
        ("knownExceptions", [{"text": ""}]),
        ("knownExceptions", ["as text"]),
        ("knownExceptions", [{"text": "zero \x00 byte"}]),
    ],
)
def test_an_entry_that_is_out_of_shape_or_there_twice_is_an_invalid_argument(name: str, entries: Any) -> None:
    assert refused(**{name: entries}).reason_code == "invalid_params"


def test_text_is_measured_and_kept_without_the_space_around_it() -> None:
    found = content_of(displayName=f"  {'x' * 120}\n", knownExceptions=[{"text": "  a  "}, {"text": "a"}])
    assert (found.display_name, found.known_exceptions) == ("x" * 120, ("a",))


def test_guidance_without_an_id_gets_one_that_stays_the_same() -> None:
    once, again = (content_of(stableGuidance=[{"kind": "style", "text": "Short."}]) for _ in range(2))
    assert once == again
    twice = content_of(stableGuidance=[{"kind": "style", "text": "Short."}, {"kind": "style", "text": "Short. "}])
    assert twice == once


@pytest.mark.parametrize(
    "step",
    [
        {"assertionType": "field_match", "expectedValue": "("},
        {"assertionType": "field_match", "expectedValue": "x" * 201},
        {"assertionType": "field_match", "expectedValue": 5},
        {"assertionType": "field_match"},
        {"assertionType": "contains"},
        {"gate": "slow"},
        {"pageUrl": "not an address"},
        {"description": ""},
        {"args": "text"},
    ],
)
def test_a_step_that_can_not_be_judged_is_an_invalid_argument(step: dict[str, Any]) -> None:
    assert refused(verification={"steps": [{**STEP, "stepId": "s", **step}]}).reason_code == "invalid_params"


@pytest.mark.parametrize("pattern", ["(?i)" + "[\1-\uffff]" * 39, r"[\x00-\U0010ffff]", r"[\0-\377]", "[ä-"])
def test_patterns_that_are_dear_to_read_hold_nobody_up(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SimpleNamespace(compile=lambda text: pytest.fail(f"{text!r} was read"), error=re.error)
    monkeypatch.setattr(content_params, "re", reader)
    step = {**STEP, "stepId": "s", "assertionType": "field_match", "expectedValue": pattern}
    assert content_of(verification={"steps": [step]}).verification[0].expected_value == pattern


def test_a_step_names_a_tool_there_is() -> None:
    named = content_of(verification={"steps": [{**STEP, "stepId": "s", "tool": "nova_read_text"}]})
    assert named.verification[0].tool == "nova.read_text"
    error = refused(verification={"steps": [{**STEP, "stepId": "s", "tool": "nova.read_txt"}]})
    assert (error.reason_code, error.details["closest"][0]) == ("unknown_tool", "nova.read_text")


def test_the_domain_is_a_host() -> None:
    assert content_of(domain="https://www.Shop.example/cart").domain == "shop.example"
    assert refused(domain="co.uk").reason_code == "invalid_domain"
    assert refused(domain="two words.example").reason_code == "invalid_domain"


# -- the codec

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
policies = st.builds(
    EvidencePolicy,
    st.sampled_from(["none", "require_observed", "require_strong"]),
    st.integers(0, 100),
    st.sampled_from(["gap", "pass"]),
)
conditions = st.builds(
    CompletionCondition,
    st.sampled_from(["exhaustive", "threshold", "exploratory"]),
    st.sampled_from(["page", "file"]),
    st.sampled_from(["all_units_processed", "checked_units"]),
    st.none() | st.integers(1),
    policies,
)
contents = st.builds(
    TaskContent,
    task_type=texts,
    display_name=texts,
    goal=texts,
    completion_condition=conditions,
    domain=st.none() | texts,
    platform=st.none() | texts,
    task_kind=st.none() | st.sampled_from(["content_audit", "legal"]),
    stable_guidance=st.lists(st.builds(Guidance, texts, texts, texts), max_size=3).map(tuple),
    mandatory_checks=st.lists(st.builds(Check, texts, texts, st.booleans()), max_size=3).map(tuple),
    known_exceptions=st.lists(texts, max_size=3).map(tuple),
    verification=st.lists(
        st.builds(
            VerificationStep,
            step_id=texts,
            tool=texts,
            description=texts,
            assertion_type=st.sampled_from(["empty_result", "field_match"]),
            args=st.none() | st.dictionaries(st.text(max_size=5), values, max_size=3),
            gate=st.sampled_from(["fast", "deep"]),
            required=st.booleans(),
            target_ref=st.none() | texts,
            expected_value=values,
            page_url=st.none() | texts,
        ),
        max_size=2,
    ).map(tuple),
)


@given(contents)
def test_content_reads_back_as_it_was_written(content: TaskContent) -> None:
    text = codec.canonical(codec.content_json(content))
    assert codec.content_of(json.loads(text)) == content
    assert set(json.loads(text)) == set(codec.CONTENT_KEYS)
    assert text.isascii()


@given(contents, st.dictionaries(st.sampled_from(["currentScope", "variables", "tags"]), values))
def test_the_content_of_a_run_reads_back_from_its_whole_context(content: TaskContent, more: dict[str, Any]) -> None:
    context = codec.canonical({**codec.content_json(content), **more})
    assert codec.content_from_context(context) == content
