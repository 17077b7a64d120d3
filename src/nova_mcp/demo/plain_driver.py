"""The same steps through a browser driver alone, as a script without Nova takes them: no error means success."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, async_playwright

from nova_mcp.browser.process.chromium_flags import launch_args
from nova_mcp.browser.process.find_chromium import find_browser, this_machine
from nova_mcp.browser.process.runtime import sandbox_mode
from nova_mcp.settings import BrowserSettings


@asynccontextmanager
async def plain_page(settings: BrowserSettings) -> AsyncIterator[Page]:
    """A page of the browser that Nova would start too."""
    uid = os.geteuid() if hasattr(os, "geteuid") else None
    headless = not settings.headed
    async with async_playwright() as driver:
        found = find_browser(settings.executable, this_machine(driver.chromium.executable_path))
        chromium = await driver.chromium.launch(
            executable_path=found.path,
            headless=headless,
            chromium_sandbox=sandbox_mode(settings.chromium_sandbox, uid) == "on",
            args=launch_args(headless=headless),
        )
        try:
            yield await chromium.new_page()
        finally:
            await chromium.close()
