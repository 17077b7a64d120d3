"""One page as closed-loop acting sees it: facts read in its frames, on the host, and from the store."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from nova_mcp.browser.act.locate import Prepared
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.egress.document_guard import BLANK, ERROR_PAGE
from nova_mcp.browser.observe.effects import Mark, mark
from nova_mcp.browser.observe.follower import PageFollower
from nova_mcp.browser.observe.frame_facts import FrameFacts, question
from nova_mcp.browser.observe.host_window import HostWindow
from nova_mcp.browser.observe.request_attribution import Backdrop, Pressed, sent_requests, since_press
from nova_mcp.browser.perceive.rules import differs_by_anchor
from nova_mcp.errors import NovaError
from nova_mcp.verification.contracts.fact_keys import FactRef, UnknownFact, glob_matches, parse_fact, response_fact
from nova_mcp.verification.model import Fact, FactAddress, Reading, Seen, SentRequest, Unseen
from nova_mcp.verification.witness import FactHints

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

# The known ones among these keys; a key that is missing is a fact nobody has stored.
StoreFacts: TypeAlias = Callable[[Collection[str]], Awaitable[Mapping[str, Fact]]]

READ_MS: Final = 3000
_TRIES: Final = 2
_UNREADABLE: Final = Unseen("fact_unreadable")
_UNKNOWN: Final = Unseen("fact_not_found")


async def no_store(keys: Collection[str]) -> Mapping[str, Fact]:
    """For callers without stored facts."""
    return {}


@dataclass(frozen=True, slots=True)
class Asked:
    """Addresses sorted by where they are read; those with a key nobody knows are already answered."""

    frames: tuple[FrameFacts, ...]
    host: Mapping[FactAddress, FactRef]
    stored: Mapping[FactAddress, FactRef]
    unknown: tuple[FactAddress, ...] = ()


class PageWitness:
    """The facts of one tab, from right before an action on; `frame_id` is the frame the action happens in."""

    def __init__(
        self,
        tab: "Tab",
        window: HostWindow,
        frame_id: str | None = None,
        hints: FactHints | None = None,
        backdrop: Backdrop | None = None,
        store: StoreFacts = no_store,
    ) -> None:
        self.tab = tab
        self.window = window
        self.channel = tab.channel
        self.hints = hints or FactHints()
        self.frame_id = self._own(frame_id)
        self._store = store
        self._url = tab.url
        self._backdrop = backdrop or Backdrop(tab.url)
        self._mark: Mark | None = None
        self._committed_ms: float | None = None
        # Nothing of the site can be read where its document could not be loaded.
        self.load_failed = False
        self._arrived: tuple[str, int] | None = None

    @classmethod
    def of(
        cls,
        tab: "Tab",
        window: HostWindow,
        prepared: Prepared,
        hints: FactHints | None = None,
        store: StoreFacts = no_store,
    ) -> "PageWitness":
        """For an element that is about to be acted on."""
        backdrop = Backdrop(prepared.url, prepared.recent_paths)
        return cls(tab, window, prepared.frame_id, hints, backdrop, store)

    def _own(self, frame_id: str | None) -> str | None:
        return None if frame_id == self.channel.frame_id else frame_id

    # -- reading

    async def read(self, addresses: Collection[FactAddress]) -> Reading:
        """The facts as they stand now; what can't be read is unseen, never an error."""
        asked = self.sort(addresses)
        reading: dict[FactAddress, Fact] = await self.read_stored(asked)
        for frame in asked.frames:
            reading.update(await self._read_frame(frame))
        reading.update(self.read_host(asked.host, steady=True))
        return {address: reading.get(address, _UNKNOWN) for address in addresses}

    async def missing_frames(self, frame_ids: Collection[str]) -> frozenset[str]:
        """Those of the frames that are not in the page."""
        missing: set[str] = set()
        for frame_id in frame_ids:
            place = self._own(self.channel.known_frame(frame_id))
            if place is None:
                continue
            try:
                await self.channel.reach(place)
            except NovaError as error:
                if error.reason_code.startswith("frame."):
                    missing.add(frame_id)
        return frozenset(missing)

    @asynccontextmanager
    async def follow(self, addresses: Collection[FactAddress]) -> AsyncIterator[PageFollower]:
        """Watch these facts; entering arms the page and reads the baseline."""
        follower = PageFollower(self, self.sort(addresses))
        try:
            await follower.begin()
            yield follower
        finally:
            await follower.end()

    async def _read_frame(self, frame: FrameFacts) -> Mapping[FactAddress, Fact]:
        for _ in range(_TRIES):
            try:
                if frame.frame_id is not None:
                    await self.channel.reach(frame.frame_id)
                args = question(frame, self.hints)
                told = await self.channel.ask("readFacts", args, frame_id=frame.frame_id, timeout_ms=READ_MS)
            except DocumentChanged:
                continue
            except PageScriptError:
                break
            except NovaError as error:
                gone = error.reason_code.startswith("frame.")
                return frame.all_unseen("frame_mismatch" if gone else "fact_unreadable")
            frame.take(told)
            return frame.facts
        return frame.all_unseen("fact_unreadable")

    def sort(self, addresses: Collection[FactAddress]) -> Asked:
        """Where each fact is read; all facts of one frame are asked for together."""
        frames: dict[str | None, list[tuple[FactAddress, FactRef]]] = {None: []}
        host: dict[FactAddress, FactRef] = {}
        stored: dict[FactAddress, FactRef] = {}
        unknown: list[FactAddress] = []
        for address in addresses:
            try:
                ref = parse_fact(address.key)
            except UnknownFact:
                unknown.append(address)
                continue
            if ref.source == "page":
                place = (
                    self.frame_id if address.frame_id is None else self._own(self.channel.known_frame(address.frame_id))
                )
                frames.setdefault(place, []).append((address, ref))
            else:
                (host if ref.source == "host" else stored)[address] = ref
        return Asked(
            tuple(FrameFacts(frame_id, dict(members)) for frame_id, members in frames.items()),
            host,
            stored,
            tuple(unknown),
        )

    async def read_stored(self, asked: Asked) -> dict[FactAddress, Fact]:
        reading: dict[FactAddress, Fact] = dict.fromkeys(asked.unknown, _UNKNOWN)
        if asked.stored:
            known = await self._store({ref.name for ref in asked.stored.values()})
            for address, ref in asked.stored.items():
                reading[address] = known.get(ref.name, _UNKNOWN)
        return reading

    # -- what the host knows by itself

    def read_host(self, host: Mapping[FactAddress, FactRef], *, steady: bool) -> dict[FactAddress, Fact]:
        """`steady` is false between two documents: the address is known then, but not what it leads to."""
        return {address: self._host_fact(ref, steady=steady) for address, ref in host.items()}

    def _host_fact(self, ref: FactRef, *, steady: bool) -> Fact:
        tab, url = self.tab, self.url
        if ref.is_network:
            return self._response(ref)
        if ref.name == "runtime.domEpoch":
            return Seen(tab.page_epoch)
        if ref.name == "runtime.rendererHealthy":
            return Seen(self.channel.state == "ready" and not self.channel.stalled)
        if not steady or self.channel.state != "ready":
            return _UNREADABLE
        return {
            "page.url": lambda: Seen(url, url),
            "page.route": lambda: Seen(route_of(url), url),
            "page.urlMatches": lambda: Seen(glob_matches(ref.argument or "", url), url),
            "page.urlChanged": lambda: Seen(_bare(url) != _bare(self._url), url),
        }.get(ref.name, lambda: _UNKNOWN)()

    def _response(self, ref: FactRef) -> Fact:
        if self._mark is None:
            return _UNKNOWN
        found = response_fact(ref, since_press(self.window.requests, self._pressed(self._mark), self._backdrop))
        return _UNKNOWN if isinstance(found, Seen) and found.value is None else found

    # -- since the press

    def press(self) -> None:
        """Input is being sent now; what the page sends from here on may be its doing."""
        self._mark = mark(self.window)

    def committed(self, url: str, at_ms: float) -> None:
        """A new main document came: what the old one still waits for will not be told."""
        # A load that failed leaves the browser's own page, which the guard replaces by the empty one.
        self.load_failed = url.startswith(ERROR_PAGE) or (url == BLANK and self._url != BLANK)
        if not url.startswith(ERROR_PAGE):
            self._arrived = (url, len(self.window.navigations))
        if self._mark is not None:
            self._committed_ms = at_ms

    @property
    def url(self) -> str:
        """The address of the document that is read; the tab may learn it a moment later."""
        known = self.tab.url
        if self._arrived is None or len(self.window.navigations) != self._arrived[1]:
            return known
        # What the browser names at the commit has no fragment.
        arrived = self._arrived[0]
        return known if known.partition("#")[0] == arrived.partition("#")[0] else arrived

    def _pressed(self, since: Mark) -> Pressed:
        saved = tuple(download.url for download in self.window.downloads)
        return Pressed(since.requests, self._committed_ms, saved)

    def requests(self) -> tuple[SentRequest, ...]:
        """What the action has sent so far."""
        if self._mark is None:
            return ()
        return sent_requests(self.window.requests, self._pressed(self._mark), self._backdrop)

    def host_changed(self) -> bool:
        """Whether the host saw the action move, open or fetch something."""
        since, window = self._mark, self.window
        if since is None:
            return False
        moves = window.navigations[since.navigations :]
        return (
            any(not differs_by_anchor(self._url, move.url) for move in moves)
            or len(window.new_tabs) > since.tabs
            or window.popups_closed > since.popups
            or len(window.downloads) > since.downloads
        )

    def moved_by_anchor(self) -> bool:
        """Whether the address differs from the one before the action behind its # alone."""
        return differs_by_anchor(_bare(self._url), _bare(self.url))


def route_of(url: str) -> str:
    """The path, with the fragment where a page keeps its route in it."""
    parts = urlsplit(url)
    hashed = f"#{parts.fragment}" if parts.fragment.startswith(("/", "!")) else ""
    return (parts.path or "/") + hashed


def _bare(url: str) -> str:
    """A lone # leads nowhere."""
    return url.removesuffix("#")
