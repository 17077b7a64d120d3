"""MCP over Streamable HTTP on one endpoint, for both protocol eras, behind the gate."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from nova_mcp.core.clock import Ports, system_ports
from nova_mcp.server.http.bearer_tokens import load_credentials, verify
from nova_mcp.server.http.connection_limits import ACCEPTED_AT_ONCE, Connections, LimitedProtocol, connection_limits
from nova_mcp.server.http.dashboard_home import Home, Keys
from nova_mcp.server.http.dashboard_mount import Pages
from nova_mcp.server.http.origins import is_loopback, served_hosts
from nova_mcp.server.http.request_guard import MCP_PATH, PRINCIPAL_KEY, Door, Gate
from nova_mcp.server.inflight import Inflight
from nova_mcp.server.lazy_backend import BackendFactory, BackendSlot, build_default
from nova_mcp.server.lifetime import Ending, watch_signals
from nova_mcp.server.logs import log_to_stderr
from nova_mcp.server.manifest import Manifest, load_manifest
from nova_mcp.server.protocol import Context, Peer, Wiring, build_server, client_name
from nova_mcp.server.rate_limits import Limits
from nova_mcp.settings import Settings

log = logging.getLogger(__name__)

DRAIN_S = 5.0
LAST_ANSWERS_S = 1.0
CONNECTIONS_S = 3
QUEUED_CONNECTIONS = 2048
# Half of what a server holds, so that no principal takes the other ones' places.
SANDBOXES_PER_PRINCIPAL = 50
TABS_PER_PRINCIPAL = 100


class CannotListen(Exception):
    """The address is taken or not ours; the message says which."""


async def serve_http(
    settings: Settings,
    backend_factory: BackendFactory = build_default,
    manifest: Manifest | None = None,
    on_ready: Callable[[str], None] = lambda endpoint: None,
    ending: Ending | None = None,
) -> str:
    """Serve until told to end; returns why. `on_ready` gets the endpoint once requests are answered."""
    log_to_stderr(settings.log_level)
    ending = ending or Ending()
    listener = listen(settings.http.host, settings.http.port)
    try:
        port = listener.getsockname()[1]
        settings = served_settings(settings, port)
        endpoint = endpoint_of(settings.http.host, port)
        ports, inflight, slot = system_ports(), Inflight(), BackendSlot(settings, backend_factory)
        limits = Limits(ports.clock, settings.http.calls_per_minute, settings.http.concurrent_calls)
        wiring = Wiring(backend=slot.get, inflight=inflight, ports=ports, peer_of=http_peer, limits=limits)
        manager = StreamableHTTPSessionManager(
            build_server(manifest or load_manifest(), settings, wiring),
            # The gate has already checked names and origins, with texts that help.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=settings.http.max_body_bytes,
        )
        door = _door(settings, endpoint)
        pages = Pages(_home(settings, ports, door, endpoint, slot))
        gate = Gate(manager.asgi_app, door, limits, slot.health, pages)
        if not is_loopback(settings.http.host):
            log.warning("listening on %s: everybody who reaches it and has a token can drive the browser", endpoint)
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(watch_signals, ending.because)
            watchers.start_soon(slot.keep_warm)
            await _serve_until_end(
                _web_server(gate, settings), listener, _Inside(manager, gate, inflight), ending, on_ready
            )
            watchers.cancel_scope.cancel()
        await slot.close(ending.reason)
    finally:
        listener.close()
        ending.finished()
    return ending.reason


def served_settings(settings: Settings, port: int) -> Settings:
    """What holds once the port is known: the browser must not open our own address, and logins are not kept unasked."""
    http = settings.http.model_copy(update={"port": port})
    ephemeral = True if settings.browser.ephemeral is None else settings.browser.ephemeral
    shares = {
        "sandboxes_per_principal": settings.browser.sandboxes_per_principal or SANDBOXES_PER_PRINCIPAL,
        "tabs_per_principal": settings.browser.tabs_per_principal or TABS_PER_PRINCIPAL,
    }
    browser = settings.browser.model_copy(update={"ephemeral": ephemeral, **shares})
    return settings.model_copy(update={"http": http, "browser": browser})


@dataclass(frozen=True, slots=True)
class _Inside:
    """What runs behind the web server."""

    manager: StreamableHTTPSessionManager
    gate: Gate
    inflight: Inflight


async def _serve_until_end(
    web: "_WebServer", listener: socket.socket, inside: _Inside, ending: Ending, on_ready: Callable[[str], None]
) -> None:
    async def serve() -> None:
        await web.serve(sockets=[listener])
        ending.because("web server ended")

    async with anyio.create_task_group() as serving:
        async with inside.manager.run():
            serving.start_soon(serve)
            await web.ready.wait()
            on_ready(endpoint_of(web.config.host, listener.getsockname()[1]))
            await ending.event.wait()
            inside.gate.closing = True
            # Calls end first: their evidence gets written and their callers get an answer.
            if left := await inside.inflight.drain(DRAIN_S):
                log.error("%d calls did not end within %s s", left, DRAIN_S)
            await inside.gate.quiet(LAST_ANSWERS_S)
        web.should_exit = True


class _WebServer(uvicorn.Server):
    """Leaves signals to us and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            # Starting has set the system's queue to what is accepted at once; a crowd has to fit into it.
            listener.listen(QUEUED_CONNECTIONS)
        self.ready.set()


def _web_server(gate: Gate, settings: Settings) -> _WebServer:
    table: Connections[LimitedProtocol] = Connections(connection_limits(settings.http))
    return _WebServer(
        uvicorn.Config(
            gate,
            http=cast(Any, partial(LimitedProtocol, table=table, settings=settings.http)),
            backlog=ACCEPTED_AT_ONCE,
            host=settings.http.host,
            log_config=None,
            log_level=settings.log_level,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=CONNECTIONS_S,
        )
    )


def http_peer(ctx: Context) -> Peer:
    """The principal the gate found, and what tells the connection from others in the client's era."""
    if ctx.request is None:
        raise LookupError("a request over HTTP came without its head")
    principal = ctx.request.scope[PRINCIPAL_KEY]
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        # No session there: a header that names one is the client's own idea.
        return Peer(principal, client=client_name(ctx))
    return Peer(principal, ctx.request.headers.get("mcp-session-id"))


def endpoint_of(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP_PATH}"


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=QUEUED_CONNECTIONS)
    except OSError as error:
        raise CannotListen(f"can't listen on {host}:{port}: {error.strerror or error}") from error


def _door(settings: Settings, endpoint: str) -> Door:
    return Door(
        bound_host=settings.http.host,
        hosts=served_hosts(settings.http.host, settings.http.allowed_hosts),
        origins=settings.http.allowed_origins,
        credentials=load_credentials(settings.data_dir, endpoint),
        max_body_bytes=settings.http.max_body_bytes,
    )


def _home(settings: Settings, ports: Ports, door: Door, endpoint: str, slot: BackendSlot) -> Home:
    """What the dashboard gets; the first token is the operator's, all others are for agents."""
    operator, *_ = door.credentials.tokens
    near = is_loopback(door.bound_host)
    return Home(
        settings=settings,
        ports=ports,
        keys=Keys(
            operator=operator.name,
            secret=operator.token,
            endpoint=endpoint,
            principal_of=lambda token: verify(token, door.credentials.tokens),
            place=str(door.credentials.path) if near else f"{door.credentials.path.name} in the data folder",
            since_ms=ports.clock.now_ms(),
        ),
        program=slot.get,
    )
