"""Looking: what is on the page and where it stands."""

from dataclasses import replace
from typing import Annotated

import anyio
from pydantic import Field

from nova_mcp.browser.channel.page_channel import PAGE_FAILURES
from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.perceive.page_facts import PageFacts, page_facts
from nova_mcp.browser.perceive.perception import PerceiveRequest
from nova_mcp.browser.perceive.perception import perceive as look
from nova_mcp.browser.perceive.report import MAX_TITLE, MAX_URL, PerceiveMode, PerceiveReport
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.concurrency import Captured
from nova_mcp.core.page.looks import SignalsSeen
from nova_mcp.core.tokens import estimate_tokens, fit_tokens
from nova_mcp.evidence.model import Signals
from nova_mcp.memory.journal.observations import digest
from nova_mcp.tools.browse.screenshot import PicturePart, beside
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import REF_PATTERN, as_locator
from nova_mcp.tools.guarded.goals import GoalContextPart
from nova_mcp.tools.read.fact_hints import OkHints, note_page
from nova_mcp.tools.read.hint_blocks import Advisory
from nova_mcp.tools.read.knowledge_hints import (
    FrameworkHintPart,
    KnowledgeHint,
    PksAdvicePart,
    PksHealthWarningPart,
    PksPart,
)
from nova_mcp.tools.read.memory_hints import BrowserMemoryPart
from nova_mcp.tools.read.note_hints import DomainNotesPart, SameNotesPart
from nova_mcp.tools.read.perceive_parts import (
    AuthPart,
    BlockerPart,
    Budget,
    CommitPointCta,
    CompletenessPart,
    DeltaPart,
    FormPart,
    FramePart,
    ResolvedPart,
    Scroll,
    auth_part,
    blocker_parts,
    commit_point_ctas,
    form_parts,
    frame_parts,
    resolved_parts,
)
from nova_mcp.tools.read.run_hints import OpenRunsPart
from nova_mcp.tools.spec import RARE, Image, PageResult, TargetParams, maybe, tool

INFO_TOKENS = 200


class PerceiveParams(TargetParams):
    mode: PerceiveMode = "summary"
    max_tokens: int = Field(1200, ge=200, le=20_000)
    since_rev: int | None = Field(None, ge=1, description="only what changed since that rev")
    scope: str | None = Field(None, min_length=1, max_length=2000, description="selector or ref to look inside")
    visible_only: bool = True
    deep: bool = Field(default=False, json_schema_extra=RARE)
    resolve_refs: list[Annotated[str, Field(pattern=REF_PATTERN)]] | None = Field(
        None, max_length=20, json_schema_extra=RARE
    )
    include_screenshot: bool = Field(default=False, json_schema_extra=RARE)
    known_domain_notes_hash: str | None = Field(None, pattern=r"^[0-9a-f]{24}$", json_schema_extra=RARE)


class PerceiveResult(PageResult):
    perception_id: str
    rev: int
    page_epoch: int
    title: str
    goal_context: GoalContextPart | None = None
    domain_notes: DomainNotesPart | SameNotesPart | None = maybe()
    task_awareness: OpenRunsPart | None = maybe()
    ok_hints: OkHints | None = None
    pks: list[PksPart] = maybe([])
    pks_advice: list[PksAdvicePart] = maybe([])
    pks_health_warnings: list[PksHealthWarningPart] = maybe([])
    framework_hints: list[FrameworkHintPart] = maybe([])
    browser_memory: BrowserMemoryPart | None = maybe()
    advisory_omitted: list[str] = maybe([])
    warnings: list[str] = maybe([])
    ready_state: str | None = maybe()
    scroll: Scroll | None = maybe()
    dialogs: list[str] = maybe([])
    blockers: list[BlockerPart] = maybe([])
    auth: AuthPart | None = maybe()
    commit_point_ctas: list[CommitPointCta] = maybe([])
    commit_point_total: int = maybe(0)
    elements: list[str]
    headings: list[str] = maybe([])
    landmarks: list[str] = maybe([])
    forms: list[FormPart] = maybe([])
    frames: list[FramePart] = maybe([])
    delta: DeltaPart | None = maybe()
    delta_unavailable: str | None = maybe()
    active_element: str | None = maybe()
    behind_modal: int = maybe(0)
    closed_roots: int = maybe(0)
    completeness: CompletenessPart | None = maybe()
    budget: Budget | None = maybe()
    resolved: list[ResolvedPart] = maybe([])
    screenshot: PicturePart | None = maybe()
    navigated_during_call: bool = maybe(default=False)
    lines: str = Field(exclude=True)

    def text(self) -> str:
        return self.lines

    def images(self) -> tuple[Image, ...]:
        return () if self.screenshot is None or self.screenshot.picture is None else (self.screenshot.picture,)


