"""What is said about a task again and again: logging it, looking at it, and taking it into the task's profile."""

from typing import Annotated, Final, Self

from pydantic import Field, JsonValue, model_validator

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.tasks.guidance.rules import (
    Decision,
    GuidanceKind,
    GuidanceLog,
    GuidanceStatus,
    Override,
    Said,
    SourceKind,
)
from nova_mcp.memory.tasks.guidance.service import Candidates, LearningStats, Saying, Verdict
from nova_mcp.memory.tasks.guidance.store import Asked
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Params, Part, Result, maybe, tool
from nova_mcp.tools.tasks.content_params import (
    HexId,
    NoZero,
    ProfileId,
    Reason500,
    Text64,
    Text500,
    check_size,
    text_of,
)
from nova_mcp.tools.tasks.run_writes import without_secrets
from nova_mcp.tools.times import utc

_LISTED: Final = 10


class PayloadParams(Params):
    text: Reason500
    applies_to: Text500 | None = None
    rationale: Text500 | None = None
    url: Annotated[str, text_of(1, 2048), NoZero] | None = None
    tags: list[Text64] | None = Field(None, max_length=_LISTED)
    evidence_refs: list[Text500] | None = Field(None, max_length=_LISTED)

    def kept(self) -> dict[str, Json]:
        kept: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return kept


class LogAddParams(AgentParams):
    guidance_kind: GuidanceKind
    source_kind: SourceKind = Field(description="who says it, by your account")
    payload: PayloadParams
    profile_id: ProfileId | None = None
    instance_id: HexId | None = None


class LogAddResult(Result):
    guidance_log_id: str
    normalized_hash: str
    occurrence_count: int
    stands: GuidanceStatus = Field(serialization_alias="status")
    created: bool

    def text(self) -> str:
        said = "new" if self.created else "known"
        return f"{said} guidance {self.guidance_log_id}: {self.stands}, said {self.occurrence_count} times"


def _check_context(p: LogAddParams, _: Catalogue) -> None:
    if p.profile_id is None and p.instance_id is None:
        raise InvalidParams(
            "context_required",
            "guidance belongs to a profile or a run: give profileId, instanceId or both",
            "What is true of one website rather than of a task belongs in nova.pks_upsert.",
            details={"argument": "profileId"},
        )


@tool(
    title="Log guidance for a task",
    effect="write",
    bundles=("task_memory",),
    target="none",
    repeat_safe=True,
    check=_check_context,
)
async def task_guidance_log_add(ctx: ToolContext, p: LogAddParams) -> LogAddResult:
    """Notes a rule for doing a task: style, wording, scope, workflow. Said in three runs it is proposed for the task's
    profile; what a single website does belongs in nova.pks_upsert."""
    p = without_secrets(ctx, p)
    payload = p.payload
    said = Said(p.profile_id, p.guidance_kind, payload.text, payload.applies_to, payload.url)
    saying = Saying(said, p.source_kind, payload.kept(), p.instance_id, p.agent_id)
    guidance, principal = ctx.tasks.guidance, ctx.caller.principal
    logged = await ctx.commit(lambda conn, _: guidance.log(conn, principal, saying))
    return LogAddResult(
        guidance_log_id=logged.log.log_id,
        normalized_hash=logged.hash,
        occurrence_count=logged.log.occurrence_count,
        stands=logged.log.status,
        created=logged.created,
    )


# -- looking at it


class LogsParams(AgentParams):
    profile_id: ProfileId | None = None
    instance_id: HexId | None = None
    guidance_kind: GuidanceKind | None = None
    status: GuidanceStatus | None = None
    limit: int = Field(50, ge=1, le=200)


class LogPart(Part):
    guidance_log_id: str
    profile_id: str | None
    guidance_kind: GuidanceKind
    payload: dict[str, JsonValue]
    source_kind: SourceKind
    status: GuidanceStatus
    occurrence_count: int
    promoted_to_content_rev: int | None
    created_at_utc: str
    updated_at_utc: str

    def line(self) -> str:
        head = f"{self.guidance_log_id} {self.guidance_kind} {self.status} ×{self.occurrence_count}"
        return f"{head} ({self.source_kind}): {self.payload['text']}"


class OverridePart(Part):
    path: str
    value: JsonValue
    occurrence_count: int


class StatsPart(Part):
    runs: int
    completed: int
    failed: int
    aborted: int
    completion_percent: int
    top_overrides: list[OverridePart]


class LogsResult(Result):
    logs: list[LogPart]
    count: int
    profile_learning_stats: StatsPart | None

    def text(self) -> str:
        stats = self.profile_learning_stats
        told = [] if stats is None else [f"{stats.runs} runs, {stats.completion_percent} % of the ended ones completed"]
        return "\n".join([f"{self.count} pieces of guidance", *(one.line() for one in self.logs), *told])


