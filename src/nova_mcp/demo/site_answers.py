"""What the practice site answers: pages and small services, decided from what it was asked and what it remembers."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Final, Literal
from urllib.parse import parse_qs

Site = Literal["shop", "wiki", "chat"]

USER: Final = "ada"
PASSWORD: Final = "kettle-and-lamp-4711"  # noqa: S105 - of the practice chat, which lives as long as the story
SIGNED_IN: Final = "session=ada"

HANDBOOK: Final = {
    "/handbook/returns": ("Returns", "A kettle comes back within thirty days, with its lid."),
    "/handbook/packing": ("Packing", "Two layers of paper, one of straw, and never on its side."),
    "/handbook/hours": ("Opening hours", "From nine to five, on Saturdays from ten to two."),
    "/handbook/safety": ("Safety", "Nobody carries more than two kettles at a time."),
}
_PRICES: Final = (
    "<table><caption>What we pay</caption><tr><th>Item</th><th>Price</th></tr>"
    "<tr><td>Kettle</td><td>17.40</td></tr><tr><td>Lamp</td><td>9.10</td></tr></table>"
)
_NOTHING: Final = "<!doctype html><title>Not here</title><h1>Nothing here</h1>"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived; the body of a GET is its query."""

    method: str
    path: str
    body: str = ""
    cookies: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    body: str = ""
    status: int = 200
    kind: str = "text/html"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class State:
    """What the three remember; `redesigned` is the switch, `chat_down` the day on which the chat takes nothing."""

    day: int = 1
    redesigned: bool = False
    chat_down: bool = False
    cart: int = 0
    orders: int = 0
    signed_in: int = 0
    searches: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def answer(state: State, site: Site, asked: Asked) -> Reply:
    if asked.method == "GET" and asked.path in _SHARED:
        return Reply(_file(asked.path.strip("/")), kind=_SHARED[asked.path])
    made = _ANSWERS[site].get(f"{asked.method} {asked.path}")
    return Reply(_NOTHING, 404) if made is None else made(state, asked)


@cache
def _file(name: str) -> str:
    return files("nova_mcp.demo").joinpath("pages", name).read_text(encoding="utf-8")


def page(name: str, **filled: str) -> Reply:
    return Reply(Template(_file(name)).substitute(filled))


def _json(status: int, **body: str | int) -> Reply:
    return Reply(json.dumps(body), status, "application/json")


# -- the shop


def _front(state: State, asked: Asked) -> Reply:
    """The shop asks every day anew whether it may measure its visitors."""
    banner = "" if f"consent={state.day}" in asked.cookies.split("; ") else _file("banner.html")
    return page("shop.html", banner=banner)


def _consent(state: State, asked: Asked) -> Reply:
    return Reply(status=204, headers=(("Set-Cookie", f"consent={state.day}; Path=/"),))


def _search(state: State, asked: Asked) -> Reply:
    words = " ".join(parse_qs(asked.body).get("q", []))
    state.searches.append(words)
    return page("search.html", words=escape(words))


def _cart(state: State, asked: Asked) -> Reply:
    state.cart += 1
    return _json(201, items=state.cart)


def _order(state: State, asked: Asked) -> Reply:
    state.orders += 1
    return page("ordered.html", number=str(state.orders))


def _refusing(state: State, asked: Asked) -> Reply:
    """Accepts nothing, whatever its page says about it."""
    return _json(500, error="not stored")


# -- the wiki


def _wiki(state: State, asked: Asked) -> Reply:
    links = "".join(f'<li><a href="{path}">{title}</a></li>' for path, (title, _) in HANDBOOK.items())
    handbook = f"<h2>Handbook</h2><ul>{links}</ul>"
    return page("wiki_redesigned.html" if state.redesigned else "wiki.html", handbook=handbook)


def _chapter(state: State, asked: Asked) -> Reply:
    title, text = HANDBOOK[asked.path]
    return page("wiki_page.html", title=title, body=f"<p>{text}</p>")


# -- the chat


def _chat(state: State, asked: Asked) -> Reply:
    if SIGNED_IN not in asked.cookies.split("; "):
        return page("chat_login.html", error="")
    said = "".join(f'<article data-message-author-role="user">{escape(text)}</article>' for text in state.messages)
    hello = '<article data-message-author-role="assistant">Good morning. What is new?</article>'
    return page("chat.html", messages=hello + said)


def _sign_in(state: State, asked: Asked) -> Reply:
    given = parse_qs(asked.body)
    if (given.get("username"), given.get("password")) != ([USER], [PASSWORD]):
        return page("chat_login.html", error='<p role="alert">Wrong user name or password</p>')
    state.signed_in += 1
    return Reply(status=303, headers=(("Location", "/"), ("Set-Cookie", f"{SIGNED_IN}; Path=/; HttpOnly")))


def _message(state: State, asked: Asked) -> Reply:
    if state.chat_down:
        return _json(503, error="try later")
    state.messages.append(asked.body)
    return _json(201, reply="Noted, thank you.")


_SHARED: Final = {"/style.css": "text/css", "/wiki.js": "text/javascript"}
_ANSWERS: Final[dict[Site, dict[str, Callable[[State, Asked], Reply]]]] = {
    "shop": {
        "GET /": _front,
        "GET /search": _search,
        "GET /offer": lambda state, asked: page("offer.html"),
        "GET /checkout": lambda state, asked: page("checkout.html"),
        "GET /profile": lambda state, asked: page("profile.html"),
        "GET /stock": lambda state, asked: page("stock.html"),
        "POST /api/cart": _cart,
        "POST /api/order": _order,
        "POST /api/profile": _refusing,
        "POST /api/veil": lambda state, asked: Reply(status=204),
        "POST /api/consent/rejected": _consent,
        "POST /api/consent/accepted": _consent,
    },
    "wiki": {
        "GET /": _wiki,
        "GET /suppliers/prices": lambda state, asked: page("wiki_page.html", title="Price list", body=_PRICES),
        "GET /suppliers/addresses": lambda state, asked: page("wiki_page.html", title="Address list", body=""),
        "POST /api/archive": lambda state, asked: Reply(status=204),
        **{f"GET {path}": _chapter for path in HANDBOOK},
    },
    "chat": {
        "GET /": _chat,
        "POST /login": _sign_in,
        "POST /api/messages": _message,
    },
}
