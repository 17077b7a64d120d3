"""Keeps what is known of websites: reads it for tools, and takes writes into the transaction of their call."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.clock import Clock
from nova_mcp.knowledge import store
from nova_mcp.knowledge.health import trust_of
from nova_mcp.knowledge.model import Phenomenon, ScopeName, Trust
from nova_mcp.knowledge.store import Shelved
from nova_mcp.storage.engine import Database

KEPT_SCOPES: Final = 256


@dataclass(frozen=True, slots=True)
class Known:
    """Everything stored of a scope, as of one state of it."""

    scope: ScopeName
    state_rev: int = 0
    shelved: tuple[Shelved, ...] = ()
    trust: Trust = "unknown"


class KnowledgeKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._scopes: OrderedDict[ScopeName, Known] = OrderedDict()

    async def known(self, scope: ScopeName) -> Known:
        """What is stored of a scope; read anew only when it has changed."""
        held = self._scopes.get(scope)
        known = await self._db.read(self._read, scope, held)
        self._scopes[scope] = known
        self._scopes.move_to_end(scope)
        while len(self._scopes) > KEPT_SCOPES:
            self._scopes.popitem(last=False)
        return known

    def _read(self, conn: Connection, scope: ScopeName, held: Known | None) -> Known:
        rev = store.state_rev(conn, scope)
        if held is not None and held.state_rev == rev:
            return held
        shelved = tuple(store.entries(conn, scope)) if rev else ()
        current = (one.kept for one in shelved if one.slot == "current" and isinstance(one.kept, Phenomenon))
        return Known(scope, rev, shelved, trust_of(current, self._clock.now_ms()))
