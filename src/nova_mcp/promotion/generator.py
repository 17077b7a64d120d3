"""Finds what recurs: ranks patterns worth a look, and turns them into candidates."""

from nova_mcp.clock import Clock
from nova_mcp.storage.engine import Database


class Generator:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
