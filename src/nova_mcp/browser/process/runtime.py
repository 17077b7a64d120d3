"""The browser process: started on first use, relaunched after death, released when nobody needs it."""

import logging
import math
import os
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from playwright.async_api import Browser as Chromium
from playwright.async_api import CDPSession, Error

from nova_mcp.browser.egress import Egress, EgressRules, Network, system_network, system_proxy
from nova_mcp.browser.egress.document_guard import filter_requests
from nova_mcp.browser.files.download_files import UPLOADS, DownloadFiles, clear_partial
from nova_mcp.browser.files.download_rules import DownloadLimits
from nova_mcp.browser.files.downloads import Downloads
from nova_mcp.browser.files.upload_staging import UploadStaging
from nova_mcp.browser.page import load_bundle
from nova_mcp.browser.process.browser_loss import Loss
from nova_mcp.browser.process.child_environment import child_environment
from nova_mcp.browser.process.chromium import NOT_OURS, Running, find_process, memory_of
from nova_mcp.browser.process.chromium_flags import egress_args, launch_args
from nova_mcp.browser.process.driver import Driver, DriverFailed
from nova_mcp.browser.process.find_chromium import Found, find_browser, has_display, this_machine
from nova_mcp.browser.process.host_lag import HostLag
from nova_mcp.browser.process.orphans import end_leftovers
from nova_mcp.browser.process.page_budgets import close_suspects, tidy_pages
from nova_mcp.browser.process.remote import connect, node_lost, shown_endpoint
from nova_mcp.browser.state.sandbox import MAX_SANDBOXES, MAX_TABS, Shares
from nova_mcp.browser.state.sandboxes import Sandboxes, SandboxParts
from nova_mcp.browser.state.state_files import KeptFiles
from nova_mcp.browser.targets.registry import PageParts, Targets
from nova_mcp.browser.targets.tab_claims import NoClaims, TabClaims
from nova_mcp.core.clock import Ports
from nova_mcp.core.leases import is_live
from nova_mcp.core.policy import NavigationPolicy, unfindable_hosts
from nova_mcp.errors import Unavailable
from nova_mcp.evidence.targets.journal import TargetJournal
from nova_mcp.settings import BrowserSettings
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

SandboxMode = Literal["on", "off", "off_root"]

MAX_RELAUNCHES = 3
RELAUNCH_WINDOW_MS = 60_000
CHECK_S = 1.0
WATCH_S = 0.25
# A first start may read everything from a slow disk; only after a short try has failed is this much time given.
PATIENT_START_S = 30.0
# An order of the browser's own, as closing, and a question to a driver that is suspected.
ORDER_S = 3.0
ASK_S = 1.0
RETRY_AFTER_MS = 30_000
COLLECT_MS = 10_000
# A driver this far above its limit is replaced at once, whatever is being done about its pages.
MEMORY_EXCESS = 300_000_000
# A server that stands still again and again proves nothing about its browser, but not for ever.
SILENT_WHILE_BUSY = 3


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """What runs, as far as it runs."""

    browser: str | None
    version: str | None
    # Not to be known of a browser somebody else started.
    headless: bool | None
    chromium_sandbox: SandboxMode | None
    remote: bool


ProcessState = Literal["running", "not started", "no answer", "failed"]


