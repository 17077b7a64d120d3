"""Decides about levels: explains where entries stand, applies what their gates allow, and tells what has changed."""

from collections.abc import Mapping

from nova_mcp.clock import Clock
from nova_mcp.knowledge.model import ScopeName, StableId
from nova_mcp.storage.engine import Database


class PromotionKeeper:
    """One per server."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def proofs(self, scope: ScopeName) -> Mapping[StableId, tuple[int, int]]:
        """How many of the proofs it needs each shadow entry of a scope has."""
        return {}
