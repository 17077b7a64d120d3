"""A SOCKS proxy on loopback through which a launched browser makes every connection.

Chromium hands it names, not addresses. It resolves a name once, judges what came of it, and connects to exactly that
address: between the check and the use there is no second lookup that could answer differently (DNS rebinding). Pages,
frames, workers, sockets, downloads and redirects all come through here, whatever request began them.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import anyio.to_thread

from nova_mcp.browser.egress.network import BUFFER_BYTES, Network
from nova_mcp.browser.egress.peers import OwnProcesses
from nova_mcp.browser.egress.private_places import Place, PrivatePlaces, place_of, plain_host
from nova_mcp.browser.egress.socks import (
    CONNECTION_REFUSED,
    GRANTED,
    HOST_UNREACHABLE,
    NOT_ALLOWED,
    NotSocks,
    Reply,
    read_request,
    reply_bytes,
)
from nova_mcp.core.hosts import network_zone
from nova_mcp.core.policy import Denied, NavigationPolicy, judge_destination

log = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
RESOLVE_S: Final = 15.0
# Another address of the same name may answer faster; the last one gets the time that is left.
CONNECT_S: Final = 3.0
LAST_CONNECT_S: Final = 30.0
FAILURES_REMEMBERED: Final = 1000

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What may be connected to; with `every_host` the host lists hold for all requests, not for documents alone."""

    policy: NavigationPolicy
    every_host: bool = False


class _Unreachable(Exception):
    """No connection came about; Chromium's own name for the reason, which the proxy's answer can't carry."""

    def __init__(self, net_error: str, reply: Reply = HOST_UNREACHABLE) -> None:
        self.net_error = net_error
        self.reply = reply


class _Refused(Exception):
    """The policy forbids the destination."""

    def __init__(self, denied: Denied) -> None:
        self.denied = denied


class Egress:
    """The ways out of a launched browser: a proxy for each sandbox, and one for what belongs to none."""

    def __init__(self, rules: EgressRules, network: Network) -> None:
        self.network = network
        self.peers = OwnProcesses()
        self.rules = rules
        self._configured = rules
        self._proxies: dict[str, EgressProxy] = {}

    def _renew_rules(self) -> None:
        """The proxies' own ports are out of bounds for every page."""
        policy = self._configured.policy
        own_ports = policy.own_ports | {proxy.port for proxy in self._proxies.values()}
        self.rules = replace(self._configured, policy=replace(policy, own_ports=own_ports))

    async def proxy(self, sandbox_id: str, open_urls: Callable[[], Iterable[str]] = tuple) -> "EgressProxy":
        """The proxy of a sandbox, listening; `open_urls` tells what its tabs show."""
        if (proxy := self._proxies.get(sandbox_id)) is None:
            proxy = self._proxies[sandbox_id] = EgressProxy(self, PrivatePlaces(open_urls))
        await proxy.start()
        self._renew_rules()
        return proxy

    def of(self, sandbox_id: str) -> "EgressProxy | None":
        return self._proxies.get(sandbox_id)

    async def drop(self, sandbox_id: str) -> None:
        """The sandbox is gone for good."""
        if (proxy := self._proxies.pop(sandbox_id, None)) is not None:
            await proxy.aclose()
            self._renew_rules()

    async def aclose(self) -> None:
        for sandbox_id in tuple(self._proxies):
            await self.drop(sandbox_id)


