"""Choosing: set a select, a list, a radio button, a checkbox or a switch, and read it back."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from playwright.async_api import Error

from nova_mcp.browser.act.action import PRESS_MS, REFUSES_COMMITS, Acted, Guard, Manner, Scene, lower_shield, perform
from nova_mcp.browser.act.click import Press, click, point_at, release
from nova_mcp.browser.act.locate import Locator, Prepared, Purpose, described, prepare, read_acting
from nova_mcp.browser.channel.frame_owners import place
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import Trigger
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, SeenForm, answer
from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound, NovaError, Precondition, Unavailable
from nova_mcp.verification.model import Verdict

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

ChoiceState: TypeAlias = bool | str | list[str] | None

_OPEN_MS: Final = 1500
_STATE_MS: Final = 300
_SEVERAL_KEY: Final = "Meta" if sys.platform == "darwin" else "Control"


@dataclass(frozen=True, slots=True)
class Choice:
    """What to set: exactly one of these."""

    text: str | None = None
    value: str | None = None
    index: int | None = None
    texts: tuple[str, ...] | None = None
    values: tuple[str, ...] | None = None
    checked: bool | None = None

    def question(self) -> dict[str, Json]:
        given: dict[str, Json] = {"text": self.text, "value": self.value, "index": self.index, "checked": self.checked}
        for name, several in (("texts", self.texts), ("values", self.values)):
            given[name] = None if several is None else list(several)
        return {name: value for name, value in given.items() if value is not None}

    def spoken(self, number: int) -> str:
        if self.texts is not None or self.values is not None:
            return quoted((self.texts or self.values or ())[number], 80)
        if self.index is not None:
            return f"number {self.index}"
        return quoted(self.text if self.text is not None else self.value or "", 80)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What became of a choice; the verdict is None when the page does not show its state."""

    acted: Acted
    kind: str
    before: ChoiceState
    after: ChoiceState
    option_count: int
    verdict: Literal["readback_match", "readback_differs"] | None = None
    already_set: bool = False


@dataclass(frozen=True, slots=True)
class _Option:
    """What would be pressed or chosen, with the form it stands in."""

    element: SeenElement
    form: SeenForm | None


@dataclass(frozen=True, slots=True)
class _Look:
    """What the control offers and what would have to change."""

    kind: str
    count: int
    before: ChoiceState
    already: bool = False
    closed: bool = False
    native: bool = False
    changes: tuple[_Option, ...] = ()


async def choose(tab: "Tab", locator: Locator, choice: Choice, manner: Manner, ports: Ports) -> Chosen:
    """Bring one control into the wanted state, or leave it alone."""
    try:
        return await _Choosing(tab, locator, choice, manner, ports).run()
    except DocumentChanged:
        raise navigating() from None
    finally:
        await manner.guard.end()


