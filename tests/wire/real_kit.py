"""The real program: `nova serve` as a process of its own, a real client, a real Chromium, a real ledger."""

import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
from anyio.abc import Process
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from nova_mcp.evidence.audit import Finding, verify
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.server.http.bearer_tokens import load_credentials
from nova_mcp.storage.engine import Database

NOVA = str(Path(sys.executable).with_name("nova"))
LIMIT_S = 60.0

PAGE = b"""<!doctype html><html lang="en"><title>Counter</title><main><h1>Counter</h1>
<button id="more" type="button">More</button><p id="count" role="status">0</p>
<label>Note <input id="note"></label></main>
<script>let n = 0; more.onclick = () => { count.textContent = ++n; };</script></html>"""


class Held:
    """A response that stays out until the test lets it go."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.release = threading.Event()


@contextmanager
def small_site(pages: Mapping[str, str] | None = None) -> Iterator[tuple[str, Held]]:
    """The counter page everywhere, except where a page or a redirect (`-> address`) is given."""
    held = Held()
    given = pages or {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/held":
                held.asked.set()
                held.release.wait(LIMIT_S)
            page = given.get(self.path)
            if page is not None and page.startswith("-> "):
                self.send_response(302)
                self.send_header("Location", page.removeprefix("-> "))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = PAGE if page is None else page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", held
    finally:
        held.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def serve_command(data_dir: Path, *flags: str) -> StdioServerParameters:
    return StdioServerParameters(command=NOVA, args=["serve", "--data-dir", str(data_dir), *flags])


@asynccontextmanager
async def real_stdio(data_dir: Path, era: str, *flags: str) -> AsyncIterator[Client]:
    async with Client(serve_command(data_dir, *flags), mode=era) as client:
        yield client


async def _listening(process: Process, data_dir: Path) -> tuple[str, str]:
    """The endpoint the server says on standard error, and the token it wrote."""
    assert process.stderr is not None
    heard = ""
    with anyio.fail_after(LIMIT_S):
        async for chunk in process.stderr:
            heard += chunk.decode()
            for word in (part.strip(";,") for part in heard.split()):
                if word.startswith("http://") and word.endswith("/mcp"):
                    return word, load_credentials(data_dir, word).tokens[0].token
    raise AssertionError(f"the server never listened: {heard}")


@asynccontextmanager
async def real_http_server(data_dir: Path) -> AsyncIterator[tuple[str, str]]:
    async with await anyio.open_process(
        [NOVA, "serve", "--http", "127.0.0.1:0", "--data-dir", str(data_dir)], stdin=None
    ) as process:
        try:
            yield await _listening(process, data_dir)
        finally:
            process.terminate()
            with anyio.fail_after(LIMIT_S):
                await process.wait()


@asynccontextmanager
async def http_connection(endpoint: str, token: str, era: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(endpoint, http_client=http), mode=era) as client,
    ):
        yield client


def records(data_dir: Path) -> list[CallRecord]:
    with Database.open(f"sqlite:///{data_dir / 'nova.db'}") as db:
        page = db.read_sync(events, EventFilter(limit=10_000))
    return [call.record for call in page.calls if call.record is not None]


def findings(data_dir: Path) -> list[Finding]:
    with Database.open(f"sqlite:///{data_dir / 'nova.db'}") as db:
        return db.read_sync(lambda conn: list(verify(conn)))


def text_of(answer: Any) -> str:
    return "".join(block.text for block in answer.content if block.type == "text")


def server_processes() -> list[psutil.Process]:
    """The `nova serve` processes this test run has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "serve" in process.cmdline() and any(part.endswith("/nova") for part in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found
