"""Whether a playbook may run on a page, and what stops each of its steps."""

from dataclasses import replace

import pytest

from nova_mcp.core.page.control_labels import ControlFacts
from nova_mcp.memory.knowledge.apply_rules import (
    Go,
    LiveTarget,
    NotApplied,
    Plan,
    Step,
    Stop,
    Wish,
    all_proven,
    before_step,
    choose,
    plan,
    still_looks_like,
    worked,
)
from nova_mcp.memory.knowledge.matching.fingerprints import match, told
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    ElementPrint,
    Fingerprint,
    Health,
    Phenomenon,
    Playbook,
    Signal,
)
from nova_mcp.tools.knowledge.apply_result import ApplyResult, VerifyResult

NOW = 1_800_000_000_000
PRINT = Fingerprint((Signal("dom", "#bar"),))
HERE, AWAY = match(PRINT, [told("#bar")]), match(PRINT, [])
PRESS = Playbook("dismiss", (Action("click", "#no"), Action("wait")))
DEFAULT = Wish()
TRIAL = Wish(trial=True)


def entry(level=2, *, kind="modal", playbook=PRESS, health=None, debt=0.0, retired=None):
    return Phenomenon(
        "p",
        Content(kind, PRINT, playbook),
        level,
        NOW,
        NOW,
        health=health or Health(),
        drift_debt=debt,
        deprecated_reason=retired,
    )


def with_action(**more):
    return Playbook("custom", (Action("click", "#no", **more),))


INPUT = Playbook("custom", (Action("type", "#q", value_source="agent_supplied", value_name="query"),))
SECRET = Playbook("custom", (Action("type", "#q", value_source="secret", value_name="pin"),))


@pytest.mark.parametrize(
    ("one", "wish", "found", "code"),
    [
        (entry(), DEFAULT, HERE, None),
        (entry(), DEFAULT, AWAY, "pks.not_present"),
        (entry(0), TRIAL, HERE, "pks.not_active"),
        (entry(1), DEFAULT, HERE, "pks.not_active"),
        (entry(1), TRIAL, HERE, None),
        (entry(1, kind="consent_cmp"), TRIAL, HERE, "pks.trial_not_allowed"),
        (entry(1, kind="login_wall"), TRIAL, HERE, "pks.trial_not_allowed"),
        (entry(kind="login_wall"), TRIAL, HERE, None),
        (entry(retired="old"), DEFAULT, HERE, "pks.not_active"),
        (entry(retired="old"), TRIAL, HERE, "pks.not_active"),
        (entry(health=Health(quarantined_at_ms=1)), DEFAULT, HERE, "pks.quarantined"),
        (entry(1, health=Health(quarantined_at_ms=1)), TRIAL, HERE, "pks.quarantined"),
        (entry(playbook=None), DEFAULT, HERE, "pks.empty_playbook"),
        (entry(playbook=Playbook("dismiss")), DEFAULT, HERE, "pks.empty_playbook"),
        (entry(playbook=replace(PRESS, policy="warn")), DEFAULT, HERE, "pks.empty_playbook"),
        (entry(playbook=replace(PRESS, policy="ignore")), DEFAULT, HERE, "pks.empty_playbook"),
        (entry(playbook=replace(PRESS, policy="accept")), DEFAULT, HERE, "pks.accept_refused"),
        (entry(playbook=with_action(polarity="accept"), kind="consent_cmp"), DEFAULT, HERE, "pks.accept_refused"),
        (entry(playbook=with_action(polarity="reject"), kind="consent_cmp"), DEFAULT, HERE, None),
        (entry(playbook=INPUT), DEFAULT, HERE, "pks.value_required"),
        (entry(playbook=INPUT), Wish(values=frozenset({"query"})), HERE, None),
        (entry(playbook=SECRET), DEFAULT, HERE, None),
        (entry(debt=0.4), DEFAULT, HERE, "pks.drift_blocked"),
        (entry(debt=0.399), DEFAULT, HERE, None),
        (entry(debt=0.4), Wish(drift_mode="warn"), HERE, None),
        (entry(debt=0.4), DEFAULT, AWAY, "pks.not_present"),
    ],
)
def test_a_playbook_runs_only_where_nothing_stands_against_it(one, wish, found, code):
    done = plan(one, found, wish, NOW)
    assert isinstance(done, Plan) is (code is None)
    if isinstance(done, NotApplied):
        assert done.problem.code == code


def test_a_plan_says_what_it_is():
    done = plan(entry(1), HERE, TRIAL, NOW)
    assert ([step.index for step in done.steps], done.trial, done.drift, done.cut) == ([0, 1], True, "pass", False)
    assert plan(entry(debt=0.5), HERE, Wish(drift_mode="warn"), NOW).drift == "warn"
    cut = plan(entry(), HERE, Wish(max_steps=1), NOW)
    assert (len(cut.steps), cut.cut, cut.trial) == (1, True, False)


