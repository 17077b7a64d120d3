"""Typing: trusted input into one field, read back before anything is claimed or sent."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from playwright.async_api import Error

from nova_mcp.browser.act.action import (
    PRESS_MS,
    Acted,
    AlreadyDone,
    Manner,
    Scene,
    followed,
    left_the_page,
    lower_shield,
    refuse_if_undelivered,
    trigger_of_filling,
    watched,
)
from nova_mcp.browser.act.locate import Locator, Prepared, lower, prepare, read_acting
from nova_mcp.browser.act.shield import fence_off
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import Trigger
from nova_mcp.browser.observe.effects import Mark, mark
from nova_mcp.browser.perceive.rules import QUIET_MS, WINDOW_MS
from nova_mcp.browser.perceive.scan_values import Answer, answer
from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.errors import Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Method: TypeAlias = Literal["auto", "fill", "keys"]

_MS_PER_KEY: Final = 20


@dataclass(frozen=True, slots=True)
class Text:
    """What to type and how."""

    text: str
    clear: bool = True
    method: Method = "auto"
    press_enter: bool = False


@dataclass(frozen=True, slots=True)
class Typed:
    """What became of text that was typed.

    `value_matches` is None when nobody could read the field afterwards; the verdict is None then too, and when only the
    effect of Enter can speak.
    """

    acted: Acted
    value_matches: bool | None
    actual_value: str
    method_used: Literal["fill", "keys"]
    typed_chars: int
    verdict: Literal["readback_match", "readback_differs"] | None
    repeat_safe: bool


@dataclass(frozen=True, slots=True)
class _ReadBack:
    """What the field holds now, and what the page did meanwhile; `lost` when it can't be read any more."""

    matches: bool
    value: str
    lost: bool = False
    untouched: bool = False
    effect: Answer | None = None


async def type_text(tab: "Tab", locator: Locator, text: Text, manner: Manner, ports: Ports) -> Typed:
    """Put text into one field; Enter follows only when the field holds exactly that text."""
    async with tab.watch(manner.on_dialog, manner.prompt_text) as window:
        prepared = await prepare(tab, locator, manner.timeout_ms, "type")
        scene = Scene(
            tab,
            window,
            prepared,
            trigger=_trigger(prepared, text),
            accepts=manner.on_dialog == "accept",
            text=text.text,
            appends=not text.clear,
        )
        entry = _Entry(locator, text, scene, manner, ports)
        fenced: tuple[str | None, ...] = ()
        try:
            await manner.guard.admit(scene)
            _refuse_mere_breaks(locator, scene, text)
            fenced = await fence_off(tab, prepared.frame_id)
            return await entry.run()
        except AlreadyDone as done:
            acted = Acted(prepared, window, None, already_done=done.commit)
            return Typed(
                acted,
                value_matches=None,
                actual_value="",
                method_used="fill",
                typed_chars=0,
                verdict=None,
                repeat_safe=False,
            )
        finally:
            await lower(tab, fenced)
            await lower_shield(tab, prepared)
            await manner.guard.end()


def _trigger(prepared: Prepared, text: Text) -> Trigger | None:
    return "enter" if text.press_enter else trigger_of_filling(prepared)


def _refuse_mere_breaks(locator: Locator, scene: Scene, text: Text) -> None:
    if text.text and not text.text.strip("\r\n") and scene.prepared.element.facts.tag == "input":
        raise Precondition(
            "type.not_editable",
            f"{locator.spoken} holds one line, and the text is nothing but line breaks.",
            "Give a text without line breaks, or press Enter with pressEnter.",
            stage="actionability",
        )


