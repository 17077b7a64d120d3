"""The blocks that instructions are made of, as they go over the wire."""

from pydantic import Field

from nova_mcp.memory.notes.playbook import SECTIONS
from nova_mcp.memory.tasks.instructions import evm
from nova_mcp.memory.tasks.instructions.learn_mode import Activated
from nova_mcp.memory.tasks.instructions.learn_rules import DELIVERABLE, VERSION, ActivationRefusal, Floors
from nova_mcp.memory.tasks.instructions.learn_store import Activation
from nova_mcp.memory.tasks.model import ScanId
from nova_mcp.tools.spec import Part

# -- task mode


class EvmRulesPart(Part):
    critical_source_minimum: int = evm.CRITICAL_SOURCES
    non_critical_source_minimum: int = evm.OTHER_SOURCES
    unknown_requires_next_step: bool = True
    stop_on_all_tests_passed: bool = True


class EvmPart(Part):
    version: str = evm.VERSION
    rules: EvmRulesPart = Field(default_factory=EvmRulesPart)
    critical_domains: list[str] = Field(default_factory=lambda: list(evm.CRITICAL_DOMAINS))
    output_sections: list[str] = Field(default_factory=lambda: list(evm.OUTPUT_SECTIONS))


# -- learn mode


class ActivationPart(Part):
    target_id: str
    task_id: str | None
    activated: bool
    reason_code: ActivationRefusal | None

    @classmethod
    def of(cls, told: Activated) -> "ActivationPart":
        return cls(
            target_id=told.target_id,
            task_id=told.task_id,
            activated=told.refused is None,
            reason_code=told.refused,
        )


class LearnTaskPart(Part):
    task_id: str
    learn_mode_active: bool
    visited_surfaces: int
    meaningful_interactions: int
    floors_met: bool


class LearnProgressPart(Part):
    tasks: list[LearnTaskPart]
    min_visited_surfaces: int
    min_meaningful_interactions: int
    all_floors_met: bool


class LearnPart(Part):
    """Learn Mode as it stands for the caller."""

    version: str = VERSION
    deliverable: str = DELIVERABLE
    sections: list[str] = Field(default_factory=lambda: list(SECTIONS))
    activation: list[ActivationPart]
    progress: LearnProgressPart | None


def progress_part(visits: list[Activation], floors: Floors, live: frozenset[str]) -> LearnProgressPart | None:
    """How far the tracked claims came; `live` are those that still stand."""
    if not visits:
        return None
    tasks = [
        LearnTaskPart(
            task_id=one.task_id,
            learn_mode_active=one.task_id in live,
            visited_surfaces=one.progress.surfaces,
            meaningful_interactions=one.progress.interactions,
            floors_met=one.progress.meets(floors),
        )
        for one in visits
    ]
    return LearnProgressPart(
        tasks=tasks,
        min_visited_surfaces=floors.surfaces,
        min_meaningful_interactions=floors.interactions,
        all_floors_met=all(one.floors_met for one in tasks),
    )


# -- knowledge


class ServicePart(Part):
    scope: str
    service_category: str
    matched_keywords: list[str]
    active_entries: int


# -- budget


class OutputBudgetPart(Part):
    instructions_text_chars: int
    addenda_chars: int
    max_addenda_chars: int
    omitted_fields: list[str]


class CoverageContractPart(Part):
    instance_id: str
    remaining: int
    recommended_scan_id: ScanId
