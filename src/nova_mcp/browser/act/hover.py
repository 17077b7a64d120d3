"""Hovering: the pointer rests on one element, and what that shows is told."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import anyio
from playwright.async_api import Error

from nova_mcp.browser.act.action import PRESS_MS, Acted, Manner, Scene, dispatched, followed, gone, lower_shield
from nova_mcp.browser.act.locate import Locator, described, prepare
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.perceive.scan_values import Answer, answer, read_element
from nova_mcp.core.clock import Ports
from nova_mcp.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

MAX_REVEALED: Final = 10


@dataclass(frozen=True, slots=True)
class Hovered:
    """Where the pointer ended, and what became visible; the verdict is None when the page left."""

    acted: Acted
    revealed: tuple[str, ...]
    verdict: Literal["readback_match", "readback_differs"] | None


async def hover(tab: "Tab", locator: Locator, hold_ms: int, manner: Manner, ports: Ports) -> Hovered:
    """Move the pointer onto exactly one element and leave it there."""
    async with tab.watch(manner.on_dialog) as window:
        prepared = await prepare(tab, locator, manner.timeout_ms)
        scene = Scene(tab, window, prepared, trigger=None)
        try:
            await manner.guard.admit(scene)
            await _before(scene, locator)
            acted, since = await dispatched(scene, manner, ports, partial(_move, hold_ms=hold_ms))
            told = await _after(scene)
        finally:
            await lower_shield(tab, prepared)
            await manner.guard.end()
        acted = _proven(acted, told)
        acted = await followed(scene, locator, acted, manner, since)
        if told is None:
            return Hovered(acted, (), None)
        return Hovered(acted, await _lines(scene, told), "readback_match" if told["under"] else "readback_differs")


async def _before(scene: Scene, locator: Locator) -> None:
    try:
        told = answer(await scene.tab.channel.ask("hoverReady", frame_id=scene.prepared.frame_id))
    except DocumentChanged:
        raise navigating() from None
    if told["lost"]:
        raise gone(locator)


async def _move(scene: Scene, hold_ms: int) -> None:
    x, y = scene.prepared.x, scene.prepared.y
    mouse = scene.tab.page.mouse
    with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
        # A pointer that stands there already would move nowhere, and the page would hear nothing of it.
        await mouse.move(x + 1, y)
        await mouse.move(x, y)
    await anyio.sleep(hold_ms / 1000)


async def _after(scene: Scene) -> Answer | None:
    try:
        told = answer(await scene.tab.channel.ask("hovered", frame_id=scene.prepared.frame_id))
    except (DocumentChanged, PageScriptError, Unavailable, NotFound):
        return None
    return None if told["lost"] else told


def _proven(acted: Acted, told: Answer | None) -> Acted:
    """A pointer presses nothing, so its own movement is the proof."""
    if told is None or not told["heard"] or acted.observation is None:
        return acted
    return replace(acted, observation=replace(acted.observation, dispatch_proof="event"))


async def _lines(scene: Scene, told: Answer) -> tuple[str, ...]:
    frame = scene.prepared.frame_id or ""
    shown = await described(scene.tab, [read_element(raw, frame) for raw in told["revealed"][:MAX_REVEALED]])
    return tuple(str(item["line"]) for item in shown if isinstance(item, dict))
