"""A person logs in by hand: a window on the kept sandbox, and what it holds when they are done."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext, Error, Page

from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.browser.state.sandbox_saver import Keeper
from nova_mcp.browser.state.state_files import KeptFiles, KeptUnreadable
from nova_mcp.browser.state.state_format import KeptState, cookies_per_host
from nova_mcp.core.clock import Ports
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.errors import Unavailable
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.settings import BrowserSettings

LOOK_S = 2.0
LOAD_MS = 30_000


@dataclass(frozen=True, slots=True)
class Kept:
    """What the sandbox holds now; `saved` is False when it could not be written."""

    cookies: Mapping[str, int]
    origins: int
    saved: bool


class LoginWindow:
    """The window as the person has it; it may open others, and the last one closed ends it."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.page = page
        self._context = context
        self._closed = anyio.Event()
        context.on("page", self._watch)
        context.on("close", lambda _: self._closed.set())
        self._watch(page)

    def _watch(self, page: Page) -> None:
        page.on("close", lambda _: self._closed.set() if not self._context.pages else None)

    async def closed(self) -> None:
        await self._closed.wait()


Person = Callable[[LoginWindow], Awaitable[None]]


async def log_in(url: str, settings: BrowserSettings, home: BrowserHome, person: Person, ports: Ports) -> Kept | HeldBy:
    """Open the address on the kept sandbox, wait for the person, and keep what came of it."""
    files = KeptFiles(home.data_dir)
    try:
        taken = await anyio.to_thread.run_sync(files.take)
    except KeptUnreadable as error:
        raise Unavailable(
            "browser.launch_failed",
            f"The logins that are kept already can't be read: {error}.",
            "Nothing was changed. Make the file readable and try again; to begin anew, move the folder sandboxes away.",
        ) from error
    if isinstance(taken, HeldBy):
        return taken
    state = taken.state or KeptState(ports.ids.token(16), created_at_ms=ports.clock.now_ms())
    keeper = Keeper(files, taken.hold, state, ports.clock)
    # A person at the keyboard goes where they like; the policy is for agents.
    home = replace(home, network=None)
    browser = Browser(settings, home, MemoryJournal(), NavigationPolicy(private_network="lan"), ports)
    try:
        context = await _context(browser, keeper, headed=settings.headed)
        saved = await _visit(url, context, keeper, person)
        return Kept(cookies_per_host(keeper.storage), len(keeper.storage.get("origins", [])), saved)
    finally:
        with anyio.CancelScope(shield=True):
            await browser.aclose()
        keeper.release()


async def _context(browser: Browser, keeper: Keeper, *, headed: bool) -> BrowserContext:
    chromium = await browser.start()
    try:
        return await chromium.new_context(no_viewport=headed, storage_state=keeper.storage)
    except Error as error:
        # An empty window instead would be saved over what is kept.
        raise Unavailable(
            "browser.launch_failed",
            "The browser did not take the logins that are kept already.",
            "Nothing was changed. Try again; to begin anew, move the folder sandboxes away first.",
        ) from error


async def _visit(url: str, context: BrowserContext, keeper: Keeper, person: Person) -> bool:
    page = await context.new_page()
    await keeper.opened(page)
    window = LoginWindow(context, page)
    saved = False

    async def look() -> None:
        # The window may take its sessions with it, and the browser everything.
        nonlocal saved
        while True:
            await anyio.sleep(LOOK_S)
            saved |= await keeper.save(context, None)

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        # A site that does not answer is the person's to see: the window shows it, and the address can be corrected.
        with suppress(Error):
            await page.goto(url, wait_until="commit", timeout=LOAD_MS)
        await person(window)
        group.cancel_scope.cancel()
    return await keeper.save(context) or saved
