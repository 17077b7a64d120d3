"""Sandboxes: separate cookie jars, each one browser context with an id that is never given twice."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, StorageState, ViewportSize

from nova_mcp.browser.files.downloads import Downloads
from nova_mcp.browser.process.chromium_flags import proxy_settings
from nova_mcp.browser.state.sandbox import (
    MAX_SANDBOXES,
    WHOLE,
    Removed,
    Resting,
    Sandbox,
    Shares,
    deleted_meanwhile,
    held_elsewhere,
    in_other_hands,
    limit_reached,
    lost_browser,
    not_restored,
    sandbox_letters,
    sandbox_number,
    unknown_zone,
    unreadable_now,
)
from nova_mcp.browser.state.sandbox_saver import CLOSING_SAVE_S, Keeper
from nova_mcp.browser.state.sandbox_traits import PLAIN, Traits
from nova_mcp.browser.state.state_files import KeptFiles, KeptUnreadable
from nova_mcp.browser.state.state_format import KeptState
from nova_mcp.core.clock import Ports
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.core.values import Owner
from nova_mcp.evidence.targets.journal import TargetJournal, TargetOpened
from nova_mcp.settings import Viewport

__all__ = ["MAX_SANDBOXES", "Sandbox", "SandboxParts", "Sandboxes", "sandbox_letters", "sandbox_number"]

log = logging.getLogger(__name__)

PAGE_TRIES = 3
PAGE_RETRY_S = 0.1
HOLD_TRIES = 3
# A browser under load may fail to take a large jar in time; logins are worth a second try.
RESTORE_TRIES = 2
_UNKNOWN_ZONE = "Invalid timezone"


async def _unprepared(_: BrowserContext) -> None:
    return None


@dataclass(frozen=True, slots=True)
class SandboxParts:
    """What every sandbox is made of, and whether the first one of a server is kept."""

    viewport: Viewport
    kept: KeptFiles
    keep_first: bool
    downloads: Downloads
    # Runs on each new context before it has a page.
    prepare: Callable[[BrowserContext], Awaitable[None]] = _unprepared
    service_workers: bool = True
    shares: Shares = WHOLE
    # The port of the proxy through which a sandbox's pages go; without one they go the browser's own way.
    proxy_port: Callable[[str], Awaitable[int]] | None = None
    # Runs once a sandbox is gone for good.
    dropped: Callable[[str], Awaitable[None]] | None = None


class Sandboxes:
    """All sandboxes of this server."""

    def __init__(
        self,
        launch: Callable[[], Awaitable[Chromium]],
        journal: TargetJournal,
        ports: Ports,
        parts: SandboxParts,
    ) -> None:
        self._launch = launch
        self._journal = journal
        self._ports = ports
        self._parts = parts
        self._kept = parts.kept
        self._sandboxes: dict[str, Sandbox] = {}
        self._creating: dict[str, anyio.Lock] = {}
        # Principals whose sandboxes are on their way.
        self._reserved: list[str] = []

    def __iter__(self) -> Iterator[Sandbox]:
        return iter(tuple(self._sandboxes.values()))

    @property
    def shares(self) -> Shares:
        return self._parts.shares

    def get(self, principal: str, sandbox_id: str) -> Sandbox | None:
        """Only the principal's own; another's does not exist for the caller."""
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.principal != principal or sandbox.deleted:
            return None
        return sandbox

    def by_id(self, sandbox_id: str) -> Sandbox:
        return self._sandboxes[sandbox_id]

    # -- the first one, and those that are kept

    async def first(self, owner: Owner) -> Sandbox:
        """The sandbox a principal works in unless another is named; created if there is none."""
        async with self._lock_of(owner):
            return self._first_of(owner) or await self._first(owner)

    def _lock_of(self, owner: Owner) -> anyio.Lock:
        return self._creating.setdefault(owner[0], anyio.Lock())

    def _first_of(self, owner: Owner) -> Sandbox | None:
        mine = (one for one in self._sandboxes.values() if one.principal == owner[0] and not one.deleted)
        return next((one for one in mine if one.first), None)

    async def _first(self, owner: Owner) -> Sandbox:
        """The kept sandbox if it is free and nobody else's; otherwise one that lasts as long as this server."""
        if not self._parts.keep_first or any(one.first and one.persistent for one in self._sandboxes.values()):
            return await self.create(owner, first=True)
        try:
            taken = await anyio.to_thread.run_sync(self._kept.take)
        except KeptUnreadable as error:
            log.error("%s; this server keeps nothing in its place", error)
            sandbox = await self.create(owner, first=True)
            sandbox.notice = unreadable_now(sandbox.sandbox_id)
            return sandbox
        if isinstance(taken, HeldBy):
            sandbox = await self.create(owner, first=True)
            sandbox.notice = held_elsewhere(sandbox.sandbox_id, taken)
            return sandbox
        state = taken.state
        if state is not None and state.principal not in (None, owner[0]):
            taken.hold.release()
            return await self.create(owner, first=True)
        try:
            if state is None:
                state = KeptState(self._ports.ids.token(16), created_at_ms=self._ports.clock.now_ms())
            state = replace(state, principal=owner[0])
            return await self._resumed(owner, Keeper(self._kept, taken.hold, state, self._ports.clock))
        except BaseException:
            taken.hold.release()
            raise

    async def _resumed(self, owner: Owner, keeper: Keeper) -> Sandbox:
        state = keeper.state
        if state.sandbox_id is None:
            sandbox = await self.create(owner, state.traits, keeper=keeper, first=state.first)
            keeper.state = replace(state, sandbox_id=sandbox.sandbox_id)
            await keeper.begin()
            return sandbox
        self._require_room(owner[0])
        sandbox = Sandbox(state.sandbox_id, state.sandbox_ref, owner[0], state.created_at_ms, state.traits, state.first)
        sandbox.keeper = keeper
        now = self._ports.clock.now_ms()
        event = TargetOpened("sandbox", state.sandbox_id, state.sandbox_id, *owner, "", now)
        await self._journal.resumed(event, sandbox_number(state.sandbox_id))
        self._sandboxes[sandbox.sandbox_id] = sandbox
        return sandbox

    async def find(self, owner: Owner, sandbox_id: str) -> Sandbox | None:
        """The principal's sandbox of that id; one that an earlier server kept is taken up again."""
        async with self._lock_of(owner):
            if (sandbox := self.get(owner[0], sandbox_id)) is not None:
                return sandbox
            states = await anyio.to_thread.run_sync(self._kept.look, owner[0])
            state = next((one for one in states if one.sandbox_id == sandbox_id), None)
            if state is None or sandbox_id in self._sandboxes or (state.first and not self._parts.keep_first):
                return None
            return await (self._first_again(owner, sandbox_id) if state.first else self._taken_up(owner, state))

    async def _first_again(self, owner: Owner, sandbox_id: str) -> Sandbox:
        sandbox = self._first_of(owner) or await self._first(owner)
        if sandbox.sandbox_id != sandbox_id:
            raise in_other_hands(sandbox_id, HeldBy(None))
        return sandbox

    async def _taken_up(self, owner: Owner, state: KeptState) -> Sandbox | None:
        taken = await anyio.to_thread.run_sync(self._kept.take_other, state.sandbox_ref)
        for _ in range(HOLD_TRIES - 1):
            if not isinstance(taken, HeldBy):
                break
            # Somebody may only be looking whether it is held.
            await anyio.sleep(PAGE_RETRY_S)
            taken = await anyio.to_thread.run_sync(self._kept.take_other, state.sandbox_ref)
        if isinstance(taken, HeldBy):
            raise in_other_hands(state.sandbox_id or "", taken)
        if taken is None or taken.state is None:
            return None
        try:
            return await self._resumed(owner, Keeper(self._kept, taken.hold, taken.state, self._ports.clock))
        except BaseException:
            taken.hold.release()
            raise

    async def resting(self, principal: str) -> list[Resting]:
        """What is kept for a principal and not open here, by creation."""

        def look() -> list[Resting]:
            states = [one for one in self._kept.look(principal) if one.sandbox_id not in self._sandboxes]
            shown = [one for one in states if self._parts.keep_first or not one.first]
            return [Resting(one, self._kept.is_held(one)) for one in shown]

        found = await anyio.to_thread.run_sync(look)
        return sorted(found, key=lambda one: (one.state.created_at_ms, one.state.sandbox_id or ""))

    # -- making

    async def make(self, owner: Owner, traits: Traits, *, persist: bool) -> Sandbox:
        """A sandbox made on purpose. The principal's first one comes before it, so that the first letter stays its."""
        await self.first(owner)
        if not persist:
            return await self.create(owner, traits)
        await self._require_disk_room(owner[0])
        ref, now = self._ports.ids.token(16), self._ports.clock.now_ms()
        state = KeptState(ref, principal=owner[0], created_at_ms=now, first=False, traits=traits)
        hold = await anyio.to_thread.run_sync(self._kept.hold_new, ref)
        keeper = Keeper(self._kept, hold, state, self._ports.clock)
        try:
            return await self._resumed(owner, keeper)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await keeper.forget()
            raise

    async def _require_disk_room(self, principal: str) -> None:
        """Those that rest on the disk count too: nobody else would ever tidy them up."""
        if await anyio.to_thread.run_sync(self._kept.count) >= MAX_SANDBOXES:
            raise limit_reached()
        if len(await anyio.to_thread.run_sync(self._kept.look, principal)) >= self.shares.sandboxes:
            raise limit_reached(self.shares.sandboxes, yours=True)

    def _require_room(self, principal: str) -> None:
        taken = [sandbox.principal for sandbox in self._sandboxes.values()] + self._reserved
        if len(taken) >= MAX_SANDBOXES:
            raise limit_reached()
        if taken.count(principal) >= self.shares.sandboxes:
            raise limit_reached(self.shares.sandboxes, yours=True)

    async def create(
        self, owner: Owner, traits: Traits = PLAIN, *, keeper: Keeper | None = None, first: bool = False
    ) -> Sandbox:
        self._require_room(owner[0])
        self._reserved.append(owner[0])
        try:
            sandbox_id = sandbox_letters(await self._journal.next_number("sandbox"))
            now = self._ports.clock.now_ms()
            ref = self._ports.ids.token(16) if keeper is None else keeper.state.sandbox_ref
            sandbox = Sandbox(sandbox_id, ref, owner[0], now, traits, first, keeper=keeper)
            await self._journal.opened(TargetOpened("sandbox", sandbox_id, sandbox_id, *owner, "", now))
        finally:
            self._reserved.remove(owner[0])
        self._sandboxes[sandbox_id] = sandbox
        return sandbox

    # -- contexts

    async def context(self, sandbox: Sandbox) -> BrowserContext:
        """The live context of a sandbox; starts the browser when there is none."""
        async with sandbox.making:
            for _ in range(PAGE_TRIES):
                if sandbox.deleted:
                    raise deleted_meanwhile(sandbox.sandbox_id)
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
        keeper = sandbox.keeper
        if keeper is None:
            context = await self._made(chromium, sandbox)
        else:
            context = await self._restored(chromium, sandbox, keeper)
        context.on("close", lambda closed: self._forget(sandbox, closed))
        await self._parts.prepare(context)
        return context

    async def _made(self, chromium: Chromium, sandbox: Sandbox, storage: StorageState | None = None) -> BrowserContext:
        traits, way_out = sandbox.traits, self._parts.proxy_port
        proxy = None if way_out is None else proxy_settings(await way_out(sandbox.sandbox_id))
        width, height = traits.viewport or (self._parts.viewport.width, self._parts.viewport.height)
        return await chromium.new_context(
            viewport=ViewportSize(width=width, height=height),
            locale=traits.locale,
            timezone_id=traits.timezone,
            # Nothing is taken in until there is a place for it.
            accept_downloads=False,
            service_workers="allow" if self._parts.service_workers else "block",
            storage_state=storage,
            proxy=proxy,
        )

    async def _restored(self, chromium: Chromium, sandbox: Sandbox, keeper: Keeper) -> BrowserContext:
        """A context with what was kept; an empty one, not saved, while a browser that lives does not take it."""
        keeper.context_gone()
        for _ in range(RESTORE_TRIES):
            with suppress(Error):
                return await self._made(chromium, sandbox, keeper.storage)
        # Fails as well where the browser or its driver is what is gone, and then nothing was refused.
        empty = await self._made(chromium, sandbox)
        keeper.refused()
        sandbox.notice = not_restored(sandbox.sandbox_id)
        return empty

    async def new_page(self, sandbox: Sandbox) -> Page:
        """An empty page in a sandbox, in a new browser if the old one just died."""
        for _ in range(PAGE_TRIES):
            context = await self.context(sandbox)
            try:
                page = await context.new_page()
                if sandbox.admitted is not context:
                    # Several first pages may come at once, and the folder is made ready only once.
                    async with sandbox.making:
                        if sandbox.admitted is not context:
                            await self._parts.downloads.admit(sandbox.sandbox_ref, sandbox.principal, page)
                            sandbox.admitted = context
                if sandbox.keeper is not None:
                    await sandbox.keeper.opened(page)
                return page
            except Error as error:
                if _UNKNOWN_ZONE in error.message:
                    raise unknown_zone(sandbox.traits.timezone) from error
                # The driver reports the end of the pages before the end of their browser.
                self._forget(sandbox, context)
                await anyio.sleep(PAGE_RETRY_S)
        raise lost_browser()

    async def delete(self, sandbox: Sandbox) -> Removed:
        """Close a sandbox and everything in it; the registry has closed its tabs before."""
        sandbox.deleted = True
        async with sandbox.making:
            self._sandboxes.pop(sandbox.sandbox_id, None)
            context, sandbox.context = sandbox.context, None
            if context is not None:
                with suppress(Error):
                    await context.close()
        if sandbox.keeper is not None:
            await sandbox.keeper.forget()
        if self._parts.dropped is not None:
            await self._parts.dropped(sandbox.sandbox_id)
        downloads = await self._parts.downloads.removed(sandbox.sandbox_ref)
        await self._journal.ended(sandbox.sandbox_id, "sandbox_deleted", self._ports.clock.now_ms())
        return Removed(sandbox.persistent, downloads)

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
