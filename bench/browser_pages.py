"""A small shop on loopback for measuring browser tools: pages of known size, and a book of what really arrived."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qsl, urlsplit

PRODUCTS: Final = 180
ORDERS: Final = 100
LOG_ROWS: Final = 10_000
SEATS: Final = 50_000
WANTED: Final = 137

_MATERIALS: Final = ("Copper", "Oak", "Linen", "Glass", "Wool", "Steel", "Clay", "Cork", "Birch", "Felt")
_THINGS: Final = ("kettle", "tray", "curtain", "vase", "blanket", "ladle", "bowl", "board", "stool")
_SIZES: Final = ("small", "large")
_PEOPLE: Final = ("Ines Vogel", "Tomas Berg", "Mei Lin", "Ada Okafor", "Jonas Weiss", "Priya Nair", "Luc Martin")
_STATES: Final = ("paid", "packed", "shipped", "returned", "open")

REPAIR: Final[Mapping[str, str]] = {
    "name": "Ines Vogel",
    "email": "ines@example.org",
    "phone": "+49 30 5550 117",
    "street": "Lindenallee 4",
    "city": "Potsdam",
    "zip": "14467",
    "country": "Germany",
    "urgency": "within a week",
    "pickup": "on",
    "fault": "The lid no longer closes.",
}

_STYLE: Final = """
body{font:15px/1.4 sans-serif;margin:0;color:#222}header,footer{background:#eee;padding:8px 16px}
main{padding:16px}.grid{display:grid;grid-template-columns:repeat(4,1fr);gap:16px}
article{border:1px solid #ccc;padding:8px}nav a{margin-right:10px}td,th{padding:2px 10px;text-align:left}
.seats{display:flex;flex-wrap:wrap;gap:2px}aside{float:left;width:180px}label{display:block;margin:4px 0}
"""
_SCRIPT: Final = """
let saved = 0;
const say = (text) => { document.querySelector("[role=status]").textContent = text; };
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-do]");
  if (button === null) return;
  if (button.dataset.do === "save") {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    saved += 1;
    say(`Saved list changed ${saved} times`);
  }
  if (button.dataset.do === "add") {
    const answer = await fetch("/cart", { method: "POST", body: JSON.stringify({ id: button.dataset.id }) });
    const { count } = await answer.json();
    document.querySelector("#cart").textContent = `Cart (${count})`;
    say(`${button.dataset.name} is in your cart`);
  }
});
"""


def product(number: int) -> str:
    material = _MATERIALS[number % len(_MATERIALS)]
    thing = _THINGS[number // len(_MATERIALS) % len(_THINGS)]
    return f"{material} {thing}, {_SIZES[number // (len(_MATERIALS) * len(_THINGS)) % len(_SIZES)]}"


def price(number: int) -> str:
    return f"{5 + number * 37 % 240}.{number * 13 % 100:02d} EUR"


@dataclass(frozen=True, slots=True)
class Order:
    number: str
    customer: str
    total: str
    state: str


def order(number: int) -> Order:
    return Order(
        f"A-{20417 + number * 3}",
        _PEOPLE[number * 5 % len(_PEOPLE)],
        price(number * 7 + 3),
        _STATES[number * 3 % len(_STATES)],
    )


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>'
        f"<body>{body}<script>{_SCRIPT}</script></body></html>"
    )


def tiny() -> str:
    """One article with a link, a field and a button."""
    return _document(
        product(0),
        f'<main><h1>{product(0)}</h1><p>{price(0)}, in stock.</p><a href="/shop">All products</a>'
        '<label>Quantity <input name="quantity" value="1"></label>'
        '<button type="button" data-do="save" aria-pressed="false">Save for later</button>'
        '<p role="status"></p></main>',
    )


def _card(number: int) -> str:
    name = escape(product(number))
    return (
        f'<article><h3><a href="/tiny?id={number}">{name}</a></h3><p>{price(number)}</p>'
        f'<button type="button" data-do="add" data-id="{number}" data-name="{name}" aria-label="Add {name} to cart">'
        "Add to cart</button>"
        f'<button type="button" data-do="save" aria-pressed="false" aria-label="Save {name}">Save</button>'
        f'<label><input type="checkbox" name="compare" value="{number}"> Compare {name}</label></article>'
    )


def shop() -> str:
    """A listing of 180 articles with four controls each, filters and the usual frame: 750 controls."""
    rooms = ("Kitchen", "Bath", "Bedroom", "Garden", "Office", "Hall", "Cellar", "Sale", "New")
    nav = "".join(f'<a href="/shop?room={room}">{room}</a>' for room in rooms)
    filters = "".join(
        f'<label><input type="checkbox" name="material" value="{name}"> {name}</label>' for name in _MATERIALS
    )
    pages = "".join(f'<a href="/shop?page={number}">Page {number}</a> ' for number in range(1, 6))
    cards = "".join(_card(number) for number in range(PRODUCTS))
    return _document(
        "Household goods",
        f'<header><a href="/tiny">Home</a><nav aria-label="Rooms">{nav}</nav><form role="search" action="/shop">'
        '<input type="search" name="q" aria-label="Search products"><button>Search</button></form>'
        f'<a id="cart" href="/cart">Cart (0)</a></header><aside aria-label="Filters">{filters}'
        '<button type="button">Reset filters</button></aside>'
        f'<main><h1>Household goods</h1><p role="status"></p><div class="grid">{cards}</div></main>'
        f'<footer><nav aria-label="Pages">{pages}</nav><a href="/help">Help</a></footer>',
    )


def orders() -> str:
    """An administration table to be read."""
    rows = "".join(
        f'<tr><td><input type="checkbox" aria-label="Select {one.number}"></td>'
        f'<td><a href="/orders/{one.number}">{one.number}</a></td><td>{one.customer}</td><td>{one.total}</td>'
        f'<td>{one.state}</td><td><a href="/orders/{one.number}/edit">Edit</a></td></tr>'
        for one in (order(number) for number in range(ORDERS))
    )
    heads = "<th></th><th>Order</th><th>Customer</th><th>Total</th><th>State</th><th></th>"
    return _document(
        "Orders",
        '<header><nav aria-label="Admin"><a href="/tiny">Home</a><a href="/orders">Orders</a>'
        '<a href="/shop">Catalogue</a></nav></header>'
        f"<main><h1>Orders</h1><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></main>",
    )


def repair() -> str:
    """A form with every common kind of field."""
    countries = "".join(f"<option>{name}</option>" for name in ("Austria", "France", "Germany", "Italy", "Poland"))
    urgencies = "".join(
        f'<label><input type="radio" name="urgency" value="{text}"> {text.capitalize()}</label>'
        for text in ("no hurry", "within a week", "tomorrow")
    )
    texts = "".join(
        f'<label>{label} <input name="{name}" type="{kind}" required></label>'
        for label, name, kind in (
            ("Full name", "name", "text"),
            ("Email", "email", "email"),
            ("Phone", "phone", "tel"),
            ("Street", "street", "text"),
            ("City", "city", "text"),
            ("Postcode", "zip", "text"),
        )
    )
    return _document(
        "Repair request",
        '<header><a href="/tiny">Home</a></header><main><h1>Repair request</h1><form method="post" action="/repair">'
        f'{texts}<label>Country <select name="country">{countries}</select></label>'
        f"<fieldset><legend>How urgent is it?</legend>{urgencies}</fieldset>"
        '<label><input type="checkbox" name="pickup"> Please pick it up</label>'
        '<label>What is broken? <textarea name="fault"></textarea></label>'
        "<button>Send request</button></form></main>",
    )


def thanks(number: int) -> str:
    return _document("Thank you", f"<main><h1>Thank you</h1><p>Request number R-{number:04d}</p></main>")


def nodes() -> str:
    """A protocol of 50,000 nodes, mostly text, with a link in every fiftieth row."""
    rows = "".join(
        f"<div><time>10:{row // 60 % 60:02d}:{row % 60:02d}</time><b>{'warn' if row % 9 == 0 else 'info'}</b>"
        f"<span>worker {row % 16} finished batch {row * 7919 % 100_003}</span>"
        + (f'<a href="/log/{row}">details of {row}</a>' if row % 50 == 0 else f"<code>{row * 31 % 997} ms</code>")
        + "</div>"
        for row in range(LOG_ROWS)
    )
    return _document("Protocol", f"<main><h1>Protocol</h1>{rows}</main>")


def buttons() -> str:
    """A plan of 50,000 seats, every one a button."""
    seats = "".join(f'<button type="button">Seat {number}</button>' for number in range(1, SEATS + 1))
    return _document("Seats", f'<main><h1>Choose your seats</h1><div class="seats">{seats}</div></main>')


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "tiny": tiny,
    "shop": shop,
    "orders": orders,
    "repair": repair,
    "nodes": nodes,
    "buttons": buttons,
}


@dataclass(slots=True)
class Shop:
    """The address, and what the server was really sent."""

    base_url: str = ""
    carts: list[str] = field(default_factory=list)
    repairs: list[dict[str, str]] = field(default_factory=list)

    def url(self, page: str) -> str:
        return f"{self.base_url}/{page}"


def _handler(shop_book: Shop, pages: Mapping[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = urlsplit(self.path).path.strip("/")
            if name == "repair/done":
                self._send(200, thanks(len(shop_book.repairs)).encode())
            elif name in pages:
                self._send(200, pages[name])
            else:
                self._send(404, b"<!doctype html><title>Not here</title><h1>Nothing here</h1>")

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            if self.path == "/cart":
                shop_book.carts.append(str(json.loads(sent)["id"]))
                self._send(200, json.dumps({"count": len(shop_book.carts)}).encode(), "application/json")
            else:
                shop_book.repairs.append(dict(parse_qsl(sent, keep_blank_values=True)))
                self._send(303, b"", location="/repair/done")

        def _send(self, status: int, body: bytes, kind: str = "text/html", location: str | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


@contextmanager
def open_shop() -> Iterator[Shop]:
    """The shop, open while the block runs."""
    book = Shop()
    pages = {name: make().encode() for name, make in PAGES.items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(book, pages))
    server.daemon_threads = True
    book.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield book
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
