"""One step is not the whole: what a single action proves about an entry that has several."""

from dataclasses import replace

import pytest

from nova_mcp.memory.knowledge.model import Action, Content, Context, Fingerprint, Phenomenon, Playbook, Signal
from nova_mcp.memory.promotion.gates.evidence_rules import controls, proof_of, speaks_for, weighed
from nova_mcp.memory.promotion.model import Mark
from promotion_kit import hint

CLICK, APPLY = "nova.click_selector", "nova.phenomenon_apply"
MARK = Mark(1, 1, "action_success", 1, "c1", "s1")


def entry(*actions, kind="custom"):
    playbook = Playbook("custom", actions) if actions else None
    return Phenomenon("p", Content(kind, Fingerprint((Signal("dom", "#x"),)), playbook), 1, 1, 1)


ONE = entry(Action("click", "#next"), Action("wait", "#done"), Action("click", " #next "))
TWO = entry(Action("click", "#next"), Action("click", "#discard"))
KEY = entry(Action("click", "#next"), Action("press_key", key="Enter"))
SIGN_IN = entry(Action("type", "#user", value_source="agent_supplied"), Action("click", "#enter"), kind="login_wall")


def test_the_same_control_pressed_again_is_one_and_waiting_is_none():
    assert [controls(one.content) for one in (entry(), ONE, TWO, KEY, SIGN_IN)] == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("kept", "tool", "kind", "expected"),
    [
        (ONE, CLICK, "action_success", True),
        (TWO, CLICK, "action_success", False),
        (TWO, CLICK, "tob_verified", False),
        (TWO, "nova.telemetry_report", "telemetry_confirmed", False),
        (TWO, "nova.guarded_login", "action_success", False),
        (KEY, CLICK, "action_success", False),
        (TWO, APPLY, "action_success", True),
        (TWO, "nova.dismiss_blockers", "blocker_dismissed", True),
        (SIGN_IN, CLICK, "action_success", False),
        (SIGN_IN, "nova.guarded_login", "action_success", True),
    ],
)
def test_several_steps_are_proven_only_together(kept, tool, kind, expected):
    assert speaks_for(kept.content, tool, kind) is expected
    assert weighed(kept, replace(MARK, kind=kind), tool).outcome == int(expected)


def test_what_speaks_against_an_entry_speaks_against_it_from_any_step():
    bad = replace(MARK, kind="action_failure", outcome=-1)
    assert weighed(TWO, bad, CLICK) == bad


def test_a_rule_for_reading_has_no_steps():
    assert weighed(hint(), MARK, CLICK) == MARK


NEVER = (
    entry(),
    entry(Action("wait", "#done")),
    entry(Action("click", "#yes", polarity="accept")),
    replace(ONE, content=replace(ONE.content, playbook=Playbook("warn", ONE.content.playbook.actions))),
)


@pytest.mark.parametrize("kept", NEVER)
def test_what_is_never_applied_is_proven_by_nobody_and_says_so(kept):
    assert proof_of(kept).possible is False
    assert weighed(kept, MARK, CLICK).outcome == (1 if kept is NEVER[1] else 0)
    assert "nova.pks_patch" in proof_of(kept).advice


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (ONE, 'act through "#next" with proof (nova.click_selector'),
        (TWO, "nova.phenomenon_apply with trial:true"),
        (replace(TWO, level=0), "nova.pks_upsert"),
        (replace(TWO, deprecated_reason="gone"), "nova.pks_upsert"),
        (SIGN_IN, "nova.guarded_login"),
        (replace(TWO, content=replace(TWO.content, type="consent_cmp")), "nova.dismiss_blockers"),
        (entry(Action("press_key", key="Escape")), "nova.phenomenon_apply with trial:true"),
        (hint(kind="result_item", selectors=("li.hit",)), 'entries of the list "li.hit"'),
    ],
)
def test_the_advice_names_the_way_that_counts(kept, words):
    assert words in proof_of(kept).advice
    assert proof_of(kept).possible


def test_advice_names_the_routes_that_an_entry_holds_on():
    there = replace(ONE, content=replace(ONE.content, context=Context(routes=("feed",))))
    assert proof_of(there).advice.endswith(" on feed.")


def test_nothing_proves_an_advertisement():
    assert proof_of(hint()).possible is False
