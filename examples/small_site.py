"""A page on loopback for the examples: a list of books, an order form, and a server that counts orders."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"""<!doctype html><html lang="en"><title>Small bookshop</title>
<main><h1>Small bookshop</h1>
<ul><li>Weather for sailors, 12 EUR</li><li>Bread without haste, 19 EUR</li></ul>
<form id="order"><label>Your name <input name="name" id="name"></label>
<button type="submit" id="send">Place order</button></form><p id="said" role="status"></p></main>
<script>
order.onsubmit = async (event) => {
  event.preventDefault();
  const body = JSON.stringify({name: order.elements.name.value});
  const answer = await fetch("/orders", {method: "POST", body});
  said.textContent = answer.ok ? "Order received" : "That did not work";
};
</script></html>"""


@dataclass(slots=True)
class Shop:
    """Where it is, and what really reached it."""

    url: str = ""
    orders: list[str] = field(default_factory=list)


@contextmanager
def open_shop() -> Iterator[Shop]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, "text/html; charset=utf-8", PAGE)

        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            shop.orders.append(order["name"])
            self._answer(201, "application/json", b"{}")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    shop.url = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
