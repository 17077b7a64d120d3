"""A small site of our own that writes down on its side which controls were used and which pages were asked for."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

Design = Literal["first", "second"]

# What a control means is taken off the page before anybody can look at it, and is told to the site while the click is
# still being handled, so that nothing is in flight when the site is asked.
_TELL = """<script>
(() => {
  const meaning = new WeakMap(), typed = new WeakSet();
  for (const el of document.querySelectorAll("[data-k]")) {
    meaning.set(el, el.dataset.k);
    el.removeAttribute("data-k");
  }
  const tell = (what) => {
    const post = new XMLHttpRequest();
    post.open("POST", "/_did", false);
    post.send(JSON.stringify({ visit: VISIT, what }));
  };
  const meant = (el) => {
    for (let at = el; at; at = at.parentElement) if (meaning.has(at)) return meaning.get(at);
    return null;
  };
  document.addEventListener("click", (event) => {
    const what = meant(event.target);
    if (what !== null) tell(what);
    else if (event.target.closest("a, button, input, select, textarea")) tell("unnamed:" + event.target.tagName);
  }, true);
  document.addEventListener("input", (event) => {
    if (typed.has(event.target) || ["checkbox", "radio"].includes(event.target.type)) return;
    typed.add(event.target);
    tell("type:" + (meant(event.target) ?? "unnamed"));
  }, true);
})();
</script>"""

_LOOK = """<style>body{font:16px sans-serif;margin:0 2rem}nav a{margin-right:1rem}[hidden]{display:none!important}
.layer{position:fixed;inset:0;z-index:9;background:#fffd;padding:20vh 30vw}.box{background:#eee;padding:2rem}</style>"""
_ROOM = "".join(
    f'<li><a href="/read/{number}">Story {number}: what the town talked about</a><p>A few lines to read.</p></li>'
    for number in range(1, 13)
)


@dataclass
class Visit:
    """What one visit did, as the site saw it: controls in order, and the addresses that were asked for."""

    did: list[str] = field(default_factory=list)
    got: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)

    def asked_for(self, start: str) -> bool:
        return any(one.startswith(start) for one in self.got)


@dataclass(frozen=True, slots=True)
class Swap:
    """Two controls of one page that have changed ids, and nothing else."""

    path: str
    one: str
    other: str

    def applied(self, html: str) -> str:
        names = {self.one: self.other, self.other: self.one}
        pattern = rf"\b(id|for)=({re.escape(self.one)}|{re.escape(self.other)})(?![\w-])"
        return re.sub(pattern, lambda found: f"{found[1]}={names[found[2]]}", html)


def controls(html: str) -> dict[str, str]:
    """The controls of a page that have an id, with what they mean."""
    tags = [tag for tag in re.findall(r"<[a-z]+ [^>]*>", html) if " data-k=" in tag and " id=" in tag]
    found = (re.search(r" id=([\w-]+)", tag) for tag in tags)
    meant = (re.search(r' data-k=(?:"([^"]+)"|([\w-]+))', tag) for tag in tags)
    pairs = zip(found, meant, strict=True)
    return {one[1]: other[1] or other[2] for one, other in pairs if one is not None and other is not None}


@dataclass
class PracticeSite:
    """One visit at a time: the harness opens each before the agent comes."""

    pages: Mapping[Design, Mapping[str, str]]
    port: int = 0
    design: Design = "first"
    swap: Swap | None = None
    visits: list[Visit] = field(default_factory=lambda: [Visit()])

    def begin(self) -> Visit:
        self.visits.append(Visit())
        return self.visits[-1]

    def html(self, path: str) -> str | None:
        body = self.pages[self.design].get(path)
        if body is None:
            return None
        if self.swap is not None and self.swap.path == path:
            body = self.swap.applied(body)
        head = f"<!doctype html><html lang=en><meta charset=utf-8><title>Practice {path}</title>{_LOOK}"
        tell = _TELL.replace("VISIT", str(len(self.visits) - 1))
        return f"{head}<body>{body}<section><h2>Stories</h2><ul>{_ROOM}</ul></section>{tell}</body></html>"


def _handler(site: PracticeSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.startswith("/favicon"):
                return self._send(204)
            site.visits[-1].got.append(self.path)
            path = urlsplit(self.path).path
            body = site.html(path)
            if body is None:
                body = f"<!doctype html><title>Page</title><main><h1 id=arrived>{path}</h1></main>"
            return self._send(200, body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            if self.path == "/_did":
                told = json.loads(body)
                site.visits[int(told["visit"])].did.append(str(told["what"]))
                return self._send(204)
            site.visits[-1].got.append(f"POST {self.path}")
            site.visits[-1].sent.update(parse_qsl(body))
            return self._send(303, location=f"{self.path}/done")

        def _send(self, status: int, body: str = "", location: str = "") -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            if location:
                self.send_header("Location", location)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


@contextmanager
def practice_site(pages: Mapping[Design, Mapping[str, str]]) -> Iterator[PracticeSite]:
    site = PracticeSite(pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
