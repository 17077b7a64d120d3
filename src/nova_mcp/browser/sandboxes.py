"""Sandboxes: separate cookie jars, each one browser context with an id that is never given twice."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import anyio
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, ViewportSize

from nova_mcp.browser.claims import Owner
from nova_mcp.browser.target_journal import TargetJournal, TargetOpened
from nova_mcp.clock import Ports
from nova_mcp.errors import Precondition, Unavailable
from nova_mcp.settings import Viewport

MAX_SANDBOXES = 100
PAGE_TRIES = 3
PAGE_RETRY_S = 0.1


def sandbox_letters(number: int) -> str:
    """1 is A, 26 is Z, 27 is AA."""
    if number < 1:
        raise ValueError("sandboxes are counted from 1")
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


@dataclass(slots=True, eq=False)
class Sandbox:
    """One jar; its context is made when first needed and made again after the browser died."""

    sandbox_id: str
    sandbox_ref: str
    principal: str
    created_at_ms: int
    name: str | None = None
    context: BrowserContext | None = None
    making: anyio.Lock = field(default_factory=anyio.Lock)


class Sandboxes:
    """All sandboxes of this server."""

    def __init__(
        self, launch: Callable[[], Awaitable[Chromium]], journal: TargetJournal, ports: Ports, viewport: Viewport
    ) -> None:
        self._launch = launch
        self._journal = journal
        self._ports = ports
        self._viewport = viewport
        self._sandboxes: dict[str, Sandbox] = {}
        self._creating: dict[str, anyio.Lock] = {}
        self._reserved = 0

    def __iter__(self) -> Iterator[Sandbox]:
        return iter(tuple(self._sandboxes.values()))

    def get(self, principal: str, sandbox_id: str) -> Sandbox | None:
        """Only the principal's own; another's does not exist for the caller."""
        sandbox = self._sandboxes.get(sandbox_id)
        return sandbox if sandbox is not None and sandbox.principal == principal else None

    def by_id(self, sandbox_id: str) -> Sandbox:
        return self._sandboxes[sandbox_id]

    async def first(self, owner: Owner) -> Sandbox:
        """The principal's oldest sandbox, created if there is none."""
        async with self._creating.setdefault(owner[0], anyio.Lock()):
            for sandbox in self._sandboxes.values():
                if sandbox.principal == owner[0]:
                    return sandbox
            return await self.create(owner)

    async def create(self, owner: Owner, name: str | None = None) -> Sandbox:
        if len(self._sandboxes) + self._reserved >= MAX_SANDBOXES:
            raise Precondition(
                "sandbox.limit_reached",
                f"{MAX_SANDBOXES} sandboxes exist, which is the limit.",
                "Delete a sandbox that is no longer needed.",
            )
        self._reserved += 1
        try:
            sandbox_id = sandbox_letters(await self._journal.next_number("sandbox"))
            now = self._ports.clock.now_ms()
            sandbox = Sandbox(sandbox_id, self._ports.ids.token(16), owner[0], now, name)
            await self._journal.opened(TargetOpened("sandbox", sandbox_id, sandbox_id, *owner, "", now))
        finally:
            self._reserved -= 1
        self._sandboxes[sandbox_id] = sandbox
        return sandbox

    async def context(self, sandbox: Sandbox) -> BrowserContext:
        """The live context of a sandbox; starts the browser when there is none."""
        async with sandbox.making:
            for _ in range(PAGE_TRIES):
                if sandbox.context is not None:
                    return sandbox.context
                try:
                    sandbox.context = await self._new_context(sandbox)
                except Error:
                    await anyio.sleep(PAGE_RETRY_S)
            if sandbox.context is None:
                raise lost_browser()
            return sandbox.context

    async def _new_context(self, sandbox: Sandbox) -> BrowserContext:
        chromium = await self._launch()
        size = ViewportSize(width=self._viewport.width, height=self._viewport.height)
        context = await chromium.new_context(viewport=size, accept_downloads=False)
        context.on("close", lambda closed: self._forget(sandbox, closed))
        return context

    async def new_page(self, sandbox: Sandbox) -> Page:
        """An empty page in a sandbox, in a new browser if the old one just died."""
        for _ in range(PAGE_TRIES):
            context = await self.context(sandbox)
            try:
                return await context.new_page()
            except Error:
                # The driver reports the end of the pages before the end of their browser.
                self._forget(sandbox, context)
                await anyio.sleep(PAGE_RETRY_S)
        raise lost_browser()

    async def delete(self, sandbox: Sandbox) -> None:
        """Close a sandbox and everything in it; the registry has closed its tabs before."""
        self._sandboxes.pop(sandbox.sandbox_id, None)
        context, sandbox.context = sandbox.context, None
        if context is not None:
            try:
                await context.close()
            except Error:
                return

    def _forget(self, sandbox: Sandbox, context: BrowserContext) -> None:
        if sandbox.context is context:
            sandbox.context = None

    def browser_gone(self) -> None:
        """Every context died with the browser."""
        for sandbox in self._sandboxes.values():
            sandbox.context = None


def lost_browser() -> Unavailable:
    return Unavailable("tab.lost", "The browser ended while the call ran.", "Try again.", retry_after_ms=500)
