"""Sandboxes: make one with an identity of its own, list them, delete one with everything in it."""

import zoneinfo
from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator, Field

from nova_mcp.browser.act import navigate
from nova_mcp.browser.act.navigation_report import LoadOptions
from nova_mcp.browser.egress.document_guard import judge_target
from nova_mcp.browser.state.sandbox import Resting, Sandbox
from nova_mcp.browser.state.sandbox_removal import delete_sandbox
from nova_mcp.browser.state.sandbox_traits import Traits
from nova_mcp.browser.targets.registry import TabQuery
from nova_mcp.core.policy import Denied
from nova_mcp.core.urls import page_host
from nova_mcp.errors import NovaError, PolicyDenied
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE, AbsoluteUrl, OutputDetail
from nova_mcp.tools.spec import AgentParams, Params, Part, Result, maybe, tool
from nova_mcp.tools.times import utc

MOST_HOSTS = 5
_LOCALE = r"^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
_ZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}$"


def _known_zone(name: str) -> str:
    # Not every system has a list of its own; there the browser decides.
    known = zoneinfo.available_timezones()
    if known and name not in known:
        raise ValueError(f'"{name}" is not a time zone; give an IANA name such as Europe/Berlin')
    return name


def _confirmed(value: bool) -> bool:
    if not value:
        raise ValueError("must be true: deleting can't be undone")
    return value


class ViewportParams(Params):
    width: int = Field(ge=320, le=3840)
    height: int = Field(ge=240, le=2160)


class SandboxCreateParams(AgentParams):
    name: str | None = Field(None, max_length=64, pattern=PRINTABLE)
    purpose: str | None = Field(None, max_length=200, pattern=PRINTABLE)
    account_label: str | None = Field(None, max_length=64, pattern=PRINTABLE)
    start_url: AbsoluteUrl | None = None
    persist: bool = Field(default=False, description="keep cookies and storage after the server ends")
    locale: str | None = Field(None, max_length=35, pattern=_LOCALE)
    timezone: Annotated[str, Field(max_length=64, pattern=_ZONE), AfterValidator(_known_zone)] | None = None
    viewport: ViewportParams | None = None

    def traits(self) -> Traits:
        size = None if self.viewport is None else (self.viewport.width, self.viewport.height)
        return Traits(self.name, self.purpose, self.account_label, self.locale, self.timezone, size)


class SandboxCreateResult(Result):
    sandbox_id: str
    sandbox_ref: str
    name: str | None
    persist: bool
    target_id: str | None = maybe()
    message: str | None = maybe()
    hint: str | None = maybe()

    def text(self) -> str:
        kept = "kept" if self.persist else "forgotten when the server ends"
        here = f'open a tab in it with nova.tab_new and sandboxId "{self.sandbox_id}"'
        tab = f"{self.target_id} is open in it" if self.target_id else here
        failed = f"\n{self.reason_code}: {self.message} {self.hint}" if self.reason_code else ""
        return f"sandbox {self.sandbox_id} · {kept} · {tab}{failed}"


@tool(
    title="Create a sandbox",
    effect="write",
    bundles=("sandboxes",),
    gates=("policy.domain",),
    target="none",
    deadline_ms=lambda _: 30_000,
)
async def sandbox_create(ctx: ToolContext, p: SandboxCreateParams) -> SandboxCreateResult:
    """Makes a separate browser profile with its own cookies and storage; with persist it survives restarts."""
    if p.start_url is not None:
        verdict = judge_target(p.start_url, ctx.browser.policy)
        if isinstance(verdict, Denied):
            raise PolicyDenied(verdict.reason_code, verdict.message, verdict.hint, stage="gate")
    sandbox = await ctx.browser.sandboxes.make(ctx.caller.owner, p.traits(), persist=p.persist)
    made = SandboxCreateResult(
        sandbox_id=sandbox.sandbox_id, sandbox_ref=sandbox.sandbox_ref, name=p.name, persist=sandbox.persistent
    )
    if p.start_url is None:
        return made
    tab = await ctx.browser.targets.open_tab(ctx.caller, sandbox.sandbox_id)
    ctx.evidence.tab = tab
    made = made.model_copy(update={"target_id": tab.target_id})
    try:
        async with tab.lock.exclusive():
            ctx.evidence.action_dispatched = True
            report = await navigate.navigate(tab, p.start_url, LoadOptions())
    except NovaError as error:
        return _unopened(made, error.reason_code, error.message, error.hint)
    if report.status == "ok":
        return made
    return _unopened(made, report.reason_code, report.message, report.hint)


def _unopened(made: SandboxCreateResult, reason: str | None, message: str, hint: str) -> SandboxCreateResult:
    """The sandbox and its tab are there; only the page is not."""
    update = {"ok": False, "status": "partial", "reason_code": reason, "message": message, "hint": hint}
    return made.model_copy(update=update)


class SandboxListParams(AgentParams):
    output_detail: OutputDetail = "compact"


