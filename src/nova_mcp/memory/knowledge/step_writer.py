"""Who writes down what happens to entries, so that every level can be replayed; promotion does."""

from typing import Protocol

from sqlalchemy import Connection

from nova_mcp.memory.knowledge.store import Shelved


class Scribe(Protocol):
    """Called while the scope's row and the entry's are held; everything but a birth saves the entry as well."""

    def born(self, conn: Connection, shelved: Shelved) -> None: ...

    def revised(self, conn: Connection, before: Shelved, after: Shelved, now_ms: int) -> Shelved: ...

    def confirmed(self, conn: Connection, before: Shelved, after: Shelved, now_ms: int) -> Shelved: ...

    def retired(self, conn: Connection, shelved: Shelved, reason: str, now_ms: int) -> Shelved: ...
