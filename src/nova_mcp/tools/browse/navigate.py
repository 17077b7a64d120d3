"""Going places: open an address, back, forward, reload."""

from collections.abc import Awaitable

import anyio
from pydantic import Field

from nova_mcp.browser.act import navigate as navigation
from nova_mcp.browser.act.navigation_report import LoadOptions, LoadState, NavigationReport
from nova_mcp.browser.observe.host_window import MAX_DIALOG_CHARS
from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.leases import Place
from nova_mcp.core.values import Json
from nova_mcp.errors import FAMILIES, NovaError, Precondition, Stopped
from nova_mcp.memory.claims.rules import DEFAULT_TTL_MS, MAX_TTL_MS, MIN_TTL_MS, Wish
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import AbsoluteUrl, DetailParams, LoadParams
from nova_mcp.tools.read.note_hints import NotesAvailablePart
from nova_mcp.tools.results import ActResult, DialogSeen, EffectSeen
from nova_mcp.tools.spec import RARE, AgentParams, TargetParams, maybe, tool, widened
from nova_mcp.tools.system.claims import ClaimPart, claim_part
from nova_mcp.verification.outcome import Dispatch, Outcome, judge_outcome
from nova_mcp.verification.outcome import EffectSeen as Effect

SHOWN_URL = 300
SHOWN_TITLE = 120
COMPACT_REDIRECTS = 2


class NavigateParams(TargetParams, LoadParams, DetailParams):
    url: AbsoluteUrl
    force: bool = Field(default=False, description="leave even if the page asks to stay")


class HistoryParams(TargetParams, LoadParams):
    force: bool = False


class ReloadParams(HistoryParams):
    hard: bool = False
    recover: bool = Field(default=False, description="only for a stalled, crashed or lost tab")


class TabNewParams(AgentParams, LoadParams):
    url: AbsoluteUrl | None = None
    sandbox_id: str | None = Field(None, pattern=r"^[A-Z]{1,6}$")
    activate: bool = True
    claim: bool = Field(default=False, json_schema_extra=RARE)
    ttl_ms: int = Field(DEFAULT_TTL_MS, ge=MIN_TTL_MS, le=MAX_TTL_MS, json_schema_extra=RARE)


class NavigateResult(ActResult):
    requested_url: str
    title: str
    http_status: int | None
    redirects: list[str] = maybe([])
    load_state: LoadState
    page_epoch: int
    message: str | None = maybe()
    hint: str | None = maybe()
    warnings: list[str] = maybe([])
    domain_notes_available: NotesAvailablePart | None = maybe()

    def text(self) -> str:
        status = f" {self.http_status}" if self.http_status is not None else ""
        where = one_line(self.url, SHOWN_URL)
        head = f"{self.target_id}{status} {where} {quoted(self.title, SHOWN_TITLE)} · {self.load_state}"
        notes = [" ".join(filter(None, (f"{self.reason_code}:", self.message, self.hint)))] if self.reason_code else []
        if self.redirects:
            notes.append(f"redirected from {one_line(self.redirects[0], SHOWN_URL)}")
        notes += [
            f"{dialog.type} dialog {dialog.answer}: {quoted(dialog.message, MAX_DIALOG_CHARS)}"
            for dialog in self.dialogs
        ]
        notes += [f"new tab {tab_id}" for tab_id in self.new_tab_ids]
        if self.domain_notes_available is not None:
            notes.append(self.domain_notes_available.line())
        return "\n".join([head, *notes, *self.warnings])


class ReloadResult(NavigateResult):
    recovered: bool = False


class TabNewResult(NavigateResult):
    created: bool = True
    activated: bool
    claim: ClaimPart | None = maybe()

    def text(self) -> str:
        told = super().text()
        return told if self.claim is None else f"{told}\n{self.claim.line()}"


def load_deadline(p: LoadParams) -> int:
    # Reviving a dead page may take a browser start on top of the wait that was asked for.
    return p.timeout_ms + 15_000


def _options(p: HistoryParams | NavigateParams) -> LoadOptions:
    return LoadOptions(p.wait_until, p.timeout_ms, p.force)


