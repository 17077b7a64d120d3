"""Keeps what is known of websites: reads it for tools, and takes writes into the transaction of their call."""

from nova_mcp.clock import Clock
from nova_mcp.storage.engine import Database


class KnowledgeKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
