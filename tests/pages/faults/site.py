"""A site on loopback that fails in known ways, and knows for every trial what really was received and done."""

import argparse
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Final, Literal
from urllib.parse import parse_qs, parse_qsl, urlsplit

from tests.pages.faults.flash import answer_page, message_html

HERE: Final = Path(__file__).parent
PASSWORD: Final = "open-sesame"
REPLY: Final = ("Here", "is", "a", "short", "reply", "that", "arrives", "word", "by", "word")
Then = Literal["redirect", "page", "form_again", "error_page", "json", "empty", "stream"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the server does with one submission. Whatever commits does so on arrival, before any delay."""

    then: Then = "json"
    status: int = 200
    commits: bool = True
    delay_ms: int = 0
    # The connection ends without a word; what was committed stays committed.
    lost: bool = False
    hops: int = 0
    hop_ms: int = 0
    # Only the right password commits, whatever else is said here.
    needs_password: bool = False


OK_JSON: Final = Reaction()

REACTIONS: Final[Mapping[str, Reaction]] = {
    "ok_document": Reaction("redirect"),
    "ok_page": Reaction("page"),
    "redirect_chain": Reaction("redirect", hops=2),
    "slow_redirect": Reaction("redirect", hops=2, hop_ms=1500),
    "http_500": Reaction("error_page", 500, commits=False, delay_ms=200),
    "error_text_200": Reaction("form_again", commits=False),
    "error_text_late": Reaction("form_again", commits=False, delay_ms=200),
    "session_ended": Reaction("redirect", commits=False),
    "lost_committed": Reaction(lost=True, delay_ms=50),
    "lost_uncommitted": Reaction(lost=True, commits=False, delay_ms=50),
    "late_answer": Reaction("redirect", delay_ms=7000),
    "silent_204": Reaction("empty", 204),
    "fetch_204": Reaction("empty", 204),
    "fetch_500": Reaction(status=500, commits=False, delay_ms=200),
    "fetch_500_silent": Reaction(status=500, commits=False, delay_ms=200),
    "fetch_500_lies": Reaction(status=500, commits=False, delay_ms=200),
    "fetch_error_200": Reaction(commits=False, delay_ms=100),
    "fetch_late": Reaction(delay_ms=7000),
    "fetch_lost_committed": Reaction(lost=True, delay_ms=50),
    "fetch_lost_uncommitted": Reaction(lost=True, commits=False, delay_ms=50),
    "rollback": Reaction(commits=False),
    "optimistic_revert": Reaction(status=409, commits=False, delay_ms=800),
    "iframe_target": Reaction("page"),
    "iframe_form": Reaction("page"),
    "login_right": Reaction("redirect", needs_password=True),
    "login_wrong": Reaction("redirect", needs_password=True),
    "login_spa_right": Reaction(needs_password=True, delay_ms=150),
    "login_spa_wrong": Reaction(needs_password=True, delay_ms=150),
    "login_mfa": Reaction("page", commits=False),
    "chat_streams": Reaction("stream"),
    "chat_refused": Reaction(status=429, commits=False, delay_ms=150),
    "chat_refused_200": Reaction(commits=False, delay_ms=150),
    "model_snaps_back": Reaction(commits=False),
    "workspace_snaps_back": Reaction(commits=False),
    "plain_500": Reaction(status=500, commits=False, delay_ms=200),
    "plain_error_200": Reaction(commits=False, delay_ms=100),
    "plain_late": Reaction(delay_ms=7000),
    "payment_declined": Reaction(status=402, commits=False, delay_ms=150),
}

PAGES: Final[Mapping[str, str]] = {
    "login": "login.html",
    "chat": "chat.html",
    "model": "picker.html",
    "workspace": "picker.html",
    "payment": "button.html",
    "delete": "button.html",
    "plus": "button.html",
    "plain": "button.html",
    "iframe": "iframe.html",
}


@dataclass(slots=True)
class Book:
    """What arrived under one key."""

    nonces: list[str] = field(default_factory=list)
    arrived_at: list[float] = field(default_factory=list)
    committed: int = 0
    stamps: dict[str, float] = field(default_factory=dict)

    @property
    def received(self) -> int:
        """Submissions by the page; a browser that resends the same bytes on its own is counted apart."""
        return len(set(self.nonces))

    @property
    def resent(self) -> int:
        return len(self.nonces) - self.received


class FaultSite:
    """The address and the truth."""

    def __init__(self) -> None:
        self._books: dict[str, Book] = {}
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self.base_url = ""

    def url(self, case: str, key: str, **parameters: object) -> str:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"{self.base_url}/case/{case}/{key}" + (f"?{query}" if query else "")

    def count(self, key: str) -> int:
        with self._lock:
            return self._books[key].received if key in self._books else 0

    def committed(self, key: str) -> int:
        with self._lock:
            return self._books[key].committed if key in self._books else 0

    def resent(self, key: str) -> int:
        with self._lock:
            return self._books[key].resent if key in self._books else 0

    def arrivals(self, key: str) -> list[tuple[float, str]]:
        """Every submission under this key: seconds since 1970 by this machine's clock, and the page's nonce."""
        with self._lock:
            book = self._books.get(key, Book())
            return list(zip(book.arrived_at, book.nonces, strict=True))

    def stamps(self, key: str) -> dict[str, float]:
        """Moments the page reported, in ms since 1970 by its own clock."""
        with self._lock:
            return dict(self._books[key].stamps) if key in self._books else {}

    def wait_for(self, key: str, received: int, timeout_s: float) -> bool:
        """Until that many submissions arrived under this key."""
        with self._arrived:
            return self._arrived.wait_for(
                lambda: key in self._books and self._books[key].received >= received, timeout_s
            )

    def all_counts(self) -> dict[str, dict[str, int]]:
        with self._lock:
            return {
                key: {"received": book.received, "committed": book.committed, "resent": book.resent}
                for key, book in self._books.items()
            }

    def take(self, key: str, nonce: str, *, commits: bool) -> None:
        with self._arrived:
            book = self._books.setdefault(key, Book())
            known = nonce in book.nonces
            book.nonces.append(nonce)
            book.arrived_at.append(time.time())
            if commits and not known:
                book.committed += 1
            self._arrived.notify_all()

    def stamp(self, key: str, name: str, at_ms: float) -> None:
        with self._lock:
            self._books.setdefault(key, Book()).stamps.setdefault(name, at_ms)


def _page(name: str, case: str, key: str, **more: str) -> bytes:
    values = {"case": escape(case), "key": escape(key), "error": "", "say": "", **more}
    return Template((HERE / "pages" / name).read_text(encoding="utf-8")).safe_substitute(values).encode()


def page_of(case: str) -> str:
    return PAGES.get(case.split("_")[0], "form.html")


def _error_line(text: str) -> str:
    return f'<p class="error" role="alert">{escape(text)}</p>'


def handler_for(site: FaultSite) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one small method per route
    class Handler(BaseHTTPRequestHandler):
        # One request per connection: on a used one the browser itself repeats a request whose answer was lost.
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            words = parts.path.strip("/").split("/")
            query = parse_qs(parts.query)
            match words:
                case ["case", "flash" as case, key] if "told" in query:
                    self._send(200, _page("form.html", case, key, error=message_html(dict(parse_qsl(parts.query)))))
                case ["told", "flash", _]:
                    self._send(200, answer_page(dict(parse_qsl(parts.query))))
                case ["case", case, key]:
                    self._send(200, _page(page_of(case), case, key))
                case ["frame", case, key]:
                    self._send(200, _page("form.html", case, key))
                case ["hop", left, pause, case, key]:
                    time.sleep(int(pause) / 1000)
                    self._redirect(int(left) - 1, int(pause), case, key, 302)
                case ["done", "session_ended" as case, key]:
                    self._send(200, _page("login.html", case, key))
                case ["done", case, key]:
                    self._send(200, _page("account.html" if case.startswith("login") else "done.html", case, key))
                case ["faults.js"]:
                    self._send(200, (HERE / "faults.js").read_bytes(), "text/javascript")
                case ["_counts"]:
                    self._send(200, json.dumps(site.all_counts()).encode(), "application/json")
                case ["_stamp", key]:
                    site.stamp(key, query["name"][0], float(query["at"][0]))
                    self._send(204, b"")
                case _:
                    self._send(404, b"<!doctype html><title>Not here</title><h1>Nothing here</h1>")

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode("utf-8", "replace")
            parts = urlsplit(self.path)
            _, case, key = parts.path.strip("/").split("/")
            fields = dict(parse_qsl(sent, keep_blank_values=True))
            query = dict(parse_qsl(parts.query))
            if case == "flash":
                self._flash(key, fields.get("nonce", ""), query, parts.query)
                return
            reaction = REACTIONS.get(case, OK_JSON)
            commits = reaction.commits and (not reaction.needs_password or fields.get("password") == PASSWORD)
            site.take(key, fields.get("nonce", ""), commits=commits)
            time.sleep(int(query.get("delay", reaction.delay_ms)) / 1000)
            if reaction.lost:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self._answer(reaction, case, key, commits=commits)

        def _flash(self, key: str, nonce: str, query: Mapping[str, str], asked: str) -> None:
            """Redirect after the post, as most sites do; what it says there is in the query."""
            site.take(key, nonce, commits=query["done"] == "1")
            where = f"/case/flash/{key}?told=1&{asked}" if query["place"] == "same" else f"/told/flash/{key}?{asked}"
            self.send_response(302)
            self.send_header("Location", where)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _answer(self, reaction: Reaction, case: str, key: str, *, commits: bool) -> None:
            if case.startswith("login") and not commits and reaction.then == "redirect":
                self._send(200, _page("login.html", case, key, error=_error_line("Wrong user name or password")))
                return
            match reaction.then:
                case "redirect":
                    self._redirect(reaction.hops, reaction.hop_ms, case, key, 303)
                case "page":
                    self._send(200, _page("mfa.html" if case == "login_mfa" else "done.html", case, key))
                case "form_again":
                    again = _error_line("Could not save: the reference is already taken")
                    self._send(200, _page("form.html", case, key, error=again))
                case "error_page":
                    self._send(reaction.status, _page("broken.html", case, key))
                case "empty":
                    self._send(204, b"")
                case "stream":
                    self._stream()
                case "json":
                    status = 401 if reaction.needs_password and not commits else reaction.status
                    self._send(status, json.dumps({"ok": commits}).encode(), "application/json")

        def _redirect(self, left: int, pause: int, case: str, key: str, status: int) -> None:
            where = f"/hop/{left}/{pause}/{case}/{key}" if left > 0 else f"/done/{case}/{key}"
            self.send_response(status)
            self.send_header("Location", where)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            for word in REPLY:
                self.wfile.write(f"{word} ".encode())
                self.wfile.flush()
                time.sleep(0.06)

        def _send(self, status: int, body: bytes, kind: str = "text/html") -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                return  # the browser went elsewhere; what was committed is in the book already

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def fault_site(port: int = 0) -> Iterator[FaultSite]:
    site = FaultSite()
    server = _Server(("127.0.0.1", port), handler_for(site))
    site.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with fault_site(parser.parse_args().port) as site:
        print(site.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