def _failure(tab: Tab, report: NavigationReport) -> NovaError:
    """A navigation that brought no page, under the number its reason belongs to."""
    reason = report.reason_code or "navigation.failed"
    family = next(one for one in FAMILIES if reason in one.reasons)
    if family is Precondition and report.status == "blocked":
        family = Stopped
    details: dict[str, Json] = {
        "targetId": tab.target_id,
        "url": report.url,
        "requestedUrl": report.requested_url,
        "httpStatus": report.http_status,
        "loadState": report.load_state,
        "pageEpoch": report.page_epoch,
    }
    if report.net_error:
        details["netError"] = report.net_error
    return family(
        reason,
        report.message,
        report.hint,
        stage="dispatch" if report.dispatched else "precondition",
        retry_after_ms=report.retry_after_ms,
        details={**details, **report.details},
        action_dispatched=report.dispatched,
    )


async def _under_way(ctx: ToolContext, going: Awaitable[NavigationReport]) -> NavigationReport:
    """A navigation that is cut off may have reached the server: until a report says otherwise it counts as sent."""
    ctx.evidence.flags.add("navigation_intent")
    try:
        return await going
    except anyio.get_cancelled_exc_class():
        ctx.evidence.action_dispatched = True
        raise


def _note(ctx: ToolContext, report: NavigationReport) -> None:
    evidence = ctx.evidence
    evidence.flags.add("navigation_intent")
    evidence.action_dispatched = report.dispatched
    if report.status in ("ok", "partial") and report.load_state != "none":
        evidence.flags.add("navigation_committed")
    evidence.verification = _judged(report).verify_state


def _judged(report: NavigationReport) -> Outcome:
    """Arriving under a status below 400 is proof by itself; anything less is what it looks like."""
    dispatch: Dispatch = "dispatched" if report.dispatched else "not_dispatched"
    effect: Effect = "none" if report.load_state == "none" else "error_signal" if report.status != "ok" else "strong"
    return judge_outcome(dispatch, effect, "readback_match" if report.verified else "none")


def _told(tab: Tab, report: NavigationReport) -> NavigateResult:
    judged = _judged(report)
    return NavigateResult(
        ok=report.status == "ok",
        status=report.status,
        target_id=tab.target_id,
        url=report.url,
        reason_code=report.reason_code,
        retryable=report.retry_after_ms is not None,
        retry_advice=judged.retry_advice,
        action_dispatched=report.dispatched,
        dispatch_proof="host" if report.dispatched else "none",
        effect=EffectSeen(observed=report.load_state != "none", channels=["navigation"] if report.verified else []),
        verify_state=judged.verify_state,
        rev=tab.rev,
        dialogs=[DialogSeen(type=d.type, message=d.message, answer=d.answer) for d in report.dialogs],
        new_tab_ids=list(report.new_tabs),
        popups_closed=report.popups_closed,
        requested_url=report.requested_url,
        title=report.title,
        http_status=report.http_status,
        redirects=list(report.redirects),
        load_state=report.load_state,
        page_epoch=report.page_epoch,
        message=report.message or None,
        hint=report.hint or None,
        warnings=[*report.warnings, *tab.take_notices()],
    )


def _landed(ctx: ToolContext, tab: Tab, report: NavigationReport) -> NavigateResult:
    _note(ctx, report)
    if report.status in ("failed", "blocked"):
        raise _failure(tab, report)
    return _told(tab, report)


@tool(
    title="Open an address",
    effect="navigate",
    bundles=("core", "browser_automation"),
    gates=("policy.domain", "claim.owner", "setup.bootstrap", "setup.shared_agent_id"),
    target="optional",
    deadline_ms=load_deadline,
)
async def navigate(ctx: ToolContext, p: NavigateParams) -> NavigateResult:
    """Opens a URL in a tab (a new one if you have none) and says how it went: HTTP status, redirects, final URL."""
    if ctx.evidence.tab is not None:
        return await _open(ctx, p)
    await ctx.call.progress(0, None, "starting the browser")
    ctx.evidence.tab = await ctx.browser.targets.open_tab(ctx.caller)
    # The pipeline could not lock a tab that did not exist yet.
    async with ctx.tab.lock.exclusive():
        return await _open(ctx, p)


