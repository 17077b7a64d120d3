"""Looking and reading: what is on the page, what it says, where it stands."""

from typing import Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.perception import PageFacts, PerceiveReport, PerceiveRequest, page_facts
from nova_mcp.browser.perception import perceive as look
from nova_mcp.browser.reading import ReadRequest
from nova_mcp.browser.reading import read_text as read
from nova_mcp.browser.tab import Tab
from nova_mcp.tokens import estimate_tokens, fit_tokens
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.goals import GoalContextPart, goal_context_part
from nova_mcp.tools.groups import MaybeElementParams
from nova_mcp.tools.spec import PageResult, Part, TargetParams, maybe, tool

PerceiveMode = Literal["summary", "state"]
ReadScope = Literal["auto", "main", "page"]
# A goal's line takes at most this part of the budget; the page itself needs the rest.
GOAL_SHARE = 4


class Scroll(Part):
    above_fold_px: int
    below_fold_px: int


class CommitPointCta(Part):
    ref: str
    name: str
    kind: str
    why: str
    suggested_tool: str


class CompletenessPart(Part):
    shown: int
    total: int
    scan_truncated: bool = maybe(default=False)
    more: str | None = maybe()


class Budget(Part):
    max_tokens: int
    est_tokens: int


class PerceiveParams(TargetParams):
    mode: PerceiveMode = "summary"
    max_tokens: int = Field(1200, ge=200, le=20_000)
    visible_only: bool = True


class PerceiveResult(PageResult):
    perception_id: str
    rev: int
    page_epoch: int
    title: str
    goal_context: GoalContextPart | None = None
    ok_hints: None = None
    ready_state: str | None = maybe()
    scroll: Scroll | None = maybe()
    dialogs: list[str] = maybe([])
    commit_point_ctas: list[CommitPointCta] = maybe([])
    commit_point_total: int = maybe(0)
    elements: list[str]
    headings: list[str] = maybe([])
    landmarks: list[str] = maybe([])
    active_element: str | None = maybe()
    behind_modal: int = maybe(0)
    completeness: CompletenessPart | None = maybe()
    budget: Budget | None = maybe()
    navigated_during_call: bool = maybe(default=False)
    lines: str = Field(exclude=True)

    def text(self) -> str:
        return self.lines


