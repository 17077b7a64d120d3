"""Tabs: list them, open one, close one, choose the current one."""

from typing import Literal

from pydantic import Field

from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.targets.registry import TabQuery
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.leases import Place, is_live
from nova_mcp.errors import InvalidParams, Status
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.memory.claims.rules import AgentRole
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import OutputDetail
from nova_mcp.tools.spec import RARE, AgentParams, Part, Result, TargetParams, maybe, tool
from nova_mcp.tools.times import utc

TabState = Literal["ready", "loading", "crashed", "lost", "stalled"]


class TabsParams(AgentParams):
    active_only: bool = False
    sandbox_id: str | None = Field(None, pattern=r"^[A-Z]{1,6}$", json_schema_extra=RARE)
    domain: str | None = Field(None, min_length=1, max_length=253, json_schema_extra=RARE)
    mine: bool = False
    output_detail: OutputDetail = "compact"


class TabClaim(Part):
    owner_agent_id: str
    lease_remaining_ms: int
    implicit: bool
    task_id: str | None = maybe()
    agent_role: AgentRole | None = maybe()
    debug_label: str | None = maybe()
    claimed_at_utc: str | None = maybe()


class TabEntry(Part):
    target_id: str
    sandbox_id: str
    url: str
    title: str
    state: TabState
    is_active: bool
    opener_target_id: str | None = maybe()
    claim: TabClaim | None = maybe()
    rev: int | None = maybe()
    page_epoch: int | None = maybe()
    last_activity_utc: str | None = maybe()


class TabsResult(Result):
    active_target_id: str | None = None
    tabs: list[TabEntry]
    total_count: int

    def text(self) -> str:
        if not self.tabs:
            return "no tabs; open one with nova.navigate or nova.tab_new"
        rows = [
            f"{'*' if tab.is_active else '-'} {tab.target_id} [{tab.sandbox_id}] {tab.state} {one_line(tab.url, 200)} "
            f"{quoted(tab.title, 80)}" + (f" held by {tab.claim.owner_agent_id}" if tab.claim else "")
            for tab in self.tabs
        ]
        return "\n".join(rows)


@tool(title="List tabs", effect="read", bundles=("core", "browser_automation"), target="none")
async def tabs(ctx: ToolContext, p: TabsParams) -> TabsResult:
    """Lists open tabs with their ids. `*` marks your current one, which `active` means."""
    targets = ctx.browser.targets
    current = targets.active_of(ctx.caller.owner)
    found = targets.list_tabs(ctx.caller, TabQuery(p.active_only, p.sandbox_id, p.domain, p.mine))
    now = ctx.ports.clock.now_ms()
    claims, full = ctx.claims, p.output_detail == "full"
    entries = [_entry(tab, _claim(claims, tab, now, full=full), active=tab is current, full=full) for tab in found]
    return TabsResult(active_target_id=current.target_id if current else None, tabs=entries, total_count=len(entries))


def _claim(claims: ClaimBook, tab: Tab, now_ms: int, *, full: bool) -> TabClaim | None:
    """Who holds a tab, by a claim or by working on it."""
    lease = claims.lease_on(tab)
    if lease is None or not is_live(lease, now_ms):
        return None
    claim = claims.over(Place(tab.target_id, tab.sandbox_id)) if full else None
    return TabClaim(
        owner_agent_id=lease.owner[1],
        lease_remaining_ms=lease.expires_at_ms - now_ms,
        implicit=lease.implicit,
        task_id=claim.task_id if claim else None,
        agent_role=claim.agent_role if claim else None,
        debug_label=claim.debug_label if claim else None,
        claimed_at_utc=utc(claim.acquired_at_ms) if claim else None,
    )


def _entry(tab: Tab, claim: TabClaim | None, *, active: bool, full: bool) -> TabEntry:
    return TabEntry(
        target_id=tab.target_id,
        sandbox_id=tab.sandbox_id,
        url=tab.url[:2000],
        title=tab.title[:300],
        state=tab.state,
        is_active=active,
        opener_target_id=tab.opener_target_id,
        claim=claim,
        rev=tab.rev if full else None,
        page_epoch=tab.page_epoch if full else None,
        last_activity_utc=utc(tab.last_activity_ms) if full else None,
    )


class TabCloseResult(Result):
    target_id: str
    closed: bool
    released: bool
    finalized: bool


@tool(
    title="Close a tab",
    effect="write",
    bundles=("browser_automation",),
    gates=("claim.owner",),
    target="departed",
    lock="none",
)
async def tab_close(ctx: ToolContext, p: TargetParams) -> TabCloseResult:
    """Closes a tab without asking the page; a claim on it is released and finalized."""
    if ctx.evidence.tab is None:
        return TabCloseResult(
            target_id=p.target_id, closed=False, released=False, finalized=False, reason_code="tab.already_closed"
        )
    held = is_live(ctx.tab.lease, ctx.ports.clock.now_ms())
    # Decided before the page goes: a claim that can't be finalized keeps its tab.
    finished = await ctx.claims.finish(ctx.caller.owner, ctx.tab)
    closed = await ctx.browser.targets.close_tab(ctx.tab)
    return TabCloseResult(
        target_id=ctx.tab.target_id,
        closed=closed,
        released=finished is not None or (closed and held),
        finalized=finished is not None,
        reason_code=None if closed else "tab.already_closed",
    )


class SetActiveParams(TargetParams):
    target_id: str = Field(min_length=1, max_length=64, pattern=r"^[^\x00]*$")
    bring_to_front: bool = False


class SetActiveResult(Result):
    status: Status = "ok"
    target_id: str
    activated: bool
    previous_target_id: str | None = None
    state: TabState


@tool(title="Choose the current tab", effect="write", bundles=("browser_automation",), lock="none")
async def set_active_tab(ctx: ToolContext, p: SetActiveParams) -> SetActiveResult:
    """Makes a tab the one that `active` means for you; nobody else's current tab moves."""
    if p.target_id == "active":
        raise InvalidParams("invalid_params", "targetId must name a tab, not active", "nova.tabs lists the ids.")
    previous = ctx.browser.targets.activate(ctx.caller, ctx.tab)
    usable = ctx.tab.state not in ("crashed", "lost")
    if p.bring_to_front and usable and ctx.settings.browser.headed:
        await ctx.tab.page.bring_to_front()
    return SetActiveResult(
        ok=usable,
        status="ok" if usable else "partial",
        target_id=ctx.tab.target_id,
        activated=True,
        previous_target_id=previous,
        state=ctx.tab.state,
        reason_code=None if usable else "tab.crashed",
    )