async def _open(ctx: ToolContext, p: NavigateParams) -> NavigateResult:
    await ctx.call.progress(0, None, "loading")
    report = await _under_way(ctx, navigation.navigate(ctx.tab, p.url, _options(p)))
    landed = _landed(ctx, ctx.tab, report)
    # Where it began is what a compact answer needs of a chain; where it ended is the address itself.
    short = landed.redirects if p.output_detail == "full" else landed.redirects[:COMPACT_REDIRECTS]
    return landed.model_copy(update={"redirects": short})


@tool(
    title="Go back",
    effect="navigate",
    bundles=("browser_automation",),
    gates=("claim.owner",),
    deadline_ms=load_deadline,
)
async def back(ctx: ToolContext, p: HistoryParams) -> NavigateResult:
    """Goes one step back in the tab's history."""
    report = await _under_way(ctx, navigation.back(ctx.tab, _options(p)))
    return _landed(ctx, ctx.tab, report)


@tool(
    title="Go forward",
    effect="navigate",
    bundles=("browser_automation",),
    gates=("claim.owner",),
    deadline_ms=load_deadline,
)
async def forward(ctx: ToolContext, p: HistoryParams) -> NavigateResult:
    """Goes one step forward in the tab's history."""
    report = await _under_way(ctx, navigation.forward(ctx.tab, _options(p)))
    return _landed(ctx, ctx.tab, report)


@tool(
    title="Reload",
    effect="navigate",
    bundles=("browser_automation",),
    gates=("claim.owner",),
    deadline_ms=load_deadline,
)
async def reload(ctx: ToolContext, p: ReloadParams) -> ReloadResult:
    """Loads the page again. With recover, revives a stalled, crashed or lost tab under the same id."""
    report = await _under_way(ctx, navigation.reload(ctx.tab, _options(p), hard=p.hard, recover=p.recover))
    return widened(_landed(ctx, ctx.tab, report), ReloadResult, recovered=report.recovered)


@tool(
    title="Open a tab",
    effect="navigate",
    bundles=("core", "browser_automation"),
    gates=("policy.domain", "setup.bootstrap", "setup.shared_agent_id"),
    target="none",
    deadline_ms=load_deadline,
)
async def tab_new(ctx: ToolContext, p: TabNewParams) -> TabNewResult:
    """Opens a new tab of yours, with a page if you give a url."""
    await ctx.call.progress(0, None, "opening a tab")
    if p.claim:
        ctx.claims.require_room(ctx.caller.owner)
    tab = await ctx.browser.targets.open_tab(ctx.caller, p.sandbox_id, activate=p.activate)
    ctx.evidence.tab = tab
    claim = await _claimed(ctx, tab, p.ttl_ms) if p.claim else None
    report = (
        await _under_way(ctx, navigation.navigate(tab, p.url, LoadOptions(p.wait_until, p.timeout_ms)))
        if p.url is not None
        else _blank(tab)
    )
    _note(ctx, report)
    told = widened(_told(tab, report), TabNewResult, activated=p.activate, claim=claim)
    if report.status in ("failed", "blocked"):
        # The tab exists and is told, whatever became of its page.
        return told.model_copy(update={"status": "partial", "ok": False})
    return told


async def _claimed(ctx: ToolContext, tab: Tab, ttl_ms: int) -> ClaimPart:
    """The claim asked for with a new tab; without it the tab is not what was asked for and does not stay."""
    try:
        told = await ctx.claims.claim(Wish(Place(tab.target_id, tab.sandbox_id), ctx.caller.owner, ttl_ms), [tab])
    except (NovaError, StoreUnavailable):
        await ctx.browser.targets.close_tab(tab)
        raise
    ctx.evidence.task_id = told.claim.task_id
    return claim_part(told)


def _blank(tab: Tab) -> NavigationReport:
    return NavigationReport(
        status="ok",
        reason_code=None,
        requested_url=tab.url,
        url=tab.url,
        title="",
        http_status=None,
        load_state="load",
        page_epoch=tab.page_epoch,
        verified=True,
    )
