"""Scores, budgets, lines, refs and effects as pure functions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.observe.error_words import says_error
from nova_mcp.browser.perceive.element_lines import element_line, escape, one_line, quoted
from nova_mcp.browser.perceive.element_ranking import (
    Group,
    Placement,
    by_score,
    is_far_away,
    line_cost,
    longest_that_fits,
    pack,
    score,
)
from nova_mcp.browser.perceive.elements import ElementFacts, identity
from nova_mcp.browser.perceive.refs import Perception
from nova_mcp.browser.perceive.rules import (
    ActionRequest,
    Expected,
    Proof,
    RefRefused,
    Signs,
    UseNode,
    channels_of,
    dispatch_proof,
    effect_word,
    observed,
    resolve_ref,
    same_destination,
    window_left_ms,
)
from nova_mcp.browser.perceive.scan_values import Found, SeenElement

URL = "http://127.0.0.1/a"
VIEW = (1280, 800)


def element(node=1, **facts):
    return SeenElement(node, ElementFacts(**{"tag": "button", "role": "button", "name": "Save", **facts}))


# -- scores

WEIGHTS = {
    "in_dialog": 40,
    "in_viewport": 25,
    "in_main": 20,
    "form_control": 15,
    "primary_button": 15,
    "stable_selector": 10,
    "named": 5,
    "in_nav": -15,
    "repeated": -10,
    "far_away": -20,
    "disabled": -30,
}


@given(st.sets(st.sampled_from(sorted(WEIGHTS))))
def test_the_score_is_the_sum_of_the_published_weights(names):
    assert set(Placement._fields) == set(WEIGHTS)
    assert score(Placement(**dict.fromkeys(names, True))) == sum(WEIGHTS[name] for name in names)


def test_equal_scores_stay_in_document_order_and_repeats_come_later():
    first, second, twin = element(1, name="A"), element(2, name="B"), element(3, name="A")
    assert [e.node for e in by_score([first, second, twin], VIEW)] == [1, 2, 3]
    assert [e.node for e in by_score([twin, first, second], VIEW)] == [3, 2, 1]


@pytest.mark.parametrize(("top", "far"), [(2400, False), (2401, True), (-1620, False), (-1621, True), (0, False)])
def test_far_away_means_more_than_two_viewports_beyond_the_edge(top, far):
    assert is_far_away((0, top, 10, 20), VIEW) is far


# -- budgets

LINES = st.lists(st.text(min_size=1, max_size=60), max_size=20).map(tuple)


@given(LINES, LINES, LINES, st.integers(0, 400))
def test_a_packed_answer_never_costs_more_than_its_budget_and_keeps_prefixes(first, second, third, budget):
    groups = (Group("a", 0.5, first), Group("b", 0.3, second), Group("c", 0.2, third))
    packed = pack(groups, budget)
    assert sum(line_cost(line) for lines in packed.values() for line in lines) <= budget
    assert all(group.lines[: len(packed[group.name])] == packed[group.name] for group in groups)


def test_what_one_group_leaves_over_goes_to_the_others():
    lines = tuple(f"line number {i}" for i in range(10))
    each = line_cost(lines[0])
    packed = pack((Group("a", 0.5, ()), Group("b", 0.5, lines)), each * 10)
    assert len(packed["b"]) == 10
    shared = pack((Group("a", 0.5, lines), Group("b", 0.5, lines)), each * 10)
    assert (len(shared["a"]), len(shared["b"])) == (5, 5)


@given(st.integers(0, 200), st.integers(0, 200))
def test_halving_finds_the_largest_count_that_fits(count, limit):
    assert longest_that_fits(count, lambda n: n <= limit) == min(count, limit)


# -- lines


@given(st.text(), st.text(), st.text(max_size=100))
def test_no_page_text_breaks_out_of_its_line_or_its_quotes(name, value, selector):
    line = element_line("e1", replace(element(name=name), value=value), Found(selector, "id"))
    assert len(line.splitlines()) == 1
    assert line.startswith('e1 button "')
    assert len(quoted(name, 60)) <= 60 * 10 + 2


@given(st.text(max_size=80))
def test_quotes_inside_a_name_are_escaped(name):
    inner = escape(name)
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")


def test_a_line_has_its_parts_in_order_and_flags_in_theirs():
    seen = replace(element(name="Mail"), value="a@b", flags=("newtab", "disabled"))
    assert element_line("e7", seen, Found("#mail", "id"), ["commit"]) == (
        'e7 button "Mail" ="a@b" #mail [disabled commit newtab]'
    )
    assert element_line("e7", seen, Found("li:nth-of-type(2) > a", "positional")).endswith("[disabled fragile newtab]")
    assert element_line("e7", element(frame="F1"), Found("#a", "id")) == 'e7 button "Save" #a [frame:F1]'


def test_a_selector_too_long_to_show_is_left_out_rather_than_cut():
    assert element_line("e1", element(), Found("#" + "a" * 80, "id")) == 'e1 button "Save" -'
    assert element_line("e1", element(), None) == 'e1 button "Save" -'


def test_long_names_and_addresses_are_cut():
    assert quoted("x" * 61, 60) == '"' + "x" * 59 + '…"'
    assert len(one_line("y" * 500, 300)) == 300


# -- refs


def expected(**facts):
    return Expected(element(**facts).facts, URL)


def test_the_same_node_with_the_same_identity_is_used():
    assert resolve_ref(expected(), URL, True, element(5), []) == UseNode(5, element().facts)


def test_a_new_node_is_used_when_exactly_one_has_the_identity():
    found = resolve_ref(expected(), URL, False, None, [element(9)])
    assert found == UseNode(9, element().facts, rebound=True)
    assert resolve_ref(expected(), URL, True, None, [element(8), element(9)]) == RefRefused("ref.ambiguous")
    assert resolve_ref(expected(), URL, True, None, []) == RefRefused("ref.stale")


def test_a_changed_name_is_tolerated_only_with_a_stable_key_and_the_same_row():
    before = {"id": "save", "row_key": "Order 7"}
    renamed = element(5, name="Saved", **before)
    assert resolve_ref(expected(**before), URL, True, renamed, []) == UseNode(5, renamed.facts, drift="name")
    other_row = element(5, name="Saved", id="save", row_key="Order 8")
    assert resolve_ref(expected(**before), URL, True, other_row, []) == RefRefused("ref.identity_changed")
    keyless = element(5, name="Saved")
    assert resolve_ref(expected(), URL, True, keyless, []) == RefRefused("ref.identity_changed")
    generated = {"id": ":r7:"}
    assert isinstance(resolve_ref(expected(**generated), URL, True, element(5, name="X", **generated), []), RefRefused)


def test_another_path_makes_a_ref_stale_unless_its_node_lives_on_in_the_same_document():
    assert resolve_ref(expected(), "http://127.0.0.1/b", False, None, [element(9)]) == RefRefused("ref.stale_document")
    assert resolve_ref(expected(), "http://127.0.0.1/b", True, element(5), []) == UseNode(5, element().facts)
    assert resolve_ref(expected(), f"{URL}?page=2#x", False, None, [element(9)]) == UseNode(
        9, element().facts, rebound=True
    )


FACTS = st.builds(
    ElementFacts,
    tag=st.sampled_from(["button", "a"]),
    role=st.just("button"),
    name=st.sampled_from(["Save", "Open"]),
    row_key=st.sampled_from(["", "1", "2"]),
)


@given(st.lists(st.lists(st.tuples(st.integers(1, 5), FACTS), max_size=5, unique_by=lambda pair: pair[0]), max_size=6))
def test_a_ref_never_means_two_identities_and_one_look_never_uses_a_ref_twice(looks):
    perception = Perception()
    meant: dict[str, str] = {}
    for epoch, look in enumerate(looks):
        elements = [SeenElement(node, facts) for node, facts in look]
        names = perception.assign(elements, URL, epoch // 2, elements)
        assert len(set(names)) == len(names)
        for name, seen in zip(names, elements, strict=True):
            assert meant.setdefault(name, identity(seen.facts)) == identity(seen.facts)
        assert perception.assign(elements, URL, epoch // 2, elements) == names


# -- effects


def test_a_sign_of_failure_outweighs_every_sign_of_success():
    ok = ActionRequest("POST", "/a", 200)
    assert effect_word(Signs(frozenset({"dom_mutation"}))) == "strong"
    assert effect_word(Signs(requests=(ok,))) == "strong"
    assert effect_word(Signs(frozenset({"dom_mutation"}), alerts=("no",))) == "error_signal"
    assert effect_word(Signs(frozenset({"dom_mutation"}), new_text=("It failed.",))) == "error_signal"
    assert effect_word(Signs(requests=(ok, replace(ok, status=500)))) == "error_signal"
    assert effect_word(Signs(frozenset({"dom_mutation"}), requests=(replace(ok, status=None),))) == "pending"


@pytest.mark.parametrize(
    "request_",
    [ActionRequest("POST", "/b", 204, resource_type="ping"), ActionRequest("GET", "/b", 500, same_site=False)],
)
def test_beacons_and_other_sites_are_weak_signs(request_):
    signs = Signs(requests=(request_,))
    assert (effect_word(signs), observed(signs), channels_of(signs)) == ("weak", True, ("request_started",))


def test_a_poll_seen_before_is_no_sign_and_silence_counts_only_while_somebody_looked():
    polled = ActionRequest("GET", "/poll", None, seen_before=True)
    assert (effect_word(Signs(requests=(polled,))), observed(Signs(requests=(polled,)))) == ("none", False)
    assert (effect_word(Signs(observer_lost=True)), observed(Signs(observer_lost=True))) == ("unknown", None)


@pytest.mark.parametrize(
    ("elapsed", "quiet", "pending", "left"),
    [
        (0, None, False, 600),
        (600, None, False, 0),
        (100, 0, False, 80),
        (100, 80, False, 0),
        (590, 10, False, 10),
        (600, 80, True, 900),
    ],
)
def test_the_window_ends_eighty_ms_after_the_first_sign_or_at_its_limit(elapsed, quiet, pending, left):
    assert window_left_ms(elapsed, quiet, pending) == left


def test_none_needs_a_first_and_living_observer_that_saw_nothing():
    alive = Proof(standing="first", alive=True, readable=True)
    assert dispatch_proof(alive, ()) == "none"
    assert dispatch_proof(replace(alive, reached=("pointerdown",)), ()) == "event"
    assert dispatch_proof(replace(alive, reached=("mouseup",)), ()) == "none"
    assert dispatch_proof(alive, ("navigation",)) == "host"
    for blind in (replace(alive, standing="late"), replace(alive, alive=False), replace(alive, readable=False)):
        assert dispatch_proof(blind, ()) == "assumed"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Invalid address", True),
        ("Das ist leider ungültig!", True),
        ("Une erreur s’est produite", True),
        ("No se pudo guardar", True),
        ("You can’t do that", True),
        ("Terrors of the deep", False),
        ("Saved", False),
        ("", False),
    ],
)
def test_words_of_failure_count_as_whole_words_in_four_languages(text, found):
    assert says_error(text) is found


def test_a_link_leads_to_its_address_whatever_the_fragment():
    assert same_destination("http://a.test/x/#top", "http://A.test/x")
    assert not same_destination("http://a.test/x?a=1", "http://a.test/x?a=2")
