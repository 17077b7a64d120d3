"""Whether a run is done: every reason against it, in one fixed order; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.evidence.grades import EvidenceSummary, gap_refused
from nova_mcp.memory.tasks.model import (
    PASSING,
    Check,
    CheckState,
    CompletionCondition,
    DiscoveryState,
    GateStatus,
    ScanId,
    StepState,
)
from nova_mcp.settings import GateMode

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Tally:
    """How the units of a run stand, as agents say."""

    checked: int = 0
    excluded: int = 0
    remaining: int = 0
    blocked: int = 0
    failed: int = 0
    late: int = 0
    findings: int = 0
    # Findings of units that were seen.
    proven_findings: int = 0

    @property
    def total(self) -> int:
        return self.checked + self.excluded + self.remaining + self.blocked + self.failed

    @property
    def percent_complete(self) -> int:
        return 100 * (self.checked + self.excluded) // self.total if self.total else 0


@dataclass(frozen=True, slots=True)
class CoverageTally:
    """How the URL units of a run stand, as registered scans saw them."""

    total: int = 0
    covered: int = 0
    excluded: int = 0

    @property
    def remaining(self) -> int:
        return self.total - self.covered - self.excluded

    @property
    def percent_covered(self) -> float:
        wanted = self.total - self.excluded
        return round(100 * self.covered / wanted, 1) if wanted else 0.0


@dataclass(frozen=True, slots=True)
class UrlCoverage:
    """The coverage of a run's pages, what the gate makes of it, and where to go on."""

    gate_mode: GateMode
    gate_status: GateStatus
    tally: CoverageTally
    next_urls: tuple[str, ...]
    recommended_scan_id: ScanId


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step of the verification came to."""

    step_id: str
    required: bool
    state: StepState
    execution_observed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that decides whether a run may be completed."""

    condition: CompletionCondition
    checks: tuple[tuple[Check, CheckState], ...]
    discovery: DiscoveryState
    tally: Tally
    coverage: CoverageTally
    gate_mode: GateMode
    evidence: EvidenceSummary
    steps: tuple[StepResult, ...] = ()

    @property
    def pending_checks(self) -> tuple[str, ...]:
        return tuple(sorted(one.check_id for one, state in self.checks if one.required and state not in PASSING))

    @property
    def open_steps(self) -> tuple[str, ...]:
        return tuple(sorted(one.step_id for one in self.steps if one.required and one.state != "passed"))

    @property
    def gate_status(self) -> GateStatus:
        return url_gate(self.condition, self.gate_mode, self.coverage.remaining)


@dataclass(frozen=True, slots=True)
class Reason:
    reason_code: str
    detail: str


def url_gate(condition: CompletionCondition, mode: GateMode, remaining: int) -> GateStatus:
    """What the coverage gate says; only exhaustive runs of pages and URLs are judged."""
    if mode == "off" or not (condition.exhaustive and condition.counts_urls):
        return "not_applicable"
    if remaining == 0:
        return "passed"
    told: dict[GateMode, GateStatus] = {"warn": "warned", "shadow_block": "shadow_blocked", "block": "blocked"}
    return told[mode]


def shadow_refusal(standing: Standing) -> Reason | None:
    """What the gate would have said if it were not being tried out."""
    return _uncovered(standing) if standing.gate_status == "shadow_blocked" else None


def evaluate_completion(standing: Standing) -> tuple[Reason, ...]:
    """Every reason why the run can't be completed; none means that it can."""
    found = [
        _checks(standing),
        *(_exhaustive(standing) if standing.condition.exhaustive else (_metric(standing),)),
        _uncovered(standing) if standing.gate_status == "blocked" else None,
        _gap(standing),
        _steps(standing),
    ]
    return tuple(one for one in found if one is not None)


def _checks(standing: Standing) -> Reason | None:
    pending = standing.pending_checks
    return Reason("pending_mandatory_checks", f"open checks: {_listed(pending)}") if pending else None


def _exhaustive(standing: Standing) -> Sequence[Reason | None]:
    tally = standing.tally
    stuck = tally.blocked + tally.failed
    frozen = standing.discovery == "frozen"
    return (
        None if frozen else Reason("discovery_not_frozen", f"discovery is {standing.discovery}"),
        None if tally.total else Reason("no_units_discovered", "the run has no units"),
        Reason("units_blocked_or_failed", f"{tally.blocked} blocked, {tally.failed} failed") if stuck else None,
        Reason("units_remaining", f"{tally.remaining} of {tally.total} not processed") if tally.remaining else None,
        None if tally.checked else Reason("no_units_checked", "no unit is checked"),
    )


def metric(standing: Standing) -> int:
    """What the stop value is held against."""
    tally = standing.tally
    if standing.condition.stop_metric == "checked_units":
        return tally.checked
    return tally.findings if standing.condition.evidence.mode == "none" else tally.proven_findings


def _metric(standing: Standing) -> Reason | None:
    condition, reached = standing.condition, metric(standing)
    wanted = condition.stop_value or 1
    if reached >= wanted:
        return None
    code = "threshold_not_met" if condition.coverage_mode == "threshold" else "minimum_not_met"
    seen = " of units that were seen" if _only_proven(condition) else ""
    return Reason(code, f"{reached} of {wanted} {condition.stop_metric.replace('_', ' ')}{seen}")


def _only_proven(condition: CompletionCondition) -> bool:
    return condition.stop_metric == "distinct_findings" and condition.evidence.mode != "none"


def _uncovered(standing: Standing) -> Reason:
    coverage = standing.coverage
    wanted = coverage.total - coverage.excluded
    return Reason("url_units_remaining", f"{coverage.remaining} of {wanted} pages have no accepted scan")


def _gap(standing: Standing) -> Reason | None:
    policy, seen = standing.condition.evidence, standing.evidence
    if policy.mode == "none" or not gap_refused(seen, policy.max_gap_percent):
        return None
    wanted = "strongly " if policy.mode == "require_strong" else ""
    missing = seen.claimed_checked - seen.observed_checked
    said = f"{missing} of {seen.claimed_checked} checked units were not {wanted}observed"
    return Reason("evidence_gap", f"{said} ({policy.max_gap_percent} % may be missing)")


def _steps(standing: Standing) -> Reason | None:
    still = standing.open_steps
    return Reason("verification_failed", f"steps not passed: {_listed(still)}") if still else None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
