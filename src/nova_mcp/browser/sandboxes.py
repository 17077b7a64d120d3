"""Sandboxes: separate cookie jars, each one browser context with an id that is never given twice."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import anyio
import anyio.to_thread
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, ViewportSize

from nova_mcp.browser.claims import Owner
from nova_mcp.browser.hold import HeldBy
from nova_mcp.browser.keeper import CLOSING_SAVE_S, Keeper
from nova_mcp.browser.kept_files import KeptFiles
from nova_mcp.browser.kept_state import KeptState
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


def sandbox_number(letters: str) -> int:
    """The number behind letters: A is 1, AA is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


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
    keeper: Keeper | None = None
    # Something the next answer has to say about this sandbox.
    notice: str | None = None

    @property
    def persistent(self) -> bool:
        return self.keeper is not None

    async def save(self) -> bool:
        """Write the jar to disk now; False when it is not kept, not open, or could not be read."""
        if self.keeper is None or self.context is None:
            return False
        return await self.keeper.save(self.context)


class Sandboxes:
    """All sandboxes of this server."""

    def __init__(
        self,
        launch: Callable[[], Awaitable[Chromium]],
        journal: TargetJournal,
        ports: Ports,
        viewport: Viewport,
        kept: KeptFiles | None = None,
    ) -> None:
        self._launch = launch
        self._journal = journal
        self._ports = ports
        self._viewport = viewport
        self._kept = kept
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
            return await self._first(owner)

    async def _first(self, owner: Owner) -> Sandbox:
        """The kept sandbox if it is free and nobody else's; otherwise one that lasts as long as this server."""
        if self._kept is None or any(sandbox.persistent for sandbox in self._sandboxes.values()):
            return await self.create(owner)
        taken = await anyio.to_thread.run_sync(self._kept.take)
        if isinstance(taken, HeldBy):
            sandbox = await self.create(owner)
            sandbox.notice = held_elsewhere(sandbox.sandbox_id, taken)
            return sandbox
        state = taken.state
        if state is not None and state.principal not in (None, owner[0]):
            taken.hold.release()
            return await self.create(owner)
        try:
            return await self._resumed(
                owner, Keeper(self._kept, taken.hold, self._claimed(state, owner), self._ports.clock)
            )
        except BaseException:
            taken.hold.release()
            raise

    def _claimed(self, state: KeptState | None, owner: Owner) -> KeptState:
        if state is None:
            state = KeptState(self._ports.ids.token(16), created_at_ms=self._ports.clock.now_ms())
        return replace(state, principal=owner[0])

    async def _resumed(self, owner: Owner, keeper: Keeper) -> Sandbox:
        state = keeper.state
        if state.sandbox_id is None:
            sandbox = await self.create(owner, keeper=keeper)
            keeper.state = replace(state, sandbox_id=sandbox.sandbox_id)
            await keeper.begin()
            return sandbox
        sandbox = Sandbox(state.sandbox_id, state.sandbox_ref, owner[0], state.created_at_ms, keeper=keeper)
        now = self._ports.clock.now_ms()
        event = TargetOpened("sandbox", state.sandbox_id, state.sandbox_id, *owner, "", now)
        await self._journal.resumed(event, sandbox_number(state.sandbox_id))
        self._sandboxes[sandbox.sandbox_id] = sandbox
        return sandbox

    async def create(self, owner: Owner, name: str | None = None, *, keeper: Keeper | None = None) -> Sandbox:
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
            ref = self._ports.ids.token(16) if keeper is None else keeper.state.sandbox_ref
            sandbox = Sandbox(sandbox_id, ref, owner[0], now, name, keeper=keeper)
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
        context = await self._restored(chromium, sandbox.keeper, size) if sandbox.keeper is not None else None
        context = context or await chromium.new_context(viewport=size, accept_downloads=False)
        context.on("close", lambda closed: self._forget(sandbox, closed))
        return context

    async def _restored(self, chromium: Chromium, keeper: Keeper, size: ViewportSize) -> BrowserContext | None:
        """A context with what was kept; nothing when the living browser does not take it."""
        keeper.context_gone()
        try:
            return await chromium.new_context(viewport=size, accept_downloads=False, storage_state=keeper.storage)
        except Error:
            if not chromium.is_connected():
                raise
        await keeper.discard()
        return None

    async def new_page(self, sandbox: Sandbox) -> Page:
        """An empty page in a sandbox, in a new browser if the old one just died."""
        for _ in range(PAGE_TRIES):
            context = await self.context(sandbox)
            try:
                page = await context.new_page()
                if sandbox.keeper is not None:
                    await sandbox.keeper.opened(page)
                return page
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
            with suppress(Error):
                await context.close()
        if sandbox.keeper is not None:
            await sandbox.keeper.forget()

    # -- keeping

    async def save_due(self, activity_ms: Callable[[str], int]) -> None:
        """Background care: save what is due, given when somebody last worked in a sandbox."""
        for sandbox in self:
            if sandbox.keeper is not None and sandbox.context is not None:
                await sandbox.keeper.save_if_due(sandbox.context, activity_ms(sandbox.sandbox_id))

    async def save_all(self) -> None:
        """Save before the browser ends; whoever closes must not wait long."""
        for sandbox in self:
            if sandbox.keeper is not None and sandbox.context is not None:
                await sandbox.keeper.save(sandbox.context, CLOSING_SAVE_S)

    def let_go(self) -> None:
        """Release what is held against other servers."""
        for sandbox in self:
            if sandbox.keeper is not None:
                sandbox.keeper.release()

    def _forget(self, sandbox: Sandbox, context: BrowserContext) -> None:
        if sandbox.context is context:
            sandbox.context = None

    def browser_gone(self) -> None:
        """Every context died with the browser."""
        for sandbox in self._sandboxes.values():
            sandbox.context = None


def lost_browser() -> Unavailable:
    return Unavailable("tab.lost", "The browser ended while the call ran.", "Try again.", retry_after_ms=500)


def held_elsewhere(sandbox_id: str, other: HeldBy) -> str:
    who = "another Nova server" if other.pid is None else f"another Nova server (process {other.pid})"
    return f"The kept sandbox with its logins is in use by {who}; sandbox {sandbox_id} is empty and will not be kept."
