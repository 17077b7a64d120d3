"""Typing: trusted input into one field, read back before anything is claimed or sent."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from playwright.async_api import Error

from nova_mcp.browser.action_report import ActionReport, Judgement, Typed, build_report
from nova_mcp.browser.channel import DocumentChanged, PageScriptError
from nova_mcp.browser.effects import Watch, mark
from nova_mcp.browser.host_window import HostWindow, OnDialog
from nova_mcp.browser.input import (
    PRESS_MS,
    lower_shield,
    refuse_commit,
    refuse_if_undelivered,
    unobserved,
    wait_for_navigation,
)
from nova_mcp.browser.locate import Locator, Prepared, prepare, read_acting
from nova_mcp.browser.rules import QUIET_MS, WINDOW_MS
from nova_mcp.browser.seen import Answer, answer
from nova_mcp.clock import Ports
from nova_mcp.errors import Precondition
from nova_mcp.observation.model import Json

if TYPE_CHECKING:
    from nova_mcp.browser.tab import Tab

Method: TypeAlias = Literal["auto", "fill", "keys"]

_MS_PER_KEY: Final = 20


@dataclass(frozen=True, slots=True)
class TypeOptions:
    text: str
    clear: bool = True
    method: Method = "auto"
    press_enter: bool = False
    timeout_ms: int = 3000
    wait_for_navigation: bool = False
    navigation_timeout_ms: int = 10_000
    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None
    allow_commit: bool = False
    on_dispatch: Callable[[Prepared], Awaitable[None]] = unobserved


@dataclass(frozen=True, slots=True)
class _ReadBack:
    """What the field holds now; None when it can't be read any more."""

    matches: bool
    value: str
    lost: bool = False
    untouched: bool = False


async def type_text(tab: "Tab", locator: Locator, options: TypeOptions, ports: Ports) -> ActionReport:
    """Put text into one field; Enter follows only when the field holds exactly that text."""
    async with tab.watch(options.on_dialog, options.prompt_text) as window:
        prepared = await prepare(tab, locator, options.timeout_ms, "type")
        try:
            if not options.allow_commit:
                _refuse_commits(prepared, options)
            _refuse_mere_breaks(locator, prepared, options)
            return await _Entry(tab, locator, options, prepared, window, ports).run()
        finally:
            await lower_shield(tab, prepared)


def _refuse_commits(prepared: Prepared, options: TypeOptions) -> None:
    if options.press_enter:
        refuse_commit(prepared, "enter", accepts=options.on_dialog == "accept")
    elif options.on_dialog == "accept":
        refuse_commit(prepared, "click", accepts=True)


def _refuse_mere_breaks(locator: Locator, prepared: Prepared, options: TypeOptions) -> None:
    if options.text and not options.text.strip("\r\n") and prepared.element.facts.tag == "input":
        raise Precondition(
            "type.not_editable",
            f"{locator.spoken} holds one line, and the text is nothing but line breaks.",
            "Give a text without line breaks, or press Enter with pressEnter.",
            stage="actionability",
        )


