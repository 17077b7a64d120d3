"""Names to addresses, and addresses to connections: the two things the proxy asks of the system."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.request import getproxies

from nova_mcp.browser.process.child_environment import without_password
from nova_mcp.core.hosts import ip_address, under

Resolve: TypeAlias = Callable[[str], Awaitable[tuple[str, ...]]]
Connect: TypeAlias = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

# What one read takes at most; larger pieces mean fewer turns of the event loop.
BUFFER_BYTES: Final = 1 << 18
# As long as browsers remember a name themselves. Every connection is judged, so a stale answer is never a way around.
REMEMBERED_S: Final = 30.0
_NAMES_REMEMBERED: Final = 500
_LOOPBACK: Final = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Network:
    """The way out; tests put names and servers of their own in its place."""

    resolve: Resolve
    connect: Connect


@dataclass(slots=True)
class _Resolver:
    """Looks names up with the system's resolver; one lookup serves every connection that waits for the same name."""

    lookups: dict[str, tuple[float, asyncio.Task[tuple[str, ...]]]] = field(default_factory=dict)

    async def resolve(self, host: str) -> tuple[str, ...]:
        name = host.removesuffix(".")
        if ip_address(name) is not None:
            return (name.strip("[]"),)
        if under(name, "localhost"):
            # Browsers answer these by themselves; a system's resolver often does not know them.
            return _LOOPBACK
        now = asyncio.get_running_loop().time()
        started, lookup = self.lookups.get(name, (0.0, None))
        if lookup is None or now - started > REMEMBERED_S or _has_failed(lookup):
            lookup = asyncio.create_task(_look_up(host))
            # Every connection that waits may be given up before a lookup fails; its error is nobody's then.
            lookup.add_done_callback(_has_failed)
            self.lookups.pop(name, None)
            while len(self.lookups) >= _NAMES_REMEMBERED:
                del self.lookups[next(iter(self.lookups))]
            self.lookups[name] = (now, lookup)
        # One connection that is given up must not take the lookup of the others with it.
        return await asyncio.shield(lookup)


def _has_failed(lookup: asyncio.Task[tuple[str, ...]]) -> bool:
    return lookup.done() and (lookup.cancelled() or lookup.exception() is not None)


async def _look_up(host: str) -> tuple[str, ...]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _connect(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address, port, limit=BUFFER_BYTES)


def system_network() -> Network:
    """This machine's resolver and its own connections."""
    return Network(_Resolver().resolve, _connect)


def system_proxy() -> str | None:
    """The proxy that this machine's settings name for the web; a browser behind one resolves no names itself.

    An address with a password is not handed to the browser, so the browser is not behind that proxy.
    """
    named = [getproxies().get(scheme) for scheme in ("https", "http", "all", "socks")]
    return next((proxy for proxy in named if proxy and without_password(proxy)), None)
