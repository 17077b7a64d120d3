"""Runs of tasks: starting one and reading how it stands."""

import json
from typing import Annotated, Final

from pydantic import Field, JsonValue

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.core.urls import normalize_url
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.evidence.grades import GradeName
from nova_mcp.memory.tasks.content_codec import json_bytes
from nova_mcp.memory.tasks.model import MOST_SCOPE_BYTES, OPEN, CheckState, DiscoveryState, TaskKind, UnitStatus
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs.create import RunWish
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.read import Wanted
from nova_mcp.memory.tasks.runs.rules import CheckMark
from nova_mcp.memory.tasks.runs.service import Begun, Looked
from nova_mcp.memory.tasks.runs.store import Event, Member, Run
from nova_mcp.memory.tasks.runs.views import UnitFilter, UnitRow
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Part, compact, maybe, tool
from nova_mcp.tools.tasks.content_params import AdHocContextParams, HexId, ProfileId
from nova_mcp.tools.tasks.run_params import EventId, OverridesParams, ScopeParams, TargetUrl, UnitSourceParams
from nova_mcp.tools.tasks.run_parts import (
    CoveragePart,
    EvidencePart,
    ProgressPart,
    TaskAwareness,
    coverage_part,
    evidence_part,
    progress_part,
    task_awareness,
)
from nova_mcp.tools.tasks.run_writes import RunResult, commit_on_runs, refusal, without_secrets
from nova_mcp.tools.tasks.step_patterns import check_patterns
from nova_mcp.tools.times import utc

CURSOR: Final = "u"
Cursor = Annotated[str, Field(pattern=r"^u[0-9]{1,6}$")]


# -- starting


class CreateParams(AgentParams):
    profile_id: ProfileId | None = Field(None, description="or adHocContext")
    ad_hoc_context: AdHocContextParams | None = Field(None, description="what a profile would say, for this run only")
    target_url: TargetUrl | None = Field(None, description="http(s) URL the work is about")
    client_event_id: EventId | None = Field(None, description="the same within 24 h gives the same run")
    current_scope: ScopeParams | None = None
    overrides: OverridesParams | None = None
    declared_task_kind: TaskKind | None = Field(None, description="tightens what counts as covered, never loosens it")
    unit_source: UnitSourceParams | None = None

    def wish(self) -> RunWish:
        overrides = self.overrides or OverridesParams()
        # Who asks and under which id says nothing about what is asked for.
        asked: dict[str, Json] = self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude={"agent_id", "client_event_id"}
        )
        return RunWish(
            profile_id=self.profile_id,
            content=None if self.ad_hoc_context is None else self.ad_hoc_context.content(),
            target_url=None if self.target_url is None else normalize_url(self.target_url),
            scope={} if self.current_scope is None else self.current_scope.scope(),
            overrides=overrides.overrides(),
            overrides_given=overrides.given(),
            declared_kind=self.declared_task_kind,
            source=None if self.unit_source is None else self.unit_source.source(),
            event_id=self.client_event_id,
            payload_hash=payload_hash("create", asked),
        )


def _check_create(p: CreateParams, catalogue: Catalogue) -> None:
    if p.profile_id is None and p.ad_hoc_context is None:
        raise InvalidParams(
            "context_required",
            "A run needs profileId or adHocContext.",
            "Find a profile with nova.task_match, or say in adHocContext what the task needs.",
        )
    if p.profile_id is not None and p.ad_hoc_context is not None:
        raise InvalidParams("conflicting_arguments", "profileId and adHocContext exclude each other.")
    if p.overrides is not None:
        p.overrides.check_allowed()
    if p.ad_hoc_context is not None:
        p.ad_hoc_context.check_content(catalogue)
    if p.unit_source is not None:
        p.unit_source.source()
    if p.current_scope is not None and (size := json_bytes(p.current_scope.scope())) > MOST_SCOPE_BYTES:
        raise InvalidParams(
            "invalid_params",
            f"currentScope must be at most {MOST_SCOPE_BYTES} bytes of JSON (received {size})",
            "Nothing ran. Send less.",
            details={"argument": "currentScope"},
        )


class TaskKindPart(Part):
    effective: TaskKind | None
    source: str


class EvidenceWindowPart(Part):
    agent_id: str
    since_at_ms: int


class SkippedPart(Part):
    url: str
    reason: str


class SeedingPart(Part):
    units_written: int
    skipped: list[SkippedPart]
    truncated: bool


