"""Levels of knowledge: having gates looked at, and reading what was decided."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pydantic import Field, field_validator

from nova_mcp.memory.knowledge.model import Level, ScopeName
from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.model import EventKind, EvidenceCounts, Gate, LearningEvent, TransitionKind
from nova_mcp.memory.promotion.promoter import Decision, Skip, Wish
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import EntryId, ScopeText, SiteText
from nova_mcp.tools.knowledge.scope_argument import nothing_known, parsed_scope, require_open
from nova_mcp.tools.spec import AgentParams, Part, Result, tool
from nova_mcp.tools.times import utc

EVERY: Final = "all"
MAX_IDS: Final = 200
LATEST_MS: Final = 2**53
SHOWN: Final = 12


# -- deciding


class PromoteParams(AgentParams):
    scope: ScopeText
    stable_ids: list[EntryId] | None = Field(
        None, min_length=1, max_length=MAX_IDS, description='["all"] or none: the whole scope'
    )
    transition: TransitionKind | None = Field(None, description="none: whichever is due")
    dry_run: bool = Field(default=False, description="decide without writing")

    @field_validator("stable_ids")
    @classmethod
    def _all_alone(cls, given: list[str] | None) -> list[str] | None:
        if given is not None and EVERY in given and len(given) > 1:
            raise ValueError(f'"{EVERY}" stands alone; name entries or ask for every one')
        return given

    def wanted(self) -> tuple[str, ...] | None:
        if self.stable_ids is None or self.stable_ids == [EVERY]:
            return None
        return tuple(dict.fromkeys(self.stable_ids))


class DecisionPart(Part):
    stable_id: str
    approved: bool
    applied: bool
    skipped_because: Skip | None
    write_error: str | None
    reason_kind: TransitionKind | None
    from_level: Level
    to_level: Level
    rejection_reason: str | None

    def line(self) -> str:
        moves = f"{self.stable_id}: {self.reason_kind or 'unknown'} L{self.from_level}→L{self.to_level}"
        if not self.approved:
            return f"{self.stable_id}: not {self.reason_kind or 'known'}, {self.rejection_reason}"
        return f"{moves} {self.skipped_because or 'applied'}{f': {self.write_error}' if self.write_error else ''}"


class PromoteResult(Result):
    scope: str
    dry_run: bool
    approved: int
    rejected: int
    applied: int
    write_failed: int
    total: int
    decisions: list[DecisionPart]

    def text(self) -> str:
        counts = f"{self.approved} approved, {self.rejected} rejected, {self.applied} applied"
        failed = f", {self.write_failed} not written" if self.write_failed else ""
        first = sorted(self.decisions, key=lambda one: not one.approved)[:SHOWN]
        lines = [
            f"{self.scope}: {counts}{failed}{' (dry run)' if self.dry_run else ''}",
            *(one.line() for one in first),
        ]
        if rest := len(self.decisions) - len(first):
            lines.append(f"… {rest} more in decisions")
        return "\n".join([*lines, self._next()])

    def _next(self) -> str:
        if self.write_failed:
            return "Next: call again for those that were not written; the others are done."
        if self.dry_run and self.approved:
            return "Next: the same call without dryRun applies it, with a page of the site open."
        if any(one.applied and one.to_level == 2 for one in self.decisions):
            return "Next: active entries guide; confirm on the page before acting on one."
        if not self.total:
            return f"{nothing_known(ScopeName(self.scope))} Next: nova.learn_suggest shows what recurs."
        if self.rejected and not self.applied:
            return "Next: nova.explain tells what an entry is missing. Nothing changes by asking again."
        return "Next: entries below level 2 are for review and guide nobody."


@tool(title="Have levels decided", effect="write", bundles=("pks_learning",), target="none")
async def learn_promote(ctx: ToolContext, p: PromoteParams) -> PromoteResult:
    """Looks at the gates of a site's entries and applies what passes: up, down, retired or revived, one step per entry.
    Writing needs the site open; dryRun only tells."""
    scope = parsed_scope(p.scope)
    wish = Wish(scope, p.wanted(), p.transition)
    ctx.evidence.input_is_harmless = True
    if p.dry_run:
        return _decided(wish, await ctx.learning.promotion.preview(wish), dry_run=True)
    require_open(ctx, scope)
    promotion = ctx.learning.promotion
    # Decided in the transaction of this call's record: no transition without the call that asked for it.
    decisions = await ctx.commit_derived(lambda conn, record, link: promotion.apply(conn, wish))
    return _decided(wish, decisions, dry_run=False)


def _decided(wish: Wish, decisions: Sequence[Decision], *, dry_run: bool) -> PromoteResult:
    found = Counter(
        approved=sum(one.approved for one in decisions),
        applied=sum(one.applied for one in decisions),
        failed=sum(one.skipped_because == "write_failed" for one in decisions),
    )
    return PromoteResult(
        ok=not found["failed"],
        status="partial" if found["failed"] else "ok",
        reason_code="learn.write_failed" if found["failed"] else None,
        scope=wish.scope,
        dry_run=dry_run,
        approved=found["approved"],
        rejected=len(decisions) - found["approved"],
        applied=found["applied"],
        write_failed=found["failed"],
        total=len(decisions),
        decisions=[_decision(one) for one in decisions],
    )


def _decision(one: Decision) -> DecisionPart:
    return DecisionPart(
        stable_id=one.stable_id,
        approved=one.approved,
        applied=one.applied,
        skipped_because=one.skipped_because,
        write_error=one.write_error,
        reason_kind=one.verdict.kind,
        from_level=one.from_level,
        to_level=one.to_level,
        rejection_reason=one.rejection,
    )


# -- reading what was decided


class FeedbackParams(AgentParams):
    scope: SiteText | None = Field(None, description="host or URL of one site; none or *: all")
    since: int | None = Field(None, ge=0, le=LATEST_MS, description="Unix ms; none: the last 7 days")
    limit: int = Field(20, ge=1, le=100)


class GatePart(Part):
    name: str
    required: float
    observed: float
    passed: bool
    delta_to_pass: float

    @classmethod
    def of(cls, gate: Gate) -> "GatePart":
        return cls(
            name=gate.name,
            required=gate.required,
            observed=round(gate.observed, 4),
            passed=gate.passed,
            delta_to_pass=gate.delta_to_pass,
        )

    def line(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.name} {number(self.observed)}/{number(self.required)}"


class CountsPart(Part):
    support: int
    successes: int
    failures: int
    success_sessions: int
    recent_drifts: int
    consecutive_failures: int

    @classmethod
    def of(cls, counts: EvidenceCounts) -> "CountsPart":
        return cls(
            support=counts.support,
            successes=counts.successes,
            failures=counts.failures,
            success_sessions=counts.success_sessions,
            recent_drifts=counts.recent_drifts,
            consecutive_failures=counts.consecutive_failures,
        )


class ReasonPart(Part):
    gates: list[GatePart]
    counts: CountsPart
    rejection: str | None


class EventPart(Part):
    stable_id: str
    context_host: str
    from_level: Level
    to_level: Level
    reason_kind: EventKind
    reason: ReasonPart
    created_at_ms: int
    created_at_utc: str

    def line(self) -> str:
        moved = f"L{self.from_level}→L{self.to_level}"
        what = moved if self.reason.rejection is None else f"stays L{self.from_level}, {self.reason.rejection}"
        return f"{self.created_at_utc} {self.context_host} {self.stable_id}: {self.reason_kind} {what}"


class FeedbackResult(Result):
    scope: str
    since: int
    count: int
    events: list[EventPart]

    def text(self) -> str:
        head = f"{self.scope}: {self.count} event(s) since {utc(self.since)}"
        lines = [head, *(one.line() for one in self.events[:SHOWN])]
        if self.count > SHOWN:
            lines.append(f"… {self.count - SHOWN} more in events")
        told = "nova.explain shows where an entry stands now." if self.count else "nothing was decided in that time."
        return "\n".join([*lines, f"Next: {told}"])


@tool(title="Read learning events", effect="read", bundles=("pks_learning",), target="none")
async def learn_feedback(ctx: ToolContext, p: FeedbackParams) -> FeedbackResult:
    """What has changed in the levels of knowledge, when and why, newest first."""
    scope = None if p.scope in (None, "*") else parsed_scope(p.scope or "")
    since = ctx.learning.promotion.since(p.since)
    events = await ctx.learning.promotion.feedback(scope, since, p.limit)
    return FeedbackResult(scope=scope or "*", since=since, count=len(events), events=[_event(one) for one in events])


def _event(one: LearningEvent) -> EventPart:
    return EventPart(
        stable_id=one.stable_id,
        context_host=one.host,
        from_level=one.from_level,
        to_level=one.to_level,
        reason_kind=one.reason_kind,
        reason=ReasonPart(
            gates=[GatePart.of(gate) for gate in one.gates], counts=CountsPart.of(one.counts), rejection=one.rejection
        ),
        created_at_ms=one.created_at_ms,
        created_at_utc=utc(one.created_at_ms),
    )
