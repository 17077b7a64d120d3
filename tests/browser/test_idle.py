"""An idle browser is released by the clock, saves first, and comes back when somebody needs it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser as Chromium

from nova_mcp.browser.act.navigate import navigate, reload
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.core.clock import Ports, system_ports
from nova_mcp.core.leases import IMPLICIT_LEASE_MS
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.errors import Unavailable
from nova_mcp.evidence.targets.journal import MemoryJournal, TargetKind
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.settings import BrowserSettings

from .conftest import Site, make_caller
from .test_persistence import MovingClock

TEN_MINUTES = 600_000
CALLER = make_caller()


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


class Interrupted(MemoryJournal):
    """Lets something happen while a tab gets its number: its page is there, and nobody knows of it yet."""

    def __init__(self) -> None:
        super().__init__()
        self.between: Callable[[], Awaitable[None]] | None = None

    async def next_number(self, kind: TargetKind) -> int:
        between, self.between = self.between, None
        if between is not None:
            await between()
        return await super().next_number(kind)


@pytest.fixture
def journal() -> Interrupted:
    return Interrupted()


@pytest.fixture
async def own(tmp_path: Path, clock: MovingClock, journal: Interrupted) -> AsyncIterator[Browser]:
    browser = Browser(
        BrowserSettings(),
        BrowserHome(tmp_path, "server_test", keep_first=True),
        journal,
        NavigationPolicy(),
        (ports := Ports(clock, system_ports().ids)),
        ClaimBook(ports),
    )
    yield browser
    await browser.aclose()


async def test_after_ten_idle_minutes_the_browser_goes_and_the_next_call_brings_it_back(own, clock, site: Site) -> None:
    tab = await own.targets.open_tab(CALLER)
    await navigate(tab, site.url("html?title=kept"))
    await tab.page.evaluate("document.cookie = 'sid=1'")
    clock.now += TEN_MINUTES - 1
    await own.care()
    assert own.running
    async with tab.lock.shared():
        clock.now += 1
        await own.care()
        assert own.running, "somebody is at work"
    await own.care()
    assert (own.running, tab.state) == (False, "lost")
    assert await own.targets.resolve(CALLER) is tab
    with pytest.raises(Unavailable) as caught:
        tab.require_ready()
    assert caught.value.reason_code == "tab.lost"
    report = await reload(tab, recover=True)
    assert (report.status, report.title, report.recovered) == ("ok", "kept", True)
    assert "sid=1" in await tab.page.evaluate("document.cookie"), "it was saved before"


async def test_a_tab_that_is_being_opened_after_a_long_pause_keeps_the_browser(own, clock, journal) -> None:
    first = await own.targets.open_tab(CALLER)
    clock.now += TEN_MINUTES
    journal.between = own.care
    second = await own.targets.open_tab(CALLER)
    assert (own.running, first.state, second.state) == (True, "ready", "ready")
    second.lease = None
    clock.now += TEN_MINUTES
    await own.care()
    assert not own.running, "nobody opens anything any more"


class Borrowed(Browser):
    """A server on the one Chromium of the tests, which it never closes."""

    async def start(self) -> Chromium:
        if self._chromium is None:
            raise AssertionError("nothing was borrowed")
        return self._chromium


@pytest.fixture
async def borrowed(tmp_path: Path, clock: MovingClock, browser: Browser) -> AsyncIterator[Browser]:
    ports = Ports(clock, system_ports().ids)
    home = BrowserHome(tmp_path, "server_test")
    server = Borrowed(BrowserSettings(), home, MemoryJournal(), NavigationPolicy(), ports)
    server._chromium = await browser.start()
    yield server
    for tab in server.targets.list_tabs(CALLER):
        await server.targets.close_tab(tab)
    for sandbox in server.sandboxes:
        await server.sandboxes.delete(sandbox)
    server._chromium = None
    await server.aclose()


async def test_a_lease_or_a_running_download_keeps_the_browser(borrowed: Browser, clock: MovingClock) -> None:
    tab = await borrowed.targets.open_tab(CALLER)
    clock.now += IMPLICIT_LEASE_MS - 1
    assert borrowed.idle_since() == 0
    clock.now += 1
    assert borrowed.idle_since() == IMPLICIT_LEASE_MS
    await borrowed.downloads._on_begin({"guid": "g", "url": "http://x.test/f", "suggestedFilename": "f"})
    assert borrowed.idle_since() == 0
    borrowed.downloads.browser_gone()
    assert borrowed.idle_since() == IMPLICIT_LEASE_MS
    tab.touch()
    assert borrowed.idle_since() == 0


async def test_who_comes_back_while_the_jar_is_being_saved_keeps_the_browser(borrowed, clock, monkeypatch) -> None:
    tab = await borrowed.targets.open_tab(CALLER)
    clock.now += TEN_MINUTES

    async def saving() -> None:
        tab.touch()

    monkeypatch.setattr(borrowed.sandboxes, "save_all", saving)
    await borrowed.care()
    assert borrowed.running
    assert tab.state == "ready"
