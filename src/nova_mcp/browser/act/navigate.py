"""Going places: navigate, back, forward and reload, each with a typed outcome and no browser error page."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from playwright.async_api import Error, Response
from playwright.async_api import TimeoutError as DriverTimeout

from nova_mcp.browser.act.navigation_report import (
    MAX_REDIRECTS_LISTED,
    STAYED,
    Ending,
    LoadOptions,
    LoadState,
    NavigationReport,
    is_challenge,
    judge_arrival,
    judge_failure,
    net_error_of,
    timed_out,
)
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.egress.document_guard import BLANK_MS, judge_target
from nova_mcp.browser.observe.host_window import HostWindow, redirects_of
from nova_mcp.browser.observe.settle import wait_settled
from nova_mcp.browser.targets.tab import BLANK, Tab
from nova_mcp.core.policy import Allowed, Denied
from nova_mcp.core.urls import cut_address
from nova_mcp.errors import InvalidParams, PolicyDenied, Precondition, Unavailable

Trigger = Callable[[float], Awaitable[Response | None]]

DEFAULTS = LoadOptions()
DOWNLOAD_NOTICE_MS = 500
PING_MS = 1000
STOP_SCRIPT_MS = 2000


@dataclass(frozen=True, slots=True)
class Arrived:
    """The page committed; a move inside one document brings no response."""

    response: Response | None


@dataclass(frozen=True, slots=True)
class Missed:
    """No page came; an empty error means the time ran out."""

    net_error: str | None
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What a report adds to the verdict."""

    state: LoadState = "none"
    verified: bool = False
    http_status: int | None = None
    net_error: str | None = None
    redirects: tuple[str, ...] = ()
    busy: bool = False


NO_FACTS = Facts()


def require_allowed(tab: Tab, url: str) -> tuple[str, ...]:
    """Refuse an address before anything is touched; returns warnings about an allowed one."""
    match judge_target(url, tab.guard.policy):
        case Allowed(warnings=warnings):
            return tuple(warning.code for warning in warnings)
        case Denied(reason_code=reason, message=message, hint=hint):
            raise PolicyDenied(reason, message, hint, stage="gate")
        case malformed:
            raise InvalidParams("invalid_params", malformed.message, "Give an absolute http or https URL.")


async def navigate(tab: Tab, url: str, options: LoadOptions = DEFAULTS) -> NavigationReport:
    """Open an address in a tab, reviving the tab first when its page is gone."""
    warnings = require_allowed(tab, url)
    recovered = await _revive(tab)
    tab.storms = 0
    tab.guard.choose(url)

    async def go(timeout_ms: float) -> Response | None:
        return await tab.page.goto(url, wait_until="commit", timeout=timeout_ms)

    return await Navigation(tab, url, options, recovered=recovered, warnings=warnings).run(go)


async def back(tab: Tab, options: LoadOptions = DEFAULTS) -> NavigationReport:
    return await _through_history(tab, -1, options)


async def forward(tab: Tab, options: LoadOptions = DEFAULTS) -> NavigationReport:
    return await _through_history(tab, +1, options)


async def reload(
    tab: Tab, options: LoadOptions = DEFAULTS, *, hard: bool = False, recover: bool = False
) -> NavigationReport:
    """Load the page again; with `recover` only a tab that is stalled, crashed or lost."""
    if tab.channel.state == "ready" and recover:
        if await _answers(tab, PING_MS):
            raise Precondition("reload.not_needed")
        recovered = await _stop_or_replace(tab)
    else:
        recovered = await _revive(tab)
    url = tab.url

    async def again(timeout_ms: float) -> Response | None:
        # Loading a page that came from a form again would send the form again; it is fetched anew instead.
        here = cut_address(tab.page.url) == url
        if not here or tab.guard.posted:
            return await tab.page.goto(tab.page.url if here else url, wait_until="commit", timeout=timeout_ms)
        if not hard:
            return await tab.page.reload(wait_until="commit", timeout=timeout_ms)
        async with tab.page.expect_navigation(wait_until="commit", timeout=timeout_ms) as coming:
            await tab.channel.send("Page.reload", {"ignoreCache": True}, timeout_ms=int(timeout_ms))
        return await coming.value

    return await Navigation(tab, url, options, recovered=recovered).run(again)


