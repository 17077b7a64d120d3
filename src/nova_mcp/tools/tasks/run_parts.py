"""How runs are shown: progress, evidence, coverage and open runs, the same in every answer."""

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.evidence.grades import EvidenceSummary, GradeName
from nova_mcp.memory.tasks.model import DiscoveryState, GateStatus, RunStatus, ScanId, StepState
from nova_mcp.memory.tasks.profiles.rules import awareness_profile
from nova_mcp.memory.tasks.runs.awareness import MOST_CHARS, ActiveRun, fewer_words
from nova_mcp.memory.tasks.runs.completion import Reason, StepResult, Tally, UrlCoverage
from nova_mcp.memory.tasks.runs.service import Aware
from nova_mcp.settings import GateMode
from nova_mcp.tools.spec import Part
from nova_mcp.tools.times import utc

SHOWN_TEXT = 160
# What a profile needs to be worth mentioning.
PROFILE_CHARS = 600


class ProgressPart(Part):
    total_units: int
    checked_units: int
    excluded_units: int
    remaining_units: int
    blocked_units: int
    failed_units: int
    late_units: int
    distinct_findings: int
    percent_complete: int

    def line(self) -> str:
        stuck = f", {self.blocked_units} blocked, {self.failed_units} failed" if self.stuck else ""
        counts = (
            f"{self.checked_units} checked, {self.excluded_units} excluded, {self.remaining_units} remaining{stuck}"
        )
        found = f" · {self.distinct_findings} findings" if self.distinct_findings else ""
        return f"{self.total_units} units: {counts} ({self.percent_complete} %){found}"

    @property
    def stuck(self) -> int:
        return self.blocked_units + self.failed_units


def progress_part(tally: Tally) -> ProgressPart:
    return ProgressPart(
        total_units=tally.total,
        checked_units=tally.checked,
        excluded_units=tally.excluded,
        remaining_units=tally.remaining,
        blocked_units=tally.blocked,
        failed_units=tally.failed,
        late_units=tally.late,
        distinct_findings=tally.findings,
        percent_complete=tally.percent_complete,
    )


class ExceptionPart(Part):
    unit_key: str
    grade: GradeName
    reason_code: str | None


class EvidencePart(Part):
    claimed_checked: int
    observed_checked: int
    strong: int
    weak: int
    none: int
    unknown: int
    gap_percent: float
    ingestion_complete: bool
    top_exceptions: list[ExceptionPart]

    def line(self) -> str:
        grades = f"{self.strong} strong, {self.weak} weak, {self.none} none, {self.unknown} unknown"
        return f"evidence: {self.observed_checked} of {self.claimed_checked} checked units observed ({grades})"


def evidence_part(found: EvidenceSummary) -> EvidencePart:
    return EvidencePart(
        claimed_checked=found.claimed_checked,
        observed_checked=found.observed_checked,
        strong=found.strong,
        weak=found.weak,
        none=found.none,
        unknown=found.unknown,
        gap_percent=found.gap_percent,
        ingestion_complete=found.ingestion_complete,
        top_exceptions=[
            ExceptionPart(unit_key=one.unit_key, grade=one.grade.name, reason_code=one.grade.reason_code)
            for one in found.top_exceptions
        ],
    )


class CoveragePart(Part):
    gate_mode: GateMode
    gate_status: GateStatus
    total: int
    covered: int
    excluded: int
    remaining: int
    percent_covered: float
    next_urls: list[str]
    recommended_scan_id: ScanId

    def lines(self) -> list[str]:
        if self.total == 0:
            return []
        said = f"pages: {self.covered} of {self.total} covered, {self.excluded} excluded, gate {self.gate_status}"
        if not self.next_urls:
            return [said]
        return [said, f"next: {self.next_urls[0]} with nova.coverage_scan {self.recommended_scan_id}"]


def coverage_part(found: UrlCoverage) -> CoveragePart:
    return CoveragePart(
        gate_mode=found.gate_mode,
        gate_status=found.gate_status,
        total=found.tally.total,
        covered=found.tally.covered,
        excluded=found.tally.excluded,
        remaining=found.tally.remaining,
        percent_covered=found.tally.percent_covered,
        next_urls=list(found.next_urls),
        recommended_scan_id=found.recommended_scan_id,
    )


