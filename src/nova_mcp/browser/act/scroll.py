"""Scrolling: the page, a box in it, or until an element is in view; where it ended is read back."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from nova_mcp.browser.act.action import Acted, Manner, Scene, watched
from nova_mcp.browser.act.locate import Locator, Prepared, described, find
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.observe.effects import mark
from nova_mcp.browser.observe.host_window import HostWindow
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element
from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, NovaError, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Towards: TypeAlias = Literal["top", "bottom", "next", "prev"]

PAGE: Final = "page"
_ANSWER_MS: Final = 6000
# An element that a long list does not hold yet is looked for at most so long, page by page.
SEEK_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ScrollRequest:
    """Exactly one of element, delta_x, delta_y and to."""

    element: Locator | None = None
    delta_x: int | None = None
    delta_y: int | None = None
    to: Towards | None = None
    container: Locator | None = None
    settle_ms: int = 300

    @property
    def axis(self) -> str:
        return "y" if self.delta_x is None else "x"

    def question(self) -> dict[str, Json]:
        return {"deltaX": self.delta_x, "deltaY": self.delta_y, "to": self.to, "settleMs": self.settle_ms}


@dataclass(frozen=True, slots=True)
class Position:
    """Where it went and where it stands."""

    moved_x: int = 0
    moved_y: int = 0
    scroll_top: int = 0
    scroll_height: int = 0
    at_end: bool = False
    grew_px: int = 0
    new_elements: int = 0


@dataclass(frozen=True, slots=True)
class Scrolled:
    """What became of it; the verdict is None when the page left meanwhile."""

    acted: Acted
    position: Position
    container: str
    verdict: Literal["readback_match", "readback_differs"] | None
    reason: str = "scroll.no_movement"
    already: bool = False


async def scroll(tab: "Tab", request: ScrollRequest, manner: Manner, ports: Ports) -> Scrolled:
    """Scroll once and say truthfully how far that went."""
    async with tab.watch(manner.on_dialog) as window:
        scrolling = _Scrolling(tab, window, request, manner, ports)
        try:
            return await scrolling.run()
        except DocumentChanged:
            raise navigating() from None
        finally:
            await scrolling.end()
            await manner.guard.end()


@dataclass(slots=True)
class _Scrolling:
    tab: "Tab"
    window: HostWindow
    request: ScrollRequest
    manner: Manner
    ports: Ports
    frame_id: str | None = None

    async def run(self) -> Scrolled:
        node = None
        if self.request.element is not None:
            node = await self._target(self.request.element)
        return await self._once(await self._ready(node, None), self.request)

    async def end(self) -> None:
        with anyio.CancelScope(shield=True), suppress(DocumentChanged, PageScriptError, Unavailable, NotFound):
            await self.tab.channel.ask("scrollEnd", frame_id=self.frame_id, timeout_ms=1000)

    # -- what is meant

    async def _target(self, locator: Locator) -> int:
        """The element to bring into view; in a named list it is looked for page by page."""
        try:
            element, self.frame_id = await find(self.tab, locator)
        except NotFound as missing:
            if self.request.container is None or missing.reason_code != "selector.not_found":
                raise
            element = await self._sought(locator, missing)
        return element.node

    async def _sought(self, locator: Locator, missing: NovaError) -> SeenElement:
        page_on = replace(self.request, element=None, to="next")
        until = anyio.current_time() + SEEK_MS / 1000
        while anyio.current_time() < until:
            step = await self._once(await self._ready(None, self.request.container), page_on)
            with suppress(NotFound):
                element, self.frame_id = await find(self.tab, locator)
                return element
            if step.verdict != "readback_match" or (step.position.at_end and not step.position.grew_px):
                break
        raise missing

    async def _container(self, locator: Locator) -> int:
        try:
            element, self.frame_id = await find(self.tab, locator)
        except NotFound as missing:
            raise NotFound(
                "scroll.container_not_found",
                f"There is no box {locator.spoken} to scroll.",
                details=missing.details,
            ) from None
        return element.node

    async def _ready(self, node: int | None, container: Locator | None) -> Answer:
        named = container or (self.request.container if node is None else None)
        number = None if named is None else await self._container(named)
        question: Json = {"node": node, "container": number, "axis": self.request.axis}
        told = answer(await self.tab.channel.ask("scrollReady", question, frame_id=self.frame_id))
        if told["state"] != "ready":
            raise _refusal(told, named or self.request.element)
        return told

    # -- the scroll itself

    async def _once(self, ready: Answer, request: ScrollRequest) -> Scrolled:
        container, prepared = await self._prepared(ready)
        scene = Scene(self.tab, self.window, prepared, trigger=None)
        await self.manner.guard.admit(scene)
        if ready["already"]:
            return Scrolled(Acted(prepared, self.window, None), Position(), container, "readback_match", already=True)
        await self.manner.guard.commit(scene)
        self.ports.faults.hit("before_dispatch")
        since = mark(self.window)
        told = await self._send(request)
        self.ports.faults.hit("after_dispatch")
        acted = await watched(scene, since, self.manner, None if told is None else told["effect"])
        if told is None:
            return Scrolled(acted, Position(), container, None)
        position = _position(told)
        arrived = bool(told["inSight"]) if request.element is not None else bool(position.moved_x or position.moved_y)
        reason = "action.not_visible" if request.element is not None else "scroll.no_movement"
        verdict: Literal["readback_match", "readback_differs"] = "readback_match" if arrived else "readback_differs"
        return Scrolled(_proven(acted), position, container, verdict, reason)

    async def _send(self, request: ScrollRequest) -> Answer | None:
        timeout_ms = request.settle_ms + _ANSWER_MS
        try:
            told = answer(
                await self.tab.channel.ask(
                    "scrollNow", request.question(), frame_id=self.frame_id, timeout_ms=timeout_ms
                )
            )
            if request.element is not None and self.frame_id is not None:
                await self._show_frames()
        except (DocumentChanged, PageScriptError, NotFound):
            return None
        return None if told["lost"] else told

    async def _show_frames(self) -> None:
        inner, x, y = self.frame_id, 1.0, 1.0
        while inner is not None and inner != self.tab.channel.frame_id:
            inner, raw = await self.tab.channel.ask_holder(inner, "scrollHolder", {"x": x, "y": y})
            told = answer(raw)
            x, y = told["x"], told["y"]

    async def _prepared(self, ready: Answer) -> tuple[str, Prepared]:
        """The box or element as the acting machinery knows it; the window itself has no ref."""
        frame = self.frame_id or ""
        element, box = read_element(ready["element"], frame), read_element(ready["container"], frame)
        container = PAGE if ready["page"] else (await self._line(box))[1]
        ref, line = ("", PAGE) if ready["page"] and element.node == box.node else await self._line(element)
        known = self.tab.perception.get(ref)
        named = self.request.element or self.request.container
        return container, Prepared(
            x=0,
            y=0,
            spot=(0, 0),
            holders=(),
            element=element,
            acting=element,
            form=None,
            also_acting=(),
            ref=ref,
            line=line,
            selector=(named.selector if named else None)
            or (known.selector.selector if known and known.selector else None),
            standing=ready["standing"],
            href=None,
            secret=False,
            url=ready["url"],
            recent_paths=frozenset(ready["recentPaths"]),
            frame_id=self.frame_id,
        )

    async def _line(self, element: SeenElement) -> tuple[str, str]:
        (shown,) = await described(self.tab, [element])
        return (str(shown["ref"]), str(shown["line"])) if isinstance(shown, dict) else ("", "")


def _position(told: Answer) -> Position:
    return Position(
        told["movedX"],
        told["movedY"],
        told["scrollTop"],
        told["scrollHeight"],
        told["atEnd"],
        told["grewPx"],
        told["newElements"],
    )


def _proven(acted: Acted) -> Acted:
    """The order is carried out by the page's own engine and read back, so no listener has to see it."""
    if acted.observation is None:
        return acted
    return replace(acted, observation=replace(acted.observation, dispatch_proof="event"))


def _refusal(told: Answer, named: Locator | None) -> NovaError:
    spoken = "The page" if named is None else named.spoken
    match told["state"]:
        case "locked":
            return Precondition(
                "scroll.not_scrollable",
                f"{spoken} is kept from scrolling, as pages do behind an open dialog.",
                "Close what is open, or name the box to scroll with container.",
                stage="actionability",
            )
        case "not_visible":
            return Precondition("action.not_visible", f"{spoken} is not visible.", stage="actionability")
        case "gone":
            return Precondition("action.unstable", f"{spoken} left the page.", stage="actionability")
        case _:
            other = " in that direction" if told.get("other") else ""
            return Precondition(
                "scroll.not_scrollable",
                f"{spoken} can't be scrolled{other}.",
                stage="actionability",
            )