async def _through_history(tab: Tab, step: int, options: LoadOptions) -> NavigationReport:
    tab.require_ready()
    history = await tab.channel.send("Page.getNavigationHistory")
    entries, at = history["entries"], int(history["currentIndex"]) + step
    # Entries that never showed a site (empty pages, failed loads) are stepped over.
    while 0 <= at < len(entries) and (entries[at]["url"] == BLANK or entries[at]["id"] in tab.guard.failed_entries):
        at += step
    if not 0 <= at < len(entries):
        way = "back" if step < 0 else "forward"
        raise Precondition(
            f"navigation.cannot_go_{way}", f"There is no page to go {way} to.", "Open an address with nova.navigate."
        )
    entry = entries[at]

    async def go(timeout_ms: float) -> Response | None:
        async with tab.page.expect_navigation(wait_until="commit", timeout=timeout_ms) as coming:
            await tab.channel.send("Page.navigateToHistoryEntry", {"entryId": entry["id"]}, timeout_ms=int(timeout_ms))
        return await coming.value

    return await Navigation(tab, cut_address(str(entry["url"])), options).run(go)


class Navigation:
    """One navigation under way: trigger it, see what came of it, wait as far as asked, report."""

    def __init__(
        self, tab: Tab, url: str, options: LoadOptions, *, recovered: bool = False, warnings: tuple[str, ...] = ()
    ) -> None:
        self.tab = tab
        self.channel = tab.channel
        self.url = url
        self.options = options
        self.recovered = recovered
        self.warnings = warnings
        self.deadline = anyio.current_time() + options.timeout_ms / 1000

    async def run(self, trigger: Trigger) -> NavigationReport:
        tab = self.tab
        tab.guard.reset()
        tab.leave, tab.stay_requested = self.options.force, False
        try:
            async with tab.watch() as window:
                outcome = await self._attempt(trigger)
                match outcome:
                    case _ if tab.guard.denied is not None:
                        return await self._denied(tab.guard.denied, window)
                    case Arrived(response=response):
                        return await self._arrived(response, window)
                    case Missed():
                        return await self._missed(outcome, window)
        finally:
            tab.leave = False
            tab.touch()

    def _require_page(self) -> None:
        """The page may have been replaced meanwhile; this navigation was the old one's."""
        if self.channel.state != "ready":
            raise self.channel.ended_error()

    def _left_ms(self) -> float:
        return max(1.0, (self.deadline - anyio.current_time()) * 1000)

    async def _attempt(self, trigger: Trigger) -> Arrived | Missed:
        try:
            # The driver keeps the time; the outer limit is for a driver that does not answer. A page that asks to stay
            # ends the wait at once: not every command of the driver notices.
            with anyio.move_on_after((self._left_ms() + 2000) / 1000) as scope:
                self.tab.on_stay = scope.cancel
                return Arrived(await trigger(self._left_ms()))
        except DriverTimeout:
            return Missed(None, timed_out=True)
        except Error as error:
            self._require_page()
            return Missed(await self.tab.guard.connection_failed(net_error_of(error.message)))
        finally:
            self.tab.on_stay = None
        return Missed(None, timed_out=not self.tab.stay_requested)

    async def _arrived(self, response: Response | None, window: HostWindow) -> NavigationReport:
        tab = self.tab
        # A document that came after this one was heard of as well; its status is its own.
        if response is not None and tab.http_status is None:
            tab.http_status, tab.redirects = response.status, redirects_of(response)
        if response is None:
            # No server was asked: once the page has answered, it is known whether it had been put aside.
            await tab.read_title()
        state, waited = await self._wait(window)
        self._require_page()
        # The first answer of the new document comes only after the guard has placed its hold, if it has to.
        await tab.read_title()
        await tab.guard.settled()
        if tab.guard.denied is not None:
            return await self._denied(tab.guard.denied, window)
        challenge = response is not None and is_challenge(response.headers)
        ending = judge_arrival(tab.http_status, challenge=challenge, waited=waited, timeout_ms=self.options.timeout_ms)
        good = not challenge and (tab.http_status is None or tab.http_status < 400)
        busy = not waited and tab.host_busy(self.options.timeout_ms)
        facts = Facts(
            state=state, verified=good, http_status=tab.http_status, redirects=redirects_of(response), busy=busy
        )
        return await self._report(ending, window, facts)

    async def _wait(self, window: HostWindow) -> tuple[LoadState, bool]:
        wanted = self.options.wait_until
        reached: LoadState = "commit"
        try:
            for state in ("domcontentloaded", "load"):
                if wanted == "commit" or (wanted == "domcontentloaded" and state == "load"):
                    return reached, True
                # What was put aside had loaded by then, and does not tell it again.
                if not self.tab.channel.restored:
                    await self.tab.page.wait_for_load_state(state, timeout=self._left_ms())
                reached = state
            if wanted == "load" or await wait_settled(self.tab, window, self.deadline):
                return wanted, True
        except DriverTimeout:
            return reached, False
        except Error:
            self._require_page()
            return reached, False
        return reached, False

    async def _missed(self, missed: Missed, window: HostWindow) -> NavigationReport:
        tab = self.tab
        if tab.stay_requested:
            return await self._report(STAYED, window)
        if missed.timed_out:
            await self._stop_loading()
            facts = Facts(busy=tab.host_busy(self.options.timeout_ms))
            return await self._report(timed_out(self.options.timeout_ms), window, facts)
        if missed.net_error in (None, "ERR_ABORTED") and not window.downloads:
            await window.wait_for(lambda: bool(window.downloads), DOWNLOAD_NOTICE_MS)
        main = [seen for seen in window.requests if seen.main_document]
        status = main[-1].status if main else None
        ending = judge_failure(missed.net_error, status, downloaded=bool(window.downloads))
        if missed.net_error not in (None, "ERR_ABORTED"):
            await tab.guard.error_page_cleared()
            tab.http_status = status if ending.reason_code == "navigation.http_error" else None
        facts = Facts(
            net_error=None if ending.status == "partial" else missed.net_error,
            redirects=tuple(map(cut_address, tab.guard.hops_taken[:-1])),
            http_status=status,
        )
        return await self._report(ending, window, facts)

    async def _stop_loading(self) -> None:
        try:
            await self.tab.channel.send("Page.stopLoading", timeout_ms=1000)
        except (Unavailable, DocumentChanged, PageScriptError):
            return

    async def _denied(self, denied: Denied, window: HostWindow) -> NavigationReport:
        await self.tab.guard.settled()
        await window.wait_for(lambda: self.tab.url == BLANK, BLANK_MS)
        self.tab.http_status = None
        ending = Ending("blocked", denied.reason_code, denied.message, denied.hint)
        return await self._report(ending, window, Facts(redirects=tuple(map(cut_address, self.tab.guard.hops_taken))))

    async def _report(self, ending: Ending, window: HostWindow, facts: Facts = NO_FACTS) -> NavigationReport:
        tab = self.tab
        title = tab.title if facts.state != "none" else await tab.read_title()
        return NavigationReport(
            status=ending.status,
            reason_code=ending.reason_code,
            requested_url=self.url,
            url=tab.url,
            title=title,
            http_status=facts.http_status,
            load_state=facts.state,
            page_epoch=tab.page_epoch,
            verified=facts.verified,
            message=ending.message,
            hint=ending.hint,
            net_error=facts.net_error,
            redirects=facts.redirects[:MAX_REDIRECTS_LISTED],
            recovered=self.recovered,
            retry_after_ms=ending.retry_after_ms,
            dialogs=tuple(window.dialogs),
            downloads=tuple(window.downloads),
            new_tabs=tuple(window.new_tabs),
            popups_closed=window.popups_closed,
            warnings=self._warned(),
            details={"hostBusy": True} if facts.busy else {},
        )

    def _warned(self) -> tuple[str, ...]:
        """Warnings about the address that was asked for and, if another one stands there now, about that."""
        match judge_target(self.tab.url, self.tab.guard.policy):
            case Allowed(warnings=found):
                return tuple(dict.fromkeys((*self.warnings, *(warning.code for warning in found))))
            case _:
                return self.warnings


async def _revive(tab: Tab) -> bool:
    if tab.channel.state == "ready":
        return False
    await tab.recover()
    return True


async def _answers(tab: Tab, timeout_ms: int) -> bool:
    try:
        await tab.channel.evaluate("1", timeout_ms=timeout_ms)
    except DocumentChanged:
        return True
    except (Unavailable, PageScriptError):
        return False
    return True


async def _stop_or_replace(tab: Tab) -> bool:
    """Stop the script that holds the page; a page that stays deaf for two seconds is replaced."""
    try:
        await tab.channel.send("Runtime.terminateExecution", timeout_ms=STOP_SCRIPT_MS)
        if await _answers(tab, STOP_SCRIPT_MS):
            return True
    except (Unavailable, DocumentChanged, PageScriptError):
        pass
    await tab.recover()
    return True
