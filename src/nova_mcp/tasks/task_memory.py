"""Everything that has to do with tasks, put together over one store."""

from dataclasses import dataclass
from typing import Self

from nova_mcp.clock import Ports
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tasks.coverage_keeper import CoverageKeeper
from nova_mcp.tasks.guidance_keeper import GuidanceKeeper
from nova_mcp.tasks.learn_mode import LearnMode
from nova_mcp.tasks.profile_keeper import ProfileKeeper
from nova_mcp.tasks.run_keeper import RunKeeper


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
