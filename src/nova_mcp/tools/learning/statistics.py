"""How well learning works: the journal's figures for a window of time."""

from collections.abc import Iterable

from pydantic import Field

from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.journal.candidates import normal_component
from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.report import Blocker, Labelled, Report, Runtime, StatisticsQuery
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Part, Result, tool
from nova_mcp.tools.times import utc


class MemoryStatsParams(AgentParams):
    window_hours: int = Field(24, ge=1, le=720)
    top_components: int = Field(8, ge=1, le=20)
    max_skip_reasons: int = Field(8, ge=1, le=20)
    top_routes: int = Field(8, ge=1, le=20)
    top_hosts: int = Field(8, ge=1, le=20)
    top_selectors: int = Field(8, ge=1, le=20)
    component_filter: str | None = Field(None, pattern=r"^[^\x00]*$", description="counts lcj for one component only")

    def query(self, principal: str) -> StatisticsQuery:
        return StatisticsQuery(
            window_hours=self.window_hours,
            top_components=self.top_components,
            max_skip_reasons=self.max_skip_reasons,
            top_routes=self.top_routes,
            top_hosts=self.top_hosts,
            top_selectors=self.top_selectors,
            # A blank one filters nothing: no candidate has a blank component.
            component=normal_component(self.component_filter or "") or None,
            # Sites, controls and words are shown to whoever they came from; counts are everybody's.
            principal=storable_text(principal),
        )


class KpisPart(Part):
    commit_rate: float | None
    verification_rate: float | None
    disproven_rate: float | None
    curation_rate: float | None
    outbox_health: float | None
    tool_success_rate: float | None
    verified_action_rate: float | None
    false_success_caught: int
    runtime_readiness: float


class ComponentPart(Part):
    component: str
    candidates: int


class LcjPart(Part):
    tool_events_total: int
    tool_events_window: int
    observations_total: int
    observations_window: int
    candidates_total: int
    candidates_window: int
    candidates_unverified: int
    candidates_verified: int
    candidates_disproven: int
    candidates_promotable: int
    curated_total: int
    curated_window: int
    top_components_window: list[ComponentPart]


class ReasonPart(Part):
    reason_code: str
    count: int


class FinalizePart(Part):
    decisions_total: int
    decisions_window: int
    commits_window: int
    skips_window: int
    outbox_pending: int
    outbox_leased: int
    outbox_done: int
    outbox_failed: int
    oldest_pending_age_ms: int | None
    skip_reasons_window: list[ReasonPart]


class RoutePart(Part):
    route: str
    attempts: int
    successes: int


class HostPart(Part):
    host: str
    attempts: int
    successes: int


class SelectorPart(Part):
    selector: str
    attempts: int
    successes: int


class RuntimePart(Part):
    attempts: int
    successes: int
    success_rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    top_routes: list[RoutePart]
    top_hosts: list[HostPart]
    top_selectors: list[SelectorPart]
    top_reason_codes: list[ReasonPart]


class RolloutPart(Part):
    ready: bool
    blockers: list[Blocker]
    sample_size: int


class MemoryStatsResult(Result):
    window_hours: int
    generated_at_utc: str
    component_filter: str | None
    kpis: KpisPart
    lcj: LcjPart
    finalize: FinalizePart
    scroll_smart: RuntimePart
    click_navigation: RuntimePart
    dismiss_blockers: RuntimePart
    screenshot_capture: RuntimePart
    rollout_decision: RolloutPart

    def text(self) -> str:
        lcj, done, rollout = self.lcj, self.finalize, self.rollout_decision
        of = f" in {self.component_filter}" if self.component_filter else ""
        return "\n".join(
            (
                f"last {self.window_hours} h: {lcj.tool_events_window} calls, {_share(self.kpis.tool_success_rate)} ok"
                f" · {lcj.observations_window} observations · {lcj.candidates_window} new candidates{of}",
                f"candidates{of}: {lcj.candidates_total} ({lcj.candidates_verified} verified,"
                f" {lcj.candidates_disproven} disproven, {lcj.candidates_promotable} promotable)"
                f" · {lcj.curated_total} curated",
                f"finalize: {done.commits_window} committed, {done.skips_window} skipped · outbox"
                f" {done.outbox_pending} pending, {done.outbox_failed} failed",
                f"rollout {'ready' if rollout.ready else 'not ready'}: {rollout.sample_size} verified actions"
                + (f" · {', '.join(rollout.blockers)}" if rollout.blockers else ""),
            )
        )