@dataclass(slots=True)
class _Choosing:
    tab: "Tab"
    locator: Locator
    choice: Choice
    manner: Manner
    ports: Ports
    frame_id: str | None = None

    async def run(self) -> Chosen:
        async with self.tab.watch() as window:
            prepared, look = await self._first_look()
            if look.already:
                return self._already(Acted(prepared, window, None), look)
        if look.closed:
            await self._open(prepared)
            look = replace(await self._opened(), before=look.before)
        return await self._change(prepared, look)

    def _already(self, acted: Acted, look: _Look) -> Chosen:
        return Chosen(acted, look.kind, look.before, look.before, look.count, already_set=True)

    # -- looking

    async def _first_look(self) -> tuple[Prepared, _Look]:
        prepared = await prepare(self.tab, self.locator, self.manner.timeout_ms)
        self.frame_id = prepared.frame_id
        try:
            told = answer(await self._ask("choiceLook", self.choice.question()))
            return prepared, self.read(told)
        except DocumentChanged:
            raise navigating() from None
        finally:
            await lower_shield(self.tab, prepared)

    async def _ask(self, question: str, args: Json = None, timeout_ms: int = 5000) -> Json:
        return await self.tab.channel.ask(question, args, frame_id=self.frame_id, timeout_ms=timeout_ms)

    def read(self, told: Answer) -> _Look:
        if told.get("lost"):
            raise self._precondition("action.unstable", "left the page", "Call nova.perceive again.")
        if told["kind"] is None:
            raise InvalidParams(
                "invalid_params",
                f"{self.locator.spoken} is no control with a state to choose.",
                "Use nova.click_selector, or nova.type_selector for a field that takes free text.",
            )
        self._refuse_wrong(told)
        if (missing := told.get("missing")) is not None:
            count, hint = "no option", "Choose one of the options listed."
            if told["several"]:
                count, hint = "several options", "Say which one by value or index."
            elif not told["shown"]:
                hint = "The list is empty; look at the page again."
            raise NotFound(
                "option.not_found",
                f"{self.locator.spoken} has {count} {self.choice.spoken(missing)}.",
                hint,
                details={"options": list(told["shown"]), "optionCount": told["count"]},
            )
        if (disabled := told.get("disabled")) is not None:
            raise Precondition(
                "option.disabled",
                f"The option {quoted(disabled, 80)} can't be chosen now.",
                stage="actionability",
                details={"options": list(told["shown"])},
            )
        frame = self.frame_id or ""
        return _Look(
            told["kind"],
            told["count"],
            told["before"],
            already=told["already"],
            closed=bool(told.get("closed")),
            native=bool(told.get("native")),
            changes=tuple(_Option(*read_acting(raw, frame)) for raw in told["changes"]),
        )

    def _refuse_wrong(self, told: Answer) -> None:
        kind = told["kind"]
        match told.get("wrong"):
            case "state":
                raise self._wrong(f"is a {kind}", "Give text, value or index instead of checked.")
            case "pick":
                raise self._wrong(f"is a {kind}", "Give checked: true or false.")
            case "one":
                raise self._wrong("takes exactly one choice", "Give text, value or index.")
            case "radio_off":
                raise self._precondition(
                    "option.not_applied", "is a radio button and stays on", "Choose another of its group."
                )

    def _wrong(self, what: str, hint: str) -> InvalidParams:
        return InvalidParams("invalid_params", f"{self.locator.spoken} {what}.", hint)

    def _precondition(self, reason: str, what: str, hint: str) -> Precondition:
        return Precondition(reason, f"{self.locator.spoken} {what}.", hint, stage="actionability")

    # -- opening a list

    async def _open(self, prepared: Prepared) -> Acted:
        manner = replace(self.manner, guard=_Harmless(self.manner.guard), wait_for_navigation=False)
        return await click(self.tab, Locator(ref=prepared.ref), Press(), manner, self.ports)

    async def _opened(self) -> _Look:
        wait_ms = min(max(self.manner.timeout_ms, 100), _OPEN_MS * 2)
        question: Json = {**self.choice.question(), "waitMs": wait_ms}
        try:
            look = self.read(answer(await self._ask("choiceOpened", question, wait_ms + 5000)))
        except DocumentChanged:
            raise navigating() from None
        if look.closed:
            raise NotFound(
                "option.not_found",
                f"{self.locator.spoken} was pressed, but no list of options opened.",
                "Look at the page with nova.perceive; a field that searches wants text first (nova.type_selector).",
                details={"options": [], "optionCount": 0},
            )
        return look

    # -- changing

    async def _change(self, prepared: Prepared, look: _Look) -> Chosen:
        if look.native:
            acted = await self._set_native(prepared, look)
        else:
            acted = await self._press_options(look)
        if acted.observation is None:
            return Chosen(acted, look.kind, look.before, look.before, look.count)
        matches, after = await self._read_back()
        verdict: Literal["readback_match", "readback_differs"] | None = None
        if matches is not None:
            verdict = "readback_match" if matches else "readback_differs"
        return Chosen(acted, look.kind, look.before, after, look.count, verdict)

    async def _press_options(self, look: _Look) -> Acted:
        """One press per option; only the last one is what the contract judges."""
        refs = await self._refs([option.element for option in look.changes])
        for option, ref in list(zip(look.changes, refs, strict=True))[:-1]:
            guard = _Judged(_Harmless(self.manner.guard), option)
            await click(self.tab, Locator(ref=ref), Press(), replace(self.manner, guard=guard), self.ports)
        guard = _Judged(self.manner.guard, look.changes[-1])
        return await click(self.tab, Locator(ref=refs[-1]), Press(), replace(self.manner, guard=guard), self.ports)

    async def _refs(self, elements: Sequence[SeenElement]) -> list[str]:
        return [str(item["ref"]) for item in await described(self.tab, elements) if isinstance(item, Mapping)]

    async def _set_native(self, prepared: Prepared, look: _Look) -> Acted:
        deed = _NativeChoice(self)
        guard = _Judged(self.manner.guard, look.changes[-1], deed.check)
        manner = replace(self.manner, guard=guard)
        try:
            return await perform(self.tab, Locator(ref=prepared.ref), deed, manner, self.ports)
        except NovaError:
            await self.quietly("choiceUndo")
            raise

    async def _read_back(self) -> tuple[bool | None, ChoiceState]:
        told = await self.quietly("choiceState", {"waitMs": _STATE_MS})
        if not isinstance(told, dict) or told.get("lost"):
            return None, None
        matches, after = told["matches"], told["after"]
        return (matches if isinstance(matches, bool) else None), _state(after)

    async def quietly(self, question: str, args: Json = None) -> Json:
        """Ask a page that may be gone by now."""
        try:
            return await self._ask(question, args)
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            return None

    async def again(self) -> None:
        """The look right before the decisive input: options may have changed since."""
        self.read(answer(await self._ask("choiceLook", self.choice.question())))


