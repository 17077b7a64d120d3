"""The practice site on loopback: a shop, a wiki and a chat, with a log of every request that reached them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from nova_mcp.demo.site_answers import Asked, Reply, Site, State, answer


class PracticeSite:
    """Where the three listen, what they remember, and what arrived; every name under localhost is a site of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.state = State()
        self._log: list[tuple[Site, Asked, int]] = []
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """The shop, for those who know an address only."""
        return f"http://127.0.0.1:{self.port}"

    def scope(self, site: Site) -> str:
        return f"{site}.localhost:{self.port}"

    def url(self, site: Site, path: str = "/") -> str:
        return f"http://{self.scope(site)}{path}"

    def received(self, site: Site, method: str, path: str, status: int | None = None) -> int:
        """How often a request arrived, and was answered so, by the site's own log."""
        with self._lock:
            return sum(
                (name, one.method, one.path) == (site, method, path) and status in (None, given)
                for name, one, given in self._log
            )

    @property
    def failed(self) -> int:
        """Requests that the site could not or would not take."""
        with self._lock:
            return sum(given >= 500 for _, _, given in self._log)

    @property
    def requests(self) -> int:
        with self._lock:
            return len(self._log)

    def take(self, site: Site, asked: Asked) -> Reply:
        with self._lock:
            reply = answer(self.state, site, asked)
            self._log.append((site, asked, reply.status))
            return reply


def _handler(here: PracticeSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply("GET", self.path.partition("?")[2])

        def do_POST(self) -> None:
            self._reply("POST", self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode(errors="replace"))

        def _reply(self, method: str, body: str) -> None:
            name = self.headers.get("Host", "").partition(".")[0]
            site: Site = "wiki" if name == "wiki" else "chat" if name == "chat" else "shop"
            path = self.path.partition("?")[0]
            reply = here.take(site, Asked(method, path, body, self.headers.get("Cookie", "")))
            data = reply.body.encode()
            self.send_response(reply.status)
            for header in (("Content-Type", f"{reply.kind}; charset=utf-8"), *reply.headers):
                self.send_header(*header)
            # An answer without content has no length either.
            if reply.status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


@contextmanager
def practice_site() -> Iterator[PracticeSite]:
    here = PracticeSite(0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(here))
    server.daemon_threads = True
    here.port = server.server_address[1]
    # Asked for its end often: nobody wants to wait for half a second to leave.
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