class SandboxEntry(Part):
    sandbox_id: str
    sandbox_ref: str
    name: str | None
    purpose: str | None
    account_label: str | None
    persist: bool
    state: Literal["ready", "unavailable"]
    tab_count: int
    hosts: list[str]
    created_at_utc: str
    locale: str | None = maybe()
    timezone: str | None = maybe()
    viewport: dict[str, int] | None = maybe()

    def line(self) -> str:
        words = [self.sandbox_id, self.state, "kept" if self.persist else "not kept", f"{self.tab_count} tabs"]
        told = (self.name, self.account_label, self.purpose)
        words += [f'"{" ".join(text.split())[:80]}"' for text in told if text]
        return " · ".join(words + ([", ".join(self.hosts)] if self.hosts else []))


class RuntimeEntry(Part):
    browser: str | None
    version: str | None
    headless: bool | None
    chromium_sandbox: Literal["on", "off", "off_root"] | None


class SandboxListResult(Result):
    sandboxes: list[SandboxEntry]
    runtime: RuntimeEntry

    def text(self) -> str:
        if not self.sandboxes:
            return "no sandboxes yet; nova.navigate makes the first one"
        return "\n".join(entry.line() for entry in self.sandboxes)


@tool(title="List sandboxes", effect="read", bundles=("sandboxes",), target="none")
async def sandbox_list(ctx: ToolContext, p: SandboxListParams) -> SandboxListResult:
    """Lists your sandboxes, kept ones of earlier servers included, and the browser behind them."""
    browser, full = ctx.browser, p.output_detail == "full"
    mine = [one for one in browser.sandboxes if one.principal == ctx.caller.principal and not one.deleted]
    entries = [_open_entry(ctx, sandbox, full=full) for sandbox in mine]
    entries += [_resting_entry(one, full=full) for one in await browser.sandboxes.resting(ctx.caller.principal)]
    info = browser.info
    runtime = RuntimeEntry(
        browser=info.browser, version=info.version, headless=info.headless, chromium_sandbox=info.chromium_sandbox
    )
    order = sorted(entries, key=lambda entry: (len(entry.sandbox_id), entry.sandbox_id))
    return SandboxListResult(sandboxes=order, runtime=runtime)


def _open_entry(ctx: ToolContext, sandbox: Sandbox, *, full: bool) -> SandboxEntry:
    tabs = ctx.browser.targets.list_tabs(ctx.caller, TabQuery(sandbox_id=sandbox.sandbox_id))
    recent = sorted(tabs, key=lambda tab: -tab.last_activity_ms)
    return SandboxEntry(
        sandbox_id=sandbox.sandbox_id,
        sandbox_ref=sandbox.sandbox_ref,
        persist=sandbox.persistent,
        state="unavailable" if ctx.browser.node_lost else "ready",
        tab_count=len(tabs),
        hosts=_hosts([tab.url for tab in recent]),
        created_at_utc=utc(sandbox.created_at_ms),
        **_told(sandbox.traits, full=full),
    )


def _resting_entry(resting: Resting, *, full: bool) -> SandboxEntry:
    state = resting.state
    return SandboxEntry(
        sandbox_id=state.sandbox_id or "",
        sandbox_ref=state.sandbox_ref,
        persist=True,
        state="unavailable" if resting.held else "ready",
        tab_count=0,
        hosts=_hosts(list(state.urls)),
        created_at_utc=utc(state.created_at_ms),
        **_told(state.traits, full=full),
    )


def _hosts(urls: list[str]) -> list[str]:
    found = dict.fromkeys(host for url in urls if (host := page_host(url)) is not None)
    return list(found)[:MOST_HOSTS]


class _Told(TypedDict, total=False):
    name: str | None
    purpose: str | None
    account_label: str | None
    locale: str | None
    timezone: str | None
    viewport: dict[str, int] | None


def _told(traits: Traits, *, full: bool) -> _Told:
    told = _Told(name=traits.name, purpose=traits.purpose, account_label=traits.account_label)
    if full:
        told |= _Told(locale=traits.locale, timezone=traits.timezone)
        if traits.viewport is not None:
            told["viewport"] = {"width": traits.viewport[0], "height": traits.viewport[1]}
    return told


class SandboxDeleteParams(AgentParams):
    sandbox_id: str = Field(pattern=r"^[A-Z]{1,6}$")
    confirm: Annotated[bool, AfterValidator(_confirmed)] = Field(description="must be true")


class SandboxDeleteResult(Result):
    deleted: bool
    tabs_closed: int
    state_removed: bool
    downloads_removed: int


@tool(title="Delete a sandbox", effect="write", bundles=("sandboxes",), target="none")
async def sandbox_delete(ctx: ToolContext, p: SandboxDeleteParams) -> SandboxDeleteResult:
    """Closes a sandbox with all its tabs and removes its cookies, storage and downloads for good."""
    gone = await delete_sandbox(ctx.browser.targets, ctx.caller, p.sandbox_id)
    return SandboxDeleteResult(
        deleted=True,
        tabs_closed=gone.tabs_closed,
        state_removed=gone.state_removed,
        downloads_removed=gone.downloads_removed,
    )
