"""Which completion conditions there are, and what one means where it leaves something open; pure."""

from dataclasses import dataclass
from typing import Final

from nova_mcp.memory.tasks.model import (
    URL_KINDS,
    CompletionCondition,
    CoverageMode,
    EvidencePolicy,
    EvidencePolicyMode,
    StopMetric,
    UnitKind,
    UnknownAs,
)

_COUNTED: Final[frozenset[StopMetric]] = frozenset({"checked_units", "distinct_findings"})


@dataclass(frozen=True, slots=True)
class AskedCondition:
    """A condition as it was sent; None stands for what was left out."""

    coverage_mode: CoverageMode
    unit_kind: UnitKind
    stop_metric: StopMetric
    stop_value: int | None = None
    evidence_mode: EvidencePolicyMode | None = None
    max_gap_percent: int = 0
    treat_unknown_as: UnknownAs = "gap"


@dataclass(frozen=True, slots=True)
class BadCondition:
    """No such combination; says what would go together."""

    message: str


def settled_condition(asked: AskedCondition) -> CompletionCondition | BadCondition:
    stop = _stop_value(asked)
    if isinstance(stop, BadCondition):
        return stop
    mode = asked.evidence_mode or ("require_observed" if asked.unit_kind in URL_KINDS else "none")
    evidence = EvidencePolicy(mode, asked.max_gap_percent, asked.treat_unknown_as)
    return CompletionCondition(asked.coverage_mode, asked.unit_kind, asked.stop_metric, stop, evidence)


def _stop_value(asked: AskedCondition) -> int | BadCondition | None:
    if asked.coverage_mode == "exhaustive":
        if asked.stop_metric != "all_units_processed" or asked.stop_value is not None:
            return BadCondition("an exhaustive task stops at all_units_processed and takes no stopValue")
        return None
    if asked.stop_metric not in _COUNTED:
        return BadCondition(f"a task of mode {asked.coverage_mode} stops at checked_units or distinct_findings")
    if asked.stop_value is None:
        if asked.coverage_mode == "threshold":
            return BadCondition("a task of mode threshold needs a stopValue of at least 1")
        return 1
    return asked.stop_value if asked.stop_value >= 1 else BadCondition("stopValue must be at least 1")
