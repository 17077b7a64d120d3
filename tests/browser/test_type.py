"""Typing: read back before it is claimed, and Enter only after that."""

from urllib.parse import quote

import pytest
from acting_kit import TypeOptions, type_text

from nova_mcp.browser.act.locate import Locator
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def enter(tab, selector, text, **options):
    return await type_text(tab, Locator(selector=selector), TypeOptions(text, timeout_ms=250, **options), PORTS)


@pytest.mark.parametrize("method", ["auto", "fill", "keys"])
async def test_text_is_typed_read_back_and_verified(tab, site, method):
    await tab.page.goto(site.url("act/shop.html"))
    report = await enter(tab, "#who", "Ünal 日本", method=method)
    assert (report.status, report.verify_state, report.retry_advice) == ("ok", "verified", "safe_to_retry")
    assert report.dispatch_proof == "event"
    assert (report.typed.value_matches, report.typed.actual_value, report.typed.typed_chars) == (True, "Ünal 日本", 7)
    assert report.typed.method_used == ("keys" if method == "keys" else "fill")
    assert await tab.page.input_value("#who") == "Ünal 日本"


async def test_old_text_is_replaced_or_kept_as_asked(tab, site):
    await show(
        tab, site, "<main><input id=a value=old><textarea id=t>old</textarea><div id=d contenteditable>old</div></main>"
    )
    for field in ("#a", "#t", "#d"):
        assert (await enter(tab, field, "new")).typed.actual_value == "new"
        added = await enter(tab, field, "er", clear=False)
        assert (added.typed.value_matches, added.typed.actual_value) == (True, "newer")
        assert added.retry_advice == "do_not_retry"


async def test_empty_text_clears_the_field(tab, site):
    await show(tab, site, "<main><input id=a value=old></main>")
    report = await enter(tab, "#a", "")
    assert (report.typed.value_matches, report.typed.actual_value) == (True, "")
    assert await tab.page.input_value("#a") == ""


async def test_several_lines_go_into_a_text_area(tab, site):
    await show(tab, site, "<main><textarea id=t></textarea></main>")
    assert (await enter(tab, "#t", "one\ntwo\r\nthree")).typed.value_matches


async def test_page_scripts_see_real_input_events(tab, site):
    await show(
        tab,
        site,
        "<main><input id=a><script>a.oninput = e => { document.title = [e.isTrusted, e.inputType] }</script></main>",
    )
    await enter(tab, "#a", "x")
    assert await tab.page.title() == "true,insertText"


async def test_a_field_that_wants_keys_gets_them_once(tab, site):
    body = "<main><input id=a><script>let keys = 0; a.onkeydown = () => { keys += 1 };"
    body += "a.oninput = () => { if (!keys) a.value = '' }</script></main>"
    await show(tab, site, body)
    report = await enter(tab, "#a", "abc")
    assert (report.typed.value_matches, report.typed.method_used) == (True, "keys")


@pytest.mark.parametrize(
    "script", ["a.value = a.value.toUpperCase()", "setTimeout(() => { a.value = a.value.slice(0, 2) }, 20)"]
)
async def test_a_field_that_rewrites_its_input_is_a_mismatch_and_enter_is_not_pressed(tab, site, script):
    watch = "a.onkeydown = e => { if (e.key === 'Enter') document.title = 'entered' }"
    body = f"<main><input id=a><script>a.oninput = () => {{ {script} }}; {watch}</script></main>"
    await show(tab, site, body)
    report = await enter(tab, "#a", "abcd", press_enter=True)
    assert (report.status, report.verify_state, report.reason_code) == ("partial", "failed", "type.value_mismatch")
    assert not report.typed.value_matches
    assert report.typed.actual_value == await tab.page.input_value("#a")
    assert await tab.page.title() == "page"


