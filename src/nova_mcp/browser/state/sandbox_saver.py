"""Keeps one sandbox on disk: before it matters, when it changed, and at the end."""

import logging
from dataclasses import replace

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext, Cookie, Error, Page, StorageState

from nova_mcp.browser.state.cookie_jar import COOKIES_S, Waiting, capture, offer_sessions
from nova_mcp.browser.state.state_files import KeptFiles
from nova_mcp.browser.state.state_format import KeptState
from nova_mcp.core.clock import Clock
from nova_mcp.core.file_lock import Hold

log = logging.getLogger(__name__)

SAVE_EVERY_MS = 30_000
SAVE_S = 10.0
CLOSING_SAVE_S = 2.0
# A commit must not wait long for a page that does not answer; its cookies are written in any case.
COMMIT_SAVE_S = 1.0


def is_due(last_ms: int, now_ms: int) -> bool:
    """At most every half minute; a clock that was set back must not stop it."""
    return abs(now_ms - last_ms) >= SAVE_EVERY_MS


class Keeper:
    """The memory of a sandbox, held against other servers until it is released."""

    def __init__(self, files: KeptFiles, hold: Hold, state: KeptState, clock: Clock) -> None:
        self.state = state
        self._files = files
        self._hold = hold
        self._clock = clock
        self._waiting: Waiting = dict(state.sessions)
        self._saving = anyio.Lock()
        self._looked_ms = clock.now_ms()
        self._cookies: list[Cookie] | None = None
        # The file holds what the browser did not take; saving the empty jar instead would lose it.
        self.suspended = False

    @property
    def storage(self) -> StorageState:
        """What a new context starts with."""
        return self.state.storage

    async def begin(self) -> None:
        """Write down that the sandbox exists, so that its letter is known even if nothing else is ever saved."""
        await self._write(self.state)

    async def opened(self, page: Page) -> None:
        await offer_sessions(page, self._waiting)

    def context_gone(self) -> None:
        """The jar comes back from what was saved, its sessions too."""
        self.suspended = False
        self._waiting = dict(self.state.sessions)
        self._cookies = None

    async def save(self, context: BrowserContext, limit_s: float | None = SAVE_S) -> bool:
        """Write the jar as it is now, without a limit only its cookies and sessions; False when that failed."""
        if self.suspended:
            return False
        async with self._saving:
            # Taken before the look: what happens during it is news for the next one.
            now = self._clock.now_ms()
            captured = await capture(context, self.state, limit_s)
            if captured is None:
                return False
            self._looked_ms = now
            state = replace(
                self.state,
                saved_at_ms=now,
                storage=captured.storage,
                # What waits for its page has not been given back yet.
                sessions={**self._waiting, **captured.sessions},
                urls=captured.urls,
            )
            if state.same_content(self.state):
                return True
            return await self._write(state)

    async def save_if_due(self, context: BrowserContext, activity_ms: int) -> None:
        """Save when half a minute has passed and somebody worked here, or a page changed cookies by itself."""
        if not is_due(self._looked_ms, self._clock.now_ms()):
            return
        worked = activity_ms >= self._looked_ms
        self._looked_ms = self._clock.now_ms()
        with anyio.move_on_after(COOKIES_S):
            try:
                cookies = await context.cookies()
            except Error:
                return
            worked |= cookies != self._cookies
            self._cookies = cookies
        if worked:
            await self.save(context)

    async def _write(self, state: KeptState) -> bool:
        if self.suspended:
            return False
        try:
            # Not to be left half done: the lock on saving must not open while a thread still writes.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._files.write, state)
        except OSError as error:
            log.error("sandbox %s could not be kept: %s", state.sandbox_id, error.strerror or error)
            return False
        self.state = state
        return True

    def refused(self) -> None:
        """A browser that lives does not take the stored state: nothing is written over it until one does."""
        log.error("the kept state of sandbox %s was refused by the browser; its file stays", self.state.sandbox_id)
        self.suspended = True
        self._waiting = {}

    async def forget(self) -> None:
        """The sandbox is deleted: nothing of it stays on disk."""
        async with self._saving:
            await anyio.to_thread.run_sync(self._files.remove, self.state.sandbox_ref)
            self.release()
            # Some systems keep a file as long as it is held.
            await anyio.to_thread.run_sync(self._files.remove, self.state.sandbox_ref)

    def release(self) -> None:
        self._hold.release()
