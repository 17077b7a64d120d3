"""Clicking: one trusted press at a tested point."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from playwright.async_api import Error, Page

from nova_mcp.browser.act.action import PRESS_MS, Acted, Manner, Scene, gone, perform
from nova_mcp.browser.act.locate import Locator, Purpose, obstructed, read_acting
from nova_mcp.browser.blockers.layers import seen_out
from nova_mcp.browser.channel.frame_owners import place
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import Trigger
from nova_mcp.browser.perceive.scan_values import answer, read_element
from nova_mcp.core.clock import Ports
from nova_mcp.errors import Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

Button: TypeAlias = Literal["left", "middle", "right"]
Modifier: TypeAlias = Literal["Alt", "Control", "Meta", "Shift"]


@dataclass(frozen=True, slots=True)
class Press:
    """Which button, how often, with which keys held."""

    button: Button = "left"
    click_count: int = 1
    modifiers: tuple[Modifier, ...] = ()


async def click(tab: "Tab", locator: Locator, press: Press, manner: Manner, ports: Ports) -> Acted:
    """Click exactly one element, or nothing."""
    return await seen_out(tab, await perform(tab, locator, _Click(locator, press), manner, ports))


@dataclass(frozen=True, slots=True)
class _Click:
    locator: Locator
    press: Press
    purpose: Purpose = "click"
    trigger: Trigger | None = "click"

    async def aim(self, scene: Scene) -> Scene:
        return await point_at(scene, self.locator)

    async def send(self, scene: Scene) -> None:
        await _press(scene, self.press)


async def point_at(scene: Scene, locator: Locator) -> Scene:
    """Put the pointer there and look again: pages that put something under it, or turn it into something else, do so
    before anything is pressed."""
    tab, prepared = scene.tab, scene.prepared
    with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
        await tab.page.mouse.move(prepared.x, prepared.y)
    try:
        told = answer(await tab.channel.ask("aimed", frame_id=prepared.frame_id))
        placed = await place(tab.channel, prepared.frame_id, *prepared.spot)
    except DocumentChanged:
        raise navigating() from None
    if told.get("gone"):
        raise gone(locator)
    if told.get("moved"):
        raise Precondition(
            "action.unstable",
            f"{locator.spoken} is no longer where the pointer was put.",
            "Wait until the page is still, then call again.",
            stage="actionability",
            action_dispatched=False,
        )
    if not told["aimed"]:
        foreign = told["foreign"]
        raise await obstructed(
            tab, locator, None if foreign is None else read_element(foreign, prepared.frame_id or "")
        )
    if placed.covered:
        raise await obstructed(tab, locator, placed.blocker)
    (acting, form), *others = (read_acting(raw, prepared.frame_id or "") for raw in told["roads"])
    return replace(scene, prepared=replace(prepared, acting=acting, form=form, also_acting=tuple(others)))


async def _press(scene: Scene, press: Press) -> None:
    held: list[str] = []
    page, prepared = scene.tab.page, scene.prepared
    with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
        for key in press.modifiers:
            held.append(key)
            await page.keyboard.down(key)
        # In one message, so that no time passes between down and up.
        await page.mouse.click(prepared.x, prepared.y, button=press.button, click_count=press.click_count)
    await release(page, held)


async def release(page: Page, held: Sequence[str]) -> None:
    """Keys that stay down would change everything that is pressed later."""
    for key in reversed(held):
        with anyio.move_on_after(1), suppress(Error):
            await page.keyboard.up(key)
