"""Closing a page so that it can neither refuse nor delay."""

import anyio
from playwright.async_api import Error, Page

CLOSE_MS = 1000


async def close_page(page: Page) -> None:
    """Close without running beforeunload; a page that does not confirm in time is left to the browser."""
    with anyio.move_on_after(CLOSE_MS / 1000):
        try:
            await page.close(run_before_unload=False)
        except Error:
            return
