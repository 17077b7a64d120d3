"""Pictures of elements: only of what can be seen, and of the right place."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.element_area import element_area
from nova_mcp.browser.locate import Locator
from nova_mcp.errors import NotFound

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
