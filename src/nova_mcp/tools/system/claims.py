"""Claims: take a tab or sandbox as a work context of one's own, and let it go with a decision about its learning."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, cast

from pydantic import Field, JsonValue

from nova_mcp.core.leases import Place
from nova_mcp.core.redaction import hide_claim_tokens
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.claims.book import Claimed, NothingHeld, Released
from nova_mcp.memory.claims.rules import DEFAULT_TTL_MS, MAX_TTL_MS, MIN_TTL_MS, AgentRole, Authorization, Wish
from nova_mcp.memory.journal.model import (
    Coverage,
    DecisionKind,
    DecisionSource,
    FinalizeOrder,
    FinalizeStats,
    JobState,
    JobType,
    OutboxJob,
    StatName,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.learning.release_entry import checked_payload
from nova_mcp.tools.spec import RARE, Part, Result, TargetParams, maybe, tool
from nova_mcp.tools.system.release_params import TabReleaseParams, check_release
from nova_mcp.tools.times import utc

BUNDLES = ("core", "browser_automation")
NOT_BLANK = r"^[^\x00]*[^\s\x00][^\x00]*$"

ReleaseState = Literal["released", "no_active_claim", "expired", "blocked"]


# -- tab_claim


class TabClaimParams(TargetParams):
    agent_role: AgentRole = Field("actor", json_schema_extra=RARE)
    ttl_ms: int = Field(DEFAULT_TTL_MS, ge=MIN_TTL_MS, le=MAX_TTL_MS)
    debug_label: str | None = Field(None, max_length=80, pattern=PRINTABLE, json_schema_extra=RARE)
    reclaim_reason: str | None = Field(
        None, min_length=1, max_length=280, pattern=NOT_BLANK, description="takes over what another agent holds"
    )


class ClaimPart(Part):
    """A claim as its owner sees it."""

    target_id: str
    claimed: bool = True
    claim_state: Literal["active"] = "active"
    task_id: str
    owner_agent_id: str
    agent_role: AgentRole
    debug_label: str | None
    renewed: bool
    reclaimed: bool
    previous_owner_agent_id: str | None = maybe()
    finalization_token: str
    ttl_ms: int
    lease_ms: int
    lease_remaining_ms: int
    claimed_at_utc: str
    expires_at_utc: str

    def line(self) -> str:
        verb = "renewed" if self.renewed else "claimed"
        taken = f" from {self.previous_owner_agent_id}" if self.previous_owner_agent_id else ""
        head = f"{verb} {self.target_id}{taken} as {self.task_id} until {self.expires_at_utc}"
        return f"{head} · finalizationToken {self.finalization_token}"


class TabClaimResult(Result, ClaimPart):
    def text(self) -> str:
        return self.line()


@tool(
    title="Claim a tab",
    effect="write",
    bundles=BUNDLES,
    target="place",
    lock="none",
    repeat_safe=True,
)
async def tab_claim(ctx: ToolContext, p: TabClaimParams) -> TabClaimResult:
    """Makes a tab, or a sandbox with its tabs, yours to work in: others may look, not change. Claim again to renew; the
    token overrides the learning decision at release."""
    place, tabs = await ctx.browser.targets.place(ctx.caller, p.target_id, ctx.evidence.tab)
    told = await ctx.claims.claim(_wish(ctx, p, place), tabs)
    await _require_standing(ctx, place)
    ctx.evidence.task_id = told.claim.task_id
    return TabClaimResult.model_validate(dict(claim_part(told)))


async def _require_standing(ctx: ToolContext, place: Place) -> None:
    """What was claimed may have gone while the claim was written down; nobody holds what is not there."""
    targets = ctx.browser.targets
    if place.whole_sandbox:
        if targets.sandboxes.get(ctx.caller.principal, place.sandbox_id) is None:
            ctx.claims.gone(place.sandbox_id, "sandbox_deleted")
            await targets.require_sandbox(ctx.caller, place.sandbox_id)
    elif targets.find(ctx.caller, place.target_id) is None:
        ctx.claims.gone(place.target_id, "tab_closed")
        raise await targets.unknown_tab(ctx.caller, place.target_id)


def _wish(ctx: ToolContext, p: TabClaimParams, place: Place) -> Wish:
    return Wish(
        place=place,
        owner=ctx.caller.owner,
        ttl_ms=p.ttl_ms if "ttl_ms" in p.model_fields_set else None,
        agent_role=p.agent_role,
        debug_label=kept_text(ctx, p.debug_label),
        reclaim_reason=kept_text(ctx, p.reclaim_reason),
    )


def claim_part(told: Claimed) -> ClaimPart:
    claim = told.claim
    return ClaimPart(
        target_id=claim.target_id,
        task_id=claim.task_id,
        owner_agent_id=claim.owner[1],
        agent_role=claim.agent_role,
        debug_label=claim.debug_label,
        renewed=told.renewed,
        reclaimed=told.previous_owner_agent_id is not None,
        previous_owner_agent_id=told.previous_owner_agent_id,
        finalization_token=told.token,
        ttl_ms=claim.ttl_ms,
        lease_ms=claim.ttl_ms,
        lease_remaining_ms=claim.expires_at_ms - told.now_ms,
        claimed_at_utc=utc(claim.acquired_at_ms),
        expires_at_utc=utc(claim.expires_at_ms),
    )


def kept_text(ctx: ToolContext, text: str | None) -> str | None:
    """An agent's words as they may be stored: no secret, no token, no half character."""
    if text is None:
        return None
    return hide_claim_tokens(ctx.secrets.redactor.text(text.encode("utf-8", "replace").decode("utf-8")))


