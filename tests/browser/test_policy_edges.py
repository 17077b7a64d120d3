"""The policy where it is easily missed: popups older than their guard, names that lie, pictures, Nova's own port."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.policy import NavigationPolicy

from .conftest import Site, make_browser, make_caller

CALLER = make_caller()
# A Cyrillic letter inside a Latin word.
LOOKALIKE = "xn--pypal-4ve.test"
CLOSED = NavigationPolicy(private_network="deny")


@pytest.fixture(scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """A browser with its own way out, as one elsewhere has; every name below .test means this machine to it."""
    names = ("--host-resolver-rules=MAP *.test 127.0.0.1",)
    browser = make_browser(tmp_path_factory.mktemp("edges"), extra_args=names, network=None)
    yield browser
    await browser.aclose()


@pytest.fixture
async def opener(own: Browser) -> AsyncIterator[Tab]:
    parts = own.targets._parts
    yield await own.targets.open_tab(CALLER)
    own.targets._parts = parts
    for tab in own.targets.list_tabs(CALLER):
        await own.targets.close_tab(tab)


async def late_popup(own: Browser, opener: Tab, url: str, policy: NavigationPolicy, *, traced: bool = True) -> Tab:
    """A popup whose page has loaded before anybody watched it."""
    page = await opener.page.context.new_page()
    await page.goto(url)
    if not traced:
        # More requests than the driver remembers push the one for the document out.
        page.requests = nothing  # type: ignore[method-assign]
    own.targets._parts = replace(own.targets._parts, policy=policy)
    target_id = await own.targets.popup_opened(opener, page, keep=True)
    return await own.targets.resolve(CALLER, str(target_id))


async def nothing() -> list[object]:
    return []


async def body(tab: Tab) -> object:
    return await tab.channel.evaluate("document.body ? document.body.innerText : ''")


async def test_a_popup_from_a_lying_name_is_blanked_before_a_read(own: Browser, opener: Tab, site: Site) -> None:
    popup = await late_popup(own, opener, site.url("html?body=inside", host="rebind.test"), CLOSED)
    assert await body(popup) == ""
    assert popup.guard.denied is not None
    assert popup.guard.denied.reason_code == "policy.private_network"
    assert popup.page.url == "about:blank"


async def test_a_popup_whose_origin_was_hidden_is_blanked_too(own: Browser, opener: Tab, site: Site) -> None:
    url = site.url("html?body=inside", host="rebind.test")
    popup = await late_popup(own, opener, url, NavigationPolicy(), traced=False)
    assert await body(popup) == ""
    assert popup.page.url == "about:blank"


async def test_a_popup_from_an_allowed_address_stays(own: Browser, opener: Tab, site: Site) -> None:
    url = site.url("html?body=inside", host="rebind.test")
    popup = await late_popup(own, opener, url, NavigationPolicy(private_network="loopback"))
    assert await body(popup) == "inside"
    assert popup.guard.denied is None


async def test_novas_own_port_is_refused_under_any_name_in_any_mode(own: Browser, opener: Tab, site: Site) -> None:
    opener.guard.policy = NavigationPolicy(private_network="lan", own_ports=frozenset({site.port}))
    report = await navigate(opener, site.url("html?body=inside", host="nova.test"))
    assert (report.status, report.reason_code) == ("blocked", "policy.private_network")
    assert await body(opener) == ""


async def test_a_lookalike_host_is_told_also_when_a_redirect_leads_there(own: Browser, opener: Tab, site: Site) -> None:
    report = await navigate(opener, site.url(f"redirect?to={site.url('html', host=LOOKALIKE)}"))
    assert (report.status, report.warnings) == ("ok", ("policy.lookalike_host",))


async def test_pictures_and_frames_are_filtered_only_when_asked_for(tmp_path: Path, browser, site: Site) -> None:
    class Filtering(Browser):
        async def start(self):
            return await browser.start()

    def picture(name: str) -> str:
        return f"<img src='{site.url(name, host='localhost')}'>"

    frame = site.url(f"html?body={quote(picture('frame.png'))}", host="a.localhost")
    inside = picture("pixel.png") + f'<iframe src="{frame}"></iframe>'
    page = site.url(f"html?body={quote(inside)}")
    for filtered in (False, True):
        server = Filtering(
            browser._settings.model_copy(update={"filter_subresources": filtered}),
            replace(browser._home, data_dir=tmp_path),
            browser.targets._journal,
            NavigationPolicy(deny_hosts=("localhost",)),
            browser._ports,
        )
        site.seen.clear()
        tab = await server.targets.open_tab(CALLER)
        await navigate(tab, page)
        await tab.page.wait_for_load_state("load")
        asked = {path for path in site.seen if path.endswith(".png")}
        assert asked == (set() if filtered else {"/pixel.png", "/frame.png"})
        await server.targets.close_tab(tab)
        for sandbox in server.sandboxes:
            await server.sandboxes.delete(sandbox)


def test_behind_the_machines_own_proxy_there_is_none_of_novas_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert make_browser(tmp_path).egress is not None
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    assert make_browser(tmp_path).egress is None
    assert "addresses are judged for documents only" in caplog.text