class CreateResult(RunResult):
    instance_id: str
    profile_id: str | None
    profile_rev_applied: int | None
    instance_rev: int
    discovery_state: DiscoveryState
    effective_context: dict[str, JsonValue]
    effective_context_hash: str
    task_kind: TaskKindPart
    evidence_window: EvidenceWindowPart
    seeding: SeedingPart
    url_coverage: CoveragePart
    task_awareness: TaskAwareness
    duplicate: bool = maybe(default=False)

    def text(self) -> str:
        said = "the run of this event id, " if self.duplicate else ""
        lines = [f"run {self.instance_id} {said}revision {self.instance_rev}, {self.run_status}"]
        lines += [f"{self.seeding.units_written} units, discovery {self.discovery_state}"]
        lines += [f"left out {one.url}: {one.reason}" for one in self.seeding.skipped]
        if self.seeding.truncated:
            lines.append("there were more pages than are taken at once; register the rest as discoveredUnits")
        checks = self.effective_context.get("mandatoryChecks")
        ids = [str(one["checkId"]) for one in checks if isinstance(one, dict)] if isinstance(checks, list) else []
        lines += [f"checks: {', '.join(ids)}"] if ids else []
        lines += self.url_coverage.lines()
        lines.append(f"report with nova.task_instance_progress, expectedInstanceRev {self.instance_rev}")
        return "\n".join([*lines, *self.task_awareness.other_lines(self.instance_id)])


@tool(
    title="Start a run of a task",
    effect="write",
    bundles=("task_memory",),
    target="none",
    check=_check_create,
)
async def task_instance_create(ctx: ToolContext, p: CreateParams) -> CreateResult:
    """Starts one run of a task, from a profile or from adHocContext, and fixes what it is held to. Report progress as
    you work; what Nova saw decides whether it can be completed."""
    if p.ad_hoc_context is not None:
        await check_patterns(p.ad_hoc_context)
    kept = without_secrets(ctx, p)
    runs, wish = ctx.tasks.runs, kept.wish()
    begun = await commit_on_runs(ctx, lambda conn, at: runs.create(conn, at, wish))
    return refusal(begun, CreateResult) if isinstance(begun, Refused) else _created(begun)


def _created(begun: Begun) -> CreateResult:
    run = begun.created.run
    return CreateResult(
        run_status=run.state.status,
        instance_id=run.instance_id,
        profile_id=run.profile_id,
        profile_rev_applied=run.profile_rev_applied,
        instance_rev=run.state.rev,
        discovery_state=run.state.discovery,
        effective_context=json.loads(run.effective_context),
        effective_context_hash=run.effective_context_hash,
        task_kind=TaskKindPart(effective=run.task_kind, source=run.task_kind_source),
        evidence_window=EvidenceWindowPart(agent_id=run.created_by, since_at_ms=Member("", run.started_at_ms).since_ms),
        seeding=SeedingPart.model_validate(run.beginning["seeding"]),
        url_coverage=coverage_part(begun.proof.coverage),
        task_awareness=task_awareness(begun.aware),
        duplicate=begun.created.duplicate,
    )


# -- reading


class GetParams(AgentParams):
    instance_id: HexId
    unit_filter: UnitFilter = "discovered"
    unit_limit: int = Field(20, ge=0, le=200)
    unit_cursor: Cursor | None = Field(None, description="nextUnitCursor of the page before")
    event_limit: int = Field(0, ge=0, le=100)

    def wanted(self) -> Wanted:
        after = -1 if self.unit_cursor is None else int(self.unit_cursor.removeprefix(CURSOR))
        return Wanted(self.unit_filter, self.unit_limit, after, self.event_limit)


class UnitPart(Part):
    unit_key: str
    url: str | None
    label: str
    status: UnitStatus
    reason: str | None
    grade: GradeName
    covered: bool

    def line(self) -> str:
        seen = f" {self.grade}{' covered' if self.covered else ''}"
        why = f" ({one_line(self.reason, 80)})" if self.reason else ""
        return f"{self.status}{seen} {self.url or self.unit_key}{why}"


class MemberPart(Part):
    agent_id: str
    joined_at_utc: str


class CheckStatePart(Part):
    check_id: str
    description: str
    required: bool
    state: CheckState
    note: str | None


class EventPart(Part):
    instance_rev: int
    client_event_id: str
    kind: str
    agent_id: str
    at_utc: str
    delta: dict[str, JsonValue]