def kept_json(ctx: ToolContext, sent: Mapping[str, Json]) -> dict[str, Json]:
    """The same for a whole object; a token is plain letters and digits, so replacing one leaves JSON whole."""
    clean = json.dumps(ctx.secrets.redactor.json(dict(sent)))
    return cast(dict[str, Json], json.loads(hide_claim_tokens(clean)))


# -- tab_release


class FinalizeStatsPart(Part):
    candidates_total: int
    candidates_verified: int
    candidates_promotable: int
    curated_upserts: int
    evidence_min_score: float | None
    evidence_avg_score: float | None


class EvidenceStrengthPart(Part):
    weak: int
    medium: int
    strong: int

    def line(self) -> str:
        return f"evidence {self.weak} weak, {self.medium} medium, {self.strong} strong"


class OutboxPart(Part):
    job_id: str
    job_type: JobType
    state: JobState


class LearnModePart(Part):
    required: dict[str, int]
    current: dict[str, int]
    floors_met: bool


class TabReleaseResult(Result):
    target_id: str
    task_id: str | None = None
    release_state: ReleaseState
    release_authorization: Authorization = "none"
    had_active_claim: bool = False
    released: bool = False
    finalized: bool = False
    finalize_decision: DecisionKind | None = None
    decision_source: DecisionSource | None = None
    finalize_reason_code: str | None = None
    finalize_stats: FinalizeStatsPart | None = None
    evidence_strength: EvidenceStrengthPart | None = maybe()
    claimed_stats: dict[StatName, int | float] = maybe({})
    stats_mismatch: list[StatName] = maybe([])
    outbox: OutboxPart | None = maybe()
    learn_mode: LearnModePart | None = maybe()
    last_seen: dict[str, JsonValue] | None = maybe()

    def text(self) -> str:
        decided = f" · {self.finalize_decision}" if self.finalize_decision else ""
        decided += f" ({self.finalize_reason_code})" if decided and self.finalize_reason_code else ""
        if self.released:
            job = f" · {self.outbox.job_type} {self.outbox.state}" if self.outbox else ""
            wrong = f" · counted otherwise: {', '.join(self.stats_mismatch)}" if self.stats_mismatch else ""
            evidence = f" · {self.evidence_strength.line()}" if self.evidence_strength else ""
            return f"released {self.target_id}{decided}{evidence}{job}{wrong}"
        if self.release_state == "expired":
            return f"your claim on {self.target_id} had run out{decided}"
        return f"you hold no claim on {self.target_id}"


@tool(
    title="Release a claim",
    effect="write",
    bundles=BUNDLES,
    target="place",
    lock="none",
    private_arguments=("finalizationToken",),
    check=check_release,
)
async def tab_release(ctx: ToolContext, p: TabReleaseParams) -> TabReleaseResult:
    """Ends your claim; the evidence gathered under it decides what is learned, unless finalizeDecision does."""
    place, tabs = await ctx.browser.targets.place(ctx.caller, p.target_id, ctx.evidence.tab)
    _check_named_claim(ctx, p, place)
    order = await _order(ctx, p, place)
    match await ctx.claims.release(ctx.caller.owner, place, order, p.finalization_token, tabs):
        case Released() as released:
            ctx.evidence.task_id = released.claim.task_id
            return _released(released, order)
        case NothingHeld() as nothing:
            return _nothing_held(place, nothing)


