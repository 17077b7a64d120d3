"""How Nova's names are held against Chromium's: what counts as the same, as meant, and as wrong."""

import re
from pathlib import Path

import pytest
from bench.names import Tally, controls_page
from bench.names_golden import ACTED_ON, golden_differences, kept_of, lines_of, page_difference, read_golden
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
from bench.names_pages import PACKAGES, chosen
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
        ("td", Said("cell", "Code here", NOTHING, figures=True), said("cell", "here"), "figure in a name"),
        ("td", Said("cell", "Code here", NOTHING, figures=True), said("cell", "there"), ""),
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
    lines = lines_of([button, text, link])
    assert lines == ["button Save", "link "]
    kept = kept_of(lines)
    assert (kept.controls, kept.named, len(kept.marks.split())) == (2, 1, 2)
    assert kept_of(lines_of([link, button])) != kept == kept_of(lines_of([button, link]))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (["button Save", "link Home"], None),
        (["button Save", "link House"], "control 2 is now 'link House'"),
        (["button Save"], "control 2 of 2 is gone"),
        (["button Save", "link Home", "link More"], "control 3 is now 'link More'"),
        ([], "control 1 of 2 is gone"),
    ],
)
def test_the_first_control_that_changed_is_pointed_at(now: list[str], why: str | None):
    assert page_difference(now, kept_of(["button Save", "link Home"])) == why


def test_a_kept_page_that_changed_or_was_not_seen_is_a_difference_and_a_new_one_is_not():
    golden = {"p-1": {"a.html": kept_of(["button A"]), "b.html": kept_of(["button B"])}, "p-2": {"c.html": kept_of([])}}
    seen = {"p-1": {"a.html": ["button A"], "b.html": ["button B"], "new.html": ["link N"]}, "p-2": {"c.html": []}}
    assert golden_differences(seen, golden) == []
    del seen["p-2"]
    seen["p-1"]["b.html"] = ["button C"]
    assert golden_differences(seen, golden) == ["p-1/b.html: control 1 is now 'button C'", "p-2/c.html: not seen"]


@given(st.lists(st.tuples(st.sampled_from(sorted(ACTED_ON)), st.text(max_size=20)), max_size=30), st.data())
def test_any_one_changed_name_is_found(controls: list[tuple[str, str]], data: st.DataObject):
    lines = [f"{role} {name}" for role, name in controls]
    golden = kept_of(lines)
    assert page_difference(lines, golden) is None
    if lines:
        place = data.draw(st.integers(0, len(lines) - 1))
        told = page_difference([*lines[:place], lines[place] + "!", *lines[place + 1 :]], golden)
        assert told is not None
        assert told.startswith(f"control {place + 1} ")


def test_the_kept_pages_are_those_that_a_short_run_looks_at():
    golden = read_golden()
    assert golden.keys() == {package.folder for package in PACKAGES}
    assert len({package.name for package in PACKAGES}) >= 6
    for package in PACKAGES:
        assert 0 < len(golden[package.folder]) <= package.short
    assert all(kept.controls == len(kept.marks.split()) for pages in golden.values() for kept in pages.values())


def _case_pages() -> str:
    pages = Path(__file__).resolve().parent.parent / "pages" / "names"
    return "".join(page.read_text("utf-8") for page in sorted(pages.glob("*.html")))


def test_every_case_where_chromium_differs_says_why_with_a_known_reason():
    elements = re.findall(r"<[a-z][^<>]*data-case=[^<>]*>", _case_pages())
    assert len(elements) > 400
    differing = [text for text in elements if re.search(r"data-chromium(-role|-states)?=", text)]
    assert differing
    for text in elements:
        reasons = re.findall(r'data-why="([^"]*)"', text)
        assert len(reasons) == (text in differing), text
        assert set(reasons) <= REASONS.keys(), text


@given(st.integers(0, 300), st.integers(1, 40))
def test_chosen_pages_are_few_different_and_the_same_every_time(there: int, most: int):
    pages = [Path(f"{number:03}.html") for number in range(there)]
    picked = chosen(pages, most)
    assert len(picked) == min(there, most)
    assert picked == sorted(set(picked)) == chosen(pages, most)


def test_the_timed_page_holds_as_many_controls_as_it_says():
    page = controls_page(25)
    assert sum(page.count(tag) for tag in ("<input", "<button", "<a ", "<select")) == 25
