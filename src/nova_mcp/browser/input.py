"""Clicking: one element, one trusted press at a tested point, and an honest account of what came of it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from playwright.async_api import Error, Page

from nova_mcp.browser.action_report import ActionReport, Judgement, build_report
from nova_mcp.browser.channel import DocumentChanged
from nova_mcp.browser.commit_check import commit_facts
from nova_mcp.browser.commit_points import CommitPoint, Trigger, classify_commit_point
from nova_mcp.browser.effects import Observation, Watch, mark
from nova_mcp.browser.holders import place
from nova_mcp.browser.host_window import HostWindow, OnDialog
from nova_mcp.browser.locate import Locator, Prepared, lower, obstructed, prepare
from nova_mcp.browser.seen import answer, read_element
from nova_mcp.browser.steady import navigating
from nova_mcp.clock import Ports
from nova_mcp.errors import CommitRefused, Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.tab import Tab

Button: TypeAlias = Literal["left", "middle", "right"]
Modifier: TypeAlias = Literal["Alt", "Control", "Meta", "Shift"]

# A driver that does not come back says nothing about the press: the observer decides.
PRESS_MS: Final = 5000


async def unobserved(prepared: Prepared) -> None:
    """For callers that keep no evidence."""


@dataclass(frozen=True, slots=True)
class ClickOptions:
    button: Button = "left"
    click_count: int = 1
    modifiers: tuple[Modifier, ...] = ()
    timeout_ms: int = 3000
    wait_for_navigation: bool = False
    navigation_timeout_ms: int = 10_000
    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None
    # Set only by callers that hold a contract for the commit.
    allow_commit: bool = False
    # Told right before input is sent, so that a call that dies later is known to have touched the page.
    on_dispatch: Callable[[Prepared], Awaitable[None]] = unobserved


async def click(tab: "Tab", locator: Locator, options: ClickOptions, ports: Ports) -> ActionReport:
    """Click exactly one element, or nothing."""
    async with tab.watch(options.on_dialog, options.prompt_text) as window:
        prepared = await prepare(tab, locator, options.timeout_ms)
        try:
            if not options.allow_commit:
                refuse_commit(prepared, "click", accepts=options.on_dialog == "accept")
            await _aim(tab, locator, prepared)
            since = mark(window)
            await options.on_dispatch(prepared)
            ports.faults.hit("before_dispatch")
            await _press(tab.page, options)
            ports.faults.hit("after_dispatch")
            observation = await Watch(tab, window, prepared, since).observe()
        finally:
            await lower_shield(tab, prepared)
        await refuse_if_undelivered(tab, locator, observation)
        if options.wait_for_navigation:
            await wait_for_navigation(window, since.navigations, options.navigation_timeout_ms)
        known = Judgement(waited_for_navigation=options.wait_for_navigation)
        return build_report(prepared, observation, window, (tab.rev, tab.url), known)


def refuse_commit(prepared: Prepared, trigger: Trigger, *, accepts: bool = False) -> None:
    """Stop before anything that commits: it needs a contract."""
    for element, form in ((prepared.acting, prepared.form), *prepared.also_acting):
        point = classify_commit_point(commit_facts(element, form, trigger, accepts=accepts))
        if point is not None:
            raise commit_refusal(point)


def commit_refusal(point: CommitPoint) -> CommitRefused:
    return CommitRefused(
        "guarded_commit.missing_contract",
        f"This is a commit point ({point.kind}): {point.why}.",
        "Nova does not press controls like this one until it can prove what came of it; leave it to a person.",
        stage="guarded_commit_check",
        details={"commitKind": point.kind, "why": point.why},
    )


async def _aim(tab: "Tab", locator: Locator, prepared: Prepared) -> None:
    """Put the pointer there and look again: pages that put something under it do so before anything is pressed."""
    with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
        await tab.page.mouse.move(prepared.x, prepared.y)
    try:
        told = answer(await tab.channel.ask("aimed", frame_id=prepared.frame_id))
        placed = await place(tab.channel, prepared.frame_id, *prepared.spot)
    except DocumentChanged:
        raise navigating() from None
    if told.get("gone"):
        raise gone(locator)
    if not told["aimed"]:
        foreign = told["foreign"]
        raise await obstructed(
            tab, locator, None if foreign is None else read_element(foreign, prepared.frame_id or "")
        )
    if placed.covered:
        raise await obstructed(tab, locator, placed.blocker)


async def _press(page: Page, options: ClickOptions) -> None:
    held: list[str] = []
    with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
        for key in options.modifiers:
            held.append(key)
            await page.keyboard.down(key)
        for count in range(1, options.click_count + 1):
            await page.mouse.down(button=options.button, click_count=count)
            await page.mouse.up(button=options.button, click_count=count)
    await _release(page, held)


async def _release(page: Page, held: Sequence[str]) -> None:
    for key in reversed(held):
        with anyio.move_on_after(1), suppress(Error):
            await page.keyboard.up(key)


async def lower_shield(tab: "Tab", prepared: Prepared) -> None:
    await lower(tab, (prepared.frame_id, *prepared.holders))


async def refuse_if_undelivered(tab: "Tab", locator: Locator, observation: Observation) -> None:
    """The shield stopped the press, or it never arrived: nothing was touched."""
    if observation.dispatch_proof != "none":
        return
    if observation.proof.stopped:
        raise await obstructed(tab, locator, observation.foreign)
    raise gone(locator)


def gone(locator: Locator) -> Precondition:
    return Precondition(
        "action.unstable",
        f"{locator.spoken} was gone when the press arrived.",
        "Call nova.perceive again.",
        stage="dispatch",
        action_dispatched=False,
    )


async def wait_for_navigation(window: HostWindow, before: int, timeout_ms: int) -> None:
    """Until the main frame has moved more often than before the press, or the time is over."""
    await window.wait_for(lambda: len(window.navigations) > before, timeout_ms)
