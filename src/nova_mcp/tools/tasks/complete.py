"""The end of a run: verifying it, completing it if what was seen allows it, or giving it up."""

from typing import Literal

from pydantic import Field, JsonValue

from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.tasks.answers import Aborted, Completed, Proof
from nova_mcp.memory.tasks.content_codec import steps_json
from nova_mcp.memory.tasks.model import CheckState, RunStatus
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs.completion import Standing
from nova_mcp.memory.tasks.runs.service import Checked
from nova_mcp.memory.tasks.runs.store import Run
from nova_mcp.memory.tasks.runs.transactions import NotDone
from nova_mcp.settings import ToolNames
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.names import published_name
from nova_mcp.tools.spec import AgentParams, Part, Result, maybe, tool
from nova_mcp.tools.tasks.content_params import HexId, Reason500, Text2000
from nova_mcp.tools.tasks.progress import ChangeParams
from nova_mcp.tools.tasks.run_params import StepReportParams, step_reports
from nova_mcp.tools.tasks.run_parts import (
    CoveragePart,
    CurrentStatePart,
    EvidencePart,
    ReasonPart,
    TaskAwareness,
    VerificationPart,
    coverage_part,
    evidence_part,
    progress_part,
    reason_parts,
    task_awareness,
    verification_parts,
)
from nova_mcp.tools.tasks.run_writes import RunResult, commit_on_runs, refusal, without_secrets
from nova_mcp.tools.tasks.step_patterns import reported_steps
from nova_mcp.tools.times import utc

_REPORTS = "one per step that you ran: {stepId, state, toolResult}"


def _state(run: Run, now: Standing, proof: Proof) -> CurrentStatePart:
    return CurrentStatePart(
        status=run.state.status,
        discovery_state=run.state.discovery,
        progress=progress_part(proof.tally),
        url_units_remaining=proof.coverage.tally.remaining,
        pending_mandatory_checks=list(now.pending_checks),
    )


# -- verifying


class VerifyParams(AgentParams):
    instance_id: HexId
    evidence_report: list[StepReportParams] = Field(default=[], max_length=20, description=_REPORTS)


def _check_verify(p: VerifyParams, _: Catalogue) -> None:
    step_reports(p.evidence_report)


class CompletionPart(Part):
    completion_allowed: bool
    reason_code: str | None
    reasons: list[ReasonPart]
    current_state: CurrentStatePart


class VerifyResult(Result):
    has_contract: bool
    steps: list[dict[str, JsonValue]]
    verification_results: list[VerificationPart]
    completion_verification: CompletionPart
    evidence_summary: EvidencePart
    url_coverage: CoveragePart
    task_awareness: TaskAwareness

    def text(self) -> str:
        found = self.completion_verification
        head = "the run may be completed" if found.completion_allowed else "the run can't be completed yet"
        lines = [head, *(one.line() for one in found.reasons), found.current_state.progress.line()]
        lines += [self.evidence_summary.line(), *self.url_coverage.lines()]
        lines += [f"step {one.line()}" for one in self.verification_results]
        return "\n".join(lines)


@tool(
    title="Check whether a run could be completed",
    effect="read",
    bundles=("task_memory",),
    target="none",
    check=_check_verify,
)
async def task_instance_verify(ctx: ToolContext, p: VerifyParams) -> VerifyResult:
    """What completing the run would come to now, with everything that is missing. Reports on verification steps are
    judged against the ledger and not stored."""
    reported = await reported_steps(ctx, p.instance_id, step_reports(p.evidence_report))
    runs = ctx.tasks.runs
    return _verified(await commit_on_runs(ctx, lambda conn, at: runs.verify(conn, at, p.instance_id, reported)))


def _verified(checked: Checked) -> VerifyResult:
    view, now = checked.verified.view, checked.verified.standing
    return VerifyResult(
        has_contract=bool(view.run.content.verification),
        steps=[one for one in steps_json(view.run.content.verification) if isinstance(one, dict)],
        verification_results=verification_parts(checked.verified.steps),
        completion_verification=CompletionPart(
            completion_allowed=view.completion_allowed,
            reason_code=view.reason_code,
            reasons=reason_parts(view.reasons),
            current_state=_state(view.run, now, view.proof),
        ),
        evidence_summary=evidence_part(view.proof.evidence),
        url_coverage=coverage_part(view.proof.coverage),
        task_awareness=task_awareness(checked.aware),
    )


# -- completing


class CompleteParams(ChangeParams):
    note: Text2000 | None = None
    evidence_report: list[StepReportParams] = Field(default=[], max_length=20, description=_REPORTS)


def _check_complete(p: CompleteParams, _: Catalogue) -> None:
    step_reports(p.evidence_report)


class WaivedPart(Part):
    check_id: str
    state: CheckState
    note: str | None


class NextActionPart(Part):
    tool: str
    why: str


