"""All notes, put together over one store."""

from dataclasses import dataclass
from typing import Self

from nova_mcp.core.clock import Ports
from nova_mcp.memory.notes.domain_service import DomainNotes
from nova_mcp.memory.notes.service import NoteKeeper
from nova_mcp.settings import NoteSettings
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class NoteMemory:
    """What users and operators want remembered, and what every agent must know on a site."""

    kept: NoteKeeper
    sites: DomainNotes

    @classmethod
    def over(cls, db: Database, ports: Ports, settings: NoteSettings) -> Self:
        return cls(NoteKeeper(db, ports.clock, ports.ids, settings), DomainNotes(db, ports, settings))
