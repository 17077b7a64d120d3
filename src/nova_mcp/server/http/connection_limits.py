"""Connections before a token was seen: limits and deadlines, so that half-sent requests can't use up the server."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from nova_mcp.server.http.dashboard_home import ADMIT_KEY
from nova_mcp.settings import HttpSettings

if sys.platform != "win32":
    import resource

log = logging.getLogger(__name__)

C = TypeVar("C", bound=Hashable)
# Connections taken in one turn of the event loop. A caller's request is read within four turns of its arrival, so as
# many strangers that arrive meanwhile must still fit beside it.
ACCEPTED_AT_ONCE: Final = 32
Phase: TypeAlias = Literal["idle", "head", "body", "answer"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections may be open: in all, from one address without a token, and of one principal."""

    total: int
    strangers_per_address: int
    per_principal: int


class Connections(Generic[C]):
    """Who is connected: strangers in the order they came, and connections that have shown a token.

    Newcomers always get a place and the oldest stranger loses its own, because nothing but a token tells a caller
    from an attacker on the same address.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._strangers: dict[C, str] = {}
        self._admitted: dict[C, str] = {}
        self._of_address: Counter[str] = Counter()
        self._of_principal: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._strangers) + len(self._admitted)

    def add(self, connection: C, address: str) -> list[C]:
        """Count a newcomer; returns the connections that have to end for it, itself if there is no other."""
        self._strangers[connection] = address
        self._of_address[address] += 1
        ending = []
        if self._of_address[address] > self._limits.strangers_per_address:
            ending.append(next(known for known, place in self._strangers.items() if place == address))
        elif len(self) > self._limits.total:
            ending.append(next(iter(self._strangers)))
        for known in ending:
            self.remove(known)
        return ending

    def admit(self, connection: C, principal: str) -> bool:
        """Count a connection for the principal whose token it showed; False when that one has too many."""
        if connection in self._admitted:
            return True
        if self._of_principal[principal] >= self._limits.per_principal:
            return False
        self.remove(connection)
        self._admitted[connection] = principal
        self._of_principal[principal] += 1
        return True

    def is_admitted(self, connection: C) -> bool:
        return connection in self._admitted

    def remove(self, connection: C) -> None:
        address = self._strangers.pop(connection, None)
        if address is not None:
            _count_down(self._of_address, address)
        principal = self._admitted.pop(connection, None)
        if principal is not None:
            _count_down(self._of_principal, principal)


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def connection_limits(settings: HttpSettings) -> ConnectionLimits:
    """The limits in force: browser, store and log need files as well, so connections take half of them at most."""
    total = settings.max_connections
    if sys.platform != "win32":
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        total = total if soft == resource.RLIM_INFINITY else max(16, min(total, soft // 2))
    half = max(8, total // 2)
    return ConnectionLimits(total, min(settings.connections_per_address, half), half)


class LimitedProtocol(H11Protocol):
    """The web server's protocol with a deadline for each part of a request and a place in the table of connections.

    The web server itself times only connections that lie idle after an answer.
    """

    def __init__(self, *args: Any, table: "Connections[LimitedProtocol]", settings: HttpSettings, **more: Any) -> None:
        super().__init__(*args, **more)
        self._table = table
        self._seconds: dict[Phase, float] = {
            "head": settings.header_timeout_s,
            "body": settings.body_timeout_s,
        }
        self._phase: Phase = "idle"
        self._deadline: asyncio.TimerHandle | None = None
        self._lifetime: asyncio.TimerHandle | None = None
        inner = self.app

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            await inner({**scope, ADMIT_KEY: self._admit}, receive, send)

        self.app = served

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        # A stranger gets the time of one whole request, whatever it does with it.
        longest = self._seconds["head"] + self._seconds["body"]
        self._lifetime = self.loop.call_later(longest, self._end, "it showed no token in time")
        for oldest in self._table.add(self, address):
            oldest._end("too many connections without a token")
        # A connection that sends nothing is one whose head does not come.
        self._enter("head")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._enter(self._current_phase())

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._enter(self._current_phase())

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._stop_timers()
        super().connection_lost(exc)

    def _admit(self, principal: str) -> bool:
        admitted = self._table.admit(self, principal)
        if admitted and self._lifetime is not None:
            self._lifetime.cancel()
            self._lifetime = None
        return admitted

    def _current_phase(self) -> Phase:
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        if self.conn.their_state is not h11.IDLE:
            return "answer"
        return "head" if self.conn.trailing_data[0] else "idle"

    def _enter(self, phase: Phase) -> None:
        if self.transport.is_closing() or (phase == self._phase and self._deadline is not None):
            return
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._phase = phase
        if (seconds := self._seconds.get(phase)) is not None:
            self._deadline = self.loop.call_later(seconds, self._end, f"the {phase} of its request did not arrive")

    def _end(self, why: str) -> None:
        # Not closed but aborted: a peer that does not read would keep a closing connection open.
        log.info("ended a connection from %s: %s", self.client[0] if self.client else "?", why)
        self._table.remove(self)
        self._stop_timers()
        self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._deadline, self._lifetime):
            if timer is not None:
                timer.cancel()
        self._deadline = self._lifetime = None
