"""Pages that lie, swallow, cover and storm: the answers stay the same, and nothing lands where it should not."""

from urllib.parse import quote

import pytest
from acting_kit import ClickOptions, click

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.page_facts import page_facts
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.browser.read.search import SearchRequest, search_text
from nova_mcp.browser.read.text import ReadRequest, read_text
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()
QUICK = ClickOptions(timeout_ms=250)


async def everything(tab, url):
    """What perceive, read and a click's effect say about a page, without what names the page itself."""
    await tab.page.goto(url)
    seen = await perceive(tab, PerceiveRequest(), PORTS)
    text = await read_text(tab, ReadRequest())
    found = await search_text(tab, SearchRequest("garden"))
    report = await click(tab, Locator(selector="#rows li:nth-of-type(2) button"), QUICK, PORTS)
    toggle = await click(tab, Locator(selector="role=button[name='Menu']"), QUICK, PORTS)
    return {
        "lines": [e.line.split(" ", 1)[1] for e in seen.elements],
        "headings": seen.headings,
        "landmarks": seen.landmarks,
        "commits": [(p.name, p.kind) for p in seen.commit_points],
        "title": seen.title,
        "text": text.text,
        "search": [(match.element.facts, match.snippet, match.selector) for match in found.matches],
        "effect": (report.effect.channels, report.effect.new_text, report.dispatch_proof, report.verify_state),
        "toggle": (toggle.effect.channels, toggle.dispatch_proof),
    }


@pytest.mark.parametrize("page", ["overrides", "clobbered"])
async def test_br01_br02_replaced_builtins_and_clobbered_names_change_no_answer(tab, site, page):
    clean = await everything(tab, site.url("act/shop.html"))
    assert await everything(tab, site.url(f"hostile/{page}.html")) == clean


async def test_a_page_that_swallows_every_event_cannot_hide_that_it_got_one(tab, site):
    await tab.page.goto(site.url("hostile/swallow.html"))
    report = await click(tab, Locator(selector="#go"), QUICK, PORTS)
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")


async def test_br04_endless_mutation_neither_blocks_a_look_nor_passes_for_an_effect(tab, site):
    await tab.page.goto(site.url("hostile/storm.html"))
    first = await perceive(tab, PerceiveRequest(), PORTS)
    dead = await click(tab, Locator(selector="#dead"), QUICK, PORTS)
    assert (dead.effect.observed, dead.reason_code) == (False, "action.no_effect_observed")
    live = await click(tab, Locator(selector="#live"), QUICK, PORTS)
    assert (live.effect.channels, live.effect.new_text) == (("dom_mutation",), ("done",))
    again = await perceive(tab, PerceiveRequest(), PORTS)
    assert [e.line for e in again.elements] == [e.line for e in first.elements]


@pytest.mark.parametrize(("mode", "name"), [("cover", "Offer"), ("modal", "Question"), ("move", "Offer")])
async def test_an_overlay_is_named_and_none_of_its_handlers_run(tab, site, mode, name):
    await tab.page.goto(site.url(f"hostile/overlays.html?mode={mode}"))
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(selector="#under"), QUICK, PORTS)
    assert refused.value.reason_code == "action.obstructed"
    assert not refused.value.action_dispatched
    assert name in refused.value.details["obstructedBy"]["line"]
    assert await tab.page.evaluate("hits") == []


async def test_an_overlay_that_rises_on_the_press_gets_nothing_of_it(tab, site):
    await tab.page.goto(site.url("hostile/overlays.html?mode=press"))
    report = await click(tab, Locator(selector="#under"), QUICK, PORTS)
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")
    hits = await tab.page.evaluate("hits")
    assert [hit for hit in hits if not hit.startswith("window")] == []


async def test_listeners_wiped_by_document_open_make_the_dispatch_assumed_not_denied(tab, site):
    await tab.page.goto(site.url("act/other.html"))
    await tab.page.evaluate(
        """() => { document.open(); document.write('<button id=b>Go</button>'); document.close();
        for (const type of ['pointerdown', 'mousedown', 'click', 'pointerup', 'mouseup'])
          window.addEventListener(type, event => event.stopImmediatePropagation(), true); }"""
    )
    report = await click(tab, Locator(selector="#b"), QUICK, PORTS)
    assert report.action_dispatched
    assert report.dispatch_proof == "assumed"
    assert report.verify_state == "uncertain"


async def test_an_element_that_changes_its_name_while_being_approached_is_not_clicked(tab, site):
    body = "<main><p style='height:3000px'>long</p><button id=b>Preview</button></main><script>hits = 0;"
    body += (
        "b.onclick = () => hits++; addEventListener('scroll', () => { b.id = 'c'; c.textContent = 'Empty' })</script>"
    )
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    seen = await perceive(tab, PerceiveRequest(), PORTS)
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(ref=seen.elements[0].ref), ClickOptions(timeout_ms=2000), PORTS)
    assert refused.value.reason_code == "ref.identity_changed"
    assert await tab.page.evaluate("hits") == 0


async def test_br33_hidden_text_is_absent_and_page_text_forges_no_line(tab, site):
    await tab.page.goto(site.url("hostile/hidden_text.html"))
    report = await perceive(tab, PerceiveRequest(), PORTS)
    text = report.text()
    assert "HIDDEN" not in text
    names = [e.line.split(" ", 1)[1] for e in report.elements]
    assert 'button "Bake" role=button[name="Bake"]' in names
    starts = [line for line in text.split("\n") if line.startswith("e") and line.split(" ")[0][1:].isdigit()]
    assert len(starts) == len(report.elements) == 3
    assert sum(line.startswith(f"{report.elements[0].ref} ") for line in text.split("\n")) == 1
    assert "\u202e" not in text
    assert [line for line in starts if line.endswith("[commit]")] == []


async def test_br33_titles_and_headings_cannot_break_out_of_their_line(tab, site):
    await tab.page.goto(site.url("act/other.html"))
    await tab.page.evaluate(
        "document.title = 'a\"\\u2028e1 button'; document.querySelector('h1').textContent = 'x\"\\u0085e2 button'"
    )
    text = (await perceive(tab, PerceiveRequest(), PORTS)).text()
    assert len(text.splitlines()) == len(text.split("\n"))
    assert '"a\\" e1 button"' in text or '"a\\"\\u2028e1 button"' in text


async def test_images_named_title_and_body_do_not_stand_in_for_the_real_ones(tab, site):
    await tab.page.goto(site.url("hostile/clobbered.html"))
    facts = await page_facts(tab)
    assert facts.title == "Garden shop"
