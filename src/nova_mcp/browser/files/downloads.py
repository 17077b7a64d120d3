"""Takes in what pages hand over: each file to its sandbox's folder, watched while it comes, never opened."""

import logging
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from playwright.async_api import Browser as Chromium
from playwright.async_api import CDPSession, Error, Page

from nova_mcp.browser.egress.document_guard import judge_target
from nova_mcp.browser.files.download_files import DownloadFiles
from nova_mcp.browser.files.download_rules import (
    DownloadLimits,
    Stock,
    clean_name,
    mime_type,
    refused_at_start,
    refused_growth,
)
from nova_mcp.browser.observe.host_window import DownloadSeen
from nova_mcp.core.policy import Allowed, Denied, NavigationPolicy
from nova_mcp.core.urls import cut_address

log = logging.getLogger(__name__)

REMOTE_NOT_SAVED = "download.remote_not_saved"
WAITING_KEPT = 100

Key = tuple[str, str]


@dataclass(slots=True, eq=False)
class _Place:
    """Where the files of one sandbox go, while its context lives."""

    files: DownloadFiles
    context_id: str
    kept: tuple[int, int]


@dataclass(slots=True, eq=False)
class _Arrival:
    """One download: what a tab's page told of it, what the browser told of it, or both.

    The browser does not say whose a file is until it is there, so the two are put together by address and name.
    """

    seen: DownloadSeen
    guid: str | None = None
    sandbox_ref: str | None = None
    refused: str | None = None


@dataclass(slots=True)
class _Waiting:
    """Two reports of one download come by different ways; whichever is first waits for the other."""

    begun: deque[_Arrival] = field(default_factory=partial(deque, maxlen=WAITING_KEPT))
    claimed: deque[_Arrival] = field(default_factory=partial(deque, maxlen=WAITING_KEPT))


