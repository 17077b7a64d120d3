"""Everything that has to do with tasks, put together over one store."""

from dataclasses import dataclass
from typing import Self

from nova_mcp.core.clock import Ports
from nova_mcp.memory.tasks.coverage.service import CoverageKeeper
from nova_mcp.memory.tasks.guidance.service import GuidanceKeeper
from nova_mcp.memory.tasks.instructions.learn_mode import LearnMode
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper
from nova_mcp.memory.tasks.runs.service import RunKeeper
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """Recurring tasks and what was learned about doing them, their runs, what is covered, and visits made to learn."""

    profiles: ProfileKeeper
    guidance: GuidanceKeeper
    runs: RunKeeper
    coverage: CoverageKeeper
    learn_mode: LearnMode

    @classmethod
    def over(cls, db: Database, ports: Ports, settings: Settings) -> Self:
        tenants = settings.notes.multi_tenant_domains
        profiles = ProfileKeeper(db, ports, tenants)
        return cls(
            profiles,
            GuidanceKeeper(db, ports, tenants),
            RunKeeper(db, ports, settings.tasks.url_coverage_gate, profiles),
            CoverageKeeper(db),
            LearnMode.over(db, ports.clock, settings),
        )
