"""What the host saw while an action ran: navigations, dialogs, tabs, downloads and requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio
from playwright.async_api import Error, Page, Request, Response

from nova_mcp.core.policy import Denied
from nova_mcp.core.urls import cut_address, page_origin

OnDialog: TypeAlias = Literal["dismiss", "accept"]
DialogAnswer: TypeAlias = Literal["accepted", "dismissed", "page_closed"]

MAX_REQUESTS = 200
MAX_DIALOG_CHARS = 200
MAX_CONTENT_TYPE = 200
# Methods that ask and change nothing on the other side.
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class DialogSeen:
    """A JavaScript dialog and what was answered."""

    type: str
    message: str
    answer: DialogAnswer


@dataclass(frozen=True, slots=True)
class NavigationSeen:
    """The main frame moved; `same_document` is true for hash and history changes."""

    url: str
    same_document: bool
    at_ms: float


DownloadState: TypeAlias = Literal["running", "completed", "cancelled", "failed", "not_saved"]


@dataclass(slots=True, eq=False)
class DownloadSeen:
    """A file the page started to hand over; `state` follows it until it has arrived or was given up."""

    file_name: str
    url: str
    state: DownloadState = "running"
    bytes: int = 0
    sha256: str | None = None
    mime_type: str = ""
    path: str | None = None
    # Why it was not kept.
    note: str | None = None
    # An answer has named it already.
    told: bool = False


@dataclass(slots=True)
class RequestSeen:
    """One request that began inside the window; `status` stays empty while the answer is out."""

    method: str
    url: str
    path: str
    resource_type: str
    started_ms: float
    status: int | None = None
    failed: bool = False
    main_document: bool = False
    content_type: str = ""

    @property
    def pending(self) -> bool:
        return self.status is None and not self.failed


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server said when it was asked for a document, and the addresses that led there."""

    url: str
    status: int
    redirects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DialogOrders:
    """What to answer while this window is open."""

    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None


class HostWindow:
    """Host events since entry. Network listeners live only as long as the window: they are dear on busy pages."""

    def __init__(self, page: Page, orders: DialogOrders, on_status: Callable[[Answered], None]) -> None:
        self.orders = orders
        self._on_status = on_status
        self.navigations: list[NavigationSeen] = []
        self.dialogs: list[DialogSeen] = []
        self.new_tabs: list[str] = []
        self.popups_closed = 0
        self.popups_kept = 0
        # New tabs that a request has announced and that have not come yet.
        self.tabs_coming = 0
        self.downloads: list[DownloadSeen] = []
        self.requests: list[RequestSeen] = []
        self.requests_dropped = 0
        self.dialog_storm = False
        self.policy_denied: Denied | None = None
        self._page = page
        self._by_request: dict[Request, RequestSeen] = {}
        self._changed = anyio.Event()
        self._changes = 0
        self._listeners: list[Callable[[], None]] = []

    @property
    def changes(self) -> int:
        """How many events were seen so far."""
        return self._changes

    @property
    def in_flight(self) -> int:
        return sum(1 for request in self.requests if request.pending)

    async def wait_change(self, timeout_ms: float) -> bool:
        """Wake on the next event; False when the time passed without one."""
        changed = self._changed
        with anyio.move_on_after(max(0.0, timeout_ms) / 1000):
            await changed.wait()
        return changed.is_set()

    async def wait_for(self, condition: Callable[[], bool], timeout_ms: float) -> bool:
        """Wait until events made a condition true; False when the time passed first."""
        with anyio.move_on_after(timeout_ms / 1000):
            while not condition():
                await self._changed.wait()
        return condition()

    def note(self) -> None:
        """Something happened: wake whoever waits."""
        self._changes += 1
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        for callback in tuple(self._listeners):
            callback()

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called at each event; what is returned ends that."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def open(self) -> None:
        # The whole sandbox: a form may send its fields into a new tab, and a worker may send them for the page.
        context = self._page.context
        context.on("request", self._on_request)
        context.on("response", self._on_response)
        context.on("requestfailed", self._on_failed)

    def close(self) -> None:
        for event, handler in (
            ("request", self._on_request),
            ("response", self._on_response),
            ("requestfailed", self._on_failed),
        ):
            try:
                self._page.context.remove_listener(event, handler)
            except (Error, KeyError):
                continue
        self._by_request.clear()

    def _is_ours(self, request: Request) -> bool:
        if _has_frame(request):
            return request.frame.page is self._page
        # It belongs to no page yet, or to none at all: who sent it is told by the address it names.
        return page_origin(request.headers.get("referer", "")) in (None, page_origin(self._page.url))

    def _on_request(self, request: Request) -> None:
        if not self._is_ours(request):
            return
        if not _has_frame(request):
            self.tabs_coming += request.is_navigation_request()
            if request.method in SAFE:
                self.note()
                return
        # What only reads is the first to be left out; what an action sends must not drown in it.
        room = MAX_REQUESTS if request.method == "GET" else 2 * MAX_REQUESTS
        if len(self.requests) >= room:
            self.requests_dropped += 1
            return
        url = cut_address(request.url)
        seen = RequestSeen(
            method=request.method,
            url=url,
            path=urlsplit(url).path,
            resource_type=request.resource_type,
            started_ms=anyio.current_time() * 1000,
            main_document=_is_main_document(request),
        )
        self.requests.append(seen)
        self._by_request[request] = seen
        self.note()

    def _on_response(self, response: Response) -> None:
        if (seen := self._by_request.get(response.request)) is not None:
            seen.status = response.status
            if seen.resource_type == "document":
                seen.content_type = response.headers.get("content-type", "")[:MAX_CONTENT_TYPE]
            if seen.main_document:
                self._on_status(Answered(cut_address(response.url), response.status, redirects_of(response)))
            self.note()

    def _on_failed(self, request: Request) -> None:
        if (seen := self._by_request.get(request)) is not None:
            seen.failed = True
            self.note()


def redirects_of(response: Response | None) -> tuple[str, ...]:
    """The addresses that led here by redirect, first to last."""
    chain: list[str] = []
    request = None if response is None else response.request.redirected_from
    while request is not None:
        chain.append(cut_address(request.url))
        request = request.redirected_from
    return tuple(reversed(chain))


def _has_frame(request: Request) -> bool:
    """Requests of workers, and those that open a tab which does not exist yet, come from no frame."""
    try:
        return request.frame is not None
    except Error:
        return False


def _is_main_document(request: Request) -> bool:
    return request.is_navigation_request() and _has_frame(request) and request.frame.parent_frame is None