class ReasonPart(Part):
    reason_code: str
    detail: str

    def line(self) -> str:
        return f"{self.reason_code}: {self.detail}"


def reason_parts(reasons: Sequence[Reason]) -> list[ReasonPart]:
    return [ReasonPart(reason_code=one.reason_code, detail=one.detail) for one in reasons]


class VerificationPart(Part):
    step_id: str
    required: bool
    state: StepState
    execution_observed: bool
    detail: str

    def line(self) -> str:
        return (
            f"{self.step_id} {self.state}{'' if self.required else ' (optional)'}: {one_line(self.detail, SHOWN_TEXT)}"
        )


def verification_parts(steps: Sequence[StepResult]) -> list[VerificationPart]:
    return [
        VerificationPart(
            step_id=one.step_id,
            required=one.required,
            state=one.state,
            execution_observed=one.execution_observed,
            detail=one.detail,
        )
        for one in steps
    ]


class CurrentStatePart(Part):
    status: RunStatus
    discovery_state: DiscoveryState
    progress: ProgressPart
    url_units_remaining: int
    pending_mandatory_checks: list[str]


# -- what an agent is reminded of


class ResumePart(Part):
    cursor: JsonValue
    last_processed_url: JsonValue
    last_action: JsonValue
    checkpoint: JsonValue


class ActiveInstancePart(Part):
    instance_id: str
    profile_id: str | None
    display_name: str
    status: Literal["pending", "active"]
    discovery_state: DiscoveryState
    instance_rev: int
    target_url: str | None
    progress: ProgressPart
    completion_allowed: bool
    reason_code: str | None
    resume_hint: ResumePart
    last_activity_at_utc: str

    def line(self) -> str:
        done = "may be completed" if self.completion_allowed else str(self.reason_code)
        name = one_line(self.display_name, 60)
        return (
            f"open run {self.instance_id} rev {self.instance_rev} “{name}” {self.progress.percent_complete} %: {done}"
        )


class TaskAwareness(Part):
    profile_match: dict[str, JsonValue] | None
    active_instances: list[ActiveInstancePart]

    def other_lines(self, instance_id: str) -> list[str]:
        """The runs that stand open beside the one an answer is about."""
        return [one.line() for one in self.active_instances if one.instance_id != instance_id]


def active_parts(runs: Sequence[ActiveRun]) -> list[ActiveInstancePart]:
    return [
        ActiveInstancePart(
            instance_id=run.instance_id,
            profile_id=run.profile_id,
            display_name=run.display_name,
            status="pending" if run.status == "pending" else "active",
            discovery_state=run.discovery,
            instance_rev=run.instance_rev,
            target_url=run.target_url,
            progress=progress_part(run.tally),
            completion_allowed=run.completion_allowed,
            reason_code=run.reason_code,
            resume_hint=ResumePart(
                cursor=run.resume.cursor,
                last_processed_url=run.resume.last_processed_url,
                last_action=run.resume.last_action,
                checkpoint=run.resume.checkpoint,
            ),
            last_activity_at_utc=utc(run.last_activity_at_ms),
        )
        for run in runs
    ]


def task_awareness(aware: Aware) -> TaskAwareness:
    """Within its size: runs say less, the oldest first, and the profile takes the room that is left."""
    runs, found = aware.active, aware.recognised
    while True:
        room = MOST_CHARS - len(_block(runs).model_dump_json(by_alias=True))
        if found is None or (not runs and room < PROFILE_CHARS):
            profile = None
        else:
            profile = awareness_profile(found.profile, found.score, found.confidence, max(room, PROFILE_CHARS))
        block = _block(runs, profile)
        if len(block.model_dump_json(by_alias=True)) <= MOST_CHARS:
            return block
        if not runs:
            return _block(())
        runs = fewer_words(runs)


def _block(runs: Sequence[ActiveRun], profile: dict[str, JsonValue] | None = None) -> TaskAwareness:
    return TaskAwareness(profile_match=profile, active_instances=active_parts(runs))
