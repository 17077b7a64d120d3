"""A real Chromium before a served dashboard."""

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import uvicorn
from axe_playwright_python.async_playwright import Axe
from dashboard_kit import NOW, TOKEN, Stand
from playwright.async_api import Browser, Page, async_playwright

from nova_mcp.browser.process.find_chromium import Machine, find_browser

# What axe may find on no page.
GRAVE = ("moderate", "serious", "critical")
FLAGS = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


class _Server(uvicorn.Server):
    """Leaves signals to the test run and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def serving(desk: Stand) -> AsyncIterator[str]:
    """The dashboard on a real socket; gives its root. Its tickets are for another port, its token works."""
    server = _Server(uvicorn.Config(desk.app, port=0, log_config=None, lifespan="off", ws="none", access_log=False))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        await server.ready.wait()
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = find_browser(None, Machine(sys.platform, os.environ, Path.home(), None)).path
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS, *sandbox])
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(frozen=True)
class Look:
    """How somebody looks at the dashboard."""

    scheme: str = "light"
    width: int = 1280
    scripts: bool = True


@asynccontextmanager
async def signed_in(browser: Browser, root: str, look: Look | None = None) -> AsyncIterator[Page]:
    """A page that has signed in; whatever the console complains about fails the test that opened it."""
    wanted = look or Look()
    context = await browser.new_context(
        viewport={"width": wanted.width, "height": 900},
        color_scheme=wanted.scheme,  # type: ignore[arg-type]
        java_script_enabled=wanted.scripts,
        base_url=root,
    )
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    if wanted.scripts:
        await page.clock.install(time=NOW / 1000)
    await page.goto("/dashboard/login")
    await page.fill("#token", TOKEN)
    await page.click("button")
    await page.wait_for_url("**/dashboard/")
    try:
        yield page
    finally:
        await context.close()
    assert not [one for one in complaints if "404" not in one], complaints


async def grave(page: Page) -> list[str]:
    """What keeps people out of this page, by axe."""
    found = await Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found.response["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


async def tab_to(page: Page, reached: str, limit: int = 80) -> None:
    """Press Tab until focus is where it is wanted, and see that it can be seen on the way."""
    for _ in range(limit):
        await page.keyboard.press("Tab")
        seen = "e => getComputedStyle(e).outlineStyle !== 'none' || e.matches('body, .skip')"
        focused = await page.evaluate_handle("document.activeElement")
        assert await focused.evaluate(seen), await focused.evaluate("e => e.outerHTML")
        if await page.evaluate(reached):
            return
    raise AssertionError(f"focus never came there: {reached}")
