"""Clicking: what reaches the page, what is claimed about it, and what is refused untouched."""

from urllib.parse import quote

import pytest
from acting_kit import ClickOptions, click

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, InvalidParams, NotFound, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()
QUICK = ClickOptions(timeout_ms=250)


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def press(tab, selector, options=QUICK):
    return await click(tab, Locator(selector=selector), options, PORTS)


async def refs(tab):
    report = await perceive(tab, PerceiveRequest(), PORTS)
    return {element.line.split('"')[1] + element.line.split('"')[2]: element.ref for element in report.elements}


async def test_a_click_with_an_effect_is_likely_and_proven_by_its_event(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "#rows li:nth-of-type(2) button")
    assert (report.status, report.verify_state, report.reason_code) == ("ok", "likely", None)
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")
    assert report.effect.observed is True
    assert report.effect.channels == ("dom_mutation",)
    assert report.effect.new_text == ("1 in your basket",)
    assert report.retry_advice == "check_postcondition_first"
    assert report.element.split(" ", 1)[1] == 'button "Add" #rows li:nth-of-type(2) button'


async def test_a_toggle_reports_the_changed_state_of_the_control(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "#menu")
    assert set(report.effect.channels) == {"control_state", "dom_mutation"}


async def test_a_checkbox_is_checked_through_its_label_when_it_is_drawn_by_hand(tab, site):
    await show(
        tab,
        site,
        "<main><input type=checkbox id=c style='opacity:0;width:0;height:0'><label for=c>Agree?</label></main>",
    )
    report = await press(tab, "#c")
    assert await tab.page.evaluate("document.getElementById('c').checked")
    assert "control_state" in report.effect.channels


async def test_a_button_without_handler_is_uncertain(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "#quiet")
    assert (report.status, report.verify_state, report.reason_code) == (
        "partial",
        "uncertain",
        "action.no_effect_observed",
    )
    assert report.action_dispatched
    assert report.effect.observed is False


@pytest.mark.parametrize("script", ["navigator.sendBeacon('/nothing')", "throw new Error('broken')"])
async def test_a_beacon_or_a_throwing_handler_is_uncertain(tab, site, script):
    await show(tab, site, f'<main><button id=b onclick="{script}">Go</button></main>')
    report = await press(tab, "#b")
    assert (report.status, report.verify_state) == ("partial", "uncertain")
    assert report.action_dispatched


async def test_a_request_is_reported_with_its_status_and_an_error_status_is_an_error_signal(tab, site):
    await show(
        tab, site, "<main><button id=b onclick=\"fetch('/html?status=201', {method: 'POST'})\">Go</button></main>"
    )
    fine = await press(tab, "#b")
    assert (fine.status, fine.verify_state) == ("ok", "likely")
    (request,) = fine.effect.requests
    assert (request.method, request.path, request.status) == ("POST", "/html", 201)
    await show(
        tab, site, "<main><button id=b onclick=\"fetch('/html?status=500', {method: 'POST'})\">Go</button></main>"
    )
    bad = await press(tab, "#b")
    assert (bad.status, bad.verify_state, bad.reason_code) == ("partial", "uncertain", "action.error_signal")


async def test_a_request_without_answer_is_pending(tab, site):
    await show(tab, site, "<main><button id=b onclick=\"fetch('/never', {method: 'POST'})\">Go</button></main>")
    report = await press(tab, "#b")
    assert (report.status, report.reason_code) == ("partial", "action.request_pending")
    assert report.effect.requests[0].status == "pending"


@pytest.mark.parametrize("body", ["<p role=alert>Out of stock</p>", "<p>Something failed, try again</p>"])
async def test_an_alert_or_error_words_are_an_error_signal(tab, site, body):
    await show(
        tab,
        site,
        f"<main><button id=b onclick=\"o.innerHTML='{body}'\">Go</button><div id=o></div></main>",
    )
    report = await press(tab, "#b")
    assert (report.verify_state, report.reason_code) == ("uncertain", "action.error_signal")


async def test_a_link_that_leads_to_its_address_is_verified(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "role=link[name='Offers']")
    assert (report.status, report.verify_state, report.retry_advice) == ("ok", "verified", "do_not_retry")
    assert "navigation" in report.effect.channels
    assert report.navigation.url == site.url("act/other.html")
    assert report.navigation.http_status == 200


async def test_a_link_to_an_error_page_is_not_verified(tab, site):
    await show(tab, site, "<main><a href='/html?status=404'>Away</a></main>")
    report = await press(tab, "text=Away")
    assert (report.status, report.reason_code) == ("partial", "action.error_signal")


async def test_a_link_into_a_new_tab_reports_the_tab(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "text=Help")
    assert len(report.new_tab_ids) == 1
    assert "new_tab" in report.effect.channels