def _state(value: Json) -> ChoiceState:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value if isinstance(value, bool | str) else None


class _Judged:
    """Judges the option instead of the control around it; the caller's guard decides."""

    def __init__(self, inner: Guard, option: _Option, check: Callable[[], Awaitable[None]] | None = None) -> None:
        self._inner = inner
        self._option = option
        self._check = check

    def _seen(self, scene: Scene) -> Scene:
        prepared = replace(scene.prepared, acting=self._option.element, form=self._option.form)
        return replace(scene, prepared=prepared, text=self._option.element.facts.name if self._check else None)

    async def admit(self, scene: Scene) -> None:
        if self._check is not None:
            await self._check()
        await self._inner.admit(self._seen(scene))

    async def touch(self, scene: Scene) -> None:
        await self._inner.touch(self._seen(scene))

    async def commit(self, scene: Scene) -> None:
        await self._inner.commit(self._seen(scene))

    async def follow(self, scene: Scene) -> Verdict | None:
        return await self._inner.follow(scene)

    async def end(self) -> None:
        return None


class _Harmless:
    """For the presses that lead up to the choice: they must commit nothing, and no contract is about them."""

    def __init__(self, inner: Guard) -> None:
        self._inner = inner

    async def admit(self, scene: Scene) -> None:
        await REFUSES_COMMITS.admit(scene)

    async def touch(self, scene: Scene) -> None:
        await self._inner.touch(scene)

    async def commit(self, scene: Scene) -> None:
        await REFUSES_COMMITS.admit(scene)
        await self._inner.touch(scene)

    async def follow(self, scene: Scene) -> Verdict | None:
        return None

    async def end(self) -> None:
        return None


@dataclass(slots=True)
class _NativeChoice:
    """A select: all but the last step is prepared unseen, one trusted key or press makes it."""

    choosing: _Choosing
    purpose: Purpose = "click"
    trigger: Trigger | None = "click"
    point: tuple[float, float] | None = None
    several: bool = False

    async def check(self) -> None:
        await self.choosing.again()

    async def aim(self, scene: Scene) -> Scene:
        told = answer(await scene.tab.channel.ask("choiceFocus", frame_id=scene.prepared.frame_id))
        if told.get("lost") or not told["focused"]:
            raise Precondition(
                "option.not_applied",
                f"{self.choosing.locator.spoken} does not take the focus.",
                stage="actionability",
                action_dispatched=False,
            )
        if "x" not in told:
            return scene
        x, y = told["x"], told["y"]
        placed = await place(scene.tab.channel, scene.prepared.frame_id, x, y)
        prepared = replace(scene.prepared, x=placed.x, y=placed.y, spot=(x, y))
        await point_at(replace(scene, prepared=prepared), self.choosing.locator)
        self.point, self.several = (placed.x, placed.y), told["several"]
        return scene

    async def send(self, scene: Scene) -> None:
        told = await self.choosing.quietly("choiceSet")
        if not isinstance(told, dict) or told.get("lost"):
            return
        if self.point is not None:
            await self._press(scene)
            return
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            await scene.tab.page.keyboard.press(str(told["key"]))
        await self.choosing.quietly("choiceForce")

    async def _press(self, scene: Scene) -> None:
        page = scene.tab.page
        held = [_SEVERAL_KEY] if self.several else []
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            for key in held:
                await page.keyboard.down(key)
            await page.mouse.down()
            await page.mouse.up()
        await release(page, held)
