"""One step is not the whole: what a single action proves about an entry that has several."""

from dataclasses import replace

import pytest

from nova_mcp.knowledge.model import Action, Content, Fingerprint, Phenomenon, Playbook, Signal
from nova_mcp.promotion.model import Mark
from nova_mcp.promotion.whole import controls, speaks_for, weighed
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
