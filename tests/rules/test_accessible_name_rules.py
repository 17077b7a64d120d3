"""How Nova's names are held against Chromium's: what counts as the same, as meant, and as wrong."""

import re
from pathlib import Path

import pytest
from bench.names import Tally, controls_page, golden_differences, summary_of
from bench.names_oracle import (
    REASONS,
    Pair,
    Said,
    name_difference,
    role_difference,
    role_of_kind,
    state_difference,
    states_told,
)
from bench.names_pages import chosen
from hypothesis import given
from hypothesis import strategies as st

NOTHING: frozenset[str] = frozenset()


def said(role: str = "button", name: str = "", states: frozenset[str] = NOTHING, inked: str = "") -> Said:
    return Said(role, name, states, inked)


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("button", "button"),
        ("image", "img"),
        ("LabelText", "label"),
        ("DisclosureTriangle", "button"),
        ("Date", "textbox"),
        ("Legend", "generic"),
        ("none", "generic"),
        ("treegrid", "treegrid"),
    ],
)
def test_a_kind_of_chromium_is_one_role(kind: str, role: str):
    assert role_of_kind(kind) == role


@pytest.mark.parametrize(
    ("tag", "nova", "chromium", "why"),
    [
        ("button", said(name="Save"), said(name="Save"), None),
        ("button", said(name="Call us"), said(name="CALL US"), "letters by style"),
        ("button", said(name="Home"), said(name="\uf015 Home"), "icon glyph"),
        ("button", said(name=""), said(name="\uf015"), "icon glyph"),
        ("tr", said("row", "A B"), said("row"), "row named by content"),
        ("label", said("label", "Street"), said("label"), "label named by content"),
        ("figure", said("figure", "Growth"), said("figure"), "figure named by its caption"),
        ("dt", said("term"), said("term", "Word"), "term without name"),
        ("button", said(name="Pay", inked="Pay all"), said(name="Pay all"), "text without ink"),
        ("button", said(name="Pay", inked="Pay"), said(name="Pay all"), ""),
        ("button", said(name="Save"), said(name=""), ""),
        ("button", said(name="x" * 199 + "…"), said(name="X" * 300), "letters by style"),
    ],
)
def test_a_difference_of_names_has_its_rule_or_none(tag: str, nova: Said, chromium: Said, why: str | None):
    assert name_difference(tag, nova, chromium) == why
    assert not why or why in REASONS


@pytest.mark.parametrize(
    ("tag", "ours", "theirs", "why"),
    [
        ("button", "button", "button", None),
        ("td", "cell", "generic", "layout table"),
        ("div", "cell", "generic", ""),
        ("a", "generic", "link", "listener on an anchor"),
        ("div", "textbox", "generic", "editable region"),
        ("li", "generic", "listitem", "stray list item"),
        ("div", "button", "link", ""),
    ],
)
def test_a_difference_of_roles_has_its_rule_or_none(tag: str, ours: str, theirs: str, why: str | None):
    assert role_difference(tag, said(ours), said(theirs)) == why
    assert not why or why in REASONS


@pytest.mark.parametrize(
    ("tag", "ours", "theirs", "why"),
    [
        ("select", {"required"}, set(), "required choice"),
        ("input", {"required"}, {"invalid"}, "required choice"),
        ("input", set(), {"invalid"}, "not yet tried"),
        ("input", {"required"}, {"required"}, None),
        ("div", {"required"}, set(), ""),
        ("input", {"checked"}, set(), ""),
        ("input", set(), {"disabled"}, ""),
    ],
)
def test_a_difference_of_states_has_its_rule_or_none(tag: str, ours: set[str], theirs: set[str], why: str | None):
    assert state_difference(tag, said(states=frozenset(ours)), said(states=frozenset(theirs))) == why
    assert not why or why in REASONS


def test_pressed_and_selected_count_as_checked_and_mixed_does_not():
    def told(name: str, value: object) -> frozenset[str]:
        return states_told({"properties": [{"name": name, "value": {"value": value}}]})

    assert told("pressed", "true") == told("selected", True) == told("checked", "true") == {"checked"}
    assert told("checked", "mixed") == told("checked", "false") == told("expanded", False) == NOTHING
    assert told("invalid", "spelling") == {"invalid"}
    assert told("invalid", "false") == NOTHING


def test_what_chromium_does_not_show_is_not_counted_and_a_wrong_role_is_counted_once():
    tally = Tally()
    tally.add(
        "page",
        [
            Pair("i", said("generic", "hidden"), None, ()),
            Pair("button", said(name="Save"), said(name="Save"), ()),
            Pair("div", said("button", "Go"), said("link", "Leave"), ()),
            Pair("tr", said("row", "A B"), said("row"), ()),
        ],
    )
    assert tally.elements == 3
    assert dict(tally.agreed) == {"role": 2, "name": 1, "state": 3}
    assert dict(tally.meant) == {"name: row named by content": 1}
    assert [text.split(" ")[1:3] for text in tally.wrong] == [["<div>", "role:"]]


def test_a_page_is_kept_by_its_controls_alone_and_their_order():
    button, link, text = (Pair(tag, said(role, name), None, ()) for tag, role, name in (
        ("button", "button", "Save"), ("a", "link", ""), ("p", "paragraph", "")))  # fmt: skip
    kept = summary_of([button, text, link])
    assert (kept["controls"], kept["named"], kept["first"]) == (2, 1, ["button Save", "link "])
    assert summary_of([button, link])["mark"] == kept["mark"] != summary_of([link, button])["mark"]


def test_only_pages_known_before_and_now_can_have_changed():
    golden = {"p-1": {"a.html": {"mark": "1"}, "b.html": {"mark": "2"}}}
    now = {"p-1": {"a.html": {"mark": "1"}, "c.html": {"mark": "3"}}, "p-2": {"a.html": {"mark": "9"}}}
    assert golden_differences(now, golden) == []
    assert len(golden_differences({"p-1": {"b.html": {"mark": "x"}}}, golden)) == 1


def test_every_difference_that_a_case_page_allows_has_a_reason():
    pages = Path(__file__).resolve().parent.parent / "pages" / "names"
    named = {
        rule for page in pages.glob("*.html") for rule in re.findall(r'data-why="([^"]*)"', page.read_text("utf-8"))
    }
    assert named
    assert named <= REASONS.keys()


@given(st.integers(0, 300), st.integers(1, 40))
def test_chosen_pages_are_few_different_and_the_same_every_time(there: int, most: int):
    pages = [Path(f"{number:03}.html") for number in range(there)]
    picked = chosen(pages, most)
    assert len(picked) == min(there, most)
    assert picked == sorted(set(picked)) == chosen(pages, most)


def test_the_timed_page_holds_as_many_controls_as_it_says():
    page = controls_page(25)
    assert sum(page.count(tag) for tag in ("<input", "<button", "<a ", "<select")) == 25
