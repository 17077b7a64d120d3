"""A driver that does not start in time is given up without a trace."""

import asyncio
import gc
import os
import signal
from contextlib import suppress
from typing import Any

import anyio
import psutil
import pytest
from playwright.async_api import Error

from nova_mcp.browser.process.driver import Driver, DriverFailed
from nova_mcp.browser.process.find_chromium import find_browser, this_machine

from .conftest import eventually

pytestmark = pytest.mark.browser


def _drivers() -> set[int]:
    return {child.pid for child in psutil.Process().children() if _runs(child)}


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("limit_s", [0.0, 0.01, 0.05, 0.1, 0.2])
async def test_a_start_that_takes_too_long_leaves_neither_a_process_nor_an_unfetched_failure(limit_s: float) -> None:
    failures: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    usual, before, tasks = loop.get_exception_handler(), _drivers(), asyncio.all_tasks()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    try:
        # A fast machine may start one within the longest of these.
        with suppress(DriverFailed):
            driver = await Driver.start(dict(os.environ), limit_s, lambda _: None)
            await driver.stop()
        await eventually(lambda: _drivers() <= before and asyncio.all_tasks() <= tasks)
        gc.collect()
    finally:
        loop.set_exception_handler(usual)
    assert failures == []


@pytest.mark.parametrize("ends", ["kill", "stop"])
async def test_a_browser_that_is_stopped_while_it_starts_goes_with_its_driver(ends: str) -> None:
    driver = await Driver.start(dict(os.environ), 60, lambda _: None)
    process = psutil.Process(driver.pid)
    path = find_browser(None, this_machine(driver.playwright.chromium.executable_path)).path
    launch = asyncio.ensure_future(
        driver.playwright.chromium.launch(executable_path=path, chromium_sandbox=False, args=["--disable-gpu"])
    )
    await eventually(lambda: bool(process.children()))
    family = process.children()
    for child in family:
        child.send_signal(signal.SIGSTOP)
    if ends == "kill":
        driver.kill()
    else:
        await driver.stop()
    _, alive = await anyio.to_thread.run_sync(lambda: psutil.wait_procs(family, timeout=20))
    assert alive == []
    with pytest.raises(Error):
        await launch
