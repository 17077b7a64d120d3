"""One tab: an id that outlives its pages, and everything the host knows about the page behind it."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urldefrag

import anyio
from playwright.async_api import Dialog, Download, Error, Frame, Page

from nova_mcp.browser.blockers.rules import BlockerMemory
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageChannel, PageScriptError
from nova_mcp.browser.egress.document_guard import NavigationGuard
from nova_mcp.browser.observe.host_window import (
    MAX_DIALOG_CHARS,
    Answered,
    DialogAnswer,
    DialogOrders,
    DialogSeen,
    DownloadSeen,
    HostWindow,
    NavigationSeen,
    OnDialog,
)
from nova_mcp.browser.perceive.element_lines import MAX_PAGE_TITLE, plain_title
from nova_mcp.browser.perceive.perception import Perception
from nova_mcp.browser.read import knowledge_check
from nova_mcp.browser.read.progress import ReadOn
from nova_mcp.browser.targets.page_life import LifeSigns
from nova_mcp.browser.targets.tab_lock import ReadWriteLock
from nova_mcp.core.clock import Clock
from nova_mcp.core.leases import Lease
from nova_mcp.core.page.looks import ElementSeen, SelectorSeen, SignalsSeen, WantedSignals
from nova_mcp.core.policy import Denied
from nova_mcp.core.urls import cut_address, page_host
from nova_mcp.core.values import Owner
from nova_mcp.errors import NovaError

TabState: TypeAlias = Literal["ready", "loading", "crashed", "lost", "stalled"]

BLANK = "about:blank"
# An image named "title" shadows `document.title` in every world.
# Cut where it stands: a title may have millions of characters.
_TITLE = (
    "Object.getOwnPropertyDescriptor(Document.prototype,'title').get.call(document)"
    f".slice(0,{MAX_PAGE_TITLE}).toWellFormed()"
)
_STATUS = "performance.getEntriesByType('navigation')[0]?.responseStatus"
# Where nothing was answered, as from a script, the browser says 0.
FIRST_STATUS = 100
STORM_DIALOGS = 5
STORM_WINDOW_MS = 10_000
REPLACE_MS = 5000
TITLE_MS = 3000
POPUPS_KEPT = 5
POPUP_WINDOW_MS = 10_000
DOWNLOADS_TOLD = 50


def is_storm(moments_ms: deque[float], now_ms: float) -> bool:
    """More than five dialogs within ten seconds."""
    return sum(1 for at in moments_ms if now_ms - at <= STORM_WINDOW_MS) > STORM_DIALOGS


class TabHost(Protocol):
    """What a tab needs from the registry that holds it."""

    async def popup_opened(self, opener: "Tab", page: Page, *, keep: bool) -> str | None: ...

    async def storm(self, tab: "Tab") -> None: ...

    async def recover(self, tab: "Tab") -> None: ...

    async def page_closed(self, tab: "Tab", page: Page) -> None: ...

    def committed(self, tab: "Tab", url: str) -> None: ...

    def download_began(self, tab: "Tab", url: str, suggested: str, content_type: str) -> DownloadSeen: ...


class Tab:
    """A target: `page` and `channel` change when a crashed page is replaced, the id and the lock stay."""

    def __init__(self, target_id: str, sandbox_id: str, owner: Owner, host: TabHost, clock: Clock) -> None:
        self.target_id = target_id
        self.sandbox_id = sandbox_id
        self.owner = owner
        self.page: Page
        self.channel: PageChannel
        self.guard: NavigationGuard
        self.url = BLANK
        self.title = ""
        self.http_status: int | None = None
        # Addresses that led to this document by redirect, as far as anybody watched it come.
        self.redirects: tuple[str, ...] = ()
        self.page_epoch = 0
        self.rev = 0
        self.opener_target_id: str | None = None
        # Where the page stood that opened this one.
        self.opened_from = BLANK
        # What the next answer about this tab has to say besides its own matter.
        self.notices: list[str] = []
        # Downloads that no answer has told the end of yet.
        self.downloads: deque[DownloadSeen] = deque(maxlen=DOWNLOADS_TOLD)
        self.lock = ReadWriteLock()
        # Held alone by a sequence from first step to last, shared by every other change; reads don't ask for it.
        self.turns = ReadWriteLock()
        self.lease: Lease | None = None
        self.perception = Perception()
        self.perceived_epoch: int | None = None
        # How that document was built when it was last looked at as a whole.
        self.structure: tuple[int, str] | None = None
        # Where the tab was before it came to this page.
        self.came_from = BLANK
        # The document that a log-in was last seen to stand before.
        self.login_wall_epoch: int | None = None
        # What its document was last seen to be covered with.
        self.blockers = BlockerMemory()
        # The document an agent's own script ran in: what it shows from then on proves nothing.
        self.scripted_epoch: int | None = None
        # The tabs that may reach into each other's documents: this one, who opened it, and what they opened.
        self.kin: list[Tab] = [self]
        # When each agent last looked at what the page shows.
        self.observed: dict[Owner, int] = {}
        self.last_activity_ms = clock.now_ms()
        self.signs = LifeSigns(clock)
        # How far each agent has read the text of this document without a gap.
        self.read_on: dict[Owner, ReadOn] = {}
        self.loading = False
        self.leave = False
        self.stay_requested = False
        self.on_stay: Callable[[], None] | None = None
        self.closing = False
        self.storms = 0
        self.replacing: anyio.Event | None = None
        self._host = host
        self._clock = clock
        self._windows: list[HostWindow] = []
        self._dialog_moments: deque[float] = deque(maxlen=STORM_DIALOGS + 1)
        self._popup_moments: deque[float] = deque(maxlen=POPUPS_KEPT)
        self.popups_closed = 0
        self._coming: Answered | None = None
        self._seen_document = 0
        self._seen_page: Page | None = None

    # -- state

    @property
    def watched(self) -> bool:
        """Whether an action is under way whose doings are being followed."""
        return bool(self._windows)

    @property
    def state(self) -> TabState:
        if self.channel.state == "crashed":
            return "crashed"
        if self.channel.state != "ready":
            return "lost"
        if self.channel.stalled:
            return "stalled"
        return "loading" if self.loading else "ready"

    def scripted(self) -> None:
        """An agent's own script runs here: nothing that it can reach is the site's own any more."""
        for tab in self.kin:
            tab.scripted_epoch = tab.page_epoch

    def opened_by(self, opener: "Tab", at_url: str, *, reached: bool) -> None:
        """`at_url` is where the opener stood as it opened this one, `reached` when an agent's script lived in it."""
        self.opener_target_id = opener.target_id
        self.opened_from = at_url
        self.kin = opener.kin
        self.kin.append(self)
        if reached:
            self.scripted_epoch = self.page_epoch
        self._reached()

    def leave_kin(self) -> None:
        if self in self.kin:
            self.kin.remove(self)

    def _reached(self) -> None:
        """A new document beside one that an agent's script still lives in is within its reach at once."""
        if any(tab is not self and tab.scripted_epoch == tab.page_epoch for tab in self.kin):
            self.scripted_epoch = self.page_epoch

    @property
    def principal(self) -> str:
        return self.owner[0]

    @property
    def site_url(self) -> str:
        """The address of the site that is acted on here: a window without one is filled by the page that opened it."""
        return self.opened_from if self.url.startswith(BLANK) else self.url

    @property
    def agent_scripted(self) -> bool:
        """Whether an agent's script has run in this document."""
        return self.scripted_epoch == self.page_epoch

    def require_ready(self) -> None:
        """Refuse when there is no live page; navigate, reload and tab_close do not ask."""
        if self.channel.state != "ready":
            raise self.channel.ended_error()

    def touch(self) -> None:
        self.last_activity_ms = self._clock.now_ms()

    def host_busy(self, past_ms: float) -> bool:
        """Whether this process was too busy in that time to blame the page."""
        return self.channel.host_busy(past_ms)

    def take_notices(self) -> list[str]:
        notices, self.notices = self.notices, []
        return notices

    async def replaced(self) -> None:
        """Return once a page that is just being replaced has its successor."""
        with anyio.move_on_after(REPLACE_MS / 1000):
            while (replacing := self.replacing) is not None:
                await replacing.wait()

    async def recover(self) -> None:
        """Put a fresh page behind this id; the old one can't be used any more."""
        await self._host.recover(self)

    async def show(self) -> None:
        """Put the tab in front of whoever sits at the window; a page that is gone can't be."""
        if self.channel.state == "ready":
            await _quietly(self.page.bring_to_front())

    async def read_title(self) -> str:
        """The title as the page's own document states it; the last known one when it can't say."""
        try:
            title = await self.channel.evaluate(_TITLE, timeout_ms=TITLE_MS)
        except (NovaError, DocumentChanged, PageScriptError):
            return self.title
        self.title = plain_title(str(title or ""))
        return self.title

    async def read_status(self) -> None:
        """Ask a document that came unheard what its server said; one that can't say stays unknown."""
        if self.http_status is None and page_host(self.url) is not None:
            with suppress(NovaError, DocumentChanged, PageScriptError):
                self.learn_status(await self.channel.evaluate(_STATUS, timeout_ms=TITLE_MS))

    # -- windows

    @asynccontextmanager
    async def watch(self, on_dialog: OnDialog = "dismiss", prompt_text: str | None = None) -> AsyncIterator[HostWindow]:
        """Record host events from here on; the newest window's orders decide how dialogs are answered."""
        window = HostWindow(self.page, DialogOrders(on_dialog, prompt_text), self._status_coming)
        window.open()
        self._windows.append(window)
        try:
            yield window
        finally:
            self._windows.remove(window)
            window.close()

    # -- the page behind the id

    def attach(self, page: Page, channel: PageChannel, guard: NavigationGuard) -> None:
        """Put a page behind this id and listen to it; events of an earlier page are ignored from now on."""
        self.page = page
        self.channel = channel
        self.guard = guard
        unseen = self.page_epoch == 0 and self.scripted_epoch == 0
        self.page_epoch += 1
        if unseen:
            self.scripted_epoch = self.page_epoch
        self.loading = False
        self._dialog_moments.clear()
        channel.on_document(lambda url: self._new_document(channel, url))
        channel.on_end(self.signs.left)
        page.on("dialog", self._on_dialog)
        page.on("popup", self._on_popup)
        page.on("download", self._on_download)
        page.on("framenavigated", self._on_navigated)
        page.on("domcontentloaded", lambda _: self._loaded(page))
        page.on("close", lambda closed: self._host.page_closed(self, closed))

    def _new_document(self, channel: PageChannel, url: str) -> None:
        if channel is self.channel:
            self.page_epoch += 1
            self._reached()
            # Any document that comes back may be one that an agent's script has run in.
            if channel.restored and self.scripted_epoch is not None:
                self.scripted_epoch = self.page_epoch
            self.loading = not channel.restored
            self.title = ""
            answered, self._coming = self._coming, None
            # A download or an empty answer brings no document: what was heard of it is not about the next one.
            if answered is not None and urldefrag(answered.url).url != urldefrag(cut_address(url)).url:
                answered = None
            self.http_status = None if answered is None else answered.status
            self.redirects = () if answered is None else answered.redirects
            self.read_on.clear()
            self.signs.left()

    def _status_coming(self, answered: Answered) -> None:
        """The answer to a document that has not committed yet; without an open window nobody hears it."""
        self._coming = answered

    def learn_status(self, status: object) -> None:
        """The status as the document itself was told it, where nobody listened when it came."""
        if self.http_status is None and isinstance(status, int) and status >= FIRST_STATUS:
            self.http_status = status

    def note_denied(self, verdict: Denied) -> None:
        """The policy stopped a page; whoever acted on it learns why."""
        for window in self._windows:
            window.policy_denied = verdict
            window.note()

    def _loaded(self, page: Page) -> None:
        if page is self.page:
            self.loading = False
            self.signs.stirred()

    def _on_navigated(self, frame: Frame) -> None:
        if frame.parent_frame is not None or frame.page is not self.page or frame.url.startswith("chrome-error:"):
            return
        url = cut_address(frame.url)
        same_document = self.channel.document == self._seen_document and self._seen_page is frame.page
        self._seen_document, self._seen_page = self.channel.document, frame.page
        if not same_document and url != self.url:
            self.came_from = self.url
        if url != self.url:
            self.signs.left()
        self.url = url
        self._host.committed(self, url)
        seen = NavigationSeen(url, same_document, self._clock.monotonic_ms())
        for window in self._windows:
            window.navigations.append(seen)
            window.note()

    async def _on_dialog(self, dialog: Dialog) -> None:
        now = self._clock.monotonic_ms()
        if dialog.page is not self.page or self.closing:
            await _quietly(dialog.dismiss())
            return
        self._dialog_moments.append(now)
        self.signs.stirred()
        if dialog.type != "beforeunload" and is_storm(self._dialog_moments, now):
            self._note_dialog(dialog, "page_closed")
            for window in self._windows:
                window.dialog_storm = True
                window.note()
            await self._host.storm(self)
            return
        orders = self._windows[-1].orders if self._windows else DialogOrders()
        accept = self._accepts(dialog.type, orders)
        # Told before answered: the page runs on at once, and whoever watches must already know why.
        self._note_dialog(dialog, "accepted" if accept else "dismissed")
        text = dialog.default_value if orders.prompt_text is None else orders.prompt_text
        await _quietly(_answer(dialog, text, accept=accept))

    def _accepts(self, kind: str, orders: DialogOrders) -> bool:
        if kind == "beforeunload":
            self.stay_requested = not self.leave
            if self.stay_requested and self.on_stay is not None:
                self.on_stay()
            return self.leave
        return kind == "alert" or orders.on_dialog == "accept"

    def _note_dialog(self, dialog: Dialog, answer: DialogAnswer) -> None:
        seen = DialogSeen(dialog.type, dialog.message[:MAX_DIALOG_CHARS], answer)
        for window in self._windows:
            window.dialogs.append(seen)
            window.note()

    async def _on_popup(self, page: Page) -> None:
        keep = not self.closing and self._popup_allowed()
        target_id = await self._host.popup_opened(self, page, keep=keep)
        self.popups_closed += target_id is None
        for window in self._windows:
            window.tabs_coming = max(0, window.tabs_coming - 1)
            if target_id is None:
                window.popups_closed += 1
            else:
                window.new_tabs.append(target_id)
            window.note()

    def _popup_allowed(self) -> bool:
        """At most five per action, or per ten seconds when nobody acts."""
        if self._windows:
            window = self._windows[-1]
            window.popups_kept += 1
            return window.popups_kept <= POPUPS_KEPT
        now = self._clock.monotonic_ms()
        if len(self._popup_moments) == POPUPS_KEPT and now - self._popup_moments[0] <= POPUP_WINDOW_MS:
            return False
        self._popup_moments.append(now)
        return True

    def _on_download(self, download: Download) -> None:
        url = download.url
        known = cut_address(url)
        requests = [request for window in self._windows for request in window.requests if request.url == known]
        types = [request.content_type for request in requests if request.content_type]
        seen = self._host.download_began(self, url, download.suggested_filename, types[-1] if types else "")
        self.downloads.append(seen)
        for window in self._windows:
            window.downloads.append(seen)
            window.note()

    # -- what stored knowledge asks

    async def find_selectors(
        self, selectors: Sequence[str], surfaces: Sequence[str] = ()
    ) -> Mapping[str, SelectorSeen]:
        return await knowledge_check.look(self, selectors, surfaces)

    async def list_elements(self) -> tuple[ElementSeen, ...]:
        return await knowledge_check.elements(self)

    async def check_signals(self, wanted: WantedSignals) -> SignalsSeen:
        return await knowledge_check.signals(self, wanted)


async def _answer(dialog: Dialog, text: str, *, accept: bool) -> None:
    if not accept:
        await dialog.dismiss()
    elif dialog.type == "prompt":
        await dialog.accept(text)
    else:
        await dialog.accept()


async def _quietly(step: Any) -> None:
    """A dialog may be gone before its answer arrives: its page closed or moved on."""
    try:
        await step
    except Error:
        return