class GetResult(RunResult):
    instance_id: str
    profile_id: str | None
    profile_rev_applied: int | None
    instance_rev: int
    discovery_state: DiscoveryState
    target_url: str | None
    progress: ProgressPart
    mandatory_checks_state: list[CheckStatePart]
    completion_allowed: bool
    reason_code: str | None = None
    resume_state: dict[str, JsonValue]
    members: list[MemberPart]
    effective_context: dict[str, JsonValue]
    effective_context_hash: str
    units: list[UnitPart]
    next_unit_cursor: str | None
    events: list[EventPart]
    evidence_summary: EvidencePart
    url_coverage: CoveragePart
    task_awareness: TaskAwareness
    started_at_utc: str
    last_activity_at_utc: str
    completed_at_utc: str | None

    def text(self) -> str:
        done = "may be completed" if self.completion_allowed else f"not done: {self.reason_code}"
        if self.run_status not in OPEN:
            done = self.reason_code or "done"
        name = one_line(str(self.effective_context.get("displayName", "")), 80)
        head = f"run {self.instance_id} “{name}” revision {self.instance_rev}, {self.run_status}: {done}"
        lines = [head, f"{self.progress.line()}, discovery {self.discovery_state}", self.evidence_summary.line()]
        lines += self.url_coverage.lines()[: 2 if self.run_status in OPEN else 1]
        lines += [f"check {one.check_id} {one.state}" for one in self.mandatory_checks_state]
        lines += [f"resume: {compact(self.resume_state)}"] if self.resume_state else []
        lines += [one.line() for one in self.units]
        lines += [f"more units: unitCursor {self.next_unit_cursor}"] if self.next_unit_cursor else []
        lines += [f"event {one.instance_rev} {one.kind} by {one.agent_id} {one.at_utc}" for one in self.events]
        return "\n".join([*lines, *self.task_awareness.other_lines(self.instance_id)])


@tool(title="Read a run of a task", effect="read", bundles=("task_memory",), target="none")
async def task_instance_get(ctx: ToolContext, p: GetParams) -> GetResult:
    """How a run stands: claims, what was seen, what is missing, where to resume. Read it before you go on with a run
    that you did not just report to."""
    runs, wanted = ctx.tasks.runs, p.wanted()
    return _looked(await commit_on_runs(ctx, lambda conn, at: runs.look(conn, at, p.instance_id, wanted)))


def _looked(looked: Looked) -> GetResult:
    view = looked.view
    run = view.run
    ended = run.ended_at_ms if run.state.status == "completed" else None
    return GetResult(
        run_status=run.state.status,
        instance_id=run.instance_id,
        profile_id=run.profile_id,
        profile_rev_applied=run.profile_rev_applied,
        instance_rev=run.state.rev,
        discovery_state=run.state.discovery,
        target_url=run.target_url,
        progress=progress_part(view.proof.tally),
        mandatory_checks_state=_checks(run),
        completion_allowed=view.completion_allowed,
        reason_code=view.reason_code,
        resume_state=dict(run.state.resume),
        members=[MemberPart(agent_id=one.agent_id, joined_at_utc=utc(one.joined_at_ms)) for one in view.members],
        effective_context=json.loads(run.effective_context),
        effective_context_hash=run.effective_context_hash,
        units=[_unit(one) for one in view.units],
        next_unit_cursor=None if view.next_ordinal is None else f"{CURSOR}{view.next_ordinal}",
        events=[_event(one) for one in view.events],
        evidence_summary=evidence_part(view.proof.evidence),
        url_coverage=coverage_part(view.proof.coverage),
        task_awareness=task_awareness(looked.aware),
        started_at_utc=utc(run.started_at_ms),
        last_activity_at_utc=utc(run.last_activity_at_ms),
        completed_at_utc=None if ended is None else utc(ended),
    )


def _checks(run: Run) -> list[CheckStatePart]:
    marks = run.state.checks
    return [
        CheckStatePart(
            check_id=one.check_id,
            description=one.description,
            required=one.required,
            state=marks.get(one.check_id, CheckMark()).state,
            note=marks.get(one.check_id, CheckMark()).note,
        )
        for one in run.content.mandatory_checks
    ]


def _unit(one: UnitRow) -> UnitPart:
    return UnitPart(
        unit_key=one.unit_key,
        url=one.url,
        label=one.label,
        status=one.status,
        reason=one.reason,
        grade=one.grade.name,
        covered=one.covered,
    )


def _event(one: Event) -> EventPart:
    return EventPart(
        instance_rev=one.rev_after,
        client_event_id=one.client_event_id.strip(),
        kind=one.kind,
        agent_id=one.agent_id,
        at_utc=utc(one.at_ms),
        delta=json.loads(one.delta),
    )