class CompleteResult(Result):
    completed: bool
    completion_allowed: bool
    instance_id: str
    instance_rev: int
    completed_at_utc: str | None = maybe()
    reason_code: str | None = maybe()
    reasons: list[ReasonPart] = maybe([])
    current_state: CurrentStatePart | None = maybe()
    verification_results: list[VerificationPart]
    evidence_summary: EvidencePart
    url_coverage: CoveragePart
    waived_checks: list[WaivedPart] | None = Field(None, exclude_if=lambda waived: waived is None)
    next_actions: list[NextActionPart] = maybe([])
    duplicate: bool = maybe(default=False)

    def text(self) -> str:
        if self.completed:
            waived = f" · waived: {', '.join(one.check_id for one in self.waived_checks or ())}"
            head = f"completed at revision {self.instance_rev}{waived if self.waived_checks else ''}"
            warned = ["gate: " + self.url_coverage.gate_status] if self.url_coverage.remaining else []
            return "\n".join([head, self.evidence_summary.line(), *warned])
        lines = ["not completed", *(one.line() for one in self.reasons)]
        return "\n".join([*lines, *(f"→ {one.tool}: {one.why}" for one in self.next_actions)])


@tool(
    title="Complete a run",
    effect="write",
    bundles=("task_memory",),
    target="none",
    repeat_safe=True,
    check=_check_complete,
)
async def task_instance_complete(ctx: ToolContext, p: CompleteParams) -> CompleteResult:
    """Ends a run as completed if everything it asks for holds: checks, units, findings, what was seen and verified.
    Otherwise nothing changes and nextActions say what to do."""
    reported = await reported_steps(ctx, p.instance_id, step_reports(p.evidence_report))
    p = without_secrets(ctx, p)
    note = None if p.note is None else storable_text(p.note)
    runs, change = ctx.tasks.runs, p.change("complete")
    done = await commit_on_runs(ctx, lambda conn, at: runs.complete(conn, at, change, reported, note))
    match done:
        case NotDone():
            return _not_done(done, ctx.settings.tool_names)
        case Refused():
            return refusal(done, CompleteResult)
        case Completed():
            return _completed(done, p.instance_id)


def _completed(done: Completed, instance_id: str) -> CompleteResult:
    return CompleteResult(
        completed=True,
        completion_allowed=True,
        instance_id=instance_id,
        instance_rev=done.instance_rev,
        completed_at_utc=utc(done.completed_at_ms),
        verification_results=verification_parts(done.steps),
        evidence_summary=evidence_part(done.proof.evidence),
        url_coverage=coverage_part(done.proof.coverage),
        waived_checks=[WaivedPart(check_id=one.check_id, state=one.state, note=one.note) for one in done.waived],
        duplicate=done.duplicate,
    )


def _not_done(found: NotDone, spelling: ToolNames) -> CompleteResult:
    return CompleteResult(
        ok=False,
        completed=False,
        completion_allowed=False,
        instance_id=found.run.instance_id,
        instance_rev=found.run.state.rev,
        reason_code=found.reason_code,
        reasons=reason_parts(found.reasons),
        current_state=_state(found.run, found.standing, found.proof),
        verification_results=verification_parts(found.standing.steps),
        evidence_summary=evidence_part(found.proof.evidence),
        url_coverage=coverage_part(found.proof.coverage),
        next_actions=[NextActionPart(tool=published_name(one.tool, spelling), why=one.why) for one in found.actions],
    )


# -- giving up


class AbortParams(ChangeParams):
    reason: Reason500
    outcome: Literal["aborted", "failed"] = "aborted"


class AbortResult(RunResult):
    previous_status: RunStatus
    instance_id: str
    instance_rev: int
    duplicate: bool = maybe(default=False)

    def text(self) -> str:
        return f"run {self.instance_id} {self.run_status} at revision {self.instance_rev}, was {self.previous_status}"


@tool(
    title="End a run without completing it", effect="write", bundles=("task_memory",), target="none", repeat_safe=True
)
async def task_instance_abort(ctx: ToolContext, p: AbortParams) -> AbortResult:
    """Ends a run that will not be completed: aborted when it is no longer wanted, failed when it could not be done."""
    p = without_secrets(ctx, p)
    runs, change, reason = ctx.tasks.runs, p.change("abort"), storable_text(p.reason)
    done = await commit_on_runs(ctx, lambda conn, at: runs.abort(conn, at, change, p.outcome, reason))
    return refusal(done, AbortResult) if isinstance(done, Refused) else _aborted(done, p.instance_id)


def _aborted(done: Aborted, instance_id: str) -> AbortResult:
    return AbortResult(
        run_status=done.status,
        previous_status=done.previous,
        instance_id=instance_id,
        instance_rev=done.instance_rev,
        duplicate=done.duplicate,
    )
