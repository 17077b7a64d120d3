"""Keeps pages from growing their driver: forgets what it keeps of them, and closes those that flood it."""

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
from playwright.async_api import CDPSession, Error

from nova_mcp.browser.process.page_meter import FORGET_CHARS, SAMPLED, SUSPECT_CHARS, PageMeter
from nova_mcp.browser.targets.registry import Targets
from nova_mcp.browser.targets.tab import Tab

log = logging.getLogger(__name__)

ORDER_S = 1.0
SAMPLE_S = 1.0
# The bodies of requests and answers are not wanted, only how long the addresses are.
_NO_BODIES = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 65_536}

FLOOD = "it made the browser report too many console lines, errors or addresses within ten seconds"
SUSPECT = "its long addresses and messages filled the memory of the process that drives the browser"


@dataclass(frozen=True, slots=True)
class _Sample:
    """A tab that is listened to for a moment."""

    tab: Tab
    session: CDPSession
    meter: PageMeter


async def tidy_pages(targets: Targets) -> None:
    """One round over all tabs: those that flood are closed, long lines of the others forgotten."""
    for tab in targets:
        meter = tab.channel.meter
        if tab.channel.state != "ready":
            continue
        if meter.flooded:
            await targets.close_flood(tab, FLOOD)
        elif meter.unforgotten > FORGET_CHARS:
            meter.forget()
            with anyio.move_on_after(ORDER_S), suppress(Error):
                await tab.page.clear_console_messages()
                await tab.page.clear_page_errors()


async def close_suspects(targets: Targets) -> int:
    """Listen to every page's requests for a moment and close those that fill the driver; how many that were."""
    tabs = [tab for tab in targets if tab.channel.state == "ready"]
    samples: list[_Sample] = []

    async def listen(tab: Tab) -> None:
        meter = PageMeter(lambda: 0.0)
        with anyio.move_on_after(ORDER_S), suppress(Error):
            session = await tab.page.context.new_cdp_session(tab.page)
            for event in SAMPLED:
                session.on(event, meter.take)
            await session.send("Network.enable", _NO_BODIES)
            samples.append(_Sample(tab, session, meter))

    await _each(listen, tabs)
    await anyio.sleep(SAMPLE_S)
    closed = 0
    for sample in samples:
        with anyio.move_on_after(ORDER_S), suppress(Error):
            await sample.session.detach()
        if sample.meter.total > SUSPECT_CHARS:
            log.warning("%s is closed: %s", sample.tab.target_id, SUSPECT)
            await targets.close_flood(sample.tab, SUSPECT)
            closed += 1
    return closed


async def _each(step: Any, tabs: list[Tab]) -> None:
    async with anyio.create_task_group() as group:
        for tab in tabs:
            group.start_soon(step, tab)
