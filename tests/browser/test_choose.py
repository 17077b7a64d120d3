"""Choosing: a state is set with trusted input, once, and read back."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement, build_report
from nova_mcp.browser.act.choose import Choice, choose
from nova_mcp.browser.act.locate import Locator
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, InvalidParams, NotFound, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()


@pytest.fixture
async def page(tab, site):
    await tab.page.goto(site.url("act/choices.html"))
    return tab


async def pick(tab, selector, timeout_ms=1500, **wish):
    chosen = await choose(tab, Locator(selector=selector), Choice(**wish), Manner(timeout_ms=timeout_ms), PORTS)
    known = Judgement(
        chosen.verdict, repeat_safe=True, differs_reason="option.not_applied", already_set=chosen.already_set
    )
    return chosen, build_report(chosen.acted, tab, known)


async def log_of(tab):
    return (await tab.page.text_content("#log")).split()


@pytest.mark.parametrize("wish", [{"text": "large"}, {"value": "l"}, {"index": 3}, {"texts": ("Large",)}])
async def test_a_select_is_set_with_one_trusted_change(page, wish):
    chosen, report = await pick(page, "#size", **wish)
    assert (chosen.kind, chosen.before, chosen.after, chosen.option_count) == ("select", "Choose one", "Large", 5)
    assert (report.status, report.verify_state, report.retry_advice) == ("ok", "verified", "safe_to_retry")
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")
    assert await log_of(page) == ["size:input:true:Large", "size:change:true:Large"]


async def test_the_first_option_can_be_chosen_again(page):
    await pick(page, "#size", text="Large")
    chosen, _ = await pick(page, "#size", index=0)
    assert (chosen.before, chosen.after, chosen.verdict) == ("Large", "Choose one", "readback_match")


async def test_what_is_set_already_is_left_alone(page):
    await pick(page, "#size", text="Large")
    before = await log_of(page)
    chosen, report = await pick(page, "#size", text="Large")
    assert chosen.already_set
    assert (report.status, report.verify_state, report.action_dispatched) == ("ok", "verified", False)
    assert report.effect.observed is False
    assert report.retry_advice == "safe_to_retry"
    assert await log_of(page) == before


async def test_a_missing_option_is_named_with_those_that_exist(page):
    with pytest.raises(NotFound) as refused:
        await pick(page, "#size", text="Huge")
    assert refused.value.reason_code == "option.not_found"
    assert refused.value.details["options"] == ["Choose one", "Small", "Medium", "Large", "Extra large"]
    assert await log_of(page) == []


async def test_an_option_that_is_off_is_refused(page):
    with pytest.raises(Precondition) as refused:
        await pick(page, "#size", text="Medium")
    assert refused.value.reason_code == "option.disabled"
    assert await page.page.input_value("#size") == ""


async def test_a_long_list_of_options_is_cut(tab, site):
    options = "".join(f"<option>n{i}</option>" for i in range(60))
    await tab.page.goto(site.url(f"html?body={quote(f'<main><select id=s>{options}</select></main>')}"))
    with pytest.raises(NotFound) as refused:
        await pick(tab, "#s", text="x")
    assert len(refused.value.details["options"]) == 20
    assert refused.value.details["optionCount"] == 60


async def test_several_options_are_set_exactly_with_one_change(page):
    chosen, report = await pick(page, "#colours", texts=("Green", "Black"))
    assert (chosen.before, chosen.after) == (["Red"], ["Green", "Black"])
    assert (report.verify_state, report.dispatch_proof) == ("verified", "event")
    assert [line for line in await log_of(page) if ":change:" in line] == ["colours:change:true:Green+Black"]


async def test_several_options_can_all_be_taken_back(page):
    chosen, _ = await pick(page, "#colours", texts=())
    assert (chosen.after, chosen.verdict) == ([], "readback_match")


async def test_an_open_list_of_one_is_pressed(page):
    chosen, report = await pick(page, "#rows", text="Four")
    assert (chosen.after, report.verify_state, report.dispatch_proof) == ("Four", "verified", "event")
    assert "rows:change:true:Four" in await log_of(page)


async def test_more_than_one_choice_for_a_control_that_takes_one_is_bad_input(page):
    with pytest.raises(InvalidParams):
        await pick(page, "#size", texts=("Small", "Large"))


@pytest.mark.parametrize("selector", ["#pay", "[value=post]", "[value=pick]"])
async def test_a_radio_button_is_chosen_by_its_group(page, selector):
    chosen, report = await pick(page, selector, text="Pick up")
    assert (chosen.kind, chosen.before, chosen.after, chosen.option_count) == ("radio", "By post", "Pick up", 3)
    assert (report.verify_state, report.dispatch_proof) == ("verified", "event")


async def test_a_radio_button_stays_on(page):
    chosen, _ = await pick(page, "[value=pick]", checked=True)
    assert chosen.after == "Pick up"
    with pytest.raises(Precondition) as refused:
        await pick(page, "[value=pick]", checked=False)
    assert refused.value.reason_code == "option.not_applied"


@pytest.mark.parametrize(
    ("selector", "kind"),
    [("#gift", "checkbox"), ("#drawn", "checkbox"), ("#drawn-box", "checkbox"), ("#night", "switch")],
)
async def test_switches_and_boxes_are_set_and_read_back(page, selector, kind):
    for checked in (True, False):
        chosen, report = await pick(page, selector, checked=checked)
        assert (chosen.kind, chosen.before, chosen.after) == (kind, not checked, checked)
        assert (report.verify_state, report.dispatch_proof) == ("verified", "event")
        again, untouched = await pick(page, selector, checked=checked)
        assert again.already_set
        assert not untouched.action_dispatched


async def test_a_box_that_goes_back_is_told_so(page):
    chosen, report = await pick(page, "#stubborn", checked=True)
    assert (chosen.after, chosen.verdict) == (False, "readback_differs")
    assert (report.status, report.reason_code, report.verify_state) == ("partial", "option.not_applied", "failed")
    assert report.retry_advice == "safe_to_retry"


@pytest.mark.parametrize(
    ("selector", "wish"), [("#gift", {"text": "x"}), ("#size", {"checked": True}), ("h1", {"text": "x"})]
)
async def test_a_wish_that_does_not_fit_the_control_is_bad_input(page, selector, wish):
    with pytest.raises(InvalidParams):
        await pick(page, selector, **wish)


@pytest.mark.parametrize("wish", [{"text": "Banana"}, {"value": "banana"}, {"index": 1}])
async def test_a_list_made_by_script_is_opened_and_one_option_pressed(page, wish):
    chosen, report = await pick(page, "#fruit", **wish)
    assert (chosen.kind, chosen.before, chosen.after, chosen.option_count) == ("combobox", "Apple", "Banana", 3)
    assert (report.verify_state, report.dispatch_proof) == ("verified", "event")
    assert await log_of(page) == ["fruit:true:Banana"]


async def test_a_list_that_shows_the_choice_already_stays_closed(page):
    chosen, report = await pick(page, "#fruit", text="apple")
    assert chosen.already_set
    assert not report.action_dispatched
    assert await page.page.get_attribute("#fruit", "aria-expanded") == "false"


async def test_options_of_a_list_made_by_script_are_listed_and_disabled_ones_refused(page):
    with pytest.raises(NotFound) as missing:
        await pick(page, "#fruit", timeout_ms=300, text="Mango")
    assert missing.value.details["options"] == ["Apple", "Banana", "Cherry"]
    with pytest.raises(Precondition) as disabled:
        await pick(page, "#fruit", text="Cherry")
    assert disabled.value.reason_code == "option.disabled"


async def test_two_options_of_one_name_are_told_apart_by_value_or_index(page):
    await page.page.set_content(
        "<main><select id=s><option value=0>Pick<option value=1>Berlin<option value=2>Berlin</select></main>"
    )
    with pytest.raises(NotFound) as refused:
        await pick(page, "#s", text="Berlin")
    assert refused.value.reason_code == "option.not_found"
    assert "several options" in refused.value.message
    assert await page.page.input_value("#s") == "0"
    chosen, _ = await pick(page, "#s", value="2")
    assert chosen.after == "Berlin"
    assert await page.page.input_value("#s") == "2"


async def test_a_control_that_opens_nothing_has_no_option(page):
    with pytest.raises(NotFound) as refused:
        await pick(page, "#dead", timeout_ms=200, text="x")
    assert refused.value.reason_code == "option.not_found"


async def test_a_list_that_takes_several_is_brought_to_exactly_those(page):
    chosen, report = await pick(page, "#tags", values=("2", "3"))
    assert (chosen.kind, chosen.before, chosen.after) == ("listbox", ["News"], ["Sport", "Music"])
    assert report.verify_state == "verified"


@pytest.mark.parametrize("selector", ["#model", "#engine"])
async def test_choosing_a_model_needs_a_contract(page, selector):
    with pytest.raises(Blocked) as refused:
        await pick(page, selector, text="Thorough")
    assert refused.value.reason_code == "guarded_commit.missing_contract"
    assert refused.value.details["commitKind"] == "switch_model"
    assert await log_of(page) == []
    assert await page.page.input_value("#model") == "Swift"


async def test_a_select_whose_page_swallows_keys_is_set_all_the_same(tab, site):
    body = "<main><select id=s><option>a</option><option>b</option><option>c</option></select><script>"
    body += "addEventListener('keydown', e => { e.preventDefault(); e.stopImmediatePropagation() }, true);"
    body += "let n = 0; s.onchange = () => { n += 1; document.title = s.value + n }</script></main>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    chosen, report = await pick(tab, "#s", text="c")
    assert (chosen.after, report.verify_state, report.dispatch_proof) == ("c", "verified", "event")
    assert await tab.page.title() == "c1"


async def test_a_select_that_leads_away_reports_the_navigation(tab, site):
    body = "<main><select id=s onchange=\"location='/act/other.html'\"><option>a</option><option>b</option>"
    body += "</select></main>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    _, report = await pick(tab, "#s", text="b")
    assert "navigation" in report.effect.channels
    assert report.action_dispatched


async def test_a_select_in_a_frame_is_set(tab, site):
    inner = quote("<select id=s><option>a</option><option>b</option></select>")
    await tab.page.goto(site.url(f"html?body={quote(f'<main><iframe src=/html?body={inner}></iframe></main>')}"))
    frame_id = (await tab.channel.frame_ids())[1]
    chosen = await choose(
        tab, Locator(selector="#s", frame_id=frame_id), Choice(text="b"), Manner(timeout_ms=1500), PORTS
    )
    assert (chosen.after, chosen.verdict) == ("b", "readback_match")
