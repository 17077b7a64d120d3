"""A small shop on loopback that counts what it receives, so that the story can be checked against it."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

PAGES = {
    "/": "shop.html",
    "/covered": "covered.html",
    "/checkout": "checkout.html",
    "/profile": "profile.html",
    "/news": "news.html",
}
ORDER = "/api/order"
# Accepts nothing, whatever the page says about it.
BROKEN = "/api/profile"


@dataclass(frozen=True, slots=True)
class PracticeSite:
    """Where it listens and how often each request arrived."""

    base_url: str
    received: Counter[str] = field(default_factory=Counter)


@contextmanager
def practice_site() -> Iterator[PracticeSite]:
    counter: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            counter[f"GET {self.path}"] += 1
            name = PAGES.get(self.path.split("?")[0])
            if name is None:
                self._send(404, "text/html", b"<!doctype html><title>Not here</title><h1>Nothing here</h1>")
            else:
                self._send(200, "text/html", files("nova_mcp.demo").joinpath("pages", name).read_bytes())

        def do_POST(self) -> None:
            counter[f"POST {self.path}"] += 1
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path == ORDER:
                self._send(200, "text/html", files("nova_mcp.demo").joinpath("pages", "ordered.html").read_bytes())
            else:
                self._send(500 if self.path == BROKEN else 201, "application/json", b'{"items": 1}')

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield PracticeSite(f"http://127.0.0.1:{server.server_address[1]}", counter)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