@tool(
    title="Look at the page",
    effect="read",
    bundles=("core", "browser_automation", "page_reading", "form_submission", "live_facts"),
)
async def perceive(ctx: ToolContext, p: PerceiveParams) -> PerceiveResult:
    """Shows the page's actionable elements as lines `ref role "name" selector [flags]` within maxTokens. Act on refs.
    [commit] marks controls that send, buy, delete or sign in. mode state is a quick glance."""
    tab = ctx.tab
    tab.require_ready()
    advice = Advisory(ctx, p.known_domain_notes_hash)
    await advice.read(p.max_tokens)
    taken = advice.tokens
    # What gates have to say stands in the same text.
    report, held = await _looked(ctx, _request(p, p.max_tokens - ctx.call.reserved_tokens - taken), advice.knowledge)
    ctx.evidence.flags |= {"dom_exposed", "content_exposed"} if p.mode != "state" else {"dom_exposed"}
    ctx.evidence.signals = Signals(dialogs=tuple(digest("dialog", line)[:16] for line in report.dialogs))
    if p.scope is None and report.structure_hash:
        ctx.evidence.signals = replace(ctx.evidence.signals, structure=report.structure_hash)
        tab.structure = report.page_epoch, report.structure_hash
    if report.auth is not None:
        tab.login_wall_epoch = report.page_epoch if report.auth.login_wall_visible else None
    sends = any(one.kind == "send" for one in report.commit_points)
    sighted = note_page(ctx, report.page, report.auth, sends=sends)
    await advice.settle(sighted, held)
    seen = _with_advice(_perceived(tab, report), advice, taken)
    if seen.budget is not None and ctx.call.reserved_tokens:
        asked = seen.budget.max_tokens + ctx.call.reserved_tokens
        seen = seen.model_copy(update={"budget": Budget(max_tokens=asked, est_tokens=seen.budget.est_tokens)})
    return seen.model_copy(update={"screenshot": await beside(ctx)}) if p.include_screenshot else seen


async def _looked(
    ctx: ToolContext, request: PerceiveRequest, knowledge: KnowledgeHint
) -> tuple[PerceiveReport, SignalsSeen | None]:
    """The look, and beside it what stored knowledge asks of the page: that one may fail without a word."""
    if not knowledge.asks_page:
        return await look(ctx.tab, request, ctx.ports), None
    report, held = Captured[PerceiveReport](*PAGE_FAILURES), Captured[SignalsSeen | None](*PAGE_FAILURES)

    async def look_itself() -> None:
        await report.run(lambda: look(ctx.tab, request, ctx.ports))
        if report.failed:
            asking.cancel_scope.cancel()

    async with anyio.create_task_group() as asking:
        asking.start_soon(look_itself)
        asking.start_soon(held.run, knowledge.ask)
    return report.value(), held.value()


def _request(p: PerceiveParams, room: int) -> PerceiveRequest:
    return PerceiveRequest(
        mode=p.mode,
        max_tokens=room,
        visible_only=p.visible_only,
        since_rev=p.since_rev,
        scope=None if p.scope is None else as_locator(p.scope),
        deep=p.deep,
        resolve=tuple(p.resolve_refs or ()),
    )


def _with_advice(seen: PerceiveResult, advice: Advisory, taken: int) -> PerceiveResult:
    """Advice stands right below the page's own line, where it is read before anything to act on; `taken` was its."""
    head, _, rest = seen.lines.partition("\n")
    lines = "\n".join(part for part in (head, advice.lines, rest) if part)
    asked = seen.budget.max_tokens + taken if seen.budget is not None else 0
    budget = Budget(max_tokens=asked, est_tokens=estimate_tokens(lines))
    return seen.model_copy(update={**advice.fields(), "lines": lines, "budget": budget})


