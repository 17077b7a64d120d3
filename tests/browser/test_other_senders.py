"""What an action sends by other ways than its own page: into a new tab, or through a worker."""

from urllib.parse import quote

from acting_kit import ClickOptions, click

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.click import Press
from nova_mcp.browser.act.click import click as press
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.clock import system_ports
from nova_mcp.evidence.model import Caller

from .conftest import Site, eventually

PORTS = system_ports()
FORM = "<form method=post target=_blank action='/html?status=503'><input name=a value=1></form>"
# A control that does not look like a commit, so that no contract is needed to press it.
BUTTON = "<main><button id=b>Next</button></main><script>b.onclick = () => document.forms[0].submit()</script>"


async def test_fields_posted_into_a_new_tab_are_the_actions_own(tab: Tab, site: Site) -> None:
    await tab.page.goto(site.url(f"html?body={quote(FORM + BUTTON)}"))
    report = await click(tab, Locator(selector="#b"), ClickOptions(), PORTS)
    assert [(one.method, one.path, one.status) for one in report.effect.requests] == [("POST", "/html", 503)]
    assert (report.verify_state, report.reason_code) == ("uncertain", "action.error_signal")
    assert len(report.new_tab_ids) == 1
    assert tab.http_status != 503


async def test_what_another_tab_of_the_sandbox_sends_is_not(
    tab: Tab, site: Site, browser: Browser, caller: Caller
) -> None:
    other = await browser.targets.open_tab(caller, activate=False)
    await other.page.goto(site.url("html?body=other"))
    await tab.page.goto(site.url("html?body=<main><button id=b>Next</button></main>"))
    async with tab.watch() as window:
        await other.page.evaluate("fetch('/html', {method: 'POST'})")
        acted = await press(tab, Locator(selector="#b"), Press(), Manner(), PORTS)
    assert ("POST", "/html") in site.methods
    assert window.requests == []
    assert acted.observation is not None
    assert acted.observation.signs.requests == ()


async def test_what_a_worker_sends_for_the_page_is_seen(tab: Tab, site: Site) -> None:
    await tab.page.goto(site.url("act/worker.html"))
    async with tab.watch() as window:
        await press(tab, Locator(selector="#b"), Press(), Manner(timeout_ms=10_000), PORTS)
        await eventually(lambda: ("POST", "/worker-order?status=500") in site.methods)
        await eventually(lambda: [(one.method, one.path) for one in window.requests] == [("POST", "/worker-order")])
