"""What becomes of a work context's learning when it is released; pure."""

from collections import Counter
from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.memory.journal.candidates import strength
from nova_mcp.memory.journal.model import (
    CandidateEvidence,
    ClaimedStats,
    Conclusion,
    Coverage,
    Decision,
    EvidenceStrength,
    FinalizeOrder,
    FinalizeStats,
    FinalizeSummary,
    JobType,
    OutboxJob,
    SkipReason,
    StatName,
    WorkContext,
)

PROMOTABLE_SCORE: Final = 1.45
# Callers may round the scores they report.
SCORE_TOLERANCE: Final = 0.005
NOTHING_LEARNED: Final = FinalizeSummary()


def promotable(candidate: CandidateEvidence) -> bool:
    return (
        candidate.status == "verified"
        and candidate.origin == "semantic"
        and candidate.evidence_score >= PROMOTABLE_SCORE
        and not candidate.failed_since_verified
    )


def promotable_ids(summary: FinalizeSummary) -> list[int]:
    return sorted(candidate.candidate_id for candidate in summary.candidates if promotable(candidate))


def skip_reason(summary: FinalizeSummary) -> SkipReason | None:
    """Why nothing can be committed; None when something can."""
    if not summary.candidates:
        return "no_candidates"
    if not any(candidate.status == "verified" for candidate in summary.candidates):
        return "no_verified_candidates"
    return None if promotable_ids(summary) else "evidence_below_threshold"


def auto_plan(summary: FinalizeSummary, *, floors_met: bool = True) -> Decision:
    """Nova's own decision: commit what is proven well enough, otherwise say what was missing."""
    reason = skip_reason(summary) if floors_met else "learn_floors_unmet"
    return Decision("commit", "auto") if reason is None else Decision("skip", "auto", reason)


def abandoned() -> Decision:
    """A context that ended without a release changes no candidate."""
    return Decision("skip", "auto", "context_expired")


def decide(summary: FinalizeSummary, order: FinalizeOrder, *, floors_met: bool = True) -> Decision:
    if order.decision is None:
        return auto_plan(summary, floors_met=floors_met)
    return Decision(order.decision, "caller", order.reason_code)


def figures(summary: FinalizeSummary, decision: Decision) -> FinalizeStats:
    """Counted from what is stored; a commit writes promotable candidates and no others, whoever decided it."""
    scores = [candidate.evidence_score for candidate in summary.candidates]
    ready = len(promotable_ids(summary))
    found = Counter(map(strength, scores))
    return FinalizeStats(
        candidates_total=len(scores),
        candidates_verified=sum(candidate.status == "verified" for candidate in summary.candidates),
        candidates_promotable=ready,
        curated_upserts=ready if decision.kind == "commit" else 0,
        evidence_min_score=round(min(scores), 4) if scores else None,
        evidence_avg_score=round(sum(scores) / len(scores), 4) if scores else None,
        strength=EvidenceStrength(found["weak"], found["medium"], found["strong"]),
    )


def mismatches(claimed: ClaimedStats, computed: FinalizeStats) -> tuple[StatName, ...]:
    """The figures a caller reported that are not the ones counted."""
    counted = computed.named()
    return tuple(name for name, found in counted.items() if name in claimed and not _same(claimed[name], found))


def _same(claimed: int | float, found: int | float | None) -> bool:
    return found is not None and abs(claimed - found) <= (SCORE_TOLERANCE if isinstance(found, float) else 0)


def follow_up(
    context: WorkContext, order: FinalizeOrder, decision: Decision, summary: FinalizeSummary, job_id: str
) -> OutboxJob | None:
    """The one job of a commit: what the caller ordered, else the promotion of what is ready."""
    if decision.kind == "skip":
        return None
    ready = promotable_ids(summary)
    default: JobType = "finalize.memory.promote" if ready else "finalize.noop"
    job_type = order.job_type or default
    payload: dict[str, Json] = dict(order.payload or {})
    if job_type == "finalize.memory.promote":
        # A caller may name some of what is ready; naming what is not ready makes it no readier.
        named = payload.get("candidateIds")
        ids: list[Json] = [one for one in ready if not isinstance(named, list) or one in named]
        payload = {"taskId": context.task_id, "targetId": context.target_id, "candidateIds": ids}
    return OutboxJob(job_id, f"finalize:{context.task_id}", job_type, payload)


def conclude(
    context: WorkContext, order: FinalizeOrder, summary: FinalizeSummary, job_id: str, *, floors_met: bool = True
) -> Conclusion:
    """The whole outcome of a release, from what was learned and what was asked for."""
    decision = decide(summary, order, floors_met=floors_met)
    stats = figures(summary, decision)
    return Conclusion(
        decision, stats, mismatches(order.claimed, stats), follow_up(context, order, decision, summary, job_id)
    )


def judge_coverage(coverage: Coverage | None, order: FinalizeOrder) -> Literal["free", "reason_required", "not_met"]:
    """Whether Learn Mode lets a context go; giving up before its floors are met needs a reason."""
    if coverage is None or coverage.floors_met:
        return "free"
    if not order.coverage_exhausted:
        return "not_met"
    return "free" if order.coverage_reason else "reason_required"
