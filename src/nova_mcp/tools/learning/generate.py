"""Learning from what was seen: which patterns deserve a look, and candidates made of them."""

from typing import Final

from pydantic import Field

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.memory.knowledge.model import HintKind, PhenomenonType
from nova_mcp.memory.promotion.drafts.draft_store import Drafted
from nova_mcp.memory.promotion.drafts.generator import DraftPlan, write_drafts
from nova_mcp.memory.promotion.drafts.model import Proposal, ProposalKind
from nova_mcp.memory.promotion.model import Opportunity, OpportunityKind
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import SiteText
from nova_mcp.tools.knowledge.scope_argument import parsed_scope
from nova_mcp.tools.knowledge.write_context import commit_entries, open_place, still_there
from nova_mcp.tools.spec import AgentParams, Part, Result, tool

EVERYWHERE: Final = "*"
MOST: Final = 20
LOOK_MS: Final = 5_000
_SHOWN: Final = 60
_BUNDLES: Final = ("pks_learning",)


# -- suggest


class SuggestParams(AgentParams):
    scope: SiteText = Field(EVERYWHERE, description="host; * for every site")
    limit: int = Field(5, ge=1, le=MOST)


class OpportunityPart(Part):
    context_host: str
    candidate_key: str
    dominant_kind: OpportunityKind
    support_count: int
    success_count: int
    failure_count: int
    distinct_sessions: int
    score: float
    suggestion: str
    score_breakdown: dict[str, float]

    def line(self) -> str:
        counts = f"{self.support_count}× ({self.success_count} ok, {self.failure_count} failed"
        sessions = f"{self.distinct_sessions} session{'' if self.distinct_sessions == 1 else 's'})"
        name = one_line(self.candidate_key, _SHOWN)
        return (
            f"{self.score:.2f} {self.context_host} {name} {self.dominant_kind} {counts}, {sessions}: {self.suggestion}"
        )


class SuggestResult(Result):
    scope: str
    count: int
    opportunities: list[OpportunityPart]

    def text(self) -> str:
        if not self.opportunities:
            return f"nothing recurs on {_place(self.scope)} that is worth learning; work on"
        todo = "review these; make candidates of what is how a site works with nova.learn_generate"
        return "\n".join([*(one.line() for one in self.opportunities), todo])


def _place(scope: str) -> str:
    return "any site" if scope == EVERYWHERE else scope


@tool(title="What is worth learning", effect="read", bundles=_BUNDLES, target="none")
async def learn_suggest(ctx: ToolContext, p: SuggestParams) -> SuggestResult:
    """Ranks patterns of recorded work that deserve a look, with the counts behind each score, and stored entries that
    drift. Evidence to review, never permission to act."""
    scope = None if p.scope.strip() == EVERYWHERE else parsed_scope(p.scope)
    found = await ctx.learning.generator.suggest(scope, p.limit)
    rows = [_opportunity(one) for one in found]
    return SuggestResult(scope=scope or EVERYWHERE, count=len(rows), opportunities=rows)


def _opportunity(one: Opportunity) -> OpportunityPart:
    return OpportunityPart(
        context_host=one.host,
        candidate_key=one.candidate_key,
        dominant_kind=one.dominant_kind,
        support_count=one.support,
        success_count=one.successes,
        failure_count=one.failures,
        distinct_sessions=one.distinct_sessions,
        score=one.score,
        suggestion=one.suggestion,
        score_breakdown=dict(one.breakdown),
    )


# -- generate


class GenerateParams(AgentParams):
    scope: SiteText = Field(description="host that is open in one of your tabs")
    limit: int = Field(5, ge=1, le=MOST)


class ProposalPart(Part):
    kind: ProposalKind
    context_host: str
    candidate_key: str
    confidence: float
    reason: str
    phenomenon_type: PhenomenonType | None
    # The entry that was written or patched; none where writing was refused.
    target_stable_id: str | None
    hint_kind: HintKind | None

    def line(self) -> str:
        what = self.phenomenon_type or self.hint_kind
        return f"{self.kind} {what} {self.target_stable_id or 'not written'} {self.confidence:.2f}: {self.reason}"


class SkippedPart(Part):
    candidate_key: str
    reason_code: str


class GenerateResult(Result):
    scope: str
    generated: int
    proposed: int
    proposals: list[ProposalPart]
    skipped: list[SkippedPart]

    def text(self) -> str:
        reasons = sorted({one.reason_code for one in self.skipped})
        left = [f"skipped {len(self.skipped)}: {', '.join(reasons)}"] if reasons else []
        if not self.proposals:
            return "\n".join([f"nothing to generate for {self.scope}; keep working", *left])
        head = f"{self.generated} of {self.proposed} written for {self.scope}, for review, not for use"
        todo = "see what each still needs with nova.explain, then nova.learn_promote"
        return "\n".join([head, *(one.line() for one in self.proposals), *left, *([todo] if self.generated else [])])


@tool(
    title="Make candidates of patterns",
    effect="write",
    bundles=_BUNDLES,
    target="none",
    deadline_ms=lambda p: 15_000 + p.limit * LOOK_MS,
)
async def learn_generate(ctx: ToolContext, p: GenerateParams) -> GenerateResult:
    """Turns what recurs on a site that you have open into candidates at the lowest level, hints, or patches of stored
    entries, with reasons for what is left out. Candidates guide nobody before they pass their gates."""
    scope, tab = open_place(ctx, p.scope)
    generator = ctx.learning.generator
    plan = await generator.plan(scope, ctx.caller.principal, p.limit)
    platforms = await ctx.learning.knowledge.platforms()
    async with tab.lock.shared():
        looks = await generator.look(tab, plan, platforms, ctx.secrets.redactor.text)
    still_there(tab, scope)
    return _generated(plan, await commit_entries(ctx, lambda conn: write_drafts(conn, plan, looks)))


def _generated(plan: DraftPlan, done: Drafted) -> GenerateResult:
    written = {one.candidate_key for one in done.written}
    return GenerateResult(
        scope=plan.scope,
        generated=len(written),
        proposed=len(plan.proposals),
        proposals=[_proposal(one, written=one.candidate_key in written) for one in plan.proposals],
        skipped=[
            SkippedPart(candidate_key=one.candidate_key, reason_code=one.reason)
            for one in (*plan.skipped, *done.skipped)
        ],
    )


def _proposal(one: Proposal, *, written: bool) -> ProposalPart:
    return ProposalPart(
        kind=one.kind,
        context_host=one.host,
        candidate_key=one.candidate_key,
        confidence=one.confidence,
        reason=one.reason,
        phenomenon_type=one.phenomenon_type,
        target_stable_id=one.target_stable_id if written else None,
        hint_kind=one.hint_kind,
    )
