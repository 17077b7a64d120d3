"""Keys: trusted strokes for the element that has the focus, and for no other."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement, build_report
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.press_keys import Strokes, press_keys
from nova_mcp.core.clock import system_ports
from nova_mcp.core.page.keys import parse_key
from nova_mcp.errors import Blocked, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()


@pytest.fixture
async def page(tab, site):
    await tab.page.goto(site.url("act/keys.html"))
    return tab


async def press(tab, key, selector=None, repeat=1, **manner):
    locator = None if selector is None else Locator(selector=selector)
    keyed = await press_keys(tab, locator, Strokes(parse_key(key), repeat), Manner(timeout_ms=500, **manner), PORTS)
    return keyed, build_report(keyed.acted, tab, Judgement())


async def seen(tab):
    return (await tab.page.title()).split()


async def test_a_key_goes_to_the_named_element_which_is_focused_first(page):
    keyed, report = await press(page, "x", "#two")
    assert await page.page.input_value("#two") == "x"
    assert '"Two"' in (keyed.focused_element or "")
    assert (report.status, report.verify_state, report.dispatch_proof) == ("ok", "likely", "event")
    assert report.effect.channels == ("control_state",)


async def test_without_an_element_the_focused_one_gets_the_key(page):
    await page.page.focus("#three")
    keyed, report = await press(page, "é")
    assert await page.page.input_value("#three") == "é"
    assert '"Three"' in report.element
    assert '"Three"' in (keyed.focused_element or "")
    assert report.dispatch_proof == "event"


async def test_tab_moves_on_as_often_as_asked(page):
    await page.page.focus("#one")
    keyed, report = await press(page, "Tab", repeat=3)
    assert '"Toggle"' in (keyed.focused_element or "")
    assert report.effect.channels == ("focus_moved",)
    lines = await seen(page)
    assert [line for line in lines if line.startswith("keydown")] == [
        "keydown:Tab:one:true",
        "keydown:Tab:two:true",
        "keydown:Tab:three:true",
    ]
    assert [line for line in lines if line.startswith("keyup")] == [
        "keyup:Tab:two:true",
        "keyup:Tab:three:true",
        "keyup:Tab:plain:true",
    ]


async def test_modifiers_are_held_and_released(page):
    await page.page.fill("#one", "abc")
    await press(page, "ctrl+a", "#one")
    await press(page, "Delete", "#one")
    assert await page.page.input_value("#one") == ""
    await press(page, "b", "#one")
    assert await page.page.input_value("#one") == "b"
    assert "keyup:Control:one:true" in await seen(page)


async def test_nothing_focused_is_said_and_no_effect_is_uncertain(page):
    keyed, report = await press(page, "Escape")
    assert keyed.focused_element is None
    assert (report.status, report.reason_code, report.verify_state) == (
        "partial",
        "action.no_effect_observed",
        "uncertain",
    )
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")
    assert report.retry_advice == "check_postcondition_first"


@pytest.mark.parametrize("key", ["Space", " "])
async def test_space_presses_a_focused_box(page, key):
    _, report = await press(page, key, "#box")
    assert await page.page.is_checked("#box")
    assert report.verify_state == "likely"


@pytest.mark.parametrize(
    ("key", "selector", "kind"),
    [
        ("Enter", "#field", "submit"),
        ("Control+Enter", "#message", "send"),
        ("Enter", "#message", "send"),
        ("Enter", "#remove", "delete"),
        ("Space", "#remove", "delete"),
        ("ArrowDown", "#model", "switch_model"),
        ("t", "#model", "switch_model"),
        ("Enter", "#combo", "switch_sandbox"),
    ],
)
async def test_a_key_that_commits_needs_a_contract(page, key, selector, kind):
    with pytest.raises(Blocked) as refused:
        await press(page, key, selector)
    assert refused.value.details["commitKind"] == kind
    assert not [line for line in await seen(page) if line.startswith(("keydown", "click", "submit"))]


@pytest.mark.parametrize(
    ("key", "selector"),
    [("Enter", "#q"), ("Enter", "#plain"), ("Enter", "#link"), ("ArrowDown", "#size"), ("Space", "#field")],
)
async def test_a_key_that_commits_nothing_goes_through(page, key, selector):
    _, report = await press(page, key, selector)
    assert report.action_dispatched
    assert report.dispatch_proof == "event"


async def test_accepting_dialogs_is_a_commit_whatever_the_key(page):
    with pytest.raises(Blocked) as refused:
        await press(page, "Escape", "#one", on_dialog="accept")
    assert refused.value.details["commitKind"] == "dialog_accept"


async def test_an_element_that_takes_no_focus_is_refused(page):
    with pytest.raises(Precondition) as refused:
        await press(page, "x", "h1")
    assert refused.value.reason_code == "type.not_editable"


async def test_a_page_that_moves_the_focus_gets_no_second_field_to_type_into(tab, site):
    body = "<main><input id=a><input id=b><script>"
    body += "a.addEventListener('keydown', () => b.focus())</script></main>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    await press(tab, "x", "#a")
    assert (await tab.page.input_value("#a"), await tab.page.input_value("#b")) == ("", "")


async def test_a_field_focused_behind_our_back_gets_nothing(tab, site):
    body = "<main><input id=a><input id=b><script>"
    body += "a.addEventListener('focus', () => setTimeout(() => b.focus()))</script></main>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    with pytest.raises(Precondition):
        await press(tab, "x", "#a")
    assert (await tab.page.input_value("#a"), await tab.page.input_value("#b")) == ("", "")


async def test_keys_reach_the_focused_field_of_a_frame(tab, site):
    inner = quote("<input id=i aria-label=Inner>")
    await tab.page.goto(site.url(f"html?body={quote(f'<main><iframe src=/html?body={inner}></iframe></main>')}"))
    await tab.page.frames[1].focus("#i")
    keyed, report = await press(tab, "z")
    assert await tab.page.frames[1].input_value("#i") == "z"
    assert '"Inner"' in (keyed.focused_element or "")
    assert report.dispatch_proof == "event"
