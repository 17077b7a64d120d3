"""One page's private line: questions to the isolated world `nova`, messages from it, and the page's lifetime."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import anyio
from playwright.async_api import CDPSession, Error, Page

from nova_mcp.browser.channel.frame_ids import whole_id
from nova_mcp.browser.channel.frame_sessions import GONE_TARGET, FrameSessions, frame_detached
from nova_mcp.browser.channel.messages import Listeners, Message, PageMessages
from nova_mcp.browser.process.host_lag import HostLag
from nova_mcp.browser.process.page_meter import PageMeter
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, NovaError, Unavailable

T = TypeVar("T")
ChannelState: TypeAlias = Literal["ready", "crashed", "lost", "closed"]

STALL_MS = 5000
# Longer than the guard takes to blank a page; what it could not blank by then it has ended.
HOLD_MS = 9000

SWAPPING = "Not attached to an active page"
SWAP_RETRY_S = 0.05
_GONE_CONTEXT = (
    "Cannot find context",
    "Execution context was destroyed",
    "Inspected target navigated",
    "uniqueContextId not found",
    "Argument should belong to the same JavaScript world",
)
_GONE_FRAME = ("No frame for given id", "No frame with given id", "Frame with the given id")


class DocumentChanged(Exception):
    """The document was replaced while a question was on its way; ask again once, then give up."""


class PageScriptError(Exception):
    """A question threw inside the page."""


# What asking a page may raise; anything else is a defect.
PAGE_FAILURES: Final = (NovaError, DocumentChanged, PageScriptError)


def storm() -> Unavailable:
    """The page was given up because it would not stop asking."""
    return Unavailable(
        "dialog.storm",
        stage="observe",
        retry_after_ms=1000,
    )


def question_source(question: str, args: Json) -> str:
    """The expression that puts a question; absence of the script is an answer, not an exception."""
    call = f"globalThis.__nova.ask({json.dumps(question)},{json.dumps(args)})"
    return f"globalThis.__nova?{call}:'__nova_absent'"


class PageChannel:
    """Everything Nova reads from a page goes through here; page script can neither see nor forge it."""

    def __init__(self, page: Page, bundle: str, lag: HostLag) -> None:
        self.page = page
        self.state: ChannelState = "ready"
        self.stalled = False
        # A document is on its way to replace this one; until it comes, the browser passes no question on.
        self.departing = False
        # The document had been put aside and came back as it was left, which only a browser elsewhere does.
        self.restored = False
        self.frame_id = ""
        self.told = PageMessages()
        self._bundle = bundle
        self._lag = lag
        self.meter = PageMeter(lag.now_ms)
        self._frames = FrameSessions(page, bundle, self.told.take, self.meter)
        self._pending: set[anyio.CancelScope] = set()
        self._on_documents: Listeners[str] = Listeners()
        self._on_ends: Listeners[None] = Listeners()
        self.hold: anyio.Event | None = None
        self.stormed = False
        # Why the page is gone when more than the page is.
        self.lost_with: Callable[[], Unavailable] | None = None
        self._ended = anyio.Event()

    @classmethod
    async def open(cls, page: Page, bundle: str, lag: HostLag) -> "PageChannel":
        """Attach to a page; every later document gets the script before its own first line runs."""
        channel = cls(page, bundle, lag)
        page.on("crash", lambda _: channel.end("crashed"))
        page.on("close", lambda _: channel.end("closed"))
        try:
            frame_id = await channel._frames.open(
                {
                    "Page.frameNavigated": channel._on_navigated,
                    "Page.frameDetached": channel._on_detached,
                    "Page.frameStoppedLoading": channel._on_stopped,
                }
            )
        except Error as error:
            raise channel._translate(error) from error
        # A document that committed meanwhile has told its frame already, and knows better.
        channel.frame_id = channel.frame_id or frame_id
        return channel

    @property
    def cdp(self) -> CDPSession:
        return self._frames.own

    @property
    def document(self) -> int:
        """How many documents were seen."""
        return self._frames.documents

    # -- lifetime

    def end(self, state: ChannelState, *, storm: bool = False) -> None:
        """The page can't answer any more; whoever waits for it is woken. The first reason stays."""
        if self.state == "ready":
            self.state = state
            self.stormed = storm
            self._ended.set()
            for scope in tuple(self._pending):
                scope.cancel()
            self._on_ends.tell(None)

    async def closed(self) -> None:
        """Return once the page has crashed, was lost or closed."""
        await self._ended.wait()

    def ended_error(self) -> Unavailable:
        """Why this page can't answer, with the way back."""
        if self.lost_with is not None:
            return self.lost_with()
        if self.stormed:
            return storm()
        if self.state == "crashed":
            return Unavailable("tab.crashed")
        return Unavailable("tab.lost")

    # -- asking

    async def ask(
        self, question: str, args: Json = None, *, frame_id: str | None = None, timeout_ms: int = 5000
    ) -> Json:
        """Put one question to the script in the isolated world and return its JSON answer."""
        value = await self.evaluate(question_source(question, args), frame_id=frame_id, timeout_ms=timeout_ms)
        if value != "__nova_absent":
            return value
        # A popup can be older than our session; its first document then lacks the script.
        await self.evaluate(f"{self._bundle}\n;null", frame_id=frame_id, timeout_ms=timeout_ms)
        return await self.evaluate(question_source(question, args), frame_id=frame_id, timeout_ms=timeout_ms)

    async def ask_holder(self, frame_id: str, question: str, args: Json) -> tuple[str, Json]:
        """Ask the document that holds a frame about the element it stands in; the holder's frame id comes first."""
        return await self._timed(lambda: self._frames.about_holder(frame_id, question, args), STALL_MS)

    async def reach(self, frame_id: str) -> str:
        """Make sure a frame can be asked, and say its whole id; frames of other processes are attached when needed."""
        if frame_id == self.frame_id:
            return frame_id
        if (found := whole_id(frame_id, await self.frame_ids())) is not None:
            return found
        if self._frames.known(frame_id) is not None:
            raise frame_detached()
        raise NotFound("frame.unknown")

    def known_frame(self, frame_id: str) -> str:
        """The whole id of a frame that was given out; any other text stays what it is."""
        return whole_id(frame_id, (self.frame_id,)) or self._frames.known(frame_id) or frame_id

    def note_frames(self, frame_ids: Iterable[str]) -> None:
        """Frames whose ids are given out: they can be told from ids that never were."""
        self._frames.note(frame_ids)

    async def evaluate(self, expression: str, *, frame_id: str | None = None, timeout_ms: int = 5000) -> Json:
        """Run an expression in the isolated world; the host's clock ends the wait, not the protocol's."""
        params = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        reply = await self._timed(lambda: self._evaluate_in(frame_id or self.frame_id, params), timeout_ms)
        if (thrown := reply.get("exceptionDetails")) is not None:
            raise PageScriptError(_thrown_text(thrown))
        return cast(Json, reply["result"].get("value"))

    async def send(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        frame_id: str | None = None,
        timeout_ms: int = 5000,
    ) -> dict[str, Any]:
        """A protocol command on the session of the page, or of a frame, under the same clock and race."""
        return await self._timed(lambda: self.session(frame_id).send(method, params), timeout_ms)

    def session(self, frame_id: str | None = None) -> CDPSession:
        """The session that speaks for a frame; frames of the page's own process share the page's."""
        return self._frames.of(frame_id or self.frame_id)

    async def node(self, question: str, *, frame_id: str | None = None) -> str:
        """The handle of the element a question answers with, for commands that need one."""
        params = {"expression": question_source(question, None)}
        reply = await self._timed(lambda: self._evaluate_in(frame_id or self.frame_id, params), STALL_MS)
        if (handle := reply.get("result", {}).get("objectId")) is None:
            raise PageScriptError("the element is gone")
        return str(handle)

    async def nodes(self, question: str, args: Json, *, frame_id: str | None = None) -> list[str]:
        """The handles of the elements a question answers with; they last as long as the document."""
        params = {"expression": question_source(question, args)}
        reply = await self._timed(lambda: self._evaluate_in(frame_id or self.frame_id, params), STALL_MS)
        if (handle := reply.get("result", {}).get("objectId")) is None:
            return []
        held = await self.send("Runtime.getProperties", {"objectId": handle, "ownProperties": True}, frame_id=frame_id)
        return [str(item["value"]["objectId"]) for item in held["result"] if item["name"].isdigit()]

    async def ask_node(self, backend_node: int, question: str, args: Json, *, frame_id: str | None = None) -> Json:
        """Ask the script about an element that the browser pointed at."""
        frame = frame_id or self.frame_id
        return await self._timed(lambda: self._frames.about(frame, backend_node, question, args), STALL_MS)

    async def _timed(self, command: Callable[[], Awaitable[T]], timeout_ms: int) -> T:
        if self.state != "ready":
            raise self.ended_error()
        with anyio.move_on_after(timeout_ms / 1000) as scope:
            self._pending.add(scope)
            try:
                while True:
                    try:
                        reply = await command()
                    except Error as error:
                        if self.state != "ready" or SWAPPING not in error.message:
                            raise self._translate(error) from error
                        # Between two processes the page is nowhere, and no event tells the end of it.
                        await anyio.sleep(SWAP_RETRY_S)
                    else:
                        self.stalled = False
                        return reply
            finally:
                self._pending.discard(scope)
        if self.state != "ready":
            raise self.ended_error()
        raise self._no_answer(timeout_ms)

    async def _evaluate_in(self, frame_id: str, params: dict[str, Any]) -> dict[str, Any]:
        if (hold := self.hold) is not None:
            with anyio.move_on_after(HOLD_MS / 1000):
                await hold.wait()
            if self.hold is hold:
                self.hold = None
        return await self._frames.evaluate(frame_id, params)

    def _no_answer(self, timeout_ms: int) -> Unavailable:
        if self.departing:
            return Unavailable(
                "page.navigating",
                "The page is on its way to another address that has not answered yet.",
                "Wait and try again, or call nova.navigate to go elsewhere.",
                retry_after_ms=2000,
            )
        busy = self._lag.busy_within(timeout_ms)
        # Short waits are a caller's choice; only the full five seconds say something about the page.
        self.stalled = not busy and timeout_ms >= STALL_MS
        return Unavailable(
            "cdp.renderer_stalled",
            f"The page did not answer within {timeout_ms} ms.",
            retry_after_ms=2000,
            details={"hostBusy": True} if busy else None,
        )

    def _translate(self, error: Error) -> Exception:
        text = error.message
        if self.state != "ready":
            return self.ended_error()
        if any(part in text for part in _GONE_FRAME):
            return frame_detached()
        if any(part in text for part in _GONE_CONTEXT):
            return DocumentChanged()
        if any(part in text for part in GONE_TARGET):
            self.end("lost")
            return self.ended_error()
        return PageScriptError(text.splitlines()[0][:200])

    def host_busy(self, past_ms: float) -> bool:
        return self._lag.busy_within(past_ms)

    async def frame_ids(self) -> list[str]:
        """Every frame that can be asked, the main one first; frames of other processes are attached on the way."""
        tree = await self.send("Page.getFrameTree")
        try:
            return await self._frames.ids(tree["frameTree"])
        except Error as error:
            raise self._translate(error) from error

    # -- what the page tells

    def on_message(self, callback: Callable[[Message], None]) -> Callable[[], None]:
        """Called with every message a page sends; what is returned ends that."""
        return self.told.listeners.add(callback)

    def on_document(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Called with the address at each commit of a new main document."""
        return self._on_documents.add(callback)

    def on_frame(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Called with the id of a frame inside the page that got a new document, another process, or is gone."""
        return self._frames.changed.add(callback)

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called once when the page crashes, is lost or closes."""
        return self._on_ends.add(lambda _: callback())

    def _on_navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        if frame.get("parentId"):
            self._frames.replaced(str(frame["id"]))
            return
        self.frame_id = str(frame["id"])
        self.departing = False
        self.restored = event.get("type") == "BackForwardCacheRestore"
        self._frames.new_document()
        self._on_documents.tell(str(frame["url"]))

    def _on_stopped(self, event: dict[str, Any]) -> None:
        if event.get("frameId") == self.frame_id:
            self.departing = False

    def _on_detached(self, event: dict[str, Any]) -> None:
        if event.get("reason") == "swap":
            # The frame moved to another process and lives on there.
            self._frames.replaced(str(event["frameId"]))
        else:
            self._frames.forget(str(event["frameId"]))


def _thrown_text(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    text = thrown.get("description") or thrown.get("value") or details.get("text") or "the page's script failed"
    return str(text).splitlines()[0][:200]