async def test_waiting_for_a_navigation_that_does_not_come_is_partial(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    options = ClickOptions(timeout_ms=250, wait_for_navigation=True, navigation_timeout_ms=100)
    report = await press(tab, "#menu", options)
    assert (report.status, report.reason_code) == ("partial", "navigation.not_started")


async def test_focus_moving_into_a_field_is_an_effect(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await press(tab, "#who")
    assert report.effect.channels == ("focus_moved",)


async def test_a_confirm_is_dismissed_and_makes_the_call_partial(tab, site):
    await show(
        tab,
        site,
        "<main><button id=b onclick=\"window.gone = confirm('Throw away?')\">Tidy</button></main>",
    )
    report = await press(tab, "#b")
    assert (report.status, report.reason_code) == ("partial", "dialog.confirm_dismissed")
    assert [(d.type, d.message, d.answer) for d in report.dialogs] == [("confirm", "Throw away?", "dismissed")]
    assert await tab.page.evaluate("window.gone") is False


async def test_accepting_dialogs_is_a_commit_point(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    with pytest.raises(Blocked) as refused:
        await press(tab, "#quiet", ClickOptions(timeout_ms=250, on_dialog="accept"))
    assert refused.value.details["commitKind"] == "dialog_accept"


@pytest.mark.parametrize("selector", ["role=button[name='Order now']", "text=Order now"])
async def test_a_commit_point_is_refused_before_anything_reaches_the_page(tab, site, selector):
    await tab.page.goto(site.url("act/shop.html"))
    await tab.page.evaluate("window.hits = 0; addEventListener('pointerdown', () => { window.hits += 1; }, true)")
    with pytest.raises(Blocked) as refused:
        await press(tab, selector)
    assert (refused.value.reason_code, refused.value.stage) == (
        "guarded_commit.missing_contract",
        "guarded_commit_check",
    )
    assert set(refused.value.details) >= {"commitKind", "why"}
    assert await tab.page.evaluate("window.hits") == 0


async def test_a_part_of_a_submit_button_is_as_much_a_commit_point(tab, site):
    await show(tab, site, "<form method=post><input name=a><button><b id=inner>Go on</b></button></form>")
    with pytest.raises(Blocked):
        await press(tab, "#inner")


async def test_the_shield_is_down_again_after_a_call(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    await press(tab, "#menu")
    with pytest.raises(Blocked):
        await press(tab, "text=Order now")
    await tab.page.click("#rows li:first-of-type button")
    assert await tab.page.inner_text("#basket") == "1 in your basket"


async def test_modifiers_button_and_count_arrive(tab, site):
    await show(
        tab,
        site,
        "<main><button id=b>Go</button><script>b.ondblclick = e => { document.title = 'double ' + e.shiftKey };"
        "b.oncontextmenu = e => { e.preventDefault(); document.title = 'menu' }</script></main>",
    )
    await press(tab, "#b", ClickOptions(timeout_ms=250, click_count=2, modifiers=("Shift",)))
    assert await tab.page.title() == "double true"
    await press(tab, "#b", ClickOptions(timeout_ms=250, button="right"))
    assert await tab.page.title() == "menu"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<button id=b disabled>Go</button>", "action.disabled"),
        ("<fieldset disabled><button id=b type=button>Go</button></fieldset>", "action.disabled"),
        ("<div inert><button id=b>Go</button></div>", "action.disabled"),
        ("<div aria-disabled=true><button id=b>Go</button></div>", "action.disabled"),
        ("<button id=b style='display:none'>Go</button>", "action.not_visible"),
        ("<button id=b style='visibility:hidden'>Go</button>", "action.not_visible"),
        (
            "<style>@keyframes m { to { left: 9em } }"
            "#b { position: relative; left: 0; animation: m .3s linear infinite }</style>"
            "<button id=b>Go</button>",
            "action.unstable",
        ),
    ],
)
async def test_what_cannot_be_clicked_is_refused_and_not_dispatched(tab, site, body, reason):
    await show(
        tab, site, f"<main>{body}</main><script>hits = 0; addEventListener('pointerdown', () => hits++, true)</script>"
    )
    with pytest.raises(Precondition) as refused:
        await press(tab, "#b")
    assert refused.value.reason_code == reason
    assert not refused.value.action_dispatched
    assert refused.value.stage == "actionability"
    assert await tab.page.evaluate("hits") == 0


async def test_a_button_that_becomes_enabled_in_time_is_clicked(tab, site):
    await show(
        tab,
        site,
        "<main><button id=b disabled onclick=\"this.textContent='pressed'\">Go</button>"
        "<script>setTimeout(() => { b.disabled = false }, 150)</script></main>",
    )
    report = await press(tab, "#b", ClickOptions(timeout_ms=3000))
    assert report.effect.new_text == ("pressed",)


async def test_a_missing_element_is_not_found_and_near_matches_are_named(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    with pytest.raises(NotFound) as refused:
        await press(tab, "#menu-button")
    assert refused.value.reason_code == "selector.not_found"
    assert "Menu" in refused.value.details["nearMatches"][0]["line"]
    with pytest.raises(NotFound) as refused:
        await click(tab, Locator(selector=".add", nth=7), QUICK, PORTS)
    assert refused.value.details["matchCount"] == 3


async def test_a_selector_that_is_no_selector_is_invalid(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    for selector in ("div[", "a >>> ", "role=!", "text="):
        with pytest.raises(InvalidParams) as refused:
            await press(tab, selector)
        assert refused.value.reason_code == "selector.invalid"


async def test_an_ambiguous_selector_touches_nothing_and_its_candidates_are_distinct(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    with pytest.raises(Precondition) as refused:
        await press(tab, ".add")
    assert refused.value.reason_code == "selector.ambiguous"
    candidates = refused.value.details["candidates"]
    assert len({candidate["ref"] for candidate in candidates}) == 3
    assert await tab.page.inner_text("#basket") == "Basket is empty"
    for number, candidate in enumerate(candidates, 1):
        report = await click(tab, Locator(ref=candidate["ref"]), QUICK, PORTS)
        assert report.effect.new_text == (f"{number} in your basket",)


async def test_nth_picks_among_visible_matches(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    await tab.page.evaluate("document.querySelector('#rows li').hidden = true")
    report = await click(tab, Locator(selector=".add", nth=0), QUICK, PORTS)
    assert tab.perception.get(report.ref).facts.row_key == "Rake"


async def test_a_ref_works_after_a_rerender_with_new_nodes(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    ref = (await refs(tab))["Menu #menu"]
    await tab.page.evaluate("const m = document.querySelector('main'); const h = m.innerHTML; m.innerHTML = h;")
    report = await click(tab, Locator(ref=ref), QUICK, PORTS)
    assert report.action_dispatched
    assert report.ref_rebound


async def test_a_ref_whose_row_was_recycled_is_refused_untouched(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    seen = await perceive(tab, PerceiveRequest(), PORTS)
    rake = next(e.ref for e in seen.elements if tab.perception.get(e.ref).facts.row_key == "Rake")
    await tab.page.evaluate("document.querySelectorAll('#rows li span')[1].textContent = 'Bomb'")
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(ref=rake), QUICK, PORTS)
    assert refused.value.reason_code == "ref.identity_changed"
    assert await tab.page.inner_text("#basket") == "Basket is empty"


async def test_a_ref_whose_label_changed_keeps_its_element_when_a_stable_key_holds(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    ref = (await refs(tab))["Menu #menu"]
    await tab.page.evaluate("document.getElementById('menu').textContent = 'Menü'")
    report = await click(tab, Locator(ref=ref), QUICK, PORTS)
    assert report.ref_drift == "name"


async def test_refs_of_another_page_gone_elements_and_twins_are_told_apart(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    names = await refs(tab)
    add = next(ref for line, ref in names.items() if line.startswith("Add"))
    await tab.page.evaluate("document.getElementById('menu').remove()")
    with pytest.raises(NotFound) as refused:
        await click(tab, Locator(ref=names["Menu #menu"]), QUICK, PORTS)
    assert refused.value.reason_code == "ref.stale"
    await tab.page.evaluate(
        "const r = document.getElementById('rows'); r.innerHTML = r.innerHTML.replaceAll(/Spade|Rake|Hoe/g, 'Twin')"
    )
    with pytest.raises((NotFound, Precondition)) as refused:
        await click(tab, Locator(ref=add), QUICK, PORTS)
    assert refused.value.reason_code == "ref.stale"
    with pytest.raises(NotFound) as refused:
        await click(tab, Locator(ref="e9999"), QUICK, PORTS)
    assert refused.value.reason_code == "ref.stale"
    await tab.page.goto(site.url("act/other.html"))
    with pytest.raises(NotFound) as refused:
        await click(tab, Locator(ref=names["Menu #menu"]), QUICK, PORTS)
    assert refused.value.reason_code == "ref.stale_document"


async def test_a_ref_with_several_living_twins_is_ambiguous(tab, site):
    await show(tab, site, "<main id=m><button>Go</button></main>")
    ref = (await perceive(tab, PerceiveRequest(), PORTS)).elements[0].ref
    await tab.page.evaluate("m.innerHTML = '<button>Go</button><button>Go</button>'")
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(ref=ref), QUICK, PORTS)
    assert refused.value.reason_code == "ref.ambiguous"


async def test_an_element_inside_a_shadow_root_is_clicked(tab, site):
    body = "<main><x-card id=card></x-card><p id=o></p></main><script>"
    body += "customElements.define('x-card', class extends HTMLElement {"
    body += "constructor() { super(); this.attachShadow({mode: 'open'}).innerHTML = '<button id=in>Inside</button>';"
    body += "this.shadowRoot.firstChild.onclick = () => { o.textContent = 'reached' } } })</script>"
    await show(tab, site, body)
    report = await press(tab, "#card >>> #in")
    assert (report.dispatch_proof, report.effect.new_text) == ("event", ("reached",))


async def test_an_element_below_the_fold_is_scrolled_to(tab, site):
    await show(
        tab,
        site,
        "<main><p style='height:3000px'>long</p><button id=b onclick=\"this.textContent='pressed'\">Go</button></main>",
    )
    assert (await press(tab, "#b")).effect.new_text == ("pressed",)
