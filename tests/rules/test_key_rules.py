"""Keys by name: what they are called, which ones are the browser's, what they set off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.act.press_keys import trigger_of
from nova_mcp.core.page.keys import MODIFIERS, NAMES, Stroke, UnknownKey, belongs_to_browser, parse_key


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("Enter", "Enter"),
        ("enter", "Enter"),
        ("RETURN", "Enter"),
        ("esc", "Escape"),
        ("a", "a"),
        ("A", "A"),
        ("+", "+"),
        (" ", " "),
        ("é", "é"),
        ("ctrl+shift+k", "Control+Shift+k"),
        ("Shift+Control+K", "Control+Shift+K"),
        ("control++", "Control++"),
        ("Control+Plus", "Control++"),
        ("cmd+ArrowUp", "Meta+ArrowUp"),
        ("pgdn", "PageDown"),
        ("f12", "F12"),
    ],
)
def test_names_are_read_in_any_case(text: str, spelled: str) -> None:
    assert parse_key(text).spelled == spelled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Entr",
        "ab",
        "Control+",
        "+a",
        "Control+Control+a",
        "k+Control+a",
        "Control+é",
        "F13",
        "\n",
        "\x00",
        "Shift+Shift",
    ],
)
def test_what_names_no_key_is_refused(text: str) -> None:
    with pytest.raises(UnknownKey):
        parse_key(text)


@pytest.mark.parametrize(
    "text",
    [
        "Control+T",
        "Control+w",
        "ctrl+n",
        "Control+Q",
        "Control+R",
        "Control+L",
        "Control+P",
        "Control+S",
        "Control+O",
        "Control+F",
        "Control+J",
        "Control+H",
        "Control+D",
        "Control+0",
        "Control++",
        "Control+-",
        "Control+1",
        "Control+Tab",
        "Control+Shift+Tab",
        "Control+Shift+T",
        "Control+Shift+N",
        "Control+Shift+I",
        "Control+Shift+J",
        "Control+Shift+C",
        "Control+Shift+Delete",
        "Control+PageDown",
        "Control+F4",
        "Alt+F4",
        "Alt+ArrowLeft",
        "Alt+Home",
        "Alt+Tab",
        "F1",
        "F3",
        "F5",
        "Shift+F5",
        "F11",
        "F12",
        "Shift+Escape",
        "Meta+W",
        "Meta+Q",
        "Meta",
        "Alt",
        "Control+Alt+Delete",
    ],
)
def test_what_reaches_past_the_page_belongs_to_the_browser(text: str) -> None:
    assert belongs_to_browser(parse_key(text))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "A",
        "Enter",
        "Tab",
        "Shift+Tab",
        "Escape",
        "Space",
        "Backspace",
        "ArrowDown",
        "Home",
        "PageDown",
        "F2",
        "Control+A",
        "Control+C",
        "Control+V",
        "Control+X",
        "Control+Z",
        "Control+Y",
        "Control+B",
        "Control+I",
        "Control+U",
        "Control+K",
        "Control+Enter",
        "Control+Home",
        "Control+ArrowLeft",
        "Control+Shift+K",
        "Control+Shift+Z",
        "Control+Shift+V",
        "Shift+ArrowDown",
        "Alt+Enter",
        "Alt+ArrowUp",
        "Shift",
        "Meta+A",
        "1",
        "+",
    ],
)
def test_what_pages_live_by_is_free(text: str) -> None:
    assert not belongs_to_browser(parse_key(text))


@given(
    st.lists(st.sampled_from(sorted(MODIFIERS)), max_size=3, unique_by=lambda name: MODIFIERS[name]),
    st.sampled_from(sorted(NAMES)) | st.characters(min_codepoint=33, max_codepoint=126),
)
def test_a_key_that_was_read_reads_the_same_again(held: list[str], key: str) -> None:
    text = "+".join([*held, key])
    if NAMES.get(key) in {MODIFIERS[name] for name in held}:
        return
    stroke = parse_key(text)
    assert parse_key(stroke.spelled) == stroke
    assert belongs_to_browser(stroke) == belongs_to_browser(parse_key(text.upper() if len(key) > 1 else text))


@given(st.text(max_size=20))
def test_any_text_is_a_key_or_refused(text: str) -> None:
    try:
        stroke = parse_key(text)
    except UnknownKey:
        return
    assert len(stroke.key) == 1 or stroke.key in NAMES.values()


def test_what_a_key_sets_off_depends_on_where_it_lands() -> None:
    enter, space, down = Stroke("Enter"), Stroke("Space"), Stroke("ArrowDown")
    assert trigger_of(enter, tag="input", typable=True) == "enter"
    assert trigger_of(space, tag="button", typable=False) == "click"
    assert trigger_of(space, tag="input", typable=True) is None
    assert trigger_of(down, tag="select", typable=False) == "click"
    assert trigger_of(down, tag="input", typable=True) is None
