"""What a request has to pass before a page sees it: headers of every answer, and proof that a form is ours."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nova_mcp.dashboard.sessions import Session

MAX_FORM_BYTES: Final = 64 * 1024
MAX_FIELDS: Final = 100
# How long a form may take to arrive; ours fit into one packet.
FORM_S: Final = 10.0
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "x-nova-csrf"

# A referrer stays within the dashboard. Without any, browsers would hide the origin of our own forms from us as well.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guarded:
    """Every answer carries the headers, and is kept by nobody unless it says otherwise."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._inner(scope, receive, dressed)


def cookie_name(request: Request) -> str:
    """Cookies know no ports: two servers on one machine must not sign each other out."""
    return f"nova_session_{request.url.port or 80}"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A form that did not come from one of our own pages, and what its sender is told."""

    why: str


def from_here(headers: Headers) -> Foreign | None:
    """Whether a POST was sent by a page of this very server.

    Other ports of this machine are other origins here, although browsers send them the same cookies.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin is None:
        return Foreign("The request does not say which page it comes from.")
    parts = urlsplit(origin.strip().lower())
    if parts.scheme not in ("http", "https") or parts.netloc != host.strip().lower():
        return Foreign("The request comes from a page of another address.")
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return Foreign("The request comes from a page of another site.")
    return None


def ours(session: Session, form: Mapping[str, str], headers: Headers) -> bool:
    """Whether a form was made for this session."""
    given = form.get(CSRF_FIELD) or headers.get(CSRF_HEADER) or ""
    return hmac.compare_digest(given.encode("utf-8", "replace"), session.csrf.encode())


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None for one that no page of ours sends."""
    body = b""
    try:
        with anyio.fail_after(FORM_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    return None
    except (ClientDisconnect, TimeoutError):
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not body:
        return {}
    if kind != "application/x-www-form-urlencoded":
        return None
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        return None
