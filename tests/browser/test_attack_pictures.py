"""Pictures: only of what can be seen, of the right place, and without what was secret before."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.read.element_area import element_area
from nova_mcp.browser.read.screenshot import ShotOptions, capture
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import NotFound

from .acting_kit import TypeOptions, type_text

pytestmark = pytest.mark.browser


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"), wait_until="load")


HIDDEN = {
    "covered by a layer": "<p id=t>Text</p><div style='position:fixed;inset:0;background:#fff'>Offer</div>",
    "not shown": "<p id=t hidden>Text</p>",
    "behind a modal dialog": "<p id=t>Text</p><dialog id=d>Hi</dialog><script>d.showModal()</script>",
}


@pytest.mark.parametrize("state", HIDDEN)
async def test_an_element_nobody_can_see_is_not_pictured(tab, site, state):
    await show(tab, site, HIDDEN[state])
    with pytest.raises(NotFound) as refused:
        await element_area(tab, Locator(selector="#t"))
    assert refused.value.reason_code == "screenshot.not_capturable"


SEEN = {
    "plain": "<p id=t>Text</p>",
    "taking no pointer": "<p id=t style='pointer-events:none'>Text</p>",
    "far down the page": "<div style='height:4000px'></div><p id=t>Text</p>",
    "under an invisible layer": "<p id=t>Text</p><div style='position:fixed;inset:0;opacity:0'></div>",
    "half covered": "<p id=t>Text</p><div style='position:fixed;top:0;left:0;height:100%;width:40%'></div>",
}


@pytest.mark.parametrize("state", SEEN)
async def test_an_element_that_can_be_seen_is_pictured(tab, site, state):
    await show(tab, site, f"<body style='margin:0'>{SEEN[state]}")
    area = await element_area(tab, Locator(selector="#t"))
    assert area.width == await tab.page.evaluate("document.getElementById('t').offsetWidth")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_element_in_a_frame_is_pictured_where_the_frame_stands(tab, site, host):
    inner = site.url(f"html?body={quote('<body style=margin:0><p id=t style=margin:10px>Text</p>')}", host=host)
    frame = f"<iframe style='position:absolute;left:200px;top:100px;border:5px solid' src='{inner}'></iframe>"
    await show(tab, site, frame)
    frame_id = (await tab.channel.frame_ids())[1]
    area = await element_area(tab, Locator(selector="#t", frame_id=frame_id))
    assert (area.x, area.y) == (215, 115)


TYPED = "hunter22"
PASSWORD = "<body style='margin:0'><div id=h><input type=password id=f></div><p id=t>Hello</p>"
SHOWN_AGAIN = {
    "an open field in its place": "f.remove(); h.innerHTML = `<input value=${v}>`",
    "an area in its place": "f.remove(); h.innerHTML = `<textarea>${v}</textarea>`",
    "text in its place": "f.remove(); h.textContent = v",
    "text cut by markup": "f.remove(); h.innerHTML = `<b>${v.slice(0, 3)}</b><i>${v.slice(3)}</i>`",
    "a list in its place": "f.remove(); h.innerHTML = `<select><option>${v}</option></select>`",
    "text in a shadow root": "f.remove(); h.attachShadow({mode: 'open'}).innerHTML = `<p>${v}</p>`",
}


@pytest.mark.parametrize("how", SHOWN_AGAIN)
async def test_a_typed_password_is_covered_wherever_the_page_shows_it_then(tab, site, how):
    await show(tab, site, PASSWORD)
    await type_text(tab, Locator(selector="#f"), TypeOptions(TYPED), system_ports())
    await tab.page.evaluate(f"(() => {{ const v = f.value; {SHOWN_AGAIN[how]} }})()")
    assert (await capture(tab, ShotOptions())).masked_fields == 1


async def test_what_a_password_field_holds_is_covered_beside_it_too(tab, site):
    await show(tab, site, PASSWORD)
    await tab.page.evaluate(f"f.value = t.textContent = '{TYPED}'")
    assert (await capture(tab, ShotOptions())).masked_fields == 2


async def test_an_open_field_with_a_typed_password_reads_as_dots(tab, site):
    await show(tab, site, PASSWORD)
    await type_text(tab, Locator(selector="#f"), TypeOptions(TYPED), system_ports())
    await tab.page.evaluate("(() => { const v = f.value; h.innerHTML = `<input id=g value=${v}>` })()")
    found = await tab.channel.ask("find", {"selector": "#g"})
    assert found["element"]["value"] == "•••"


async def test_short_values_and_names_on_cards_do_not_hide_the_rest_of_the_page(tab, site):
    fields = "<input type=password value=abc><input autocomplete=cc-name value='Ada Byron'>"
    await show(tab, site, f"{fields}<p>abc</p><p>Ada Byron</p>")
    assert (await capture(tab, ShotOptions())).masked_fields == 2