async def test_enter_follows_a_match_outside_of_forms(tab, site):
    reply = "a.onkeydown = e => { if (e.key === 'Enter') o.textContent = 'found ' + a.value }"
    await show(tab, site, f"<main><input id=a><p id=o></p><script>{reply}</script></main>")
    report = await enter(tab, "#a", "tea", press_enter=True)
    assert report.effect.new_text == ("found tea",)
    assert report.verify_state == "likely"


async def test_enter_that_does_nothing_is_uncertain_although_the_text_arrived(tab, site):
    await show(tab, site, "<main><input id=a></main>")
    report = await enter(tab, "#a", "tea", press_enter=True)
    assert report.typed.value_matches
    assert (report.verify_state, report.reason_code) == ("uncertain", "action.no_effect_observed")


async def test_enter_in_a_search_form_is_no_commit(tab, site):
    await show(tab, site, "<main><form role=search action=/html><input name=q aria-label=Search id=q></form></main>")
    report = await enter(tab, "#q", "tea", press_enter=True)
    assert "navigation" in report.effect.channels


@pytest.mark.parametrize(
    "body",
    [
        "<form method=post action=/html><input id=a name=mail></form>",
        "<div><div id=a contenteditable aria-label='Message'></div><button>Send</button></div>",
    ],
)
async def test_enter_in_a_form_or_composer_is_refused_before_anything_is_typed(tab, site, body):
    await show(tab, site, f"<main>{body}</main>")
    with pytest.raises(Blocked) as refused:
        await enter(tab, "#a", "hello", press_enter=True)
    assert refused.value.reason_code == "guarded_commit.missing_contract"
    assert await tab.page.evaluate("a.value ?? a.textContent") == ""


async def test_a_password_never_comes_back(tab, site):
    await show(tab, site, "<main><input id=a type=password><input id=b autocomplete=one-time-code></main>")
    for field in ("#a", "#b"):
        report = await enter(tab, field, "hunter2-secret")
        assert (report.typed.value_matches, report.typed.actual_value) == (True, "•••")
        assert "hunter2" not in repr(report)


@pytest.mark.parametrize(
    "body", ["<button id=a>Go</button>", "<input id=a readonly>", "<input id=a type=checkbox>", "<p id=a>text</p>"]
)
async def test_what_takes_no_text_is_not_editable(tab, site, body):
    await show(tab, site, f"<main>{body}</main>")
    with pytest.raises(Precondition) as refused:
        await enter(tab, "#a", "x")
    assert refused.value.reason_code == "type.not_editable"
    assert not refused.value.action_dispatched


async def test_text_never_lands_in_a_field_that_steals_the_focus(tab, site):
    await show(tab, site, "<main><input id=a onfocus='b.focus()'><input id=b></main>")
    with pytest.raises(Precondition):
        await enter(tab, "#a", "private")
    assert await tab.page.evaluate("a.value + b.value") == ""
    await show(tab, site, "<main><input id=a onkeydown='b.focus()'><input id=b></main>")
    report = await enter(tab, "#a", "private", method="keys")
    assert not report.typed.value_matches
    assert await tab.page.input_value("#b") == ""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", "2026-11-16"),
        ("time", "09:30"),
        ("month", "2026-11"),
        ("week", "2026-W47"),
        ("datetime-local", "2026-11-16T09:30"),
        ("color", "#ff8800"),
        ("range", "40"),
    ],
)
async def test_fields_of_a_set_form_take_their_value_as_a_whole(tab, site, kind, text):
    await tab.page.goto(site.url(f"html?body={quote(f'<input id=a type={kind} oninput=n.value=1><input id=n>')}"))
    report = await enter(tab, "#a", text)
    assert (report.typed.value_matches, report.verify_state, report.dispatch_proof) == (True, "verified", "event")
    assert await tab.page.input_value("#n") == "1"


async def test_a_value_of_the_wrong_form_is_a_mismatch(tab, site):
    await tab.page.goto(site.url(f"html?body={quote('<input id=a type=date>')}"))
    report = await enter(tab, "#a", "16.11.2026")
    assert (report.typed.value_matches, report.reason_code) == (False, "type.value_mismatch")
