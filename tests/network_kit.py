"""A network for tests: names mean what a test says, public addresses lead to this machine, nothing else leaves it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from nova_mcp.browser.egress import Network, system_network

PUBLIC = "93.184.216.34"
LAN = "10.0.0.7"
LOOPBACK = "127.0.0.1"


def names_of_this_machine(suffix: str) -> Network:
    """The system's network, in which every name with the suffix means this machine."""
    system = system_network()

    async def resolve(host: str) -> tuple[str, ...]:
        return (LOOPBACK,) if host.removesuffix(".").endswith(suffix) else await system.resolve(host)

    return replace(system, resolve=resolve)


@dataclass
class FakeNetwork:
    """Answers for names, in turn, the last one for good; what was asked and what was connected to is written down."""

    answers: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)

    def network(self) -> Network:
        return Network(self.resolve, self.connect)

    async def resolve(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        host = host.removesuffix(".")
        turns = next((turns for name, turns in self.answers.items() if host == name or host.endswith(f".{name}")), None)
        if turns is None:
            return await system_network().resolve(host)
        return (turns.pop(0) if len(turns) > 1 else turns[0],)

    async def connect(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.connected.append((address, port))
        if address not in (PUBLIC, LOOPBACK, "::1"):
            raise OSError("this network has no way there")
        return await asyncio.open_connection(LOOPBACK if address == PUBLIC else address, port)

    def clear(self) -> None:
        self.asked.clear()
        self.connected.clear()


@dataclass
class Page:
    """What a path of the web answers."""

    body: str = ""
    content_type: str = "text/html"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Web:
    """One server that stands for every host of the fake network; it notes who was asked for what."""

    port: int = 0
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def hosts(self, path: str) -> set[str]:
        """The hosts under whose name a path was asked for."""
        return {host for host, asked in self.asked if asked == path}


@contextmanager
def web(pages: Callable[[Web], dict[str, Page]]) -> Iterator[Web]:
    """The pages are made once the port is known."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            here.asked.append((self.headers.get("Host", "").rpartition(":")[0], path))
            page = here.pages.get(path, Page("<!doctype html><title>plain</title>plain"))
            body = page.body.encode()
            self.send_response(page.status)
            for name, value in {"Content-Type": page.content_type, "Connection": "close", **page.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    here = Web(server.server_address[1])
    here.pages = pages(here)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
