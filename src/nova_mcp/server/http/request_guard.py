"""What a request over HTTP has to pass before it reaches the protocol: name, origin, token, size, rate."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nova_mcp.core.values import Json
from nova_mcp.errors import BudgetExhausted
from nova_mcp.server.backend import Health
from nova_mcp.server.http.bearer_tokens import Credentials, bearer, verify
from nova_mcp.server.http.dashboard_home import admit_connection
from nova_mcp.server.http.dashboard_mount import is_page
from nova_mcp.server.http.origins import host_allowed, is_loopback, origin_allowed
from nova_mcp.server.rate_limits import BUSY_RETRY_MS, Limits
from nova_mcp.server.stdio.framing import MAX_LINE_BYTES, Rejected, decode, recover_id

log = logging.getLogger(__name__)

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
PRINCIPAL_KEY = "nova.principal"
BLOCKED = -32001
UNAVAILABLE = -32002
BUDGET = -32029
_UNLIMITED = frozenset({"notifications/cancelled", "ping"})
_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 512


@dataclass(frozen=True, slots=True)
class Door:
    """What the gate knows: fixed for the life of the server."""

    bound_host: str
    hosts: frozenset[str]
    origins: tuple[str, ...]
    credentials: Credentials
    max_body_bytes: int


@dataclass(frozen=True, slots=True)
class Turned:
    """A request that goes no further, and what its sender is told."""

    status: int
    reason_code: str
    message: str
    code: int = BLOCKED
    request_id: RequestId | None = None
    headers: Mapping[str, str] | None = None
    retry_after_ms: int | None = None

    def response(self) -> JSONResponse:
        data: dict[str, Json] = {"reasonCode": self.reason_code}
        if self.retry_after_ms is not None:
            data["retryAfterMs"] = self.retry_after_ms
        error = {"code": self.code, "message": self.message, "data": data}
        body = {"jsonrpc": "2.0", "id": self.request_id, "error": error}
        return JSONResponse(body, status_code=self.status, headers=dict(self.headers or {}))


class Gate:
    """An ASGI application in front of the protocol's own."""

    def __init__(
        self,
        inner: ASGIApp,
        door: Door,
        limits: Limits,
        health: Callable[[], Awaitable[Health]],
        pages: ASGIApp | None = None,
    ) -> None:
        self._inner = inner
        self._pages = pages
        self._door = door
        self._limits = limits
        self._health = health
        self.closing = False
        self._answering = 0
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        if self._pages is not None and is_page(scope["path"]):
            await self._show(self._pages, headers, scope, receive, send)
            return
        verdict: str | Turned = check_names(headers, self._door) or self._who(scope, headers)
        if not isinstance(verdict, Turned) and scope["path"] == HEALTH_PATH:
            health = await self._health()
            await JSONResponse(asdict(health), status_code=200 if health.ok else 503)(scope, receive, send)
            return
        if not isinstance(verdict, Turned):
            verdict = self._connected(scope, verdict) or self._where(scope) or verdict
        admitted = verdict if isinstance(verdict, Turned) else await self._admit(verdict, scope, receive)
        if isinstance(admitted, Turned):
            log.info("turned away %s %s: %s", scope["method"], scope["path"], admitted.reason_code)
            await admitted.response()(scope, receive, send)
        elif admitted is not None:
            known, body = admitted
            if body is None:
                await self._inner(known, receive, send)
            else:
                await self._answer(self._inner, known, replayed(body, receive), send)

    async def _show(self, pages: ASGIApp, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        """Pages for people have a way to sign in of their own; only names are checked here."""
        turned = check_names(headers, self._door) or self._ending()
        await self._answer(pages if turned is None else turned.response(), scope, receive, send)

    async def quiet(self, grace_s: float) -> None:
        """Wait until every message that got in has been answered; open streams don't count."""
        with anyio.move_on_after(grace_s):
            while self._answering:
                self._quiet = anyio.Event()
                await self._quiet.wait()

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._answering += 1
        try:
            await app(scope, receive, send)
        finally:
            self._answering -= 1
            self._quiet.set()

    def _who(self, scope: Scope, headers: Headers) -> str | Turned:
        """The principal; whoever only asks for health needs to be nobody."""
        if scope["path"] == HEALTH_PATH and scope["method"] in ("GET", "HEAD"):
            return ""
        principal = verify(bearer(headers.get("authorization")), self._door.credentials.tokens)
        return principal or unauthorized(self._door, scope.get("client"))

    def _connected(self, scope: Scope, principal: str) -> Turned | None:
        """A connection that showed a token is no stranger's any more, as long as its principal has not too many."""
        if admit_connection(scope, principal):
            return None
        told = "This principal has too many open connections. Nothing ran. Close some of them, then call again."
        again = {"Retry-After": "1", "Connection": "close"}
        return Turned(429, "rate.limited", told, BUDGET, headers=again, retry_after_ms=BUSY_RETRY_MS)

    def _where(self, scope: Scope) -> Turned | None:
        if scope["path"].rstrip("/") != MCP_PATH:
            return Turned(404, "http.not_found", f"There is nothing here; the protocol is served at {MCP_PATH}")
        return self._ending()

    def _ending(self) -> Turned | None:
        if self.closing:
            again = {"Retry-After": "5"}
            return Turned(503, "server.shutting_down", "The server is stopping", UNAVAILABLE, headers=again)
        return None

    async def _admit(
        self, principal: str, scope: Scope, receive: Receive
    ) -> tuple[Scope, bytes | None] | Turned | None:
        """The request as the protocol may see it; nothing if its sender left meanwhile."""
        body: bytes | None = None
        message: JSONRPCMessage | None = None
        if scope["method"] == "POST":
            read = await self._read_body(Headers(scope=scope), receive)
            if not isinstance(read, bytes):
                return read
            parsed = decode(read, self._door.max_body_bytes)
            if isinstance(parsed, Rejected):
                return Turned(400, parsed.reason_code, parsed.message, parsed.code, parsed.request_id)
            body, message = read, parsed
        if turned := self._count(principal, scope["method"], message):
            return turned
        # The user makes the session manager tie a session to the principal that opened it.
        user = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))
        return {**scope, PRINCIPAL_KEY: principal, "user": user}, body

    def _count(self, principal: str, method: str, message: JSONRPCMessage | None) -> Turned | None:
        """Tool calls are counted where they can be answered as results; everything else is counted here."""
        name = message.method if isinstance(message, JSONRPCRequest | JSONRPCNotification) else ""
        if method == "DELETE" or name == "tools/call" or name in _UNLIMITED:
            return None
        try:
            self._limits.spend(principal)
        except BudgetExhausted as error:
            wait_ms = error.retry_after_ms or 1000
            return Turned(
                429,
                error.reason_code,
                f"{error.message}. {error.hint}",
                error.error_code,
                message.id if isinstance(message, JSONRPCRequest) else None,
                {"Retry-After": str(-(-wait_ms // 1000))},
                wait_ms,
            )
        return None

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes | Turned | None:
        """The whole body, a refusal if it is too long, or nothing if the sender left."""
        limit = self._door.max_body_bytes
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > MAX_LINE_BYTES:
            return _too_large(limit, None)
        parts: list[bytes] = []
        size = 0
        tail = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part: bytes = message.get("body", b"")
            size += len(part)
            tail = (tail + part)[-_TAIL_BYTES:]
            # Past the limit the rest is read but not kept: a sender who is cut off in mid-body never sees the answer.
            if size <= limit or not parts:
                parts.append(part)
            if size > MAX_LINE_BYTES or not message.get("more_body", False):
                break
        if size > limit:
            return _too_large(limit, recover_id(b"".join(parts)[:_HEAD_BYTES], tail))
        return b"".join(parts)


def check_names(headers: Headers, door: Door) -> Turned | None:
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not host_allowed(hosts[0], door.hosts):
        return Turned(
            403,
            "http.host_denied",
            "This name does not mean this server. Use 127.0.0.1, or add the name to http.allowed_hosts.",
        )
    if len(origins) > 1 or not origin_allowed(origins[0] if origins else None, door.origins):
        return Turned(
            403,
            "http.origin_denied",
            "Pages of this origin may not use this server. Add the origin to http.allowed_origins to let them.",
        )
    return None


def unauthorized(door: Door, client: tuple[str, int] | None) -> Turned:
    near = client is not None and is_loopback(client[0]) and is_loopback(door.bound_host)
    place = str(door.credentials.path) if near else f"{door.credentials.path.name} in the server's data directory"
    return Turned(
        401,
        "http.unauthorized",
        f'Send the header "Authorization: Bearer <token>"; the token is in {place}.',
        headers={"WWW-Authenticate": 'Bearer realm="nova"'},
    )


def replayed(body: bytes, receive: Receive) -> Receive:
    """Hand out the body that was already read, then whatever really comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _too_large(limit: int, request_id: RequestId | None) -> Turned:
    told = f"The body is larger than the {limit} bytes that are read. Nothing ran."
    return Turned(413, "size_limit", told, -32602, request_id, {"Connection": "close"})