def _check_named_claim(ctx: ToolContext, p: TabReleaseParams, place: Place) -> None:
    """A promotion names the claim it is about; another one's candidates are none of this release's business."""
    payload, claim = p.finalize_outbox_payload or {}, ctx.claims.over(place)
    if claim is None or claim.owner != ctx.caller.owner or "taskId" not in payload:
        return
    if (payload["taskId"], payload["targetId"]) != (claim.task_id, claim.target_id):
        raise InvalidParams(
            "invalid_params",
            f"finalizeOutboxPayload must name this claim: taskId {claim.task_id}, targetId {claim.target_id}",
            "Nothing was released. Correct the arguments and call again.",
            details={"argument": "finalizeOutboxPayload"},
        )


async def _order(ctx: ToolContext, p: TabReleaseParams, place: Place) -> FinalizeOrder:
    payload, claim = p.finalize_outbox_payload, ctx.claims.over(place)
    held = claim is not None and claim.owner == ctx.caller.owner
    if payload is not None and p.finalize_outbox_job_type == "pks.domain.save" and held:
        payload = await checked_payload(ctx, payload)
    payload = None if payload is None else kept_json(ctx, payload)
    return FinalizeOrder(
        decision=p.finalize_decision,
        reason_code=kept_text(ctx, p.finalize_reason_code),
        reason_text=kept_text(ctx, p.finalize_reason_text),
        job_type=p.finalize_outbox_job_type,
        payload=payload,
        claimed=p.finalize_stats.claimed(),
        coverage_exhausted=p.coverage_exhausted,
        coverage_reason=kept_text(ctx, p.coverage_exhausted_reason),
    )


def _released(released: Released, order: FinalizeOrder) -> TabReleaseResult:
    claim, conclusion = released.claim, released.conclusion
    return TabReleaseResult(
        target_id=claim.target_id,
        task_id=claim.task_id,
        release_state="released",
        release_authorization=released.authorization,
        had_active_claim=True,
        released=True,
        finalized=True,
        finalize_decision=conclusion.decision.kind,
        decision_source=conclusion.decision.source,
        finalize_reason_code=conclusion.decision.reason_code,
        finalize_stats=_stats(conclusion.stats),
        evidence_strength=_strength(conclusion.stats),
        claimed_stats=dict(order.claimed),
        stats_mismatch=list(conclusion.mismatches),
        outbox=_outbox(conclusion.job),
        learn_mode=_learn_mode(released.coverage),
    )


def _stats(stats: FinalizeStats) -> FinalizeStatsPart:
    return FinalizeStatsPart.model_validate(stats.named())


def _strength(stats: FinalizeStats) -> EvidenceStrengthPart | None:
    return EvidenceStrengthPart(**asdict(stats.strength)) if stats.candidates_total else None


def _outbox(job: OutboxJob | None) -> OutboxPart | None:
    return None if job is None else OutboxPart(job_id=job.job_id, job_type=job.job_type, state=job.state)


def _learn_mode(coverage: Coverage | None) -> LearnModePart | None:
    if coverage is None:
        return None
    return LearnModePart(
        required=dict(coverage.required), current=dict(coverage.current), floors_met=coverage.floors_met
    )


def _nothing_held(place: Place, nothing: NothingHeld) -> TabReleaseResult:
    """A claim that ran out is told with what its end decided; one that a restart ended, with where it was last seen."""
    ended = nothing.ended
    if ended is not None and ended.end_reason == "expired":
        return TabReleaseResult(
            target_id=ended.target_id,
            task_id=ended.task_id,
            release_state="expired",
            finalize_decision=ended.finalize_decision,
            decision_source="auto",
            finalize_reason_code="context_expired",
        )
    restarted = ended is not None and ended.end_reason == "server_restart"
    return TabReleaseResult(
        target_id=place.target_id,
        release_state="no_active_claim",
        last_seen={"claim": ended.describe()} if ended is not None and restarted else None,
    )