def _share(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:.0%}"


@tool(title="Memory statistics", effect="read", bundles=("system_tools", "pks_learning"), target="none")
async def memory_stats(ctx: ToolContext, p: MemoryStatsParams) -> MemoryStatsResult:
    """Figures of learning for a window of time, in whole hours: evidence, candidates, decisions, the outbox, how well
    scrolling, navigating, dismissing and screenshots work, and whether that justifies a rollout."""
    query = p.query(ctx.caller.principal)
    report, at_ms = await ctx.memory.statistician.report(query)
    return answer(query, report, at_ms)


def answer(query: StatisticsQuery, found: Report, at_ms: int) -> MemoryStatsResult:
    rollout, runtime = found.rollout, found.runtime
    return MemoryStatsResult(
        window_hours=query.window_hours,
        generated_at_utc=utc(at_ms),
        component_filter=query.component,
        kpis=KpisPart.model_validate(found.kpis, from_attributes=True),
        lcj=_lcj(found),
        finalize=_finalize(found),
        scroll_smart=_runtime(runtime["scrollSmart"]),
        click_navigation=_runtime(runtime["clickNavigation"]),
        dismiss_blockers=_runtime(runtime["dismissBlockers"]),
        screenshot_capture=_runtime(runtime["screenshotCapture"]),
        rollout_decision=RolloutPart(
            ready=rollout.ready, blockers=list(rollout.blockers), sample_size=rollout.sample_size
        ),
    )


def _lcj(found: Report) -> LcjPart:
    window, totals, chosen = found.reading.window, found.reading.totals, found.reading.chosen
    return LcjPart(
        tool_events_total=totals[names.EVENT],
        tool_events_window=window[names.EVENT][0],
        observations_total=totals[names.OBSERVATION],
        observations_window=window[names.OBSERVATION][0],
        candidates_total=chosen[names.CANDIDATE],
        candidates_window=window[names.CANDIDATE][0],
        candidates_unverified=chosen[f"{names.CANDIDATE}.unverified"],
        candidates_verified=chosen[f"{names.CANDIDATE}.verified"],
        candidates_disproven=chosen[f"{names.CANDIDATE}.disproven"],
        candidates_promotable=chosen[names.PROMOTABLE],
        curated_total=chosen[names.CURATED],
        curated_window=window[names.CURATED][0],
        top_components_window=[
            ComponentPart(component=one.label, candidates=one.count) for one in found.reading.components
        ],
    )


def _finalize(found: Report) -> FinalizePart:
    outbox = found.reading.outbox
    decisions, commits = found.reading.window[names.DECISION]
    return FinalizePart(
        decisions_total=found.reading.totals[names.DECISION],
        decisions_window=decisions,
        commits_window=commits,
        skips_window=decisions - commits,
        outbox_pending=outbox.pending,
        outbox_leased=outbox.leased,
        outbox_done=found.jobs_done,
        outbox_failed=outbox.failed,
        oldest_pending_age_ms=outbox.oldest_pending_age_ms,
        skip_reasons_window=_reasons(found.reading.skip_reasons),
    )


def _reasons(entries: Iterable[Labelled]) -> list[ReasonPart]:
    return [ReasonPart(reason_code=one.label, count=one.count) for one in entries]


def _runtime(one: Runtime) -> RuntimePart:
    found = one.found
    return RuntimePart(
        attempts=one.attempts,
        successes=one.successes,
        success_rate=one.success_rate,
        p50_ms=one.p50_ms,
        p95_ms=one.p95_ms,
        top_routes=[RoutePart(route=x.label, attempts=x.count, successes=x.good) for x in found.routes],
        top_hosts=[HostPart(host=x.label, attempts=x.count, successes=x.good) for x in found.hosts],
        top_selectors=[SelectorPart(selector=x.label, attempts=x.count, successes=x.good) for x in found.selectors],
        top_reason_codes=_reasons(found.reasons),
    )