@tool(
    title="Look at the page",
    effect="read",
    bundles=("core", "browser_automation", "page_reading", "form_submission"),
)
async def perceive(ctx: ToolContext, p: PerceiveParams) -> PerceiveResult:
    """Shows the page's actionable elements as lines `ref role "name" selector [flags]` within maxTokens. Act on refs.
    [commit] marks controls that send, buy, delete or sign in. mode state is a quick glance."""
    ctx.tab.require_ready()
    goal = goal_context_part(await ctx.verifier.goals.context(ctx.caller, ctx.tab.target_id, ctx.call.session_id))
    anchor = "" if goal is None else fit_tokens(goal.line(), p.max_tokens // GOAL_SHARE)
    # One more for the line break.
    room = p.max_tokens - (estimate_tokens(anchor) + 1 if anchor else 0)
    report = await look(ctx.tab, PerceiveRequest(p.mode, room, p.visible_only), ctx.ports)
    ctx.evidence.flags |= {"dom_exposed", "content_exposed"} if p.mode == "summary" else {"dom_exposed"}
    return _with_goal(_perceived(ctx.tab, report), goal, anchor)


def _with_goal(seen: PerceiveResult, goal: GoalContextPart | None, anchor: str) -> PerceiveResult:
    """The goal stands right below the page's own line, where it is read before anything to act on."""
    if goal is None:
        return seen
    head, _, rest = seen.lines.partition("\n")
    lines = "\n".join(part for part in (head, anchor, rest) if part)
    asked = seen.budget.max_tokens + estimate_tokens(anchor) + 1 if seen.budget is not None else 0
    budget = Budget(max_tokens=asked, est_tokens=estimate_tokens(lines))
    return seen.model_copy(update={"goal_context": goal, "lines": lines, "budget": budget})


def _perceived(tab: Tab, report: PerceiveReport) -> PerceiveResult:
    page, seen = report.page, report.completeness
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
        commit_point_ctas=[
            CommitPointCta(ref=one.ref, name=one.name, kind=one.kind, why=one.why, suggested_tool=one.suggested_tool)
            for one in report.commit_points
        ],
        commit_point_total=report.commit_point_total,
        elements=[one.line for one in report.elements],
        headings=list(report.headings),
        landmarks=list(report.landmarks),
        active_element=report.active_element,
        behind_modal=report.behind_modal,
        completeness=CompletenessPart(
            shown=seen.shown, total=seen.total, scan_truncated=seen.scan_truncated, more=seen.more
        )
        if seen
        else None,
        budget=Budget(max_tokens=report.max_tokens, est_tokens=report.est_tokens),
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
    perceived_rev: int | None = maybe()
    navigated_during_call: bool = maybe(default=False)


@tool(title="Where the page stands", effect="read", bundles=("page_reading",))
async def page_info(ctx: ToolContext, p: TargetParams) -> PageInfoResult:
    """Facts about the page in a few tokens: URL, title, status, size, focus, revision."""
    tab = ctx.tab
    tab.require_ready()
    facts = await page_facts(tab)
    ctx.evidence.flags.add("dom_exposed")
    return _informed(tab, facts)


def _informed(tab: Tab, facts: PageFacts) -> PageInfoResult:
    page = facts.page
    return PageInfoResult(
        target_id=tab.target_id,
        url=page.url[:300],
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
        perceived_rev=facts.perceived_rev,
        navigated_during_call=facts.navigated_during_call,
    )


class ReadTextParams(TargetParams, MaybeElementParams):
    scope: ReadScope = "auto"
    max_chars: int = Field(8000, ge=200, le=200_000)
    offset: int = Field(0, ge=0, le=5_000_000)
    continuation_token: str | None = Field(None, min_length=1, max_length=512)
    include_hidden: bool = False

    @model_validator(mode="after")
    def _one_position(self) -> Self:
        if self.continuation_token is not None and self.offset != 0:
            raise ValueError("give offset or continuationToken, not both")
        return self


class ReadTextResult(PageResult):
    page_text: str = Field(serialization_alias="text")
    chars: int
    total_chars: int
    scope_used: str
    truncated: bool = maybe(default=False)
    continuation_token: str | None = maybe()
    content_hash: str
    scan_truncated: bool = maybe(default=False)
    navigated_during_call: bool = maybe(default=False)

    def text(self) -> str:
        head = f"{self.target_id} {self.url[:300]} · {self.chars} of {self.total_chars} characters ({self.scope_used})"
        if not self.truncated:
            return f"{head}\n{self.page_text}"
        return f"{head}\n{self.page_text}\n… more: continuationToken {self.continuation_token}"


@tool(title="Read text", effect="read", bundles=("core", "page_reading"))
async def read_text(ctx: ToolContext, p: ReadTextParams) -> ReadTextResult:
    """Reads the visible text of the page or of one element in reading order, with light Markdown."""
    tab = ctx.tab
    tab.require_ready()
    request = ReadRequest(p.locator(), p.scope, p.max_chars, p.offset, p.continuation_token, p.include_hidden)
    report = await read(tab, request)
    ctx.evidence.selector = p.selector
    ctx.evidence.flags.add("content_exposed")
    if report.whole_page:
        ctx.evidence.flags.add("full_document")
    return ReadTextResult(
        target_id=tab.target_id,
        url=report.url,
        page_text=report.text,
        chars=report.chars,
        total_chars=report.total_chars,
        scope_used=report.scope_used,
        truncated=report.truncated,
        continuation_token=report.continuation_token,
        content_hash=report.content_hash,
        scan_truncated=report.scan_truncated,
        navigated_during_call=report.navigated_during_call,
    )
