"""A site whose pages a test writes, with redirects and errors, and runs over its pages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from loop_kit import Server
from sqlalchemy import update

import task_evidence_kit as rows
from nova_mcp.memory.tasks.tables import task_instance_member, task_unit

TEXT, SPELLING, BUILD = "nova_full_page_text_v1", "nova_i18n_spellcheck_v1", "nova_structured_dom_v1"
_numbers = count(1)


@dataclass
class Site:
    port: int
    pages: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            whole = f"http://{self.headers['Host']}{path}"
            data = here.pages.get(path, f"<!doctype html><title>x</title><p>Nothing at {path}").encode()
            if (there := here.redirects.get(whole)) is not None:
                self.send_response(302)
                self.send_header("Location", there)
                data = b""
            else:
                self.send_response(here.statuses.get(path, 200))
                self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Work:
    """An agent, its run over some pages, and what it does there."""

    server: Server
    tab: str
    agent: str
    run: str
    keys: list[str]

    @classmethod
    async def on(
        cls, server: Server, tab: str, *urls: str, agent: str = "default", beside: bool = False, **traits: Any
    ) -> "Work":
        """A new run; the agent's earlier ones end unless this one is to stand beside them."""
        run = f"run{next(_numbers)}"
        keys: list[str] = []

        def register(conn: Any) -> None:
            if not beside:
                member = task_instance_member.c
                earlier = update(task_instance_member).where(member.agent_id == agent, member.ended_at_ms.is_(None))
                conn.execute(earlier.values(ended_at_ms=server.clock.now_ms()))
            rows.open_run(conn, run, owner=("local", agent), joined_ms=server.clock.now_ms(), **traits)
            keys.extend(rows.add_units(conn, *urls, instance_id=run, kind=traits.get("unit_kind", "page")))

        await server.nova._db.write(register)
        return cls(server, tab, agent, run, keys)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.server.call(tool, targetId=self.tab, agentId=self.agent, **arguments)

    async def go(self, url: str) -> dict[str, Any]:
        told = await self.call("navigate", url=url)
        assert told["status"] in ("ok", "partial"), told
        return told

    async def scan(self, scan_id: str = TEXT, **arguments: Any) -> dict[str, Any]:
        return await self.call("coverage_scan", scanId=scan_id, **arguments)

    async def unit(self, number: int = 0) -> Any:
        return await self.server.nova._db.read(rows.unit, self.keys[number], self.run)

    async def grade(self, number: int = 0) -> tuple[str, str | None]:
        row = await self.unit(number)
        return row.grade, row.grade_reason

    async def exclude(self, number: int = 0) -> None:
        wanted = (task_unit.c.instance_id == self.run, task_unit.c.unit_key == self.keys[number])
        await self.server.nova._db.write(
            lambda conn: conn.execute(update(task_unit).where(*wanted).values(status="excluded"))
        )