class Downloads:
    """All downloads of this server. Of a remote browser they are reported, not saved."""

    def __init__(
        self,
        data_dir: Path,
        *,
        remote: bool = False,
        limits: DownloadLimits | None = None,
        policy: NavigationPolicy | None = None,
    ) -> None:
        self.limits = limits or DownloadLimits()
        self._policy = policy or NavigationPolicy()
        self._data_dir = data_dir
        self._remote = remote
        self._session: CDPSession | None = None
        self._places: dict[str, _Place] = {}
        self._arrivals: dict[str, _Arrival] = {}
        self._waiting: dict[Key, _Waiting] = {}
        self._changed = anyio.Event()

    @property
    def running(self) -> bool:
        return bool(self._arrivals)

    # -- the browser's side

    async def opened(self, chromium: Chromium) -> None:
        """Listen to a browser that just started."""
        if self._remote:
            return
        session = await chromium.new_browser_cdp_session()
        session.on("Browser.downloadWillBegin", self._on_begin)
        session.on("Browser.downloadProgress", self._on_progress)
        self._session = session

    def browser_gone(self) -> None:
        """What was on its way will not arrive."""
        self._session = None
        for arrival in tuple(self._arrivals.values()):
            self._ended(arrival, "the browser ended")
        for waiting in self._waiting.values():
            for arrival in waiting.claimed:
                self._ended(arrival, "the browser ended")
        self._waiting.clear()
        for place in self._places.values():
            place.files.release()
        self._places.clear()

    async def admit(self, sandbox_ref: str, principal: str, page: Page) -> None:
        """From now on files of the page's context are saved; without this the browser refuses them."""
        if self._session is None:
            return
        known = self._places.get(sandbox_ref)
        files = DownloadFiles(self._data_dir, sandbox_ref) if known is None else known.files
        try:
            own = await page.context.new_cdp_session(page)
            told = await own.send("Target.getTargetInfo")
            await own.detach()
            context_id = str(told["targetInfo"]["browserContextId"])
            await anyio.to_thread.run_sync(files.prepare, principal)
            kept = await anyio.to_thread.run_sync(files.kept)
            order = {"behavior": "allowAndName", "browserContextId": context_id, "eventsEnabled": True}
            await self._session.send("Browser.setDownloadBehavior", {**order, "downloadPath": str(files.incoming)})
        except OSError as error:
            log.error("downloads can't be saved: %s", error.strerror or error)
            return
        self._places[sandbox_ref] = _Place(files, context_id, kept)

    async def _on_begin(self, event: dict[str, Any]) -> None:
        guid, key = str(event["guid"]), (str(event["url"]), str(event["suggestedFilename"]))
        waiting = self._waiting_for(key)
        if waiting.claimed:
            arrival = waiting.claimed.popleft()
            arrival.guid = guid
        else:
            arrival = _Arrival(DownloadSeen(clean_name(key[1]), cut_address(key[0])), guid)
            waiting.begun.append(arrival)
        self._arrivals[guid] = arrival
        reason = self._refused_source(key[0]) or refused_at_start(self._stock(arrival), self.limits)
        if reason is not None:
            await self._refuse(arrival, reason)

    async def _on_progress(self, event: dict[str, Any]) -> None:
        arrival = self._arrivals.get(str(event["guid"]))
        if arrival is None:
            return
        match event["state"]:
            case "completed":
                try:
                    await self._completed(arrival, Path(str(event.get("filePath", ""))))
                except Exception:
                    # An event has no caller to tell; the download must not stay under way for ever.
                    log.exception("a download could not be filed")
                    self._ended(arrival, "it could not be saved")
            case "canceled":
                self._ended(arrival, arrival.refused or "the browser gave it up")
            case _:
                arrival.seen.bytes = received = int(event["receivedBytes"])
                announced = int(event["totalBytes"])
                if (reason := refused_growth(received, announced, self._stock(arrival), self.limits)) is not None:
                    await self._refuse(arrival, reason)

    def _refused_source(self, url: str) -> str | None:
        """Why nothing may be fetched from there; what a page made itself comes from nowhere."""
        if url.startswith(("blob:", "data:")):
            return None
        match judge_target(url, self._policy):
            case Allowed():
                return None
            case Denied(reason_code=reason, message=message):
                return f"{reason}: {message}"
            case malformed:
                return malformed.message

    def _stock(self, arrival: _Arrival) -> Stock:
        ref = arrival.sandbox_ref
        others = [one for one in self._arrivals.values() if one is not arrival and one.sandbox_ref == ref]
        place = None if ref is None else self._places.get(ref)
        kept_bytes, kept_files = (0, 0) if place is None else place.kept
        return Stock(kept_bytes, sum(one.seen.bytes for one in others), kept_files, len(others))

    async def _refuse(self, arrival: _Arrival, reason: str) -> None:
        if arrival.refused is not None or self._session is None:
            return
        arrival.refused = reason
        # Whose it is may not be known yet; a context that does not have it says so.
        for place in tuple(self._places.values()):
            try:
                order = {"guid": arrival.guid, "browserContextId": place.context_id}
                await self._session.send("Browser.cancelDownload", order)
            except Error:
                continue

    async def _completed(self, arrival: _Arrival, path: Path) -> None:
        found = next(((ref, place) for ref, place in self._places.items() if place.files.incoming == path.parent), None)
        if found is None:
            self._ended(arrival, "its sandbox is gone")
            return
        ref, place = found
        guid, files = path.name, place.files
        self._correct(arrival, ref)
        size = await anyio.to_thread.run_sync(files.size, guid)
        # The last part may have come too fast to be stopped.
        reason = arrival.refused or refused_growth(size, 0, self._stock(arrival), self.limits)
        if reason is not None:
            await anyio.to_thread.run_sync(files.discard, guid)
            arrival.refused = reason
            self._ended(arrival, reason)
            return
        filed = await anyio.to_thread.run_sync(files.file, guid, arrival.seen.file_name)
        place.kept = await anyio.to_thread.run_sync(files.kept)
        seen = arrival.seen
        seen.file_name, seen.path = filed.path.name, str(filed.path)
        seen.bytes, seen.sha256, seen.state = filed.size, filed.sha256, "completed"
        self._forget(arrival)

    def _correct(self, arrival: _Arrival, sandbox_ref: str) -> None:
        """Two sandboxes fetched the same file at once and were taken for each other: only now it shows."""
        if arrival.sandbox_ref in (None, sandbox_ref):
            arrival.sandbox_ref = sandbox_ref
            return
        mine = arrival.seen
        for other in self._arrivals.values():
            same = (other.seen.url, other.seen.file_name) == (mine.url, mine.file_name)
            if same and other.sandbox_ref == sandbox_ref:
                arrival.seen, other.seen = other.seen, arrival.seen
                arrival.sandbox_ref, other.sandbox_ref = other.sandbox_ref, arrival.sandbox_ref
                return
        mine.state, mine.note = "failed", "it could not be told whose it was"
        arrival.seen, arrival.sandbox_ref = DownloadSeen(mine.file_name, mine.url), sandbox_ref

    def _ended(self, arrival: _Arrival, note: str) -> None:
        arrival.seen.state, arrival.seen.note = "cancelled" if arrival.refused else "failed", note
        self._forget(arrival)

    def _forget(self, arrival: _Arrival) -> None:
        for guid in [guid for guid, one in self._arrivals.items() if one is arrival]:
            del self._arrivals[guid]
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # -- the tabs' side

    def claimed(self, sandbox_ref: str, url: str, suggested: str, content_type: str) -> DownloadSeen:
        """A tab's page has begun a download; what becomes of it shows in what is returned."""
        name = clean_name(suggested)
        seen = DownloadSeen(name, cut_address(url), mime_type=mime_type(content_type, name))
        if self._remote:
            seen.state, seen.note = "not_saved", REMOTE_NOT_SAVED
            return seen
        if sandbox_ref not in self._places:
            seen.state, seen.note = "failed", "it could not be saved"
            return seen
        waiting = self._waiting_for((url, suggested))
        arrival = next((one for one in waiting.begun if one.sandbox_ref in (None, sandbox_ref)), None)
        if arrival is not None:
            waiting.begun.remove(arrival)
            arrival.seen.mime_type = seen.mime_type
            arrival.sandbox_ref = sandbox_ref
            return arrival.seen
        waiting.claimed.append(_Arrival(seen, sandbox_ref=sandbox_ref))
        return seen

    def _waiting_for(self, key: Key) -> _Waiting:
        """What waits under an address and a name; what waits for nothing is forgotten, and so is the oldest of many."""
        waiting = self._waiting.pop(key, None) or _Waiting()
        self._waiting = {name: one for name, one in self._waiting.items() if one.begun or one.claimed}
        if len(self._waiting) >= WAITING_KEPT:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = waiting
        return waiting

    async def settled(self, seen: list[DownloadSeen], timeout_ms: int) -> None:
        """Return once none of them is under way, or the time has passed."""
        with anyio.move_on_after(timeout_ms / 1000):
            while any(one.state == "running" for one in seen):
                await self._changed.wait()

    async def removed(self, sandbox_ref: str) -> int:
        """The sandbox is deleted: so are its files; says how many."""
        place = self._places.pop(sandbox_ref, None)
        files = DownloadFiles(self._data_dir, sandbox_ref) if place is None else place.files
        return await anyio.to_thread.run_sync(files.remove)