class EgressProxy:
    """One sandbox's way out: a SOCKS proxy on loopback."""

    def __init__(self, egress: Egress, places: PrivatePlaces) -> None:
        self._egress = egress
        self._places = places
        self._starting = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._tunnels: set[asyncio.Task[None]] = set()
        # Why the last connection to a host and port failed; taken away by the next one that comes about.
        self._failures: OrderedDict[Place, Denied | str] = OrderedDict()
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        async with self._starting:
            if self._server is None:
                self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=BUFFER_BYTES)
                self.port = int(self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        """Stop listening and end every connection."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for tunnel in tuple(self._tunnels):
            tunnel.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)

    # -- what the guard of a page announces and asks

    def choose(self, url: str) -> None:
        """An agent opens the address itself."""
        self._places.choose(url)

    def expect(self, tab: int, url: str, opener_url: str) -> None:
        """A tab is about to ask for a document, from the page that stands there now."""
        self._places.expect(tab, url, opener_url, asyncio.get_running_loop().time())

    def refusal(self, url: str) -> Denied | None:
        """The policy's reason for which the last connection to an address was refused."""
        failure = self._failure(url)
        return failure if isinstance(failure, Denied) else None

    def net_error(self, url: str) -> str | None:
        """Why the last connection to an address failed, in Chromium's words."""
        failure = self._failure(url)
        return failure if isinstance(failure, str) else None

    def _failure(self, url: str) -> Denied | str | None:
        place = place_of(url)
        return None if place is None else self._failures.get(place)

    # -- one connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tunnel = asyncio.create_task(self._serve(reader, writer))
        self._tunnels.add(tunnel)
        tunnel.add_done_callback(self._tunnels.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            port = int(writer.get_extra_info("peername")[1])
            if not await anyio.to_thread.run_sync(self._egress.peers.opened, port):
                log.info("a connection that no browser of this server holds was turned away from its proxy")
                return
            async with asyncio.timeout(HANDSHAKE_S):
                host, port = await read_request(reader, writer)
            await self._tunnel(reader, writer, host, port)
        except (NotSocks, OSError, ValueError, asyncio.IncompleteReadError):
            log.debug("a connection to the proxy ended before it led anywhere")
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        place = (plain_host(host), port)
        try:
            far_reader, far_writer = await self._open(host, port)
        except _Refused as refused:
            self._note(place, refused.denied)
            writer.write(reply_bytes(NOT_ALLOWED))
            await writer.drain()
            return
        except _Unreachable as failure:
            self._note(place, failure.net_error)
            writer.write(reply_bytes(failure.reply))
            await writer.drain()
            return
        self._failures.pop(place, None)
        try:
            writer.write(reply_bytes(GRANTED))
            answers = asyncio.create_task(_copy(far_reader, writer))
            try:
                await _copy(reader, far_writer)
            finally:
                # Browsers close both ways at once: nothing more is wanted of the server.
                answers.cancel()
        finally:
            far_writer.transport.abort()

    def _note(self, place: Place, failure: Denied | str) -> None:
        self._failures.pop(place, None)
        self._failures[place] = failure
        while len(self._failures) > FAILURES_REMEMBERED:
            self._failures.popitem(last=False)

    async def _open(self, host: str, port: int) -> Streams:
        """A connection to the first judged address that takes it."""
        judged = self._judged(host, await self._resolved(host), port)
        failure = _Unreachable("ERR_ADDRESS_UNREACHABLE")
        for address in judged:
            try:
                async with asyncio.timeout(LAST_CONNECT_S if address == judged[-1] else CONNECT_S):
                    return await self._egress.network.connect(address, port)
            except ConnectionRefusedError:
                failure = _Unreachable("ERR_CONNECTION_REFUSED", CONNECTION_REFUSED)
            except TimeoutError:
                failure = _Unreachable("ERR_CONNECTION_TIMED_OUT")
            except OSError:
                failure = _Unreachable("ERR_ADDRESS_UNREACHABLE")
        raise failure

    def _judged(self, host: str, addresses: tuple[str, ...], port: int) -> tuple[str, ...]:
        """The addresses that may be connected to; public ones alone if the name has any."""
        rules, name = self._egress.rules, plain_host(host)
        verdict = judge_destination(name, addresses, port, rules.policy, every_host=rules.every_host)
        if isinstance(verdict, Denied):
            raise _Refused(verdict)
        if public := tuple(address for address in verdict if network_zone(address) == "public"):
            self._places.connected(name, public=True)
            return public
        if (denied := self._places.judge((name, port), asyncio.get_running_loop().time())) is not None:
            raise _Refused(denied)
        self._places.connected(name, public=False)
        return verdict

    async def _resolved(self, host: str) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(RESOLVE_S):
                addresses = await self._egress.network.resolve(host)
        except (OSError, UnicodeError):
            # TimeoutError is an OSError.
            addresses = ()
        if not addresses:
            raise _Unreachable("ERR_NAME_NOT_RESOLVED")
        return addresses


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until their side ends, then end the other's."""
    try:
        while data := await reader.read(BUFFER_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()
