"""What a report on a verification step is worth, which kind a task is treated as, and what a run begins with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.tasks.coverage.rules import policy_of, recommended_scan
from nova_mcp.memory.tasks.effective_context import ListChange, Overrides, TooLarge, context_hash, effective_context
from nova_mcp.memory.tasks.kinds import KindVerdict, task_kind_policy, worded_kind
from nova_mcp.memory.tasks.model import (
    TASK_KINDS,
    CompletionCondition,
    EvidencePolicy,
    Guidance,
    TaskContent,
    VerificationStep,
)
from nova_mcp.memory.tasks.runs.seeds import seeded
from nova_mcp.memory.tasks.runs.verification_rules import (
    Absent,
    Found,
    StepReport,
    field_at,
    judge_steps,
    same_json,
    text_to_match,
)


def step(assertion: str = "has_results", **more) -> VerificationStep:
    return VerificationStep("s", "nova.read_text", "x", assertion, **more)


def report(result: object = "text", state: str = "passed", **more) -> StepReport:
    return StepReport("s", state, result, result_given=True, **more)


def judged(one: VerificationStep, said: StepReport | None, *, executed: bool = True, pattern=None):
    (found,) = judge_steps(
        [one], {} if said is None else {"s": said}, {"s": executed}, {"s": pattern} if pattern else {}
    )
    return found.state


EMPTY = (None, "", [], {})
FULL = (0, False, "x", [0], {"a": None}, " ")


@pytest.mark.parametrize("value", EMPTY)
def test_empty_results(value):
    assert judged(step("empty_result"), report(value)) == "passed"
    assert judged(step("has_results"), report(value)) == "failed"


@pytest.mark.parametrize("value", FULL)
def test_other_results(value):
    assert judged(step("empty_result"), report(value)) == "failed"
    assert judged(step("has_results"), report(value)) == "passed"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ("1", 1, False),
        (None, False, False),
        ([1, {"a": [None]}], [1, {"a": [None]}], True),
        ([1], [True], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_equality_is_strict_about_types(one, other, same):
    assert same_json(one, other) is same
    assert judged(step("field_equals", expected_value=other), report(one)) == ("passed" if same else "failed")


def test_fields_are_found_by_dotted_path():
    result = {"rows": [{"n": 1}, {"n": None}], "text": '{"inner": 2}'}
    assert field_at(result, "rows.0.n") == Found(1)
    assert field_at(result, "rows.1.n") == Found(None)
    assert field_at(result, "rows.2.n") == Absent()
    assert field_at(result, "rows.x") == Absent()
    assert field_at('{"inner": 2}', "inner") == Found(2)
    assert field_at("no json", "inner") == Absent()
    assert judged(step("empty_result", target_ref="gone"), report({})) == "failed"


@pytest.mark.parametrize("state", ["failed", "inconclusive", "skipped"])
def test_what_is_not_reported_as_passed_stands_as_reported(state):
    assert judged(step(), report("text", state)) == state


def test_a_step_without_report_is_skipped():
    assert judged(step(), None) == "skipped"


def test_passed_needs_a_result_and_a_call_on_record():
    assert judged(step(), StepReport("s", "passed")) == "inconclusive"
    assert judged(step(), report(), executed=False) == "inconclusive"
    (found,) = judge_steps([step()], {"s": report()}, {}, {})
    assert found.execution_observed is False
    assert "nova.read_text" in found.detail


@pytest.mark.parametrize(
    ("pattern", "state"),
    [("matched", "passed"), ("unmatched", "failed"), ("timed_out", "inconclusive"), ("unreadable", "inconclusive")],
)
def test_patterns_are_tried_elsewhere(pattern, state):
    assert judged(step("field_match", expected_value="x"), report(), pattern=pattern) == state


def test_what_a_pattern_is_tried_on():
    one = step("field_match", expected_value="^a", target_ref="t")
    assert text_to_match(one, report({"t": "abc"})) == ("^a", "abc")
    assert text_to_match(one, report({"t": 12})) == ("^a", "12")
    assert text_to_match(one, report({"t": "abc"}, "failed")) is None
    assert text_to_match(one, report({})) is None


# -- kinds

KINDS = st.none() | st.sampled_from(TASK_KINDS)
STRICT = {"min2": 0, "min3": 1, "all": 2}


@pytest.mark.parametrize(
    ("declared", "profile", "words", "expected"),
    [
        (None, None, "Look around", KindVerdict(None, "default", "all")),
        ("ui_smoke", None, "Look around", KindVerdict("ui_smoke", "declared", "min2")),
        ("ui_smoke", "route_inventory", "Look around", KindVerdict("route_inventory", "profile", "min3")),
        ("ui_smoke", None, "Find typos on all  pages", KindVerdict("content_audit", "wording", "all")),
        ("security_review", "legal", "GDPR", KindVerdict("security_review", "declared", "all")),
        (None, "exploratory", "Barrierefreiheit prüfen", KindVerdict("accessibility", "wording", "all")),
    ],
)
def test_the_strictest_kind_wins(declared, profile, words, expected):
    assert task_kind_policy(declared, profile, words) == expected


STEMS = (
    *(
        "spelling",
        "typos",
        "translations",
        "localised",
        "i18n",
        "content",
        "copy",
        "gdpr",
        "compliance",
        "accessibility",
    ),
    *("wcag", "legal", "exhaustive", "every page", "all pages", "Rechtschreibung", "Tippfehler", "Übersetzungen"),
    *("Datenschutz", "DSGVO", "Impressum", "AGB", "Barrieren", "alle Seiten", "jede Seite", "Produktübersetzung"),
)


@pytest.mark.parametrize("word", STEMS)
def test_words_that_speak_of_every_page_force_all(word):
    assert task_kind_policy("ui_smoke", "exploratory", f"Check the {word} now").policy == "all"


@pytest.mark.parametrize("text", ["Open the shop", "Photocopy", "Magbar", "misspelling", "allpages"])
def test_other_words_say_nothing(text):
    assert worded_kind(text) is None


@given(KINDS, KINDS, st.sampled_from(["shop", "typo check", "wcag"]))
def test_a_declared_kind_never_loosens(declared, profile, words):
    found = task_kind_policy(declared, profile, words)
    for one in (declared, profile):
        if one is not None:
            assert STRICT[found.policy] >= STRICT[policy_of(one)]
    assert policy_of(found.effective) == found.policy
    if found.policy == "all":
        # What is recommended has to be accepted.
        assert recommended_scan(found.effective) != "nova_structured_dom_v1"


# -- what a run begins with

CONDITION = CompletionCondition("exhaustive", "item", "all_units_processed", None, EvidencePolicy("none"))
CONTENT = TaskContent(
    "audit",
    "Audit",
    "Look",
    CONDITION,
    stable_guidance=(Guidance("g1", "style", "Be calm"), Guidance("g2", "style", "Be quick")),
    known_exceptions=("login", "cookie bar"),
)


def test_context_is_merged_in_order():
    overrides = Overrides(
        scope_patch={"route": "/b", "locale": None, "tags": ["x", "y"]},
        variables={"v": 2, "w": None},
        stable_guidance=ListChange(("Be kind", "Be calm"), ("g2",)),
        known_exceptions=ListChange(("popup",), ("login",)),
        scope_lists={"tags": ListChange(("z",), ("x",)), "sections": ListChange(("top",))},
    )
    merged = effective_context(CONTENT, {"route": "/a", "locale": "de", "variables": {"v": 1, "w": 1}}, overrides)
    assert merged.scope == {"route": "/b", "variables": {"v": 2}, "tags": ["y", "z"], "sections": ["top"]}
    assert [one.text for one in merged.content.stable_guidance] == ["Be calm", "Be kind"]
    assert merged.content.known_exceptions == ("cookie bar", "popup")
    assert merged.content.completion_condition == CONDITION
    assert merged.hash == context_hash(merged.text)


def test_the_same_context_has_the_same_hash():
    one = effective_context(CONTENT, {"route": "/a", "locale": "de"}, Overrides())
    other = effective_context(CONTENT, {"locale": "de", "route": "/a"}, Overrides())
    assert one.hash == other.hash
    assert one.hash != effective_context(CONTENT, {"locale": "en", "route": "/a"}, Overrides()).hash


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (Overrides(stable_guidance=ListChange(tuple(map(str, range(49))))), "stableGuidance"),
        (Overrides(known_exceptions=ListChange(tuple(map(str, range(49))))), "knownExceptions"),
        (Overrides(variables={"v": "x" * 8192}), "currentScope"),
    ],
)
def test_what_grows_too_large_is_told(overrides, what):
    found = effective_context(CONTENT, {}, overrides)
    assert isinstance(found, TooLarge)
    assert found.what == what
    assert found.size > found.most


# -- seeding


def urls(number: int) -> list[str]:
    return [f"https://shop.example/{n}" for n in range(number)]


@pytest.mark.parametrize(
    ("given_urls", "freeze", "written", "truncated", "discovery"),
    [
        ([], True, 0, False, "unknown"),
        (["mailto:x"], True, 0, False, "unknown"),
        (urls(2), False, 2, False, "partial"),
        (urls(2), True, 2, False, "frozen"),
        (urls(1000), True, 1000, False, "frozen"),
        (urls(1001), True, 1000, True, "partial"),
        ([*urls(1000), "https://shop.example/0#x"], True, 1000, False, "frozen"),
    ],
)
def test_seeding_freezes_only_what_is_whole(given_urls, freeze, written, truncated, discovery):
    found = seeded(given_urls, None, freeze=freeze)
    assert (len(found.units), found.truncated, found.discovery) == (written, truncated, discovery)


def test_seeding_says_what_it_left_out():
    found = seeded(
        ["/a", "ftp://x", "https://shop.example/" + "y" * 3000, "/a?utm_source=1"], "https://shop.example", freeze=False
    )
    assert [one.url for one in found.units] == ["https://shop.example/a"]
    assert [one.reason for one in found.skipped] == ["unsupported_scheme", "url_too_long"]
    many = seeded([f"ftp://{n}" for n in range(30)], None, freeze=False)
    assert len(many.json["skipped"]) == 20