@dataclass(slots=True)
class _Entry:
    locator: Locator
    text: Text
    scene: Scene
    manner: Manner
    ports: Ports
    # Whether input has been sent: from then on the page counts as touched.
    sending: bool = False

    @property
    def tab(self) -> "Tab":
        return self.scene.tab

    async def run(self) -> Typed:
        since = mark(self.scene.window)
        used, back = await self._enter_text()
        self.ports.faults.hit("after_dispatch")
        if self.text.press_enter and back.matches and self.text.text:
            back = await self._settled()
        if self.text.press_enter and back.matches:
            acted, since = await self._enter()
        else:
            # Text that stands in the field is its own proof; only what differs may still be on its way.
            acted = await watched(self.scene, since, self.manner, back.effect if back.matches else None)
            if not back.matches:
                last = await self._read_back(frames=0)
                back = back if last.lost else last
        if not back.matches and self._nothing_to_do(back):
            back = replace(back, matches=True)
        if not back.matches and not back.lost and acted.observation is not None:
            await refuse_if_undelivered(self.tab, self.locator, acted.observation)
        acted = await followed(self.scene, self.locator, acted, self.manner, since)
        return Typed(
            acted,
            None if back.lost else back.matches,
            back.value,
            used,
            len(self.text.text),
            self._verdict(back),
            repeat_safe=self.text.clear and not self.text.press_enter,
        )

    async def _enter(self) -> tuple[Acted, Mark]:
        """Typing may have changed the form, so what Enter would do is judged as the page stands now."""
        raw = await self._ask("again")
        told: Answer = {"lost": True} if raw is None else answer(raw)
        if told.get("lost"):
            raise left_the_page(self.locator.spoken)
        acting, form = read_acting(told["acting"], self._frame or "")
        self.scene = replace(self.scene, prepared=replace(self.scene.prepared, acting=acting, form=form))
        await self.manner.guard.commit(self.scene)
        self.ports.faults.hit("before_enter")
        since = mark(self.scene.window)
        await self._keys("Enter")
        self.ports.faults.hit("after_enter")
        return await watched(self.scene, since, self.manner), since

    def _verdict(self, back: _ReadBack) -> Literal["readback_match", "readback_differs"] | None:
        if back.lost:
            return None
        if not back.matches:
            return "readback_differs"
        # The text is proven, what Enter did is not: the effect speaks for that.
        return None if self.text.press_enter else "readback_match"

    def _nothing_to_do(self, back: _ReadBack) -> bool:
        return self.text.text == "" and not self.text.clear and not back.lost

    async def _enter_text(self) -> tuple[Literal["fill", "keys"], _ReadBack]:
        if self.text.method != "keys":
            await self._fill()
            back = await self._read_back()
            if back.matches or self.text.method == "fill" or back.lost:
                return "fill", back
            # Appended text that arrived in another shape would be doubled by a second try.
            if not self.text.clear and not back.untouched:
                return "fill", back
        await self._type_keys()
        return "keys", await self._read_back()

    async def _focus(self) -> Answer:
        raw = await self._ask("focus", {"clear": self.text.clear})
        if raw is None:
            raise navigating()
        told = answer(raw)
        if not told["focused"]:
            raise Precondition(
                "type.not_editable",
                f"{self.locator.spoken} does not take the focus.",
                "Click it first, or choose the field behind it.",
                stage="actionability",
            )
        if not self.sending:
            self.sending = True
            await self._announce()
            self.ports.faults.hit("before_dispatch")
        if not told["caret"]:
            await self._keys("End")
        return told

    async def _announce(self) -> None:
        """The first input goes out next; without Enter it is also the decisive one."""
        guard = self.manner.guard
        await (guard.touch(self.scene) if self.text.press_enter else guard.commit(self.scene))

    @property
    def _frame(self) -> str | None:
        return self.scene.prepared.frame_id

    async def _fill(self) -> None:
        told = await self._focus()
        if told["whole"]:
            await self._set_whole()
        elif text := self._insertable():
            with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
                await self.tab.page.keyboard.insert_text(text)
        elif self.text.clear and not told["empty"]:
            await self._keys("Delete")

    async def _type_keys(self) -> None:
        told = await self._focus()
        if told["whole"]:
            await self._set_whole()
            return
        if self.text.clear and not told["empty"]:
            await self._keys("Delete")
        limit_s = (PRESS_MS + _MS_PER_KEY * len(self.text.text)) / 1000
        keyboard = self.tab.page.keyboard
        with anyio.move_on_after(limit_s), suppress(Error):
            # A line break is text like any other: as a key it would be Enter, which sends and submits.
            for number, line in enumerate(self._insertable().split("\n")):
                if number:
                    await keyboard.insert_text("\n")
                if line:
                    await keyboard.type(line)

    async def _set_whole(self) -> None:
        """Dates, times and the like are set at once; a key that changes nothing proves that the field was reached."""
        await self._keys("Shift")
        await self._ask("setWhole", {"text": self.text.text})

    def _insertable(self) -> str:
        """The text with plain line breaks; none for a field of one line, where a lone break would submit the form."""
        text = self.text.text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\n", "") if self.scene.prepared.element.facts.tag == "input" else text

    async def _keys(self, key: str) -> None:
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            await self.tab.page.keyboard.press(key)

    async def _settled(self) -> _ReadBack:
        """What the field holds once its scripts have had their say."""
        await self._ask("effect", {"waitMs": WINDOW_MS, "quietMs": QUIET_MS})
        return await self._read_back(frames=0)

    async def _ask(self, question: str, args: Json = None) -> Json:
        try:
            return await self.tab.channel.ask(question, args, frame_id=self._frame)
        except (DocumentChanged, PageScriptError):
            return None

    async def _read_back(self, frames: int = 1) -> _ReadBack:
        raw = await self._ask("readBack", {"text": self.text.text, "frames": frames})
        told = None if raw is None else answer(raw)
        if told is None or told.get("lost"):
            return _ReadBack(matches=False, value="", lost=True)
        return _ReadBack(told["matches"], told["value"], untouched=told["untouched"], effect=answer(told["effect"]))
