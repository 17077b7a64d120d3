"""Asks agents about what only they can put into words, once, and remembers their answers."""

from nova_mcp.clock import Clock
from nova_mcp.storage.engine import Database


class Prompter:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
