"""`/health` is believed by machines: whatever keeps calls from being served is not answered with 200."""

import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest

from nova_mcp.app import build
from nova_mcp.browser.process.orphans import read_note
from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.lifetime import Ending
from nova_mcp.settings import HttpSettings, Settings

DOCKERFILE = Path(__file__).resolve().parents[2] / "Dockerfile"
# How long an answer may take: every part is asked for at most a few seconds.
ANSWER_S = 10.0


class Asked:
    """A server over HTTP in this process, and what it says of its health."""

    def __init__(self, root: str, data_dir: Path, novas: list[Any]) -> None:
        self.root, self.data_dir, self.novas = root, data_dir, novas

    @property
    def browser(self) -> Any:
        return self.novas[0]._parts.browser

    async def health(self) -> tuple[int, dict[str, Any]]:
        async with httpx2.AsyncClient(timeout=ANSWER_S) as http:
            answer = await http.get(f"{self.root}/health")
        return answer.status_code, answer.json()

    async def until(self, wanted: Callable[[int, dict[str, Any]], bool]) -> dict[str, Any]:
        """The first answer that is as wanted; the limit only ends a broken run."""
        with anyio.fail_after(60):
            while True:
                status, body = await self.health()
                if wanted(status, body):
                    return body
                await anyio.sleep(0.2)


@asynccontextmanager
async def asked(data_dir: Path, **settings: Any) -> AsyncIterator[Asked]:
    chosen = Settings.model_validate({"data_dir": data_dir, "http": {"port": 0}, **settings})
    ready, found, novas, ending = anyio.Event(), list[str](), list[Any](), Ending()

    def on_ready(endpoint: str) -> None:
        found.append(endpoint.removesuffix("/mcp"))
        ready.set()

    async def factory(served: Settings) -> Any:
        novas.append(await build(served))
        return novas[-1]

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve_http(chosen, factory, on_ready=on_ready, ending=ending))
        await ready.wait()
        yield Asked(found[0], data_dir, novas)
        ending.because("test over")


def well(status: int, body: dict[str, Any]) -> bool:
    return (status, body["status"]) == (200, "ok")


def ill(status: int, body: dict[str, Any]) -> bool:
    return (status, body["status"]) == (503, "failing")


async def image_check(server: Asked) -> int:
    """The exit code of the container image's own health check, asked about this server."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    (command,) = re.findall(r"HEALTHCHECK .*\n\s*CMD (\[.*\])", text)
    program = json.loads(command)[2].replace(f"http://127.0.0.1:{HttpSettings().port}", server.root)
    done = await anyio.run_process([sys.executable, "-c", program], check=False)
    return done.returncode


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Asked]:
    async with asked(tmp_path_factory.mktemp("health"), browser={"hang_timeout_s": 60}) as running:
        yield running


async def test_a_browser_that_is_not_needed_yet_is_fine(server: Asked) -> None:
    body = await server.until(lambda status, body: well(status, body) and body["driver"] == "running")
    assert (body["store"], body["browser"]) == ("sqlite", "not started")


async def test_a_store_that_is_gone_or_locked_is_told(server: Asked) -> None:
    await server.until(well)
    store = server.data_dir / "nova.db"
    store.rename(store.with_name("elsewhere"))
    assert (await server.until(ill))["store"] == "sqlite: down"
    assert await image_check(server) != 0
    store.with_name("elsewhere").rename(store)
    await server.until(well)
    assert await image_check(server) == 0
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert (await server.until(ill))["store"] == "sqlite: no answer"
    finally:
        other.close()
    await server.until(well)


async def test_a_frozen_browser_is_told_and_one_that_answers_again_too(server: Asked) -> None:
    await server.until(well)
    await server.browser.start()
    note = read_note(next((server.data_dir / "browsers").glob("*.json")))
    assert note is not None
    assert note.driver is not None
    await server.until(lambda status, body: well(status, body) and body["browser"] == "running")
    for known in (note.browser, note.driver):
        process = psutil.Process(known.pid)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            assert (await server.until(ill))["browser"] == "no answer"
        finally:
            os.kill(process.pid, signal.SIGCONT)
        await server.until(well)


async def test_a_driver_that_does_not_start_again_is_told(server: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    await server.until(lambda status, body: well(status, body) and body["driver"] == "running")
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(server.data_dir / "no-such-program"))
    monkeypatch.setattr("nova_mcp.browser.process.runtime.RETRY_AFTER_MS", 500)
    os.kill(server.browser._driver.pid, signal.SIGKILL)
    assert (await server.until(ill))["driver"] == "failed"
    monkeypatch.delenv("PLAYWRIGHT_NODEJS_PATH")
    await server.until(lambda status, body: well(status, body) and body["driver"] == "running")


async def test_a_store_that_can_not_be_opened_is_told_from_the_start(tmp_path: Path) -> None:
    async with asked(tmp_path, store="postgresql://nobody@127.0.0.1:1/none") as server:
        body = await server.until(ill)
        assert body["store"] == "store.unavailable"
