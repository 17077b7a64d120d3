"""The browser process: started on first use, relaunched after death, released when nobody needs it."""

import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from playwright.async_api import Browser as Chromium
from playwright.async_api import Error, Playwright, async_playwright

from nova_mcp.browser.claim_book import ClaimBook
from nova_mcp.browser.claims import is_live
from nova_mcp.browser.discovery import Found, find_browser, has_display, this_machine
from nova_mcp.browser.download_files import UPLOADS, DownloadFiles, clear_partial
from nova_mcp.browser.download_rules import DownloadLimits
from nova_mcp.browser.downloads import Downloads
from nova_mcp.browser.egress import Egress, EgressRules, Network, system_network, system_proxy
from nova_mcp.browser.guard import filter_requests
from nova_mcp.browser.host_lag import HostLag
from nova_mcp.browser.kept_files import KeptFiles
from nova_mcp.browser.leftovers import end_leftovers, write_note
from nova_mcp.browser.page import load_bundle
from nova_mcp.browser.remote import connect, node_lost, shown_endpoint
from nova_mcp.browser.sandboxes import Sandboxes, SandboxParts
from nova_mcp.browser.switches import egress_args, launch_args
from nova_mcp.browser.target_journal import TargetJournal
from nova_mcp.browser.targets import PageParts, Targets
from nova_mcp.browser.upload_staging import UploadStaging
from nova_mcp.clock import Ports
from nova_mcp.errors import Unavailable
from nova_mcp.policy import NavigationPolicy, unfindable_hosts
from nova_mcp.settings import BrowserSettings
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

SandboxMode = Literal["on", "off", "off_root"]

MAX_RELAUNCHES = 3
RELAUNCH_WINDOW_MS = 60_000
CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """What runs, as far as it runs."""

    browser: str | None
    version: str | None
    # Not to be known of a browser somebody else started.
    headless: bool | None
    chromium_sandbox: SandboxMode | None
    remote: bool


def sandbox_mode(setting: Literal["auto", "on", "off"], uid: int | None) -> SandboxMode:
    """Chromium refuses its sandbox to root, so `auto` turns it off there and says so."""
    if setting != "auto":
        return setting
    return "off_root" if uid == 0 else "on"


def may_launch(earlier_ms: tuple[float, ...], now_ms: float) -> bool:
    """The first start and three relaunches within a minute; a browser that keeps dying is left alone."""
    recent = sum(1 for at in earlier_ms if now_ms - at < RELAUNCH_WINDOW_MS)
    return recent <= MAX_RELAUNCHES


@dataclass(frozen=True, slots=True)
class BrowserHome:
    """Where the browser keeps its notes, whose it is, what else it is started with, and whether it remembers."""

    data_dir: Path
    server_id: str
    extra_args: tuple[str, ...] = ()
    keep_first: bool = False
    download_limits: DownloadLimits | None = None
    # The way out of the browser; None leaves it to the browser itself.
    network: Network | None = field(default_factory=system_network)


