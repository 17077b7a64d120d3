"""Reading a live jar and putting it back: cookies and storages by the driver, sessions of tabs by the protocol."""

import json
import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import cast

import anyio
from playwright.async_api import BrowserContext, CDPSession, Error, Frame, Page, StorageState, StorageStateCookie

from nova_mcp.browser.state.state_format import MAX_SESSION_CHARS, KeptState, Sessions, with_older_databases
from nova_mcp.core.urls import page_origin

log = logging.getLogger(__name__)

COOKIES_S = 2.0
SESSION_S = 1.0
_WORLD = "nova_sessions"

Waiting = MutableMapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Captured:
    """What a jar holds now."""

    storage: StorageState
    sessions: Sessions
    urls: tuple[str, ...]


async def capture(context: BrowserContext, before: KeptState, limit_s: float | None) -> Captured | None:
    """Everything that can be had within the limit; what can't be read now is taken from before.

    Without a limit only what needs no page of its own is read, because such a page would show in a window.
    """
    storage = None if limit_s is None else await _storage(context, before.storage, limit_s)
    storage = storage or await _with_cookies(context, before.storage)
    if storage is None:
        return None
    origins = {page: origin for page in context.pages if (origin := page_origin(page.url)) is not None}
    told: dict[Page, Mapping[str, str]] = {}

    async def read(page: Page, origin: str) -> None:
        if (found := await _session(context, page, origin)) is not None:
            told[page] = found

    # Asked all at once: a page that holds its thread must not cost each of the others their time.
    with anyio.move_on_after(SESSION_S):
        async with anyio.create_task_group() as group:
            for page, origin in origins.items():
                group.start_soon(read, page, origin)
    found = {origin: told.get(page, before.sessions.get(origin, {})) for page, origin in origins.items()}
    sessions = {origin: items for origin, items in found.items() if items}
    return Captured(storage, sessions, tuple(page.url for page in origins))


async def _storage(context: BrowserContext, before: StorageState, limit_s: float) -> StorageState | None:
    # A page that holds its thread answers neither question, a database of odd values only the first.
    for indexed_db in (True, False):
        with anyio.move_on_after(limit_s / 2):
            try:
                storage = await context.storage_state(indexed_db=indexed_db)
            except Error as error:
                log.debug("storages could not be read: %s", error.message)
                continue
            return storage if indexed_db else with_older_databases(storage, before)
    return None


async def _with_cookies(context: BrowserContext, before: StorageState) -> StorageState | None:
    with anyio.move_on_after(COOKIES_S):
        try:
            cookies = cast(list[StorageStateCookie], await context.cookies())
        except Error:
            return None
        return StorageState(cookies=cookies, origins=before.get("origins", []))
    return None


async def _session(context: BrowserContext, page: Page, origin: str) -> Mapping[str, str] | None:
    """The tab's session storage as the browser has it, None when it can't say; the page's own script is not asked."""
    try:
        session = await context.new_cdp_session(page)
        where = {"securityOrigin": origin, "isLocalStorage": False}
        told = await session.send("DOMStorage.getDOMStorageItems", {"storageId": where})
        await session.detach()
    except Error:
        return None
    items = {str(name): str(value) for name, value in told["entries"]}
    return items if sum(len(name) + len(value) for name, value in items.items()) <= MAX_SESSION_CHARS else {}


async def offer_sessions(page: Page, waiting: Waiting) -> None:
    """Let the first document of each waiting origin find its session again; later ones, and full ones, get nothing."""
    if not waiting:
        return
    try:
        session = await page.context.new_cdp_session(page)
        await session.send("Page.enable")
        offer = _Offer(session, waiting)
        await offer.renew()
    except Error:
        # The tab works without it; the person may have to log in again.
        log.debug("sessions could not be offered")
        return
    page.on("framenavigated", offer.arrived)


class _Offer:
    """A script in a world of its own that leaves once its origin has been seen: who logs out stays logged out."""

    def __init__(self, session: CDPSession, waiting: Waiting) -> None:
        self._session = session
        self._waiting = waiting
        self._script: str | None = None

    async def renew(self) -> None:
        if self._script is not None:
            await self._session.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": self._script})
            self._script = None
        if self._waiting:
            order = {"source": _source(self._waiting), "worldName": _WORLD}
            self._script = (await self._session.send("Page.addScriptToEvaluateOnNewDocument", order))["identifier"]

    async def arrived(self, frame: Frame) -> None:
        origin = page_origin(frame.url)
        if frame.parent_frame is not None or origin is None or origin not in self._waiting:
            return
        del self._waiting[origin]
        try:
            await self.renew()
        except Error:
            return


def _source(waiting: Waiting) -> str:
    saved = json.dumps({origin: dict(items) for origin, items in waiting.items()})
    return (
        f"(() => {{ const items = ({saved})[location.origin];"
        " if (!items || window !== window.top) return;"
        " try { if (sessionStorage.length === 0)"
        " for (const name of Object.keys(items)) sessionStorage.setItem(name, items[name]); } catch {} })()"
    )
