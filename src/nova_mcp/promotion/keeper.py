"""Decides about levels: explains where entries stand, applies what their gates allow, and tells what has changed."""

from nova_mcp.clock import Clock
from nova_mcp.storage.engine import Database


class PromotionKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
