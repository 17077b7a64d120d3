"""The banners on loopback; what a page shows and stores in the end leaves it only when it is left."""

import json
import mimetypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.consent_labs import Lab

# Runs after the library: tells, when the page is left, whether the banner is still seen and which cookies there are.
_TELL = """<script>
addEventListener("pagehide", () => {
  const seen = [...document.querySelectorAll(%s)].some((el) => {
    const box = el.getBoundingClientRect();
    const drawn = el.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    return drawn && box.width > 0 && box.height > 0 && box.top < innerHeight;
  });
  navigator.sendBeacon("/_truth/" + %s, JSON.stringify({ gone: !seen, cookie: document.cookie }));
});
</script>"""
_CONTENT = (
    "<nav>" + "".join(f'<a href="#s{n}">Section {n}</a> ' for n in range(12)) + "</nav><main><h1>Reading room</h1>"
    "<ul>" + "".join(f'<li><a href="#a{n}">Article {n}</a></li>' for n in range(12)) + "</ul>"
    "<p><button type=button>Read on</button></p>"
    + "<p>All of this can be read without any cookie.</p>" * 30
    + "</main>"
)
# Cookies of an earlier run must not answer for this one.
_EMPTY = """<!doctype html><title>empty</title><script>
for (const part of document.cookie.split(";")) document.cookie = part.split("=")[0] + "=;path=/;max-age=0";
localStorage.clear(); sessionStorage.clear();
</script><p>empty</p>"""


@dataclass(frozen=True, slots=True)
class Truth:
    gone: bool
    cookie: str


class ConsentSite:
    def __init__(self, modules: Path, pages: Path, labs: Sequence[Lab]) -> None:
        self.modules = modules
        self.pages = pages
        self.labs = {str(number): lab for number, lab in enumerate(labs)}
        self.base_url = ""
        self._truths: dict[str, Truth] = {}
        self._told = threading.Condition()

    def url(self, lab: Lab, run: str) -> str:
        number = next(key for key, one in self.labs.items() if one is lab)
        return f"{self.base_url}/_lab/{number}?run={run}"

    def html(self, number: str, run: str) -> str:
        lab = self.labs[number]
        tell = _TELL % (json.dumps(lab.banner), json.dumps(run))
        return (
            f'<!doctype html><html lang="{lab.lang}"><meta charset="utf-8"><title>Reading room</title>{lab.head}'
            f"<body>{_CONTENT}{lab.body}{tell}</body></html>"
        )

    def tell(self, run: str, truth: Truth) -> None:
        with self._told:
            self._truths.setdefault(run, truth)
            self._told.notify_all()

    def truth(self, run: str, timeout_s: float = 10.0) -> Truth | None:
        with self._told:
            self._told.wait_for(lambda: run in self._truths, timeout_s)
            return self._truths.get(run)

    def file(self, path: str) -> Path | None:
        for root, name in ((self.modules, path), (self.pages, path)):
            found = (root / name.lstrip("/")).resolve()
            if found.is_file() and found.is_relative_to(root.resolve()):
                return found
        return None


def _handler(site: ConsentSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/_empty":
                self._send(200, "text/html; charset=utf-8", _EMPTY.encode())
            elif parts.path.startswith("/_lab/"):
                run = parse_qs(parts.query).get("run", ["none"])[0]
                self._send(200, "text/html; charset=utf-8", site.html(parts.path.rsplit("/", 1)[1], run).encode())
            elif (file := site.file(parts.path)) is not None:
                kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
                self._send(200, kind, file.read_bytes())
            else:
                self._send(404, "text/plain", b"nothing here")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path.startswith("/_truth/"):
                told = json.loads(body)
                site.tell(self.path.rsplit("/", 1)[1], Truth(bool(told["gone"]), str(told["cookie"])))
            self._send(204, "text/plain", b"")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                return  # the page was left while a file was still coming

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


@contextmanager
def consent_site(modules: Path, pages: Path, labs: Sequence[Lab]) -> Iterator[ConsentSite]:
    site = ConsentSite(modules, pages, labs)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
