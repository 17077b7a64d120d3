"""Checking stored knowledge against the page that is open, without touching anything."""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from nova_mcp.evidence.model import Signals
from nova_mcp.memory.knowledge.drift import Telemetry, Verdict
from nova_mcp.memory.promotion.revalidation.revalidator import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    EntryCheck,
    Revalidation,
    Suggestion,
    UnrecordedBecause,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.knowledge.params import SiteText
from nova_mcp.tools.knowledge.scope_argument import scope_on
from nova_mcp.tools.spec import Part, Result, TargetParams, maybe, tool

BUNDLES: Final = ("pks_learning",)


class RevalidateParams(TargetParams):
    target_id: str = Field(min_length=1, max_length=64, pattern=PRINTABLE)
    scope: SiteText | None = Field(None, description="host or URL; the tab's own")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


class RepairCandidate(Part):
    """A suggestion, or why there is none; only a patch that a verified action confirms makes it knowledge."""

    lost_selector: str
    selector: str | None
    confidence: float | None
    label: str | None = Field(description="text of the page")
    abstained: str | None
    auto_repair_safe: bool = False


class RevalidateRow(Part):
    scope: str
    stable_id: str
    verdict: Verdict
    selector_exists: bool
    fingerprint_match_ratio: float
    signals_checked: int
    signals_matched: int
    error: str | None
    repair_candidate: RepairCandidate | None
    telemetry_outcome: Telemetry | None
    telemetry_recorded: bool
    telemetry_skipped_reason: UnrecordedBecause | None
    telemetry_error: str | None = None
    not_on_page: list[str] = maybe([])


class RevalidateResult(Result):
    scope: str
    scope_derived_from_target: bool
    checked: int
    results: list[RevalidateRow]
    telemetry_recorded: int
    telemetry_failed: int
    budget_remaining: int
    denied: list[str]
    retry_after_ms: int | None

    def text(self) -> str:
        return "\n".join([self._head(), *self._rows()])

    def _head(self) -> str:
        told = f"{self.scope}: {self.checked} checked, {self.telemetry_recorded} noted, {self.budget_remaining} left"
        return f"{told} · denied: {' '.join(self.denied)}" if self.denied else told

    def _rows(self) -> Iterator[str]:
        for one in self.results:
            line = f"{one.stable_id} {one.verdict} {one.signals_matched}/{one.signals_checked}"
            found = one.repair_candidate
            if found is not None and found.selector is not None:
                line += f" · {found.lost_selector} may now be {found.selector} ({found.confidence})"
            elif found is not None:
                line += f" · {found.lost_selector} is lost, no repair: {found.abstained}"
            if one.not_on_page:
                line += f" · later steps not on this page: {', '.join(one.not_on_page)}"
            yield line


@tool(title="Check what was learned", effect="read", bundles=BUNDLES, repeat_safe=False)
async def revalidate(ctx: ToolContext, p: RevalidateParams) -> RevalidateResult:
    """Looks whether the stored entries of the site still fit the page in that tab: failing ones first, then the
    stalest. Touches nothing. A lost selector may get one repairCandidate to patch and prove."""
    tab, learning = ctx.tab, ctx.learning
    tab.require_ready()
    scope = scope_on(ctx.tab, p.scope)
    platforms = await learning.knowledge.platforms()
    hides = ctx.secrets.redactor.text
    found = await learning.revalidator.revalidate_scope(tab, scope, platforms, p.limit, hides)
    ctx.evidence.signals = Signals(checks=found.checks)
    # What the look left in the journal is known behind the record.
    await ctx.commit_derived(found.sightings.also, found.reason_code)
    return _result(found, derived=p.scope is None)


def _result(found: Revalidation, *, derived: bool) -> RevalidateResult:
    rows = [_row(found, one) for one in found.entries]
    return RevalidateResult(
        ok=not found.denied,
        reason_code=found.reason_code,
        scope=found.scope,
        scope_derived_from_target=derived,
        checked=len(rows),
        results=rows,
        telemetry_recorded=sum(one.telemetry_recorded for one in rows),
        telemetry_failed=sum(one.telemetry_error is not None for one in rows),
        budget_remaining=found.remaining,
        denied=list(found.denied),
        retry_after_ms=found.retry_after_ms,
    )


def _row(found: Revalidation, one: EntryCheck) -> RevalidateRow:
    counted = [signal for signal in one.match.signals if signal.applicable]
    skipped = found.skipped(one)
    return RevalidateRow(
        scope=found.scope,
        stable_id=one.entry.stable_id,
        verdict=one.verdict,
        selector_exists=one.resolves,
        fingerprint_match_ratio=round(one.match.confidence, 3),
        signals_checked=len(counted),
        signals_matched=sum(signal.matched for signal in counted),
        error=one.error,
        repair_candidate=None if one.suggestion is None else _candidate(one.suggestion),
        telemetry_outcome=one.telemetry,
        telemetry_recorded=skipped is None,
        telemetry_skipped_reason=skipped,
        not_on_page=[action.selector or "" for action in one.absent],
    )


def _candidate(one: Suggestion) -> RepairCandidate:
    return RepairCandidate(
        lost_selector=one.lost,
        selector=one.selector,
        confidence=one.confidence,
        label=one.label,
        abstained=one.abstained,
    )
