"""Connections of agents, and what each of them has been told already.

A new connection is a new reader: what is said once is said once to each connection. A connection is an agent's use of
one of these: a server on standard input and output, a session of the handshake era, or, where requests belong to no
session, a client by its name until it has been silent for half an hour.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from nova_mcp.core.clock import Clock
from nova_mcp.core.values import Owner

IDLE_MS: Final = 30 * 60_000
MOST_CONNECTIONS: Final = 2_000
# What drops out of this is said once more: safe, and rare.
MOST_DELIVERIES: Final = 40_000

V = TypeVar("V")
_Deliveries = OrderedDict[tuple[int, Hashable], object]
_Key = tuple[Owner, str | None, str | None]


@dataclass(frozen=True, slots=True)
class AgentConnection:
    """One connection of one agent. Everything that is said once is remembered here and nowhere else."""

    serial: int
    owner: Owner
    _deliveries: _Deliveries = field(repr=False, compare=False)

    def delivered(self, topic: Hashable, otherwise: V) -> V:
        """What was delivered on a topic, as the block that owns the topic remembers it."""
        return cast(V, self._deliveries.get((self.serial, topic), otherwise))

    def deliver(self, topic: Hashable, content: object = True) -> None:
        """An answer with this content goes out."""
        self._deliveries[self.serial, topic] = content
        self._deliveries.move_to_end((self.serial, topic))
        while len(self._deliveries) > MOST_DELIVERIES:
            self._deliveries.popitem(last=False)

    def forget(self, topic: Hashable) -> None:
        self._deliveries.pop((self.serial, topic), None)


@dataclass(slots=True)
class _Live:
    connection: AgentConnection
    last_at_ms: int


class AgentConnections:
    """The connections of this process; one per server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._live: OrderedDict[_Key, _Live] = OrderedDict()
        self._deliveries: _Deliveries = OrderedDict()
        self._serial = 0

    def of(self, owner: Owner, session: str | None = None, client: str | None = None) -> AgentConnection:
        """The connection that a request belongs to; every request keeps its connection alive.

        `session` is that of a handshake client, `client` the name of a client without one. Neither is given on
        standard input and output, where the process is the connection.
        """
        key, now = (owner, session, client), self._clock.now_ms()
        live = self._live.get(key)
        if live is None or (client is not None and now - live.last_at_ms > IDLE_MS):
            self._serial += 1
            live = _Live(AgentConnection(self._serial, owner, self._deliveries), now)
        live.last_at_ms = now
        self._live[key] = live
        self._live.move_to_end(key)
        while len(self._live) > MOST_CONNECTIONS:
            self._live.popitem(last=False)
        return live.connection

    def shares_owner(self, connection: AgentConnection) -> bool:
        """Whether another connection of the same owner was heard of within half an hour.

        Calls of the process itself are left out: nothing tells one program that embeds Nova from another.
        """
        now = self._clock.now_ms()
        recent = [
            live.connection
            for (whose, session, client), live in self._live.items()
            if whose == connection.owner and (session or client) and abs(now - live.last_at_ms) <= IDLE_MS
        ]
        return len(recent) > 1 and connection in recent
