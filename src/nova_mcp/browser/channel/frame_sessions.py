"""The protocol sessions of one page and its frames, and the isolated world `nova` in each of their documents."""

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, cast

from playwright.async_api import CDPSession, Error, Frame, Page

from nova_mcp.browser.channel.frame_ids import whole_id
from nova_mcp.browser.channel.messages import BINDING, Listeners
from nova_mcp.browser.channel.pipelining import sent_together
from nova_mcp.browser.process.page_meter import METERED, PageMeter
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, Unavailable

WORLD: Final = "nova"
MAX_FRAMES_REMEMBERED: Final = 500
GONE_TARGET: Final = (
    "Target closed",
    "Target page, context or browser has been closed",
    "Session closed",
    "Target crashed",
)
_NOT_OURS: Final = ("does not belong to the target", "was not found", "No frame")


class FrameSessions:
    """Frames of the page's own process share its session; a frame of another process gets one when first needed."""

    def __init__(self, page: Page, bundle: str, on_binding: Callable[[dict[str, Any]], None], meter: PageMeter) -> None:
        # Told the id of a frame inside the page that got a new document, another process, or is gone.
        self.changed: Listeners[str] = Listeners()
        self.documents = 0
        self._page = page
        self._bundle = bundle
        self._on_binding = on_binding
        self._meter = meter
        self._own: CDPSession | None = None
        self._apart: dict[str, CDPSession] = {}
        self._attached: dict[Frame, str] = {}
        self._worlds: dict[str, int] = {}
        self._seen: set[str] = set()

    @property
    def own(self) -> CDPSession:
        """The session of the page itself."""
        if self._own is None:
            raise Unavailable("tab.lost", "The page was never attached.", "Call nova.reload with recover:true.")
        return self._own

    def of(self, frame_id: str) -> CDPSession:
        """The session that speaks for a frame."""
        return self._apart.get(frame_id, self.own)

    def known(self, frame_id: str) -> str | None:
        """The whole id of a frame that was once in this page."""
        return whole_id(frame_id, self._seen)

    def note(self, frame_ids: Iterable[str]) -> None:
        """Remember frames, so that those that have left can be told from those that never were."""
        self._seen.update(islice(frame_ids, MAX_FRAMES_REMEMBERED))

    # -- attaching

    async def open(self, handlers: dict[str, Callable[[dict[str, Any]], None]]) -> str:
        """Attach to the page, with a handler for each event; the id of its main frame."""
        self._own = await self._page.context.new_cdp_session(self._page)
        for event, handler in handlers.items():
            self._own.on(event, handler)
        return await self._prepare(self._own)

    async def attach(self, frame: Frame) -> None:
        """Give a frame that runs in another process its own session; one that does not needs none."""
        if self._attached.get(frame) in self._apart:
            return
        try:
            session = await self._page.context.new_cdp_session(frame)
        except Error:
            return
        session.on("Page.frameNavigated", lambda event: self.replaced(str(event["frame"]["id"])))
        frame_id = await self._prepare(session)
        self._apart[frame_id] = session
        self._attached[frame] = frame_id
        self._worlds.pop(frame_id, None)
        session.on("close", lambda _: self.forget(frame_id))

    async def _prepare(self, session: CDPSession) -> str:
        """Everything a new session needs, sent at once; the id of the frame it speaks for."""
        session.on("Runtime.bindingCalled", self._on_binding)
        for event in METERED:
            session.on(event, self._meter.take)
        script = {"source": self._bundle, "worldName": WORLD, "runImmediately": True}
        *_, tree, _ = await sent_together(
            session,
            ("Page.enable", None),
            # Bindings are only reported to sessions that enabled Runtime.
            ("Runtime.enable", None),
            ("Runtime.addBinding", {"name": BINDING, "executionContextName": WORLD}),
            ("Page.getFrameTree", None),
            ("Page.addScriptToEvaluateOnNewDocument", script),
        )
        return str(tree["frameTree"]["frame"]["id"])

    async def ids(self, tree: dict[str, Any]) -> list[str]:
        """Every frame that can be asked, given the page's own tree; the main one first."""
        found = _frames_of(tree)
        if len(self._page.frames) > len(found):
            for frame in self._page.frames[1:]:
                await self.attach(frame)
        everything = [*found, *(frame_id for frame_id in self._apart if frame_id not in found)]
        self.note(everything)
        return everything

    # -- what becomes of frames

    def new_document(self) -> None:
        """The page itself has another document, and with it no frame that was."""
        self.documents += 1
        self._worlds.clear()
        if len(self._seen) > MAX_FRAMES_REMEMBERED:
            self._seen.clear()

    def replaced(self, frame_id: str) -> None:
        """A frame inside the page has another document or process."""
        self._worlds.pop(frame_id, None)
        self.changed.tell(frame_id)

    def forget(self, frame_id: str) -> None:
        self._apart.pop(frame_id, None)
        self._attached = {frame: known for frame, known in self._attached.items() if known != frame_id}
        self.replaced(frame_id)

    # -- the isolated world

    async def evaluate(self, frame_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """The protocol's reply to an expression in the world of a frame."""
        session = self.of(frame_id)
        world = await self._world(session, frame_id)
        try:
            return cast(dict[str, Any], await session.send("Runtime.evaluate", {**params, "contextId": world}))
        except Error as error:
            self._worlds.pop(frame_id, None)
            if self._left(session, error):
                # The frame took its own process along; the page lives on.
                raise frame_detached() from None
            raise

    async def about(self, frame_id: str, backend_node: int, question: str, args: Json) -> Json:
        """What the script of a frame says of one of its elements."""
        return await self._about(self.of(frame_id), frame_id, backend_node, about_source(question, args))

    async def about_holder(self, frame_id: str, question: str, args: Json) -> tuple[str, Json]:
        """The frame whose document holds another one, and what its script says of the element that one stands in."""
        for session in (self.own, *self._apart.values()):
            try:
                owner = await session.send("DOM.getFrameOwner", {"frameId": frame_id})
                tree = await session.send("Page.getFrameTree")
            except Error as error:
                if self._left(session, error) or any(part in error.message for part in _NOT_OURS):
                    continue
                raise
            for parent in _frames_of(tree["frameTree"]):
                value = await self._about(session, parent, owner["backendNodeId"], about_source(question, args))
                if value is not None:
                    return parent, value
        raise frame_detached()

    async def _about(self, session: CDPSession, frame_id: str, backend_node: int, source: str) -> Json:
        world = await self._world(session, frame_id)
        held = await session.send("DOM.resolveNode", {"backendNodeId": backend_node, "executionContextId": world})
        order = {"functionDeclaration": source, "objectId": held["object"]["objectId"], "returnByValue": True}
        reply = await session.send("Runtime.callFunctionOn", order)
        return cast(Json, reply["result"].get("value"))

    async def _world(self, session: CDPSession, frame_id: str) -> int:
        if (known := self._worlds.get(frame_id)) is not None:
            return known
        before = self.documents
        made = await session.send("Page.createIsolatedWorld", {"frameId": frame_id, "worldName": WORLD})
        if before == self.documents:
            self._worlds[frame_id] = made["executionContextId"]
        return int(made["executionContextId"])

    def _left(self, session: CDPSession, error: Error) -> bool:
        return session is not self.own and any(part in error.message for part in GONE_TARGET)


def about_source(question: str, args: Json) -> str:
    """The function that puts a question about the element it is called on."""
    return f"function(){{return globalThis.__nova.about(this,{json.dumps(question)},{json.dumps(args)})}}"


def frame_detached() -> NotFound:
    return NotFound("frame.detached")


def _frames_of(tree: dict[str, Any]) -> list[str]:
    found, open_nodes = [], [tree]
    while open_nodes:
        node = open_nodes.pop(0)
        found.append(str(node["frame"]["id"]))
        open_nodes.extend(node.get("childFrames", ()))
    return found