@dataclass(slots=True)
class _Entry:
    tab: "Tab"
    locator: Locator
    options: TypeOptions
    prepared: Prepared
    window: HostWindow
    ports: Ports
    # Whether input has been sent: from then on the page counts as touched.
    sending: bool = False

    async def run(self) -> ActionReport:
        since = mark(self.window)
        used, back = await self._enter_text()
        self.ports.faults.hit("after_dispatch")
        if self.options.press_enter and back.matches:
            back = await self._settled()
        entered = self.options.press_enter and back.matches
        if entered:
            await self._look_again()
            since = mark(self.window)
            await self._keys("Enter")
        observation = await Watch(self.tab, self.window, self.prepared, since).observe()
        if not entered:
            # Scripts may rewrite a field a moment later; what counts is what it holds at the end.
            last = await self._read_back(frames=0)
            back = back if last.lost else last
        if not back.matches and self._nothing_to_do(back):
            back = replace(back, matches=True)
        if not back.matches:
            await refuse_if_undelivered(self.tab, self.locator, observation)
        if self.options.wait_for_navigation:
            await wait_for_navigation(self.window, since.navigations, self.options.navigation_timeout_ms)
        known = Judgement(
            verdict=self._verdict(back),
            repeat_safe=self.options.clear and not self.options.press_enter,
            differs_reason="type.value_mismatch",
            waited_for_navigation=self.options.wait_for_navigation,
        )
        report = build_report(self.prepared, observation, self.window, (self.tab.rev, self.tab.url), known)
        typed = Typed(back.matches, back.value, used, len(self.options.text))
        return replace(report, typed=typed)

    def _verdict(self, back: _ReadBack) -> Literal["readback_match", "readback_differs"] | None:
        if not back.matches:
            return "readback_differs"
        # The text is proven, what Enter did is not: the effect speaks for that.
        return None if self.options.press_enter else "readback_match"

    def _nothing_to_do(self, back: _ReadBack) -> bool:
        return self.options.text == "" and not self.options.clear and not back.lost

    async def _enter_text(self) -> tuple[Literal["fill", "keys"], _ReadBack]:
        if self.options.method != "keys":
            await self._fill()
            back = await self._read_back()
            if back.matches or self.options.method == "fill" or back.lost:
                return "fill", back
            # Appended text that arrived in another shape would be doubled by a second try.
            if not self.options.clear and not back.untouched:
                return "fill", back
        await self._type_keys()
        return "keys", await self._read_back()

    async def _focus(self) -> Answer:
        told = answer(await self.tab.channel.ask("focus", {"clear": self.options.clear}, frame_id=self._frame))
        if not told["focused"]:
            raise Precondition(
                "type.not_editable",
                f"{self.locator.spoken} does not take the focus.",
                "Click it first, or choose the field behind it.",
                stage="actionability",
            )
        if not self.sending:
            self.sending = True
            await self.options.on_dispatch(self.prepared)
            self.ports.faults.hit("before_dispatch")
        if not told["caret"]:
            await self._keys("End")
        return told

    @property
    def _frame(self) -> str | None:
        return self.prepared.frame_id

    async def _fill(self) -> None:
        told = await self._focus()
        if text := self._insertable():
            with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
                await self.tab.page.keyboard.insert_text(text)
        elif self.options.clear and not told["empty"]:
            await self._keys("Delete")

    async def _type_keys(self) -> None:
        told = await self._focus()
        if self.options.clear and not told["empty"]:
            await self._keys("Delete")
        limit_s = (PRESS_MS + _MS_PER_KEY * len(self.options.text)) / 1000
        keyboard = self.tab.page.keyboard
        with anyio.move_on_after(limit_s), suppress(Error):
            # A line break is text like any other: as a key it would be Enter, which sends and submits.
            for number, line in enumerate(self._insertable().split("\n")):
                if number:
                    await keyboard.insert_text("\n")
                if line:
                    await keyboard.type(line)

    def _insertable(self) -> str:
        """The text with plain line breaks; none for a field of one line, where a lone break would submit the form."""
        text = self.options.text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\n", "") if self.prepared.element.facts.tag == "input" else text

    async def _keys(self, key: str) -> None:
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            await self.tab.page.keyboard.press(key)

    async def _look_again(self) -> None:
        """Typing may have changed the form, so what Enter would do is judged as the page stands now."""
        raw = await self._ask("again")
        told: Answer = {"lost": True} if raw is None else answer(raw)
        if not self.options.allow_commit and not told.get("lost"):
            acting, form = read_acting(told["acting"], self._frame or "")
            refuse_commit(replace(self.prepared, acting=acting, form=form), "enter")

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
        raw = await self._ask("readBack", {"text": self.options.text, "frames": frames})
        told = None if raw is None else answer(raw)
        if told is None or told.get("lost"):
            return _ReadBack(matches=False, value="", lost=True)
        return _ReadBack(told["matches"], told["value"], untouched=told["untouched"])
