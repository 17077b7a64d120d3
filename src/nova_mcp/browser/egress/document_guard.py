"""Holds every document request of a page against the policy, hop by hop and again where it landed."""

import os
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from playwright.async_api import BrowserContext, Error, Frame, Page, Response, Route, WebSocketRoute

from nova_mcp.browser.channel.page_channel import PageChannel
from nova_mcp.browser.egress import EgressProxy
from nova_mcp.core.hosts import is_ip
from nova_mcp.core.policy import (
    Allowed,
    Denied,
    NavigationPolicy,
    Verdict,
    file_path_of,
    judge_address,
    judge_file_path,
    judge_url,
)
from nova_mcp.core.urls import page_host, page_origin, page_port

BLANK = "about:blank"
# What a socket's script is told: the other side does not want it.
SOCKET_REFUSED = 1008
# A new process may have to start for the empty page.
BLANK_MS = 8000
BLANK_RETRY_S = 0.05
HISTORY_TRIES = 10
# Pages that move by themselves do so without end; browsers give up a redirect chain at twenty.
MAX_HOPS = 50
ERROR_PAGE = "chrome-error:"
_PROXY_ERRORS = frozenset({"ERR_SOCKS_CONNECTION_FAILED", "ERR_SOCKS_CONNECTION_HOST_UNREACHABLE"})
_DOCUMENTS = {"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]}

_UNTRACED = Denied(
    "policy.private_network",
    "Where the page of this popup came from could not be found out, so it was emptied.",
    "Open its address with nova.navigate.",
)


def judge_target(url: str, policy: NavigationPolicy) -> Verdict:
    """The policy's verdict, with links on the disk resolved before a file is judged."""
    path = file_path_of(url)
    if path is not None:
        return judge_file_path(os.path.realpath(path), policy)
    return judge_url(url, policy)


def judge_socket_url(url: str, policy: NavigationPolicy) -> Verdict:
    """A socket goes where the page of the same address may."""
    scheme, colon, rest = url.partition(":")
    web = {"ws": "http", "wss": "https"}.get(scheme.lower())
    return judge_url(f"{web}{colon}{rest}" if web else url, policy)


async def filter_requests(context: BrowserContext, policy: NavigationPolicy) -> None:
    """Judge everything the pages of a context ask for, frames of other processes included, before it leaves."""

    async def judge(route: Route) -> None:
        verdict = judge_target(route.request.url, policy)
        # Pages carry pictures and scripts in addresses of their own making; those reach nobody.
        inline = route.request.url.startswith(("data:", "blob:"))
        try:
            if inline or isinstance(verdict, Allowed):
                await route.fallback()
            else:
                await route.abort("blockedbyclient")
        except Error:
            # The page is gone, and with it whatever it asked for.
            return

    async def judge_socket(socket: WebSocketRoute) -> None:
        verdict = judge_socket_url(socket.url, policy)
        if isinstance(verdict, Allowed):
            socket.connect_to_server()
            return
        try:
            await socket.close(code=SOCKET_REFUSED, reason="not allowed")
        except Error:
            return

    await context.route("**/*", judge)
    # Sockets pass no request filter. Those that a worker opens are not seen here either.
    await context.route_web_socket("**/*", judge_socket)


class NavigationGuard:
    """One page's guard. A page that breaks the policy is blanked before a question about it is answered."""

    def __init__(
        self,
        page: Page,
        channel: PageChannel,
        policy: NavigationPolicy,
        on_denied: Callable[[Denied], None],
        egress: EgressProxy | None = None,
    ) -> None:
        self.policy = policy
        # The page that opened this one; as long as this one is empty, what it asks for is the other's doing.
        self.opener_url = BLANK
        # Without one, in a browser elsewhere, addresses are judged after the connection, for documents alone.
        self._egress = egress
        self.denied: Denied | None = None
        self.posted = False
        self.failed_entries: set[int] = set()
        self.hops_taken: list[str] = []
        self._page = page
        self._channel = channel
        self._method = "GET"
        self._cleared = anyio.Event()
        self._blanking = False
        self._on_denied = on_denied
        self._listening = False
        self._address_checked = False

    async def attach(self) -> None:
        """Start guarding; a page that already stands on a forbidden address is blanked first."""
        self._channel.on_document(self._on_commit)
        self._page.on("framenavigated", self._on_moved)
        self._channel.cdp.on("Fetch.requestPaused", self._on_paused)
        await self._channel.send("Fetch.enable", _DOCUMENTS)
        url = self._page.url or BLANK
        if isinstance(verdict := judge_target(url, self.policy), Denied):
            await self._refuse(verdict)
        elif self._needs_address(url):
            await self._check_arrived(url)

    async def _check_arrived(self, url: str) -> None:
        """A popup can be older than its guard: where its page came from is looked up before anything is read of it."""
        self._hold()
        origins: set[str | None] = set()
        try:
            for request in await self._page.requests():
                answer = await request.response() if request.is_navigation_request() else None
                if answer is None or answer.frame.parent_frame is not None:
                    continue
                origins.add(page_origin(answer.url))
                if isinstance(verdict := await self._judge_server(answer), Denied):
                    await self._refuse(verdict)
                    return
        except Error:
            origins.clear()
        if page_origin(url) in origins:
            self._release()
        else:
            await self._refuse(_UNTRACED)

    def reset(self) -> None:
        """A new navigation begins: what an earlier one did is no longer news."""
        self.denied = None
        self.hops_taken = []
        self._cleared = anyio.Event()

    async def settled(self) -> None:
        """Return once a page that broke the policy has been replaced."""
        if (hold := self._channel.hold) is not None:
            with anyio.move_on_after(BLANK_MS / 1000):
                await hold.wait()

    async def _on_paused(self, event: dict[str, Any]) -> None:
        url = str(event["request"]["url"])
        main = event.get("frameId") == self._channel.frame_id
        verdict = judge_target(url, self.policy)
        request = {"requestId": event["requestId"]}
        try:
            if isinstance(verdict, Allowed):
                if main:
                    self._method = str(event["request"]["method"])
                    self.hops_taken = [*self.hops_taken[-MAX_HOPS:], url.partition("#")[0]]
                    self._channel.departing = True
                    if self._egress is not None:
                        stands_at = self._page.url or BLANK
                        self._egress.expect(id(self), url, self.opener_url if stands_at == BLANK else stands_at)
                    self._expect_address(url)
                await self._channel.cdp.send("Fetch.continueRequest", request)
                return
            if main and isinstance(verdict, Denied):
                self._note(verdict)
            await self._channel.cdp.send("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"})
        except Error:
            # The request was given up meanwhile; there is nothing left to decide and no page will come of it.
            self._release()

    def _on_commit(self, url: str) -> None:
        if url.startswith(ERROR_PAGE):
            if self.denied is None and (refusal := self._refusal()) is not None:
                self._note(refusal)
            self._hold()
            return
        self.posted = self._method == "POST" and url != BLANK
        if self._forbidden(url):
            self._hold()
            return
        verdict = judge_target(url, self.policy)
        if isinstance(verdict, Denied):
            self._note(verdict)
        elif self._listening and not self._address_checked and self.hops_taken[-1:] == [url.partition("#")[0]]:
            # Nothing is read from the new document until the address behind its name is known.
            self._hold()

    def _on_moved(self, frame: Frame) -> Coroutine[Any, Any, None] | None:
        if frame.parent_frame is not None:
            return None
        if frame.url.startswith(ERROR_PAGE):
            return self._clear_error_page()
        if self._forbidden(frame.url):
            return self._blank()
        verdict = judge_target(frame.url or BLANK, self.policy)
        return self._refuse(verdict) if isinstance(verdict, Denied) else None

    # -- what the proxy judged

    def choose(self, url: str) -> None:
        """An agent opens the address itself, in this tab."""
        if self._egress is not None:
            self._egress.choose(url)

    def _refusal(self) -> Denied | None:
        if self._egress is None or not self.hops_taken:
            return None
        return self._egress.refusal(self.hops_taken[-1])

    async def connection_failed(self, net_error: str | None) -> str | None:
        """The reason for which no page came, which the browser knows as a failure of its proxy only."""
        if self._egress is None or net_error not in _PROXY_ERRORS:
            return net_error
        if (refusal := self._refusal()) is not None:
            if self.denied is None:
                self._note(refusal)
            # The browser's error page is still to come; emptying the tab before it would do so twice.
            await self.error_page_cleared()
            self._release()
        elif self.hops_taken:
            return self._egress.net_error(self.hops_taken[-1]) or net_error
        return net_error

    # -- the address behind the name

    def _needs_address(self, url: str) -> bool:
        """Whether only the server's address can tell what a name means."""
        host = page_host(url)
        if self._egress is not None or host is None or is_ip(host):
            return False
        return self.policy.private_network != "lan" or page_port(url) in self.policy.own_ports

    def _expect_address(self, url: str) -> None:
        self._address_checked = False
        if not self._needs_address(url):
            self._stop_listening()
        elif not self._listening:
            self._listening = True
            self._page.on("response", self._on_response)

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            self._page.remove_listener("response", self._on_response)

    async def _on_response(self, response: Response) -> None:
        try:
            if not response.request.is_navigation_request() or response.frame.parent_frame is not None:
                return
            verdict = await self._judge_server(response)
        except Error:
            self._release()
            return
        if isinstance(verdict, Denied):
            self._note(verdict)
            await self._refuse(verdict)
        elif not 300 <= response.status < 400:
            self._address_checked = True
            self._stop_listening()
            self._release()

    async def _judge_server(self, response: Response) -> Allowed | Denied:
        address = await response.server_addr()
        ip = address.get("ipAddress", "") if address else ""
        return judge_address(ip.strip("[]"), self.policy, page_port(response.url)) if ip else Allowed()

    # -- refusing

    def _hold(self) -> None:
        if self._channel.hold is None:
            self._channel.hold = anyio.Event()

    def _note(self, verdict: Denied) -> None:
        self.denied = verdict
        self._hold()
        self._on_denied(verdict)

    async def _refuse(self, verdict: Denied) -> None:
        if self.denied is None:
            self._note(verdict)
        await self._blank()

    async def error_page_cleared(self) -> None:
        """Return once the browser's own error page, which follows every failed load, has been replaced."""
        with anyio.move_on_after(BLANK_MS / 1000):
            await self._cleared.wait()

    async def _clear_error_page(self) -> None:
        """The browser's error page is not the site: nobody gets to read it, and it would disturb the next load."""
        for _ in range(HISTORY_TRIES):
            try:
                history = await self._channel.cdp.send("Page.getNavigationHistory")
                self.failed_entries.add(int(history["entries"][int(history["currentIndex"])]["id"]))
                break
            except Error:
                # The session is between two processes for a moment; without the note only `back` is less clever.
                await anyio.sleep(BLANK_RETRY_S)
        await self._blank()

    async def _blank(self) -> None:
        if self._blanking:
            return
        self._blanking = True
        with anyio.move_on_after(BLANK_MS / 1000):
            while not self._page.is_closed():
                try:
                    # Also from the empty page: the forbidden one may be about to commit, and this takes its place.
                    await self._page.goto(BLANK, wait_until="commit", timeout=BLANK_MS)
                except Error:
                    # A commit that was already on its way interrupts the first try.
                    await anyio.sleep(BLANK_RETRY_S)
                if not self._forbidden(self._page.url):
                    break
        self._blanking = False
        if self._page.is_closed() or self._forbidden(self._page.url):
            self._channel.end("lost")
        self._stop_listening()
        self._release()
        self._cleared.set()

    def _forbidden(self, url: str) -> bool:
        """Whether what stands there now must not be read; after a denial nothing but the empty page may be."""
        return url.startswith(ERROR_PAGE) or (self.denied is not None and url != BLANK)

    def _release(self) -> None:
        hold, self._channel.hold = self._channel.hold, None
        if hold is not None:
            hold.set()