@dataclass(frozen=True, slots=True)
class BrowserHealth:
    """Driver and browser as `/health` shows them; one that is not needed yet is fine."""

    driver: ProcessState
    browser: ProcessState
    ok: bool


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
        claims: TabClaims | None = None,
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
        self.claims = claims or NoClaims()
        parts = PageParts(load_bundle(), policy, self.lag, self.downloads, self.egress, self._files_of)
        self.targets = Targets(self.sandboxes, journal, ports, parts, self.claims)
        self._starting = anyio.Lock()
        self._driver: Driver | None = None
        self._driver_lost = False
        self._chromium: Chromium | None = None
        # A session that is asked, again and again, whether the browser still answers.
        self._probe: CDPSession | None = None
        self._process = NOT_OURS
        # Of browsers whose driver is gone.
        self._endings: list[Running] = []
        self._found: Found | None = None
        self._launches: deque[float] = deque(maxlen=MAX_RELAUNCHES + 1)
        # Why the last start failed, and when; nothing once one has succeeded.
        self._failure: tuple[str, float] | None = None
        self._driver_failed_ms: float | None = None
        self._shed_until_ms = 0.0
        self._swept = False
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
        shares = Shares(settings.sandboxes_per_principal or MAX_SANDBOXES, settings.tabs_per_principal or MAX_TABS)
        parts = SandboxParts(
            settings.viewport, KeptFiles(home.data_dir), home.keep_first, self.downloads, shares=shares
        )
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
            await self._running_driver()

    async def _running_driver(self) -> Driver:
        if self._driver is not None and self._driver.running:
            return self._driver
        if not self._swept:
            await anyio.to_thread.run_sync(end_leftovers, self._home.data_dir)
            await anyio.to_thread.run_sync(self.staging.clear_leftovers)
            await anyio.to_thread.run_sync(clear_partial, self._home.data_dir)
            self._swept = True
        why = ""
        for limit_s in (float(self._settings.hang_timeout_s), PATIENT_START_S):
            try:
                self._driver = await Driver.start(self._environment(), limit_s, self._on_driver_ended)
            except DriverFailed as failed:
                why = str(failed)
            else:
                self._driver_lost, self._driver_failed_ms = False, None
                return self._driver
        self._driver_failed_ms = self._ports.clock.monotonic_ms()
        raise _driver_failed(why)

    def _environment(self) -> dict[str, str]:
        return child_environment(os.environ, self._settings.pass_environment)

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
                raise self._failed(_restart_limit())
            chromium = await self._connected(now) if self._remote else await self._launched(now)
            self._chromium, self._failure = chromium, None
            self.node_lost = False
            return chromium

    @property
    def _remote(self) -> bool:
        return self._settings.cdp_endpoint is not None

    async def _connected(self, now_ms: float) -> Chromium:
        driver = await self._running_driver()
        try:
            chromium = await connect(driver.playwright, self._settings.cdp_endpoint or "", known=self._met_node)
            # Only what was there and went away again counts; one that is down may be asked for at any time.
            self._met_node = True
            self._launches.append(now_ms)
            await self._watch_browser(chromium)
        except Unavailable as failure:
            raise self._failed(failure) from failure
        except Error as error:
            raise self._failed(node_lost()) from error
        return chromium

    async def _launched(self, now_ms: float) -> Chromium:
        """A new browser. The first try is short: a browser or driver that hangs as it starts is given up soon.

        One that ends as it starts is tried once more, and that is no relaunch.
        """
        self._launches.append(now_ms)
        failure: Unavailable | None = None
        for limit_s in (float(self._settings.hang_timeout_s), PATIENT_START_S):
            driver = await self._running_driver()
            # Its driver does not end a browser that was given up, nor one whose launch was cancelled.
            driver.end_browsers()
            with anyio.move_on_after(limit_s + ORDER_S):
                try:
                    return await self._launch(driver, limit_s)
                except Error as error:
                    failure = self._launch_failed(error)
                    driver.end_browsers()
                    continue
            failure = _driver_failed("it did not answer")
            self._end_driver(driver)
        raise self._failed(failure or _driver_failed("it ended"))

    async def _launch(self, driver: Driver, limit_s: float) -> Chromium:
        kind = driver.playwright.chromium
        found = self._found = find_browser(self._settings.executable, this_machine(kind.executable_path))
        headless = not self._settings.headed
        mode = sandbox_mode(self._settings.chromium_sandbox, _uid())
        way_out = self._lookup_args() if self.egress is None else egress_args((await self.egress.proxy("")).port)
        if mode == "off_root":
            log.warning("running as root: Chromium's own sandbox is off")
        chromium = await kind.launch(
            executable_path=found.path,
            headless=headless,
            chromium_sandbox=mode == "on",
            args=(*launch_args(headless=headless), *way_out, *self._home.extra_args),
            timeout=limit_s * 1000,
            # Signals belong to the server, which closes the browser in order.
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        self._process = await find_process(chromium, self._home.data_dir, self._home.server_id, driver.pid)
        await self._watch_browser(chromium)
        return chromium

    async def _watch_browser(self, chromium: Chromium) -> None:
        chromium.on("disconnected", self._on_disconnected)
        await self.downloads.opened(chromium)
        self._probe = await chromium.new_browser_cdp_session()

    def _lookup_args(self) -> tuple[str, ...]:
        rules = unfindable_hosts(self.policy) if self._settings.filter_subresources else None
        return () if rules is None else (f"--host-resolver-rules={rules}",)

    def _launch_failed(self, error: Error) -> Unavailable:
        what = "" if self._found is None else str(self._found.path)
        return _launch_failed(what, error, headed=self._settings.headed)

    def _failed(self, failure: Unavailable) -> Unavailable:
        self._failure = (failure.reason_code, self._ports.clock.monotonic_ms())
        return failure

    # -- ending

    def _on_disconnected(self, chromium: Chromium) -> None:
        if chromium is self._chromium:
            self.node_lost = self._remote
            self._gone(Loss("node_lost" if self.node_lost else "browser_ended"))

    def _on_driver_ended(self, driver: Driver) -> None:
        if driver is self._driver:
            log.error("the browser's driver ended; a new one is started")
            self._end_driver(driver)

    def _end_driver(self, driver: Driver, loss: Loss | None = None) -> None:
        """Without its driver a browser is out of reach: it is ended too, and both are started again."""
        driver.kill()
        if driver is not self._driver:
            return
        self._driver, self._driver_lost = None, True
        self.node_lost = self._remote and (self.node_lost or self._chromium is not None)
        process, self._process = self._process, NOT_OURS
        if self._chromium is not None:
            self._gone(loss or Loss("driver_ended"))
        self._endings.append(process)

    def _gone(self, loss: Loss) -> None:
        self._chromium = self._probe = None
        self.downloads.browser_gone()
        self.sandboxes.browser_gone()
        self.targets.browser_gone(loss)

    async def release(self, *, idle_only: bool = False) -> None:
        """Close the browser; tabs keep their ids and come back when they are navigated or reloaded."""
        async with self._starting:
            chromium = self._chromium
            if chromium is None:
                return
            await self.sandboxes.save_all()
            # Saving takes a moment, and somebody may have come back in it.
            if self._chromium is not chromium or (idle_only and not self._long_idle()):
                return
            process, self._process = self._process, NOT_OURS
            self._gone(Loss("idle"))
            # A wanted end is no death.
            self._launches.clear()
            closed = False
            try:
                with anyio.move_on_after(ORDER_S):
                    await chromium.close()
                    closed = True
            except Error:
                log.debug("the browser was gone before it could be closed")
            finally:
                if not closed:
                    log.warning("the browser did not close in time and is ended")
                # Also when the closing itself is cut short: nothing may be left behind.
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(process.end)

    async def aclose(self) -> None:
        """End the browser and the driver."""
        # What can't be written now is explained by the next server's start.
        for step in (self.targets.flush_moves, self.claims.settle):
            with suppress(StoreUnavailable):
                await step()
        try:
            await self.release()
            self.sandboxes.let_go()
            await self.staging.aclose()
        finally:
            driver, self._driver = self._driver, None
            with anyio.CancelScope(shield=True):
                if driver is not None:
                    await driver.stop()
                await self._tidy_processes()
                if self.egress is not None:
                    await self.egress.aclose()

    async def run(self) -> None:
        """Background care until cancelled: heartbeat, journal, release after idle time, a browser that hangs."""
        async with anyio.create_task_group() as group:
            # Each on its own: a browser that is slow to answer one of them must not hold up the others.
            for watch in (self.lag.run, self._watch_answers, self._watch_floods, self._watch_memory):
                group.start_soon(watch)
            while True:
                await anyio.sleep(CHECK_S)
                await self.care()

    # -- whether it still answers

    async def _watch_answers(self) -> None:
        """Replace what hangs, start again what ended; of itself a hung process never ends."""
        while True:
            await anyio.sleep(CHECK_S)
            await self._tidy_processes()
            driver, limit_s = self._driver, float(self._settings.hang_timeout_s)
            if driver is None or not driver.running:
                await self._start_again()
            elif await self._silent(driver, limit_s) and driver is self._driver:
                await self._end_hung(driver, Loss("no_answer", limit_s))
            elif self._failure is not None:
                await self._start_again()

    async def _silent(self, driver: Driver, limit_s: float) -> bool:
        for _ in range(SILENT_WHILE_BUSY):
            if await self._answers(driver, limit_s):
                return False
            # A server that itself stood still has not heard the answer.
            if not self.lag.busy_within(limit_s * 1000):
                break
        return True

    async def _answers(self, driver: Driver, limit_s: float) -> bool:
        """Whether the browser answers, or its driver while there is none; what has ended is told by its own event."""
        with anyio.move_on_after(limit_s), suppress(Error):
            if (probe := self._probe) is not None:
                await probe.send("Browser.getVersion")
            else:
                await driver.answer()
            return True
        return not driver.running or (probe is not None and probe is not self._probe)

    async def _end_hung(self, driver: Driver, loss: Loss) -> None:
        log.error("%s A new one is started.", loss.describe())
        if self._chromium is not None:
            process, self._process = self._process, NOT_OURS
            self.node_lost = self._remote
            self._gone(Loss("node_lost") if self._remote else loss)
            await anyio.to_thread.run_sync(process.end)
        # It was the browser alone if its driver answers; then the driver stays.
        if self._remote or not await self._answers(driver, ASK_S):
            self._end_driver(driver, loss)

    async def _watch_floods(self) -> None:
        while True:
            await anyio.sleep(WATCH_S)
            await tidy_pages(self.targets)

    async def _watch_memory(self) -> None:
        """Close the pages that fill the driver; replace a driver that grows on meanwhile."""
        limit = self._settings.driver_memory_mb * 1_000_000
        async with anyio.create_task_group() as group:
            while True:
                await anyio.sleep(WATCH_S)
                driver = self._driver
                if driver is None or not driver.running or (used := memory_of(driver.pid)) <= limit:
                    continue
                if used > limit + MEMORY_EXCESS:
                    await self._end_full(driver)
                elif self._ports.clock.monotonic_ms() >= self._shed_until_ms:
                    self._shed_until_ms = math.inf
                    group.start_soon(self._close_suspects, driver, limit)

    async def _close_suspects(self, driver: Driver, limit: float) -> None:
        try:
            closed = await close_suspects(self.targets)
        finally:
            # What was let go of is collected when the driver gets to it.
            self._shed_until_ms = self._ports.clock.monotonic_ms() + COLLECT_MS
        if not closed and driver is self._driver and memory_of(driver.pid) > limit + MEMORY_EXCESS / 2:
            await self._end_full(driver)

    async def _end_full(self, driver: Driver) -> None:
        loss = Loss("memory")
        log.error("%s A new one is started.", loss.describe())
        self._end_driver(driver, loss)
        await self._tidy_processes()

    async def _tidy_processes(self) -> None:
        """End what a driver that is gone can't end any more."""
        while self._endings:
            await anyio.to_thread.run_sync(self._endings.pop().end)

    async def _start_again(self) -> None:
        """A driver that ended is needed again soon; what could not be started is tried from time to time."""
        browser_failed_ms = None if self._failure is None else self._failure[1]
        failed_ms = self._driver_failed_ms or browser_failed_ms
        if failed_ms is not None and self._ports.clock.monotonic_ms() - failed_ms < RETRY_AFTER_MS:
            return
        try:
            if browser_failed_ms is not None:
                await self.start()
            elif self._driver_lost or self._driver_failed_ms is not None:
                await self.warm()
        except (Unavailable, Error) as failure:
            log.debug("the browser does not start yet: %s", failure)

    async def health(self) -> BrowserHealth:
        """What runs and whether it answers; asks, for a moment."""
        driver, chromium = self._driver, self._chromium
        if driver is None or not driver.running:
            lost = self._driver_lost or self._driver_failed_ms is not None
            return BrowserHealth("failed" if lost else "not started", "not started", ok=not lost)
        if self._failure is not None:
            return BrowserHealth("running", "failed", ok=False)
        if chromium is None:
            answers = await self._answers(driver, ASK_S)
            return BrowserHealth("running" if answers else "no answer", "not started", ok=answers)
        answers = await self._answers(driver, ASK_S)
        return BrowserHealth("running", "running" if answers else "no answer", ok=answers)

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


def _restart_limit() -> Unavailable:
    return Unavailable("browser.restart_limit", retry_after_ms=RELAUNCH_WINDOW_MS)


def _driver_failed(why: str) -> Unavailable:
    return Unavailable(
        "browser.launch_failed",
        f"The process that drives the browser did not start: {why}",
        retry_after_ms=RETRY_AFTER_MS,
    )


def _launch_failed(what: str, error: Error, *, headed: bool) -> Unavailable:
    reason = next((line.strip() for line in error.message.splitlines() if line.strip()), "no reason given")
    hint = "Start it by hand to see why, or choose another with --browser or NOVA_BROWSER."
    if headed and not has_display(sys.platform, os.environ):
        reason, hint = "there is no display to show its window on", "Leave --headed out, or run it where there is one."
    return Unavailable("browser.launch_failed", f'The browser "{what}" did not start: {reason[:200]}', hint)