@tool(title="Read logged guidance", effect="read", bundles=("task_memory",), target="none")
async def task_guidance_logs(ctx: ToolContext, p: LogsParams) -> LogsResult:
    """What was said about tasks, last refreshed first; for a profile also how its runs went."""
    asked = Asked(p.profile_id, p.instance_id, p.guidance_kind, p.status, p.limit)
    logs, stats = await ctx.tasks.guidance.logs(ctx.caller.principal, asked)
    return LogsResult(
        logs=[_shown(one) for one in logs],
        count=len(logs),
        profile_learning_stats=None if stats is None else _shown_stats(stats),
    )


def _shown(one: GuidanceLog) -> LogPart:
    return LogPart(
        guidance_log_id=one.log_id,
        profile_id=one.profile_id,
        guidance_kind=one.kind,
        payload=dict(one.payload),
        source_kind=one.source_kind,
        status=one.status,
        occurrence_count=one.occurrence_count,
        promoted_to_content_rev=one.promoted_to_content_rev,
        created_at_utc=utc(one.created_at_ms),
        updated_at_utc=utc(one.updated_at_ms),
    )


def _shown_override(one: Override) -> OverridePart:
    return OverridePart(path=one.path, value=one.value, occurrence_count=one.occurrences)


def _shown_stats(stats: LearningStats) -> StatsPart:
    return StatsPart(
        runs=stats.runs,
        completed=stats.completed,
        failed=stats.failed,
        aborted=stats.aborted,
        completion_percent=stats.completion_percent,
        top_overrides=[_shown_override(one) for one in stats.top_overrides],
    )


class CandidatesParams(AgentParams):
    profile_id: ProfileId
    threshold: int = Field(3, ge=1, le=100)


class CandidatesResult(Result):
    guidance_candidates: list[LogPart]
    guidance_candidate_count: int
    override_candidates: list[OverridePart]
    override_candidate_count: int
    threshold: int

    def text(self) -> str:
        head = f"{self.guidance_candidate_count} pieces of guidance, {self.override_candidate_count} overrides"
        lines = [one.line() for one in self.guidance_candidates]
        lines += [f"{one.path} = {one.value!r} ×{one.occurrence_count}" for one in self.override_candidates]
        return "\n".join([f"{head} seen at least {self.threshold} times", *lines])


@tool(title="See what a profile could learn", effect="read", bundles=("task_memory",), target="none")
async def task_promotion_candidates(ctx: ToolContext, p: CandidatesParams) -> CandidatesResult:
    """Guidance and overrides that came up again and again: the first for nova.task_promote_guidance, the second for
    nova.task_profile_upsert."""
    found: Candidates = await ctx.tasks.guidance.candidates(ctx.caller.principal, p.profile_id, p.threshold)
    return CandidatesResult(
        guidance_candidates=[_shown(one) for one in found.guidance],
        guidance_candidate_count=len(found.guidance),
        override_candidates=[_shown_override(one) for one in found.overrides],
        override_candidate_count=len(found.overrides),
        threshold=p.threshold,
    )


# -- deciding


class PromoteParams(AgentParams):
    guidance_log_id: HexId
    profile_id: ProfileId
    decision: Decision = "promote"
    reason: Reason500 | None = Field(None, description="required to reject")

    @model_validator(mode="after")
    def _reasoned(self) -> Self:
        if self.decision == "reject" and self.reason is None:
            raise ValueError("reason is required to reject")
        return self


class PromoteResult(Result):
    guidance_log_id: str
    stands: GuidanceStatus | None = Field(None, serialization_alias="status", exclude_if=lambda one: one is None)
    promoted_to_content_rev: int | None = None
    applied: bool = Field(default=True, exclude_if=bool)
    occurrence_count: int | None = Field(None, exclude_if=lambda one: one is None)
    required: int | None = maybe()

    def text(self) -> str:
        if self.ok:
            rev = f", contentRev {self.promoted_to_content_rev}" if self.promoted_to_content_rev is not None else ""
            return f"{self.guidance_log_id} {self.stands}{rev}"
        seen = "" if self.required is None else f", said {self.occurrence_count} of {self.required} times"
        return f"{self.guidance_log_id} not applied: {self.reason_code}{seen}"


@tool(title="Take guidance into a profile", effect="write", bundles=("task_memory",), target="none")
async def task_promote_guidance(ctx: ToolContext, p: PromoteParams) -> PromoteResult:
    """Makes logged guidance part of a profile once it was said in three runs, or turns it down for good. Open runs keep
    what they began with."""
    p = without_secrets(ctx, p)
    verdict = Verdict(p.guidance_log_id, p.profile_id, p.decision, p.reason, check_size)
    guidance, principal = ctx.tasks.guidance, ctx.caller.principal
    return _decided(p, await ctx.commit(lambda conn, _: guidance.decide(conn, principal, verdict)))


def _decided(p: PromoteParams, outcome: GuidanceLog | Refused) -> PromoteResult:
    match outcome:
        case Refused(reason_code, details):
            return PromoteResult.model_validate(
                {
                    **details,
                    "ok": False,
                    "reasonCode": reason_code,
                    "applied": False,
                    "guidanceLogId": p.guidance_log_id,
                }
            )
        case GuidanceLog():
            return PromoteResult(
                guidance_log_id=outcome.log_id,
                stands=outcome.status,
                promoted_to_content_rev=outcome.promoted_to_content_rev,
            )
