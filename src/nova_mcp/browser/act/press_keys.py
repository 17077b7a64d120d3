"""Pressing keys: trusted strokes that only the focused element gets that was judged."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from playwright.async_api import Error

from nova_mcp.browser.act.action import PRESS_MS, Acted, AlreadyDone, Manner, Scene, dispatched, followed
from nova_mcp.browser.act.click import release
from nova_mcp.browser.act.locate import Locator, Prepared, described, lower, prepare, read_acting
from nova_mcp.browser.act.shield import fence_off
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import CommitPoint, Trigger
from nova_mcp.browser.observe.host_window import HostWindow
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element
from nova_mcp.core.clock import Ports
from nova_mcp.core.page.keys import Stroke, copies
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


@dataclass(frozen=True, slots=True)
class Keyed:
    """What keys did, and what has the focus now; None when nothing has."""

    acted: Acted
    focused_element: str | None


@dataclass(frozen=True, slots=True)
class KeyScene(Scene):
    """A key may send as Enter does and press as a click does; either makes it a commit."""

    def commit_point(self) -> CommitPoint | None:
        point = Scene.commit_point(self)
        if point is None and self.trigger == "enter":
            return Scene.commit_point(replace(self, trigger="click"))
        return point


async def press_keys(tab: "Tab", locator: Locator | None, strokes: "Strokes", manner: Manner, ports: Ports) -> Keyed:
    """Press one key, once or several times, on one element or on whatever has the focus."""
    async with tab.watch(manner.on_dialog, manner.prompt_text) as window:
        pressing = _Pressing(tab, window, locator, strokes, manner, ports)
        try:
            acted = await pressing.run()
        finally:
            await lower(tab, pressing.armed)
            await manner.guard.end()
        return Keyed(acted, await pressing.focused_line())


@dataclass(frozen=True, slots=True)
class Strokes:
    stroke: Stroke
    repeat: int = 1


@dataclass(slots=True)
class _Pressing:
    tab: "Tab"
    window: HostWindow
    locator: Locator | None
    strokes: Strokes
    manner: Manner
    ports: Ports
    # Every document with a raised shield.
    armed: list[str | None] = field(default_factory=list)

    async def run(self) -> Acted:
        scene = await self._scene()
        try:
            self._refuse_copying(scene)
            await self.manner.guard.admit(scene)
            self.armed += await fence_off(self.tab, scene.prepared.frame_id)
            self._refuse_repeats(scene)
            acted, since = await dispatched(scene, self.manner, self.ports, self._send)
        except AlreadyDone as done:
            return Acted(scene.prepared, self.window, None, already_done=done.commit)
        acted = await self._doubted(scene, acted)
        return await followed(scene, self.locator or Locator(ref=scene.prepared.ref), acted, self.manner, since)

    # -- the element

    async def _scene(self) -> KeyScene:
        try:
            found = self._focused() if self.locator is None else self._named(self.locator)
            told, frame_id, holders = await found
            prepared = await self._prepared(told, frame_id, holders)
        except DocumentChanged:
            raise navigating() from None
        trigger = self._trigger(prepared.element, prepared.acting, told)
        return KeyScene(self.tab, self.window, prepared, trigger, accepts=self.manner.on_dialog == "accept")

    async def _named(self, locator: Locator) -> tuple[Answer, str | None, tuple[str, ...]]:
        found = await prepare(self.tab, locator, self.manner.timeout_ms)
        self.armed += [found.frame_id, *found.holders]
        told = await self._ready(found.frame_id, focus=True)
        if not told["focused"] or told["inFrame"]:
            raise Precondition(
                "type.not_editable",
                f"{locator.spoken} does not take the focus.",
                "Name the field or button itself, or leave it out to press keys where the focus is.",
                stage="actionability",
                action_dispatched=False,
            )
        for holder in found.holders:
            await self.tab.channel.ask("keysElsewhere", frame_id=holder)
        return told, found.frame_id, found.holders

    async def _focused(self) -> tuple[Answer, str | None, tuple[str, ...]]:
        self.armed.append(None)
        told = await self._ready(None, focus=False)
        if not told["inFrame"]:
            return told, None, ()
        for frame_id in (await self.tab.channel.frame_ids())[1:]:
            try:
                at = answer(await self.tab.channel.ask("keysAt", frame_id=frame_id))
            except (DocumentChanged, PageScriptError, NotFound):
                continue
            if at["has"] and not at["inFrame"]:
                self.armed.append(frame_id)
                return await self._ready(frame_id, focus=False), frame_id, (self.tab.channel.frame_id,)
        raise Precondition(
            "action.unstable",
            "The focus is in a frame that can't be reached.",
            "Name the element with selector and frameId, or with its ref.",
            stage="actionability",
            action_dispatched=False,
        )

    async def _ready(self, frame_id: str | None, *, focus: bool) -> Answer:
        question: Json = {"focus": focus, **self._stroke_told()}
        return answer(await self.tab.channel.ask("keysReady", question, frame_id=frame_id))

    def _stroke_told(self) -> dict[str, Json]:
        return {"activates": self.strokes.stroke.activates, "access": self.strokes.stroke.access}

    def _trigger(self, element: SeenElement, acting: SeenElement, told: Answer) -> Trigger | None:
        # A field whose own script submits its form may do so at any key, the one that leaves it included.
        presses = told["presses"] or (told["typable"] and acting.submits)
        trigger = trigger_of(self.strokes.stroke, tag=element.facts.tag, typable=told["typable"], presses=presses)
        return "fill" if trigger is None and told["typable"] and acting.fills else trigger

    async def _prepared(self, told: Answer, frame_id: str | None, holders: tuple[str, ...]) -> Prepared:
        frame = frame_id or ""
        element = read_element(told["element"], frame)
        (acting, form), *others = (read_acting(raw, frame) for raw in (told["acting"], *told["alsoActing"]))
        ref, line = await self._line(element)
        selector = self.locator.selector if self.locator is not None else None
        known = self.tab.perception.get(ref)
        return Prepared(
            x=0,
            y=0,
            spot=(0, 0),
            holders=holders,
            element=element,
            acting=acting,
            form=form,
            also_acting=tuple(others),
            ref=ref,
            line=line,
            selector=selector or (known.selector.selector if known and known.selector else None),
            standing=told["standing"],
            href=None,
            secret=told["secret"],
            url=told["url"],
            recent_paths=frozenset(told["recentPaths"]),
            frame_id=frame_id,
        )

    async def _line(self, element: SeenElement) -> tuple[str, str]:
        (shown,) = await described(self.tab, [element])
        return (str(shown["ref"]), str(shown["line"])) if isinstance(shown, dict) else ("", "")

    def _refuse_copying(self, scene: Scene) -> None:
        """The clipboard outlives the page and knows no hosts."""
        if scene.prepared.secret and copies(self.strokes.stroke):
            raise InvalidParams(
                "key.not_allowed",
                f"{self.strokes.stroke.spelled} would copy what a field hides.",
                "Type the secret where it is needed with nova.type_selector_secret.",
            )

    def _refuse_repeats(self, scene: Scene) -> None:
        if self.strokes.repeat > 1 and scene.commit_point() is not None:
            raise InvalidParams(
                "invalid_params",
                f"{self.strokes.stroke.spelled} commits something here, so repeat must be 1.",
                "Press it once and look at what came of it.",
            )

    # -- the keys

    async def _send(self, scene: Scene) -> None:
        for number in range(self.strokes.repeat):
            if number and not await self._next(scene):
                return
            await self._stroke(scene)

    async def _next(self, scene: Scene) -> bool:
        """Whether the next stroke may go out to what has the focus now; it must not commit what the first did not."""
        told = await self._again(scene)
        if told is None or told["lost"]:
            return False
        frame = scene.prepared.frame_id or ""
        roads = tuple(read_acting(raw, frame) for raw in (told["acting"], *told["alsoActing"]))
        (acting, form), *others = roads
        trigger = self._trigger(read_element(told["element"], frame), acting, told)
        prepared = replace(scene.prepared, acting=acting, form=form, also_acting=tuple(others))
        return KeyScene(self.tab, self.window, prepared, trigger).commit_point() is None

    async def _again(self, scene: Scene) -> Answer | None:
        question: Json = self._stroke_told()
        try:
            return answer(await self.tab.channel.ask("keysAgain", question, frame_id=scene.prepared.frame_id))
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            return None

    async def _stroke(self, scene: Scene) -> None:
        stroke, keyboard = self.strokes.stroke, self.tab.page.keyboard
        held: list[str] = []
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            if not stroke.on_keyboard:
                await keyboard.insert_text(stroke.key)
                return
            for key in stroke.modifiers:
                held.append(key)
                await keyboard.down(key)
            held.append(stroke.key)
            await keyboard.down(stroke.key)
            if not stroke.activates:
                # The key may have moved the focus; its release belongs there. One that presses stays where it was.
                await self._again(scene)
        await release(self.tab.page, held)

    # -- afterwards

    async def _doubted(self, scene: Scene, acted: Acted) -> Acted:
        """Keys that no listener saw may have gone into a frame that took the focus."""
        observation = acted.observation
        if observation is None or observation.dispatch_proof != "none":
            return acted
        try:
            at = answer(await self.tab.channel.ask("keysAt", frame_id=scene.prepared.frame_id))
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            return acted
        if at["has"] and not at["inFrame"]:
            return acted
        return replace(acted, observation=replace(observation, dispatch_proof="assumed"))

    async def focused_line(self) -> str | None:
        for frame_id in reversed(self.armed):
            try:
                at = answer(await self.tab.channel.ask("keysAt", frame_id=frame_id))
                if at["element"] is None or not at["has"]:
                    continue
                _, line = await self._line(read_element(at["element"], frame_id or ""))
            except (DocumentChanged, PageScriptError, Unavailable, NotFound):
                continue
            return line
        return None


def trigger_of(stroke: Stroke, *, tag: str, typable: bool, presses: bool = False) -> Trigger | None:
    """How a key on that element is judged: Enter sends and submits, Space presses, any key may turn a select.

    `presses` when it is the access key of another element, or the field's own script submits its form.
    """
    if stroke.key == "Enter":
        return "enter"
    if presses:
        return "click"
    if tag == "select" or (stroke.activates and not typable):
        return "click"
    return None
