"""One remote browser: its own tabs stay as they are, and losing it is told as what it is."""

import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nova_mcp.browser.act.navigate import back, navigate, reload
from nova_mcp.browser.act.script import evaluate
from nova_mcp.browser.process.remote import shown_endpoint
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.core.clock import system_ports
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.errors import Unavailable
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.settings import BrowserSettings
from nova_mcp.tools.browse import navigate as navigation_tools
from nova_mcp.tools.browse import sandboxes as sandbox_tools

from .conftest import Site, eventually, make_caller
from .test_runtime import own_path
from .tool_kit import tool_kit

CALLER = make_caller()


@dataclass
class Remote:
    """A Chromium that this test runs as somebody else would."""

    folder: Path
    page: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        profile = self.folder / f"profile{self.port}"
        self.process = subprocess.Popen(
            [
                *(own_path(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
                *(f"--remote-debugging-port={self.port}", f"--user-data-dir={profile}", self.page),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.port_file = profile / "DevToolsActivePort"

    async def ready(self) -> None:
        if self.port:
            await eventually(lambda: listens(self.port))
            return
        await eventually(lambda: self.port_file.exists() and len(self.port_file.read_text().splitlines()) > 1)
        self.port = int(self.port_file.read_text().splitlines()[0])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def remote(tmp_path: Path, site: Site) -> Iterator[Remote]:
    remote = Remote(tmp_path, site.url("html?title=theirs"))
    remote.start()
    yield remote
    remote.kill()


@pytest.fixture
async def browser_there(remote: Remote, tmp_path: Path) -> AsyncIterator[Browser]:
    await remote.ready()
    browser = Browser(
        BrowserSettings(cdp_endpoint=f"http://127.0.0.1:{remote.port}"),
        BrowserHome(tmp_path, "server_test", keep_first=True),
        MemoryJournal(),
        NavigationPolicy(),
        (ports := system_ports()),
        ClaimBook(ports),
    )
    yield browser
    await browser.aclose()


async def test_a_lost_node_is_told_and_kept_sandboxes_come_back_with_it(browser_there, remote, tmp_path, site) -> None:
    browser = browser_there
    tools = (navigation_tools.navigate, sandbox_tools.sandbox_list)
    async with tool_kit(tmp_path, browser, tools, CALLER.principal) as kit:
        told = await kit.call("navigate", url=site.url("html?title=mine"))
        tab = await browser.targets.resolve(CALLER, told["targetId"])
        await tab.page.evaluate("document.cookie = 'sid=1'")
        file = await kit.call("navigate", url=site.url("download"))
        assert file["downloads"][0]["state"] == "not_saved"
        assert file["downloads"][0]["note"] == "download.remote_not_saved"
        assert await browser.sandboxes.by_id(tab.sandbox_id).save()
        assert (await kit.call("sandbox_list"))["runtime"]["browser"] == f"http://127.0.0.1:{remote.port}"
        remote.kill()
        await eventually(lambda: not browser.running)
        with pytest.raises(Unavailable) as caught:
            tab.require_ready()
        assert caught.value.reason_code == "sandbox.node_lost"
        for _ in range(5):
            lost = await kit.call("navigate", url=site.url("html"))
            assert (lost["reasonCode"], lost["retryable"]) == ("sandbox.node_lost", True)
        assert [one["state"] for one in (await kit.call("sandbox_list"))["sandboxes"]] == ["unavailable"]
        remote.start()
        await remote.ready()
        report = await reload(tab)
        assert (report.status, report.title) == ("ok", "mine")
        assert "sid=1" in await tab.page.evaluate("document.cookie")
        assert [one["state"] for one in (await kit.call("sandbox_list"))["sandboxes"]] == ["ready"]
        chromium = await browser.start()
        assert [await page.title() for page in chromium.contexts[0].pages] == ["theirs"]


async def test_a_page_that_a_remote_browser_put_aside_is_no_more_believed_than_it_was(browser_there, site) -> None:
    tab = await browser_there.targets.open_tab(CALLER)
    for scripted in (False, True):
        await navigate(tab, site.url("html?title=mine"))
        if scripted:
            await evaluate(tab, "document.body.innerHTML = '<p>forged'", "main", 2000)
        else:
            await tab.page.evaluate("document.body.innerHTML = '<p>its own'")
        await navigate(tab, site.url("html?title=other"))
        assert tab.scripted_epoch != tab.page_epoch
        report = await back(tab)
        assert (report.status, report.load_state, tab.state) == ("ok", "domcontentloaded", "ready")
        # It is the very document that was left, which is why what was done to it still counts.
        assert await tab.channel.evaluate("document.body.innerText") == ("forged" if scripted else "its own")
        assert (tab.scripted_epoch == tab.page_epoch) is scripted


async def test_no_browser_at_the_address_is_a_failed_launch(tmp_path: Path, refused_port: int) -> None:
    browser = Browser(
        BrowserSettings(cdp_endpoint=f"ws://someone:secret@127.0.0.1:{refused_port}/devtools?token=hidden"),
        BrowserHome(tmp_path, "server_test"),
        MemoryJournal(),
        NavigationPolicy(),
        (ports := system_ports()),
        ClaimBook(ports),
    )
    with pytest.raises(Unavailable) as caught:
        await browser.start()
    assert caught.value.reason_code == "browser.launch_failed"
    assert "secret" not in caught.value.message
    assert "hidden" not in caught.value.message
    await browser.aclose()


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("http://127.0.0.1:9222", "http://127.0.0.1:9222"),
        ("wss://me:pw@host.test/path?token=1", "wss://host.test"),
        ("http://[::1]:9222/x", "http://[::1]:9222"),
        ("http://host:notaport/", "http://host"),
    ],
)
def test_an_endpoint_is_shown_without_its_secrets(endpoint: str, shown: str) -> None:
    assert shown_endpoint(endpoint) == shown


@pytest.mark.parametrize("endpoint", ["9222", "ftp://x", "http://", "javascript:1"])
def test_an_endpoint_of_the_wrong_shape_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="cdp_endpoint"):
        BrowserSettings(cdp_endpoint=endpoint)