def _perceived(tab: Tab, report: PerceiveReport) -> PerceiveResult:
    page, seen, delta = report.page, report.completeness, report.delta
    scrolls = page.above_px > 0 or page.below_px > 0
    return PerceiveResult(
        target_id=tab.target_id,
        url=report.url,
        perception_id=report.perception_id,
        rev=report.rev,
        page_epoch=report.page_epoch,
        title=report.title,
        ready_state=page.ready_state if page.ready_state != "complete" else None,
        scroll=Scroll(above_fold_px=page.above_px, below_fold_px=page.below_px) if scrolls else None,
        dialogs=list(report.dialogs),
        blockers=blocker_parts(report.blockers),
        auth=auth_part(report.auth),
        commit_point_ctas=commit_point_ctas(report.commit_points),
        commit_point_total=report.commit_point_total,
        elements=[one.line for one in report.elements],
        headings=list(report.headings),
        landmarks=list(report.landmarks),
        forms=form_parts(report.forms),
        frames=frame_parts(report.frames),
        delta=None if delta is None else DeltaPart.of(delta),
        delta_unavailable=report.delta_unavailable,
        active_element=report.active_element,
        behind_modal=report.behind_modal,
        closed_roots=report.closed_roots,
        completeness=None if seen is None else CompletenessPart.of(seen),
        budget=Budget(max_tokens=report.max_tokens, est_tokens=report.est_tokens),
        resolved=resolved_parts(report.resolved),
        navigated_during_call=report.navigated_during_call,
        lines=report.text(),
    )


class PageInfoResult(PageResult):
    title: str
    ready_state: str
    http_status: int | None
    lang: str
    viewport: list[int]
    scroll: Scroll
    active_element: str | None = maybe()
    frame_count: int
    dom_nodes: int
    rev: int
    page_epoch: int
    state: str
    dialogs: list[str] = maybe([])
    auth: AuthPart | None = maybe()
    agent_scripted: bool = maybe(default=False)
    perceived_rev: int | None = maybe()
    navigated_during_call: bool = maybe(default=False)

    def text(self) -> str:
        """The page's own line first; focus and dialogs as far as the budget goes."""
        where = f"{self.target_id} {fit_tokens(self.url, 60)} {quoted(fit_tokens(self.title, 30), MAX_TITLE)}"
        facts = (
            f"{self.ready_state}, tab {self.state}",
            f"http {self.http_status or '-'}",
            f"lang {self.lang or '-'}",
            f"viewport {self.viewport[0]}×{self.viewport[1]}",
            f"{self.scroll.above_fold_px} px above, {self.scroll.below_fold_px} px below",
            f"{self.frame_count} frames, {self.dom_nodes} nodes",
            f"rev {self.rev}, perceived {self.perceived_rev or '-'}, document {self.page_epoch}",
            *([f"auth {self.auth.stage}"] if self.auth is not None else []),
            *(["scripted by an agent"] if self.agent_scripted else []),
        )
        more = ([f"focus {self.active_element}"] if self.active_element else []) + [f"dialog {d}" for d in self.dialogs]
        return fit_tokens("\n".join([where, " · ".join(facts), *more]), INFO_TOKENS)


@tool(title="Where the page stands", effect="read", bundles=("page_reading",))
async def page_info(ctx: ToolContext, p: TargetParams) -> PageInfoResult:
    """Facts about the page in a few tokens: URL, title, status, size, focus, dialogs, sign-in, revision."""
    tab = ctx.tab
    tab.require_ready()
    facts = await page_facts(tab)
    ctx.evidence.flags.add("dom_exposed")
    note_page(ctx, facts.page, facts.auth)
    return _informed(tab, facts)


def _informed(tab: Tab, facts: PageFacts) -> PageInfoResult:
    page = facts.page
    return PageInfoResult(
        target_id=tab.target_id,
        url=one_line(page.url, MAX_URL),
        title=facts.title,
        ready_state=page.ready_state,
        http_status=tab.http_status,
        lang=page.lang[:35],
        viewport=list(page.viewport),
        scroll=Scroll(above_fold_px=page.above_px, below_fold_px=page.below_px),
        active_element=facts.active_element,
        frame_count=facts.frame_count,
        dom_nodes=facts.dom_nodes,
        rev=facts.rev,
        page_epoch=facts.page_epoch,
        state=tab.state,
        dialogs=list(facts.dialogs),
        auth=auth_part(facts.auth),
        agent_scripted=tab.scripted_epoch == tab.page_epoch,
        perceived_rev=facts.perceived_rev,
        navigated_during_call=facts.navigated_during_call,
    )
