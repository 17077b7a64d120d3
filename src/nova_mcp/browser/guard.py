"""Holds every document request of a page against the policy, hop by hop and again where it landed."""

import os
from collections.abc import Callable
from typing import Any

import anyio
from playwright.async_api import Error, Page, Response

from nova_mcp.browser.channel import PageChannel
from nova_mcp.hosts import is_ip
from nova_mcp.policy import (
    Allowed,
    Denied,
    NavigationPolicy,
    Verdict,
    file_path_of,
    judge_address,
    judge_file_path,
    judge_url,
)
from nova_mcp.urls import page_host, page_port

BLANK = "about:blank"
BLANK_MS = 3000
_DOCUMENTS = {"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]}


def judge_target(url: str, policy: NavigationPolicy) -> Verdict:
    """The policy's verdict, with links on the disk resolved before a file is judged."""
    path = file_path_of(url)
    if path is not None:
        return judge_file_path(os.path.realpath(path), policy)
    return judge_url(url, policy)


class NavigationGuard:
    """One page's guard. A page that breaks the policy is blanked before a question about it is answered."""

    def __init__(
        self, page: Page, channel: PageChannel, policy: NavigationPolicy, on_denied: Callable[[Denied], None]
    ) -> None:
        self.denied: Denied | None = None
        self.hops: list[str] = []
        self._page = page
        self._channel = channel
        self._policy = policy
        self._on_denied = on_denied
        self._listening = False
        self._address_checked = False

    async def attach(self) -> None:
        """Start guarding; a page that already stands on a forbidden address is blanked first."""
        self._channel.on_document(self._on_commit)
        self._channel.cdp.on("Fetch.requestPaused", self._on_paused)
        await self._channel.send("Fetch.enable", _DOCUMENTS)
        if isinstance(verdict := judge_target(self._page.url or BLANK, self._policy), Denied):
            await self._refuse(verdict)

    def reset(self) -> None:
        """A new navigation begins: what an earlier one did is no longer news."""
        self.denied = None
        self.hops = []

    async def settled(self) -> None:
        """Return once a page that broke the policy has been replaced."""
        if (hold := self._channel.hold) is not None:
            with anyio.move_on_after(BLANK_MS / 1000):
                await hold.wait()

    async def _on_paused(self, event: dict[str, Any]) -> None:
        url = str(event["request"]["url"])
        main = event.get("frameId") == self._channel.frame_id
        verdict = judge_target(url, self._policy)
        request = {"requestId": event["requestId"]}
        try:
            if isinstance(verdict, Allowed):
                if main:
                    self.hops.append(url)
                    self._expect_address(url)
                await self._channel.cdp.send("Fetch.continueRequest", request)
                return
            if main and isinstance(verdict, Denied):
                self._note(verdict)
            await self._channel.cdp.send("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"})
        except Error:
            # The request was given up meanwhile; there is nothing left to decide.
            return
        if main and isinstance(verdict, Denied):
            await self._refuse(verdict)

    def _on_commit(self, url: str) -> None:
        self.hops = [] if url == BLANK else self.hops
        if url.startswith("chrome-error:"):
            return
        verdict = judge_target(url, self._policy)
        if isinstance(verdict, Denied):
            self._page.once("domcontentloaded", lambda _: self._refuse(verdict))
            self._note(verdict)
        elif self._listening and not self._address_checked:
            # Nothing is read from the new document until the address behind its name is known.
            self._channel.hold = anyio.Event()

    # -- the address behind the name

    def _expect_address(self, url: str) -> None:
        host = page_host(url)
        self._address_checked = False
        if host is None or is_ip(host) or self._policy.private_network == "lan":
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
            address = await response.server_addr()
        except Error:
            self._release()
            return
        ip = address.get("ipAddress", "") if address else ""
        verdict = judge_address(ip.strip("[]"), self._policy, page_port(response.url)) if ip else Allowed()
        if isinstance(verdict, Denied):
            self._note(verdict)
            await self._refuse(verdict)
        elif not 300 <= response.status < 400:
            self._address_checked = True
            self._stop_listening()
            self._release()

    # -- refusing

    def _note(self, verdict: Denied) -> None:
        self.denied = verdict
        if self._channel.hold is None:
            self._channel.hold = anyio.Event()
        self._on_denied(verdict)

    async def _refuse(self, verdict: Denied) -> None:
        if self.denied is None:
            self._note(verdict)
        try:
            await self._page.goto(BLANK, timeout=BLANK_MS)
        except Error:
            # A page that cannot be blanked must not be read either.
            self._channel.end("lost")
        finally:
            self._stop_listening()
            self._release()

    def _release(self) -> None:
        hold, self._channel.hold = self._channel.hold, None
        if hold is not None:
            hold.set()
