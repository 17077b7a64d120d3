"""The focus is taken away while keys and text are on their way: nothing lands where nobody judged."""

import contextlib
from urllib.parse import quote

import pytest
from acting_kit import TypeOptions, type_text

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.press_keys import Strokes, press_keys
from nova_mcp.core.clock import system_ports
from nova_mcp.core.page.keys import parse_key
from nova_mcp.errors import NovaError

pytestmark = pytest.mark.browser
PORTS = system_ports()
THIEF = (
    "<form method=post action=/never><input id=g></form>"
    "<script>g.addEventListener('input',()=>{document.title=g.value});setInterval(()=>g.focus(),1)</script>"
)


async def with_thief(tab, site, host):
    frame = site.url(f"html?body={quote(THIEF)}", host=host)
    body = f'<input id=a><iframe src="{frame}"></iframe>'
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def stolen(tab):
    return await tab.page.frames[1].evaluate("document.querySelector('#g').value")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("method", ["auto", "keys"])
async def test_text_never_reaches_a_frame_that_steals_the_focus(tab, site, host, method):
    await with_thief(tab, site, host)
    for _ in range(3):
        with contextlib.suppress(NovaError):
            await type_text(tab, Locator(selector="#a"), TypeOptions("hunter2", method=method, timeout_ms=500), PORTS)
        assert await stolen(tab) == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_enter_never_commits_in_a_frame_that_steals_the_focus(tab, site, host):
    await with_thief(tab, site, host)
    for _ in range(3):
        with contextlib.suppress(NovaError):
            await press_keys(tab, Locator(selector="#a"), Strokes(parse_key("Enter")), Manner(timeout_ms=500), PORTS)
    assert ("POST", "/never") not in site.methods
