"""The measurement of repeat visits: its site tells controls apart, its agent reads answers, its truth is its own."""

import re

import pytest
from bench.practice_agent import Shown, lesson, shown_in, values_named
from bench.practice_pages import PAGES
from bench.practice_site import Swap, Visit, controls
from bench.practice_swaps import swaps_of
from bench.practice_tasks import TASKS
from bench.repeat_visits import saved


def test_an_answers_lines_are_read_as_controls():
    lines = [
        'e1 button "Next" #next',
        'e2 link "A \\"b\\"" role=link[name="A"] [offscreen]',
        'h1 "Office"',
        "more by scroll",
    ]
    assert shown_in(lines) == [Shown("button", "Next", "#next"), Shown("link", 'A \\"b\\"', 'role=link[name="A"]')]


def test_only_what_is_advised_for_reuse_is_taken_up_with_the_values_it_names():
    told = [
        {"kind": "gap", "phenomenonId": None, "text": "x"},
        {"kind": "reuse", "phenomenonId": "a", "text": "a (custom) holds now; phenomenon_apply runs it."},
        {"kind": "reuse", "phenomenonId": "b", "text": "b (custom); phenomenon_apply runs it with values lo, hi."},
    ]
    assert values_named({"pksAdvice": told}) == {"a": [], "b": ["lo", "hi"]}
    assert values_named({}) == {}


@pytest.mark.parametrize(
    ("did", "strays"),
    [
        ((), ()),
        (("open",), ()),
        (("open", "de"), ()),
        (("de",), ("de",)),
        (("open", "fr"), ("fr",)),
        (("open", "de", "de"), ("de",)),
    ],
)
def test_everything_but_the_next_control_of_the_plan_is_a_stray(did, strays):
    task = next(one for one in TASKS if one.path == "/start")
    assert task.strays(Visit(did=list(did))) == strays


def test_every_plan_can_be_carried_out_in_both_designs():
    for task in TASKS:
        for design in PAGES:
            own = [
                html for path, html in PAGES[design].items() if path == task.path or path.startswith(f"{task.path}/")
            ]
            meant = {one for html in own for one in controls(html).values()}
            assert {one.removeprefix("type:") for one in task.plan} <= meant, (task.name, design)


def test_controls_that_change_ids_keep_their_labels_and_meanings():
    html = PAGES["first"]["/catalog"]
    after = Swap("/catalog", "lo", "hi").applied(html)
    assert (controls(after)["lo"], controls(after)["hi"]) == ("hi", "lo")
    assert "<label for=hi>Lowest price" in after
    assert Swap("/catalog", "lo", "hi").applied(after) == html
    assert set(re.findall(r"data-k=\w+", after)) == set(re.findall(r"data-k=\w+", html))


def test_each_learned_control_changes_with_each_other_one_of_its_page_once():
    task = next(one for one in TASKS if one.path == "/start")
    found = swaps_of(task, ["#lang", "#lang-2"])
    pairs = {frozenset({one.one, one.other}) for one in found}
    assert len(found) == len(pairs) == 5


def test_lessons_hold_for_the_part_of_the_site_they_begin_in_and_no_value_is_in_them():
    task = next(one for one in TASKS if one.path == "/club")
    step = {"action": "type", "selector": "#f1", "valueSource": "agent_supplied", "valueName": "user"}
    made = lesson(task, task.parts[1], [step])
    assert made["context"] == {"routes": ["club"]}
    assert not any(value in str(made) for value in task.values.values())


def test_savings():
    assert (saved(10, 4), saved(0, 0)) == (0.6, 0.0)
