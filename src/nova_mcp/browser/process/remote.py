"""A browser somebody else runs: connected to by its address, left as it was found."""

from urllib.parse import urlsplit

from playwright.async_api import Browser as Chromium
from playwright.async_api import Error, Playwright

from nova_mcp.errors import Unavailable

CONNECT_MS = 15_000


def shown_endpoint(endpoint: str) -> str:
    """The address without what may be a password or a token."""
    parts = urlsplit(endpoint)
    try:
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        port = ""
    host = parts.hostname or "?"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def node_lost() -> Unavailable:
    return Unavailable(
        "sandbox.node_lost",
        "The remote browser is gone, and with it every page in it.",
        "Once it runs again, nova.reload brings a tab back; kept sandboxes come back with their logins.",
        retry_after_ms=5000,
    )


def unreachable(endpoint: str) -> Unavailable:
    return Unavailable(
        "browser.launch_failed",
        f'There is no browser at "{shown_endpoint(endpoint)}".',
        "Start it with --remote-debugging-port, or correct --cdp-endpoint.",
    )


async def connect(driver: Playwright, endpoint: str, *, known: bool) -> Chromium:
    """Connect to the one remote browser; `known` says that it was there before."""
    try:
        # Without defaults the pages that are already open there keep their size, focus and downloads.
        return await driver.chromium.connect_over_cdp(endpoint, no_defaults=True, timeout=CONNECT_MS)
    except Error as error:
        raise (node_lost() if known else unreachable(endpoint)) from error
