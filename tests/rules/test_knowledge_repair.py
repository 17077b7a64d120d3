"""A lost element is found again, or nothing is proposed: right, wrong and doubtful cases on small pages."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.landmarks import Gap, in_order, landmarks, slot_of
from nova_mcp.memory.knowledge.repair.print_similarity import (
    SAME_MEANING,
    TELLING,
    WEIGHTS,
    excludes,
    family,
    likeness,
    text_likeness,
)
from nova_mcp.memory.knowledge.repair.repair import (
    MIN_CONFIDENCE,
    Abstain,
    PageElement,
    Repair,
    assess,
    decide,
    proposed_selector,
    repair,
    selectors_for,
)

EMAIL = ElementPrint("input", "email", "email", "Email address", id="inputEmail", role="textbox", place=(0.5, 0.3))
PASSWORD = ElementPrint("input", "password", "password", "Password", id="inputPassword", place=(0.5, 0.4))
REMEMBER = ElementPrint("input", "checkbox", "remember", "Remember password", role="checkbox", place=(0.4, 0.5))
LOGIN = ElementPrint("button", "submit", "", "Login", role="button", classes=("btn", "btn-primary"), place=(0.6, 0.6))
FORGOT = ElementPrint("a", text="Forgot password?", href="forgot-password.html", role="link", place=(0.4, 0.7))
REGISTER = ElementPrint("a", text="Register an account", href="register.html", role="link", place=(0.5, 0.8))
OLD = [EMAIL, PASSWORD, REMEMBER, LOGIN, FORGOT, REGISTER]


def page(*prints):
    return [PageElement(index, one) for index, one in enumerate(prints)]


REDESIGNED = page(
    ElementPrint("a", text="Home", href="index.html", role="link", place=(0.1, 0.0)),
    ElementPrint("input", "email", "email", "Email", id="email", role="textbox", classes=("form-control",)),
    ElementPrint("input", "password", "password", "Password", id="pw", classes=("form-control",)),
    ElementPrint("input", "checkbox", "remember_me", "Remember Password", role="checkbox"),
    ElementPrint("a", text="Forgot Password?", href="/password.html", role="link", place=(0.4, 0.6)),
    ElementPrint("a", text="Login", href="index.html", role="button", classes=("btn", "btn-primary"), place=(0.6, 0.6)),
    ElementPrint("a", text="Need an account? Sign up!", href="register.html", role="link", place=(0.5, 0.8)),
)


@pytest.mark.parametrize(("learned", "node"), [(EMAIL, 1), (PASSWORD, 2), (REMEMBER, 3), (FORGOT, 4), (LOGIN, 5)])
def test_an_element_is_found_again_after_a_redesign(learned, node):
    found = repair(learned, REDESIGNED, OLD)
    assert isinstance(found, Repair), found
    assert found.candidate.node == node
    assert MIN_CONFIDENCE <= found.confidence <= 1.0


def test_the_same_page_gives_the_same_element_with_full_confidence():
    for index, learned in enumerate(OLD):
        found = repair(learned, page(*OLD), OLD)
        assert isinstance(found, Repair), (learned, found)
        assert found.candidate.node == index


def test_an_empty_page_has_no_candidate():
    assert repair(LOGIN, [], OLD) == Abstain("no_candidates")


def test_another_kind_of_control_is_no_candidate():
    assert repair(PASSWORD, page(EMAIL, LOGIN), OLD) == Abstain("no_candidates")


@pytest.mark.parametrize("learned", OLD)
def test_what_was_removed_is_not_found_among_what_stayed(learned):
    rest = [one for one in OLD if one != learned]
    assert isinstance(repair(learned, page(*rest), OLD), Abstain)


REJECT = ElementPrint("button", "button", text="Reject all", role="button", classes=("cc-btn",), place=(0.4, 0.9))
ACCEPT = replace(REJECT, text="Accept all", place=(0.6, 0.9))


def test_a_refusal_is_never_repaired_into_an_acceptance():
    found = repair(REJECT, page(ACCEPT), [REJECT, ACCEPT])
    assert found == Abstain("no_candidates")
    assert excludes(REJECT, ACCEPT) == "its label says the opposite"
    both = repair(REJECT, page(ACCEPT, replace(REJECT, text="Alle ablehnen", id="deny")), [REJECT, ACCEPT])
    assert isinstance(both, Abstain)


def test_twins_are_not_told_apart():
    edit = ElementPrint("button", text="Edit", role="button", classes=("btn",))
    rows = [replace(edit, place=(0.9, 0.1 * n)) for n in range(5)]
    found = repair(rows[2], page(*rows[:2], *rows[3:]), rows)
    assert isinstance(found, Abstain)
    assert found.reason == "too_close"
    assert found.best is not None


def test_rows_are_told_apart_by_what_names_them():
    rows = [
        ElementPrint("a", text="Edit", href=f"/users/{name}/edit", role="link", id=f"edit-{name}", neighbours=(name,))
        for name in ("ada", "bob", "cyd")
    ]
    moved = [replace(one, classes=("new",), place=(0.1, 0.1), href=f"/admin{one.href}") for one in rows]
    found = repair(rows[1], page(*moved), rows)
    assert isinstance(found, Repair)
    assert found.candidate.node == 1


def test_a_candidate_that_was_something_else_before_is_refused():
    save = ElementPrint("button", "submit", "save", "Save", role="button", id="save-profile")
    save_all = ElementPrint("button", "submit", "save_all", "Save all", role="button", id="save-all")
    found = repair(save, page(save_all), [save, save_all])
    assert isinstance(found, Abstain)
    assert found.best is not None
    assert found.best.mutual is False


def test_nothing_in_common_but_the_kind_tells_nothing():
    found = repair(LOGIN, page(replace(LOGIN, text="Download", classes=("btn",))), OLD)
    assert found.reason == "nothing_telling"


def test_without_the_old_page_more_distance_is_asked_for():
    near = replace(EMAIL, name="email2", text="Email address again", id="inputEmail2")
    with_old = assess(EMAIL, page(EMAIL, near), OLD)
    alone = assess(EMAIL, page(EMAIL, near), None)
    assert (with_old.mutual, alone.mutual) == (True, None)
    assert alone.confidence < with_old.confidence


def test_without_the_old_page_a_label_needs_its_surroundings():
    row = ElementPrint("button", text="Delete", role="button", neighbours=("Ada",))
    other = [PageElement(0, replace(row, neighbours=("Bob",)), "tr button")]
    assert repair(row, other, None).reason == "nothing_telling"
    assert isinstance(repair(row, [replace(other[0], seen=row)], None), Repair)


def test_what_another_element_has_kept_is_not_given_to_a_namesake():
    learned = ElementPrint("button", "submit", text="Sign up", testid="sign-up", role="button", id="join")
    moved = ElementPrint("a", text="Create account", href="#", testid="sign-up", role="button")
    namesake = replace(learned, text="Sign up", testid="second-sign-up", id="second-join")
    found = repair(learned, page(namesake, moved), [learned])
    assert isinstance(found, Abstain)
    assert found.reason == "contradicted"


def test_equal_buttons_are_told_apart_by_their_rows():
    rows = [ElementPrint("button", text="Edit", role="button", neighbours=(name, "user")) for name in ("Ada", "Bob")]
    moved = [replace(one, classes=("new",), neighbours=(*one.neighbours, "active")) for one in reversed(rows)]
    elements = [PageElement(index, one, f"tr:nth-of-type({index + 1}) button") for index, one in enumerate(moved)]
    for learned, node in zip(rows, (1, 0), strict=True):
        found = repair(learned, elements, rows)
        assert isinstance(found, Repair)
        assert found.candidate.node == node
    assert isinstance(repair(rows[0], elements[:1], rows), Abstain)


def test_a_candidate_without_a_selector_of_its_own_is_refused():
    icon = ElementPrint("button", text="Menu", classes=("burger",))
    found = repair(icon, page(replace(icon, place=(0.9, 0.0)), ElementPrint("a", text="Home", href="/")), [icon])
    assert found.reason == "no_unique_selector"
    named = [PageElement(0, icon, "header .burger"), PageElement(1, ElementPrint("a", text="Home", href="/"))]
    done = repair(icon, named, [icon])
    assert isinstance(done, Repair)
    assert done.selector == "header .burger"


def test_the_asked_for_confidence_decides():
    found = assess(EMAIL, REDESIGNED, OLD)
    assert isinstance(decide(found, found.confidence), Repair)
    refused = decide(found, found.confidence + 0.001)
    assert (refused.reason, refused.best) == ("unsure", found)


@pytest.mark.parametrize(
    ("seen", "first"),
    [
        (EMAIL, '[id="inputEmail"]'),
        (replace(EMAIL, id="css-1a2b3c"), 'role=textbox[name="Email address"]'),
        (replace(EMAIL, id="", testid="mail"), '[data-testid="mail"]'),
        (replace(EMAIL, id="", role=""), 'input[name="email"]'),
        (replace(FORGOT, role=""), 'a[href="forgot-password.html"]'),
        (ElementPrint("button", aria_label='Say "hi"'), 'button[aria-label="Say \\"hi\\""]'),
    ],
)
def test_a_selector_is_proposed_in_the_order_of_what_lasts(seen, first):
    assert selectors_for(seen)[0][0] == first


def test_a_selector_that_two_elements_share_is_passed_over():
    twins = page(replace(EMAIL, id="x"), replace(EMAIL, id="x", name="other"))
    assert proposed_selector(twins[0], twins) == 'input[name="email"]'
    same = page(EMAIL, EMAIL)
    assert proposed_selector(same[0], same) is None


# -- where an element is expected


def placed(*prints):
    return [PageElement(index, one, f"ol > li:nth-of-type({index + 1}) > a", index) for index, one in enumerate(prints)]


def link(text, **more):
    return ElementPrint("a", text=text, role="link", **more)


ONE, TWO, THREE = link("Alpha"), link("Beta"), link("Gamma")
AUTHOR = link("Author")


def test_equal_links_are_told_apart_by_what_they_stand_between():
    old = [ONE, replace(AUTHOR, place=(0.1, 0.2)), TWO, replace(AUTHOR, place=(0.1, 0.4)), THREE]
    new = placed(ONE, AUTHOR, link("Extra"), TWO, AUTHOR, THREE)
    for index, node in ((1, 1), (3, 4)):
        found = repair(old[index], new, old)
        assert isinstance(found, Repair), found
        assert found.candidate.node == node


def test_one_of_two_equal_links_that_is_left_is_not_taken_for_the_other():
    old = [ONE, replace(AUTHOR, place=(0.1, 0.2)), TWO, replace(AUTHOR, place=(0.9, 0.9)), THREE]
    new = placed(ONE, AUTHOR, TWO, THREE)
    assert isinstance(repair(old[1], new, old), Repair)
    assert isinstance(repair(old[3], new, old), Abstain)


def test_rows_of_the_same_number_are_not_told_apart_by_their_number():
    rows = [ElementPrint("button", text="Edit", role="button", neighbours=(name,)) for name in ("Ada", "Bob")]
    others = [replace(rows[0], neighbours=(name,)) for name in ("Cyd", "Dan")]
    old, new = [ONE, *rows, TWO, THREE], placed(ONE, *others, TWO, THREE)
    assert all(isinstance(repair(one, new, old), Abstain) for one in rows)


def test_a_button_without_a_label_is_known_where_it_is_the_only_one():
    icon = ElementPrint("button", "submit", role="button", classes=("btn",))
    old = [ONE, TWO, icon, THREE]
    found = repair(icon, placed(ONE, TWO, replace(icon, classes=("btn", "big")), THREE), old)
    assert isinstance(found, Repair)
    assert found.candidate.node == 2
    assert isinstance(repair(icon, placed(ONE, TWO, icon, icon, THREE), old), Abstain)
    assert isinstance(repair(icon, placed(ONE, icon, TWO, THREE), old), Abstain)


def test_icons_in_another_order_are_told_apart_by_what_they_show():
    def icon(name):
        return ElementPrint("a", role="link", classes=("social",), picture=name)

    old = [ONE, TWO, icon("fa fa-facebook"), icon("fa fa-twitter"), icon("fa fa-github"), THREE]
    new = placed(ONE, TWO, icon("fab fa-github"), icon("fab fa-twitter"), icon("fab fa-facebook-f"), THREE)
    for index, node in ((2, 4), (3, 3), (4, 2)):
        found = repair(old[index], new, old)
        assert isinstance(found, Repair), found
        assert found.candidate.node == node
    assert isinstance(repair(icon("fa fa-xing"), new, [*old[:2], icon("fa fa-xing"), THREE]), Abstain)


def test_a_namesake_in_another_part_of_the_page_is_left_alone():
    field = ElementPrint("input", "search", text="Search", role="searchbox", shape="html/body/nav/form/input")
    elsewhere = replace(field, shape="html/body/aside/div/input")
    old = [ONE, field, TWO, THREE]
    assert repair(field, placed(ONE, TWO, THREE, elsewhere), old).reason == "moved"
    assert isinstance(repair(field, placed(ONE, TWO, THREE, field), old), Repair)


def test_other_words_for_the_same_count_where_the_element_is_expected():
    old = [ONE, replace(EMAIL, name="", id="inputEmail"), TWO, THREE]
    renamed = replace(EMAIL, name="", id="mail", text="Your email")
    found = repair(old[1], placed(ONE, renamed, TWO, THREE), old)
    assert isinstance(found, Repair)
    assert repair(old[1], placed(ONE, TWO, THREE, renamed), old).reason == "nothing_telling"


def test_pages_of_a_table_are_told_apart_by_their_numbers():
    old = [link(str(number), classes=("page",)) for number in range(1, 6)]
    found = repair(old[2], page(*(replace(one, classes=("page-link",)) for one in old)), old)
    assert isinstance(found, Repair)
    assert found.candidate.node == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Email address", "E-Mail", True),
        ("Search for...", "Search", True),
        ("Log in", "Sign in", True),
        ("Sign in", "Sign up", False),
        ("Password", "Confirm password", False),
        ("Retype password", "Confirm password", True),
        ("City", "Billing city", False),
        ("Address", "Email address", False),
    ],
)
def test_other_words_for_the_same(one, other, same):
    assert (text_likeness(one, other) == SAME_MEANING) is same


def test_landmarks_that_moved_are_no_landmarks():
    pairs = landmarks([ONE, TWO, THREE], [THREE, ONE, link("New"), TWO])
    assert pairs == [(0, 1), (1, 3), (2, 0)]
    assert in_order(pairs) == [(0, 1), (1, 3)]
    assert slot_of(2, pairs, (3, 4)) == Gap((1, 3), (3, 4))
    assert slot_of(0, pairs, (3, 4)) is None


@given(st.lists(st.integers(0, 30), unique=True, max_size=12))
def test_landmarks_in_order_are_a_longest_rising_run(places):
    pairs = list(enumerate(places))
    run = in_order(pairs)
    assert run == sorted(run, key=lambda pair: pair[1])
    assert set(run) <= set(pairs)
    best = [1] * len(places)
    for index, place in enumerate(places):
        best[index] += max((best[at] for at in range(index) if places[at] < place), default=0)
    assert len(run) == max(best, default=0)


# -- likeness


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Log In", "login", 1.0, 1.0),
        ("Cart (3)", "Cart (5)", 0.93, 0.93),
        ("Sign in", "Sign up", 0.2, 0.75),
        ("Save", "Delete", 0.0, 0.3),
        ("", "", 1.0, 1.0),
        ("Save", "", 0.0, 0.0),
    ],
)
def test_texts_are_alike_by_words_and_letters(one, other, least, most):
    assert least <= text_likeness(one, other) <= most


def test_what_lasts_weighs_more():
    assert WEIGHTS["tag"] == WEIGHTS["type"] == WEIGHTS["name"] == WEIGHTS["text"] == max(WEIGHTS.values())
    assert WEIGHTS["name"] > WEIGHTS["id"] == WEIGHTS["href"] == WEIGHTS["role"] > WEIGHTS["classes"]
    assert WEIGHTS["classes"] > WEIGHTS["shape"] == WEIGHTS["neighbours"] == WEIGHTS["place"] > 0
    assert set(TELLING) <= set(WEIGHTS)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(EMAIL, "entry"), (REMEMBER, "choice"), (LOGIN, "press"), (FORGOT, "press"), (ElementPrint("div"), "other")],
)
def test_elements_belong_to_families_by_what_can_be_done_with_them(seen, expected):
    assert family(seen) == expected


words = st.sampled_from(["", "save", "Save all", "email", "x1y2z3", "cancel", "Reject", "a b c", "42"])
prints = st.builds(
    ElementPrint,
    st.sampled_from(["button", "a", "input", "div"]),
    st.sampled_from(["", "submit", "text", "password"]),
    *(words for _ in range(5)),
    classes=st.lists(words, max_size=2).map(tuple),
    place=st.sampled_from([None, (0.1, 0.2), (0.9, 0.9)]),
)


@given(prints, prints)
def test_likeness_is_a_share_and_complete_for_the_same_print(one, other):
    assert 0.0 <= likeness(one, other).score <= 1.0 + 1e-9
    assert likeness(one, one).score == pytest.approx(1.0)


@given(prints, st.lists(prints, max_size=6), st.randoms(use_true_random=False))
def test_a_proposal_is_one_element_of_the_page_whatever_its_order(learned, others, chance):
    elements = page(*others)
    found = repair(learned, elements, [learned, *others])
    chance.shuffle(elements)
    assert repair(learned, elements, [learned, *others]) == found
    if isinstance(found, Repair):
        assert found.candidate in elements
        assert excludes(learned, found.candidate.seen) is None
        assert found.selector


@given(st.lists(prints, min_size=1, max_size=6))
def test_nothing_is_proposed_that_stood_beside_the_lost_element(prints_):
    learned, *rest = prints_
    rest = [one for one in rest if one != learned]
    found = repair(learned, page(*rest), [learned, *rest])
    assert isinstance(found, Abstain)
