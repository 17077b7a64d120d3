"""A real client on a real Chromium, and a small shop that counts what it was sent."""

import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp import Client
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings

SECRET = "correct-horse-battery"


class ShiftedClock(SystemClock):
    """The machine's clock, put forward by a test."""

    shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.shift_ms


@dataclass
class Server:
    """A server in this process, its client, its clock and its store."""

    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        body = dict(answer.structured_content)
        assert answer.is_error is (body["status"] in ("failed", "blocked", "not_found")) if "status" in body else True
        return body

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        found = await self.nova._db.read(lambda conn: conn.execute(select(table).where(*where)).all())
        return [row._asdict() for row in found]

    async def new_tab(self) -> str:
        return str((await self.call("tab_new"))["targetId"])

    def tab(self, target_id: str) -> Tab:
        return self.nova._parts.browser.targets._tabs[target_id]


@asynccontextmanager
async def serving(data_dir: Path, **settings: Any) -> AsyncIterator[Server]:
    """A server without background passes, unless the test asks for them."""
    clock = ShiftedClock()
    chosen = Settings.model_validate({"data_dir": data_dir, "tools": "all", "learning": {"passes": False}, **settings})
    nova = await build(chosen, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), chosen, Wiring(backend=backend))) as client:
            yield Server(client, clock, data_dir, nova)
    finally:
        await nova.close("test")


@dataclass
class Shop:
    """Answers `/order` with a redirect, `/api/...` as its path says, and counts what was posted."""

    base: str
    pages: dict[str, str] = field(default_factory=dict)
    posted: Counter[str] = field(default_factory=Counter)
    failing: set[str] = field(default_factory=set)
    gate: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str) -> str:
        return self.base + path


@contextmanager
def shop() -> Iterator[Shop]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def reply(self, status: int, body: str = "", **headers: str) -> None:
            data = body.encode()
            self.send_response(status)
            for name, value in {"Content_Type": "text/html; charset=utf-8", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path in here.failing:
                self.reply(500, "<!doctype html><title>Broken</title><h1>Something broke</h1>")
                return
            self.reply(200, here.pages.get(path, "<!doctype html><title>Done</title><h1>Thank you</h1>"))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urlsplit(self.path).path
            here.posted[path] += 1
            if path == "/api/hangs":
                here.gate.wait(30)
            if path == "/api/fails":
                self.reply(500, "{}")
            elif path.startswith("/api/"):
                self.reply(200, "{}")
            else:
                self.reply(303, Location="/done")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    here = Shop(f"http://127.0.0.1:{server.server_address[1]}")
    thread.start()
    try:
        yield here
    finally:
        here.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
