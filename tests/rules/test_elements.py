"""Element identity, ledger fingerprints, selector spelling and selector stability."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.browser.perceive.elements import ElementFacts, fingerprint_id, identity, row_key
from nova_mcp.core.page.selectors import looks_generated, normalize_selector, selector_class, selector_hash

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None)

BUTTON = ElementFacts(
    tag="button",
    role="button",
    name="Delete invoice 12",
    type="submit",
    testid="delete",
    row_key="Invoice 12 · 40 €",
    frame="main",
)


@pytest.mark.parametrize(
    "change",
    [
        {"tag": "a"},
        {"role": "link"},
        {"name": "Delete invoice 13"},
        {"type": "button"},
        {"id": "remove"},
        {"testid": "remove"},
        {"name_attr": "remove"},
        {"href_path": "/remove"},
        {"row_key": "Invoice 13 · 40 €"},
        {"frame": "f2"},
    ],
)
def test_any_identifying_change_is_another_identity(change: dict[str, str]):
    assert identity(replace(BUTTON, **change)) != identity(BUTTON)  # type: ignore[arg-type]


def test_identity_ignores_classes_generated_ids_blanks_and_case_of_the_tag():
    assert identity(replace(BUTTON, classes=("x",), id="css-1abc9", tag="BUTTON")) == identity(BUTTON)
    assert identity(replace(BUTTON, name="  Delete\n invoice 12 ")) == identity(BUTTON)


@UNHURRIED
@given(st.text(max_size=20), st.text(max_size=20))
def test_text_cannot_move_from_one_part_of_the_identity_to_another(left: str, right: str):
    one = ElementFacts(tag="a", testid=left, name_attr=right)
    two = ElementFacts(tag="a", testid=left + right, name_attr="")
    assert (identity(one) == identity(two)) == (right == "")


def test_fingerprint_is_the_same_in_another_row_and_on_another_day():
    other = replace(BUTTON, name="Delete invoice 13", row_key="Invoice 13", frame="f9")
    assert fingerprint_id(other) == fingerprint_id(BUTTON)
    plain = ElementFacts(tag="a", role="link", name="Orders (3)", href_path="/orders/3")
    assert fingerprint_id(replace(plain, name="Orders (12)", href_path="/orders/12")) == fingerprint_id(plain)
    assert fingerprint_id(replace(plain, name="Returns (3)")) != fingerprint_id(plain)
    assert fingerprint_id(replace(BUTTON, testid="archive")) != fingerprint_id(BUTTON)


def test_control_with_a_stable_key_keeps_its_fingerprint_when_its_text_is_translated():
    assert fingerprint_id(replace(BUTTON, name="Rechnung löschen")) == fingerprint_id(BUTTON)


def test_row_key_is_one_short_line_with_digits():
    assert row_key("  Invoice\n  12\t· 40 € ") == "Invoice 12 · 40 €"
    assert len(row_key("x" * 500)) == 80


@UNHURRIED
@given(st.text(max_size=200))
def test_row_key_is_stable(text: str):
    assert row_key(row_key(text)) == row_key(text)
    assert len(row_key(text)) <= 80


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("css-1q2w3e", True),
        ("css-button", True),
        ("sc-bdVaJa", True),
        ("jss42", True),
        ("jsx-123", True),
        ("svelte-xyz", True),
        ("emotion-cache", True),
        (":r1:", True),
        ("radix-:r1a:", True),
        ("«r3»", True),
        ("a1b2c3", True),
        ("deadbeef01", True),
        ("item-5f3a9c", True),
        ("x1y2z", True),
        ("post-123456", True),
        ("facade", False),
        ("checkout", False),
        ("btn-primary", False),
        ("col-md-6", False),
        ("step2", False),
        ("h1", False),
        ("a1b", False),
        ("add-to-cart", False),
        ("", False),
    ],
)
def test_generated_tokens(token: str, expected: bool):
    assert looks_generated(token) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("  a  >b ", "a > b"),
        ("a>b~c+d , e", "a > b ~ c + d, e"),
        ("host>>>  .x", "host >>> .x"),
        ("a\n  b", "a b"),
        ('[title="a  >  b"]', '[title="a  >  b"]'),
        ('[title="x"]>b', '[title="x"] > b'),
        ("[a~=b] c", "[a~=b] c"),
        (":nth-child(2n+1)>a", ":nth-child(2n+1) > a"),
        ("text=Sign   in > now", "text=Sign in > now"),
        ('role=button[name="A  b"]', 'role=button[name="A b"]'),
        ("#A", "#A"),
    ],
)
def test_selector_has_one_spelling(selector: str, expected: str):
    assert normalize_selector(selector) == expected
    assert selector_hash(selector) == selector_hash(expected)


@UNHURRIED
@given(st.text(alphabet="ab#.[]()\"'=>~+, :\\\n*1", max_size=40))
def test_spelling_a_selector_twice_changes_nothing(selector: str):
    once = normalize_selector(selector)
    assert normalize_selector(once) == once


def test_selectors_that_differ_in_case_or_quotes_content_hash_differently():
    assert selector_hash("#a") != selector_hash("#A")
    assert selector_hash('[title="a b"]') != selector_hash('[title="a  b"]')


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("#checkout", "stable"),
        ("#step2 button", "stable"),
        ("[data-testid=save]", "stable"),
        ('form [name="email"]', "stable"),
        ('button[aria-label="Close"]', "stable"),
        ('role=button[name="Save"]', "stable"),
        ("text=Save", "stable"),
        ("#item-42", "risky"),
        ("ul > li:nth-child(3) a", "risky"),
        ("#list > li:nth-of-type(2)", "risky"),
        ("div > div > button", "risky"),
        (".toolbar .next", "risky"),
        ("[role=dialog]", "risky"),
        (".css-1q2w3e", "fragile"),
        ("#app .sc-bdVaJa", "fragile"),
        (r"#\:r1\:", "fragile"),
        ('[id=":r1:"]', "fragile"),
        ('[class*="css-9x"]', "fragile"),
        ("#form-5f3a9c1b input", "fragile"),
        ('[data-testid="a1b2c3d4"]', "fragile"),
    ],
)
def test_selector_stability(selector: str, expected: str):
    assert selector_class(selector) == expected


@UNHURRIED
@given(st.text(max_size=60))
def test_every_text_has_a_stability_class(selector: str):
    assert selector_class(selector) in {"stable", "risky", "fragile"}
