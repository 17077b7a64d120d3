"""The part of SOCKS 5 (RFC 1928) that Chromium speaks: no authentication, CONNECT only."""

import asyncio
import ipaddress
from typing import Final, Literal

VERSION: Final = 5
_NO_AUTHENTICATION: Final = 0
_NO_METHOD: Final = 0xFF
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4

Reply = Literal[0, 1, 2, 3, 4, 5]
GRANTED: Final = 0
NOT_ALLOWED: Final = 2
HOST_UNREACHABLE: Final = 4
CONNECTION_REFUSED: Final = 5


class NotSocks(Exception):
    """The client sent something that is no SOCKS 5 connection request."""


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """The host and the port that the client wants to be connected to."""
    version, count = await reader.readexactly(2)
    methods = await reader.readexactly(count)
    if version != VERSION or _NO_AUTHENTICATION not in methods:
        writer.write(bytes((VERSION, _NO_METHOD)))
        raise NotSocks
    writer.write(bytes((VERSION, _NO_AUTHENTICATION)))
    version, command, _, kind = await reader.readexactly(4)
    if version != VERSION or command != _CONNECT:
        raise NotSocks
    match kind:
        case 1 | 4:
            host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == _IPV4 else 16)))
        case 3:
            (length,) = await reader.readexactly(1)
            host = (await reader.readexactly(length)).decode("ascii", "strict")
        case _:
            raise NotSocks
    return host, int.from_bytes(await reader.readexactly(2), "big")


def reply_bytes(reply: Reply) -> bytes:
    """An answer; the bound address in it is empty, because nothing reads it."""
    return bytes((VERSION, reply, 0, _IPV4, 0, 0, 0, 0, 0, 0))