@pytest.mark.parametrize(
    ("matches", "expected"),
    [
        ({"#a": 1, "#b": 1}, Go("#a")),
        ({"#a": 0, "#b": 1}, Go("#b", used_fallback=True)),
        ({"#a": 2, "#b": 1}, Go("#b", used_fallback=True)),
        ({"#a": 2, "#b": 0}, None),
        ({}, None),
    ],
)
def test_the_first_selector_that_names_one_element_is_used(matches, expected):
    found = choose(Step(0, Action("click", "#a", ("#b",))), matches)
    assert found == expected if expected else isinstance(found, Stop)


def test_a_step_without_a_selector_needs_no_element():
    assert choose(Step(0, Action("press_key", key="Escape")), {}) == Go(None)


REJECT = ElementPrint("button", text="Reject all", id="no", role="button", classes=("btn",))


@pytest.mark.parametrize(
    ("seen", "same"),
    [
        (REJECT, True),
        (replace(REJECT, classes=("css-1a2b3c",), id="x1y2z3"), True),
        (replace(REJECT, text="Reject All"), True),
        (replace(REJECT, text="Accept all"), False),
        (replace(REJECT, text="Buy now"), False),
        (replace(REJECT, text=""), False),
        (replace(REJECT, tag="input", type="text", role=""), False),
        (replace(REJECT, tag="a"), True),
    ],
)
def test_an_element_that_looks_different_is_not_pressed(seen, same):
    assert (still_looks_like(REJECT, seen) is not None) is same
    step = Step(0, Action("click", "#no", element=REJECT))
    problem = before_step(step, LiveTarget(seen), "modal", has_contract=False)
    assert (problem is None) is same
    assert same or problem.code == "pks.element_changed"


def test_an_icon_is_known_by_its_other_names():
    icon = ElementPrint("button", aria_label="Close", classes=("x",))
    assert still_looks_like(icon, replace(icon, classes=("y",))) is not None
    assert still_looks_like(icon, replace(icon, aria_label="Delete")) is None
    field = ElementPrint("input", type="text", name="q", id="search")
    assert still_looks_like(field, replace(field, id="search-box")) is not None
    assert still_looks_like(field, replace(field, name="iban", id="iban")) is None


def test_consent_is_never_given_whatever_was_declared():
    step = Step(0, Action("click", "#no", polarity="reject"))
    target = LiveTarget(ElementPrint("button", text="Accept all"), ControlFacts(("Accept all",)))
    assert before_step(step, target, "consent_cmp", has_contract=True).code == "pks.accept_refused"


def test_a_commit_point_needs_a_contract():
    step = Step(0, Action("click", "#no", element=ElementPrint("button", text="Pay")))
    target = LiveTarget(ElementPrint("button", text="Pay"), commits='says "pay"')
    assert before_step(step, target, "custom", has_contract=False).code == "guarded_commit.missing_contract"
    assert before_step(step, target, "custom", has_contract=True) is None


@pytest.mark.parametrize(
    ("polarity", "label", "pressed"),
    [("reject", "Reject all", True), ("reject", "Read more", False), (None, "Reject all", False)],
)
def test_without_a_print_only_a_control_that_says_what_it_should_is_pressed(polarity, label, pressed):
    step = Step(0, Action("click", "#no", polarity=polarity))
    target = LiveTarget(ElementPrint("button", text=label), ControlFacts((label,)))
    problem = before_step(step, target, "modal", has_contract=True)
    assert (problem is None) is pressed
    assert pressed or problem.code == "pks.element_changed"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((False,), (True,), True),
        ((None,), (True,), True),
        ((True, False), (True, True), True),
        ((True,), (True,), False),
        ((False,), (None,), False),
        ((), (), False),
    ],
)
def test_a_result_counts_only_as_news(before, after, expected):
    assert worked(before, after) is expected


@pytest.mark.parametrize(
    ("results", "expected"), [([], False), ([True], True), ([True, None], False), ([True, False], False)]
)
def test_only_what_was_verified_has_worked(results, expected):
    assert all_proven(results) is expected


def test_all_missing_values_are_asked_for_at_once_and_a_person_for_theirs():
    actions = tuple(
        Action("type", f"#{name}", value_source=source, value_name=name)
        for name, source in (("user", "agent_supplied"), ("code", "user_prompt"), ("pin", "secret"))
    )
    done = plan(entry(playbook=Playbook("custom", actions)), HERE, DEFAULT, NOW)
    assert isinstance(done, NotApplied)
    assert done.problem.message == 'values must hold "user", "code". "code" is for a person to say: ask your user.'


@pytest.mark.parametrize(
    ("steps", "checks", "told"),
    [
        (0, [], "bar: 0 steps done · 0 of 0 checks hold · verified"),
        (1, [True], "bar: 1 step done · 1 of 1 check holds · verified"),
        (2, [True, False], "bar: 2 steps done · 1 of 2 checks hold · verified"),
    ],
)
def test_the_answer_counts_as_people_do(steps, checks, told):
    results = [VerifyResult(type="absent", passed=one) for one in checks]
    answer = ApplyResult.model_construct(
        phenomenon_id="bar",
        steps_executed=steps,
        verify_results=results,
        verify_state="verified",
        reason_code=None,
        message=None,
        hint=None,
    )
    assert answer.text() == told