class Browser:
    """The facade the rest of Nova holds: one Chromium, its sandboxes and its tabs."""

    def __init__(
        self,
        settings: BrowserSettings,
        home: BrowserHome,
        journal: TargetJournal,
        policy: NavigationPolicy,
        ports: Ports,
        claims: ClaimBook | None = None,
    ) -> None:
        self._settings = settings
        self._home = home
        self._ports = ports
        self.policy = policy
        self.lag = HostLag(ports.clock.monotonic_ms)
        remote = settings.cdp_endpoint is not None
        self.downloads = Downloads(home.data_dir, remote=remote, limits=home.download_limits, policy=policy)
        self.egress = self._egress()
        self.sandboxes = Sandboxes(self.start, journal, ports, self._sandbox_parts())
        self.staging = UploadStaging(home.data_dir, home.server_id, ports.ids.token)
        self.claims = claims or ClaimBook(ports)
        parts = PageParts(load_bundle(), policy, self.lag, self.downloads, self.egress, self._files_of)
        self.targets = Targets(self.sandboxes, journal, ports, parts, self.claims)
        self._starting = anyio.Lock()
        self._playwright: Playwright | None = None
        self._chromium: Chromium | None = None
        self._found: Found | None = None
        self._launches: deque[float] = deque(maxlen=MAX_RELAUNCHES + 1)
        self._note: Path | None = None
        self._used_ms = ports.clock.now_ms()
        # The remote browser was there once; and it is not any more.
        self._met_node = False
        self.node_lost = False

    def _egress(self) -> Egress | None:
        """A browser elsewhere has a network of its own, and one behind a proxy resolves no names."""
        if self._settings.cdp_endpoint is not None or self._home.network is None:
            return None
        if system_proxy() is not None:
            log.warning("a proxy is set for this machine: addresses are judged for documents only")
            return None
        return Egress(EgressRules(self.policy, every_host=self._settings.filter_subresources), self._home.network)

    async def _proxy_port(self, egress: Egress, sandbox_id: str) -> int:
        def open_urls() -> list[str]:
            return [tab.url for tab in self.targets if tab.sandbox_id == sandbox_id]

        return (await egress.proxy(sandbox_id, open_urls)).port

    def _files_of(self, sandbox_id: str) -> tuple[Path, tuple[Path, ...]]:
        data, ref = self._home.data_dir, self.sandboxes.by_id(sandbox_id).sandbox_ref
        return data, (DownloadFiles(data, ref).folder, data / UPLOADS)

    def _sandbox_parts(self) -> SandboxParts:
        settings, home, egress = self._settings, self._home, self.egress
        parts = SandboxParts(settings.viewport, KeptFiles(home.data_dir), home.keep_first, self.downloads)
        if egress is not None:
            parts = replace(parts, proxy_port=partial(self._proxy_port, egress), dropped=egress.drop)
        # The proxy judges what goes to the network; files of this machine do not.
        if not settings.filter_subresources or (egress is not None and not self.policy.allow_file_roots):
            return parts
        # What a service worker fetches passes no filter, only the proxy.
        prepare = partial(filter_requests, policy=self.policy)
        return replace(parts, prepare=prepare, service_workers=egress is not None)

    @property
    def running(self) -> bool:
        return self._chromium is not None and self._chromium.is_connected()

    @property
    def info(self) -> RuntimeInfo:
        version = None if self._chromium is None else self._chromium.version
        if (endpoint := self._settings.cdp_endpoint) is not None:
            return RuntimeInfo(shown_endpoint(endpoint), version, headless=None, chromium_sandbox=None, remote=True)
        return RuntimeInfo(
            browser=None if self._found is None else str(self._found.path),
            version=version,
            headless=not self._settings.headed,
            chromium_sandbox=sandbox_mode(self._settings.chromium_sandbox, _uid()),
            remote=False,
        )

    # -- starting

    async def warm(self) -> None:
        """Start the driver alone, so that the first page comes sooner; no browser yet."""
        async with self._starting:
            await self._driver()

    async def _driver(self) -> Playwright:
        if self._playwright is None:
            await anyio.to_thread.run_sync(end_leftovers, self._home.data_dir)
            await anyio.to_thread.run_sync(self.staging.clear_leftovers)
            await anyio.to_thread.run_sync(clear_partial, self._home.data_dir)
            self._playwright = await async_playwright().start()
        return self._playwright

    async def start(self) -> Chromium:
        """The running browser; launched when there is none."""
        self._used_ms = self._ports.clock.now_ms()
        if self._chromium is not None and self._chromium.is_connected():
            return self._chromium
        async with self._starting:
            if self._chromium is not None and self._chromium.is_connected():
                return self._chromium
            now = self._ports.clock.monotonic_ms()
            if not may_launch(tuple(self._launches), now):
                raise Unavailable(
                    "browser.restart_limit",
                    "The browser ended more than three times within a minute.",
                    "Wait a minute; then look at the machine's memory and the browser's own log.",
                    retry_after_ms=RELAUNCH_WINDOW_MS,
                )
            driver = await self._driver()
            if self._settings.cdp_endpoint is not None:
                # Only what was there and went away again counts; one that is down may be asked for at any time.
                chromium = await connect(driver, self._settings.cdp_endpoint, known=self._met_node)
                self._met_node = True
                self._launches.append(now)
            else:
                self._launches.append(now)
                chromium = await self._launch(driver)
            chromium.on("disconnected", self._on_disconnected)
            await self.downloads.opened(chromium)
            self._chromium = chromium
            self.node_lost = False
            return chromium

    async def _launch(self, driver: Playwright) -> Chromium:
        found = find_browser(self._settings.executable, this_machine(driver.chromium.executable_path))
        headless = not self._settings.headed
        mode = sandbox_mode(self._settings.chromium_sandbox, _uid())
        way_out = self._lookup_args() if self.egress is None else egress_args((await self.egress.proxy("")).port)
        if mode == "off_root":
            log.warning("running as root: Chromium's own sandbox is off")
        try:
            chromium = await driver.chromium.launch(
                executable_path=found.path,
                headless=headless,
                chromium_sandbox=mode == "on",
                args=(*launch_args(headless=headless), *way_out, *self._home.extra_args),
                # Signals belong to the server, which closes the browser in order.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise _launch_failed(str(found.path), error, headed=not headless) from error
        self._found = found
        self._note = await self._write_note(chromium)
        return chromium

    def _lookup_args(self) -> tuple[str, ...]:
        rules = unfindable_hosts(self.policy) if self._settings.filter_subresources else None
        return () if rules is None else (f"--host-resolver-rules={rules}",)

    async def _write_note(self, chromium: Chromium) -> Path | None:
        try:
            session = await chromium.new_browser_cdp_session()
            processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
            await session.detach()
        except Error:
            return None
        pid = next((int(process["id"]) for process in processes if process["type"] == "browser"), None)
        if pid is None:
            return None
        return await anyio.to_thread.run_sync(write_note, self._home.data_dir, self._home.server_id, pid)

    # -- ending

    def _on_disconnected(self, chromium: Chromium) -> None:
        if chromium is self._chromium:
            self.node_lost = self._settings.cdp_endpoint is not None
            self._gone(node_lost if self.node_lost else None)

    def _gone(self, why: Callable[[], Unavailable] | None) -> None:
        self._chromium = None
        self.downloads.browser_gone()
        self.sandboxes.browser_gone()
        self.targets.browser_gone(why)

    async def release(self, *, idle_only: bool = False) -> None:
        """Close the browser; tabs keep their ids and come back when they are navigated or reloaded."""
        async with self._starting:
            chromium = self._chromium
            if chromium is None:
                return
            await self.sandboxes.save_all()
            # Saving takes a moment, and somebody may have come back in it.
            if idle_only and not self._long_idle():
                return
            self._gone(None)
            # A wanted end is no death.
            self._launches.clear()
            try:
                await chromium.close()
            except Error:
                log.debug("the browser was gone before it could be closed")
            if self._note is not None:
                self._note.unlink(missing_ok=True)
                self._note = None

    async def aclose(self) -> None:
        """End the browser and the driver."""
        # What can't be written now is explained by the next server's start.
        for step in (self.targets.flush_moves, self.claims.settle):
            with suppress(StoreUnavailable):
                await step()
        await self.release()
        self.sandboxes.let_go()
        await self.staging.aclose()
        if self.egress is not None:
            await self.egress.aclose()
        if self._playwright is not None:
            driver, self._playwright = self._playwright, None
            await driver.stop()

    async def run(self) -> None:
        """Background care until cancelled: heartbeat, journal, release after idle time."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.lag.run)
            while True:
                await anyio.sleep(CHECK_S)
                await self.care()

    async def care(self) -> None:
        """One round of it; what is due is decided by the clock alone. A store that is away holds up no jar."""
        for step in (self.targets.flush_moves, self.claims.settle):
            try:
                await step()
            except StoreUnavailable as failure:
                log.warning("tabs and claims are not on record yet: %s", failure.message)
        await self.sandboxes.save_due(self._worked_in)
        await self.staging.tidy(self.targets, self._ports.clock.now_ms())
        if self.running and self._long_idle():
            await self.release(idle_only=True)

    def _long_idle(self) -> bool:
        return self.idle_since() >= self._settings.idle_release_s * 1000

    def _worked_in(self, sandbox_id: str) -> int:
        return max((tab.last_activity_ms for tab in self.targets if tab.sandbox_id == sandbox_id), default=0)

    def idle_since(self) -> int:
        """Milliseconds since the browser was last needed; 0 while somebody holds or opens a tab or a file comes in."""
        now = self._ports.clock.now_ms()
        if self.targets.opening or self.downloads.running or self.claims.any_live():
            return 0
        if any(is_live(tab.lease, now) or tab.lock.held for tab in self.targets):
            return 0
        return now - max([self._used_ms, *(tab.last_activity_ms for tab in self.targets)])


def _uid() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None


def _launch_failed(what: str, error: Error, *, headed: bool) -> Unavailable:
    reason = next((line.strip() for line in error.message.splitlines() if line.strip()), "no reason given")
    hint = "Start it by hand to see why, or choose another with --browser or NOVA_BROWSER."
    if headed and not has_display(sys.platform, os.environ):
        reason, hint = "there is no display to show its window on", "Leave --headed out, or run it where there is one."
    return Unavailable("browser.launch_failed", f'The browser "{what}" did not start: {reason[:200]}', hint)
