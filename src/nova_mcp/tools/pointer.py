"""Acting on one element: click it, type into it."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from nova_mcp.browser.action_report import ActionReport, EffectRequest
from nova_mcp.browser.input import ClickOptions, click
from nova_mcp.browser.lines import one_line, quoted
from nova_mcp.browser.locate import Prepared
from nova_mcp.browser.text_entry import TypeOptions, type_text
from nova_mcp.tokens import estimate_tokens, fit_tokens
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import ActParams, OneElementParams
from nova_mcp.tools.results import ActResult, DialogSeen, DownloadSeen, EffectSeen, RequestSeen
from nova_mcp.tools.spec import GateId, TargetParams, maybe, tool, widened

SHOWN_TEXT = 80
TEXT_TOKENS = 60
ELEMENT_TOKENS = 25
SEPARATOR = " · "
SHOWN_VALUE = 200
ACTING_GATES: tuple[GateId, ...] = ("claim.owner", "setup.shared_agent_id", "safety.perceive_first")


class ClickParams(TargetParams, OneElementParams, ActParams):
    button: Literal["left", "middle", "right"] = "left"
    click_count: int = Field(1, ge=1, le=3)
    modifiers: list[Literal["Alt", "Control", "Meta", "Shift"]] = Field(default_factory=list, max_length=4)


class ElementResult(ActResult):
    element: str
    ref_rebound: bool = maybe(default=False)
    ref_drift: str | None = maybe()
    http_status: int | None = maybe()
    verb: str = Field(exclude=True)

    def text(self) -> str:
        """One line within the budget: what was done and how sure it is always stand, the rest as far as it fits."""
        head = f"{self.verb} {fit_tokens(self.element, ELEMENT_TOKENS)}"
        verdict = self.verify_state if self.reason_code is None else f"{self.verify_state}: {self.reason_code}"
        shown = [head, verdict]
        for part in self._details():
            longer = [*shown[:-1], part, verdict]
            if estimate_tokens(SEPARATOR.join(longer)) <= TEXT_TOKENS:
                shown = longer
        return SEPARATOR.join(shown)

    def _details(self) -> Iterator[str]:
        """What happened, most telling first; text of the page is quoted and stays on one line."""
        yield from (f"{dialog.type} {dialog.answer}" for dialog in self.dialogs[:2])
        yield from (f"new tab {tab_id}" for tab_id in self.new_tab_ids[:2])
        yield from (f"{one.method} {one_line(one.path, 60)} {_came_back(one)}" for one in self.effect.requests[:2])
        if "navigation" in self.effect.channels or "url_changed" in self.effect.channels:
            yield f"now {one_line(self.url, SHOWN_TEXT)}"
        yield from (quoted(line, SHOWN_TEXT) for line in self.effect.new_text[:1])


class TypeResult(ElementResult):
    value_matches: bool
    actual_value: str | None = maybe()
    method_used: str
    typed_chars: int


def _came_back(request: RequestSeen) -> str:
    if request.pending:
        return "pending"
    return str(request.status) if request.status is not None else "failed"


def act_deadline(p: ActParams) -> int:
    return p.timeout_ms + (p.navigation_timeout_ms if p.wait_for_navigation else 0) + 10_000


async def _witness(ctx: ToolContext, prepared: Prepared) -> None:
    """Called right before input is sent: from here on the ledger must say that the page was touched."""
    evidence = ctx.evidence
    evidence.action_dispatched = True
    evidence.selector = prepared.selector
    evidence.fingerprint_id = prepared.fingerprint
    evidence.input_is_harmless = not prepared.secret
    evidence.flags.add("mutation_attempted")


def _note(ctx: ToolContext, report: ActionReport) -> None:
    evidence = ctx.evidence
    evidence.action_dispatched = report.action_dispatched
    evidence.verification = report.verify_state
    if report.action_dispatched and report.effect.observed:
        evidence.flags.add("mutation_committed")
    if report.navigation is not None:
        evidence.flags.add("navigation_committed")


def _request(one: EffectRequest) -> RequestSeen:
    status = one.status if isinstance(one.status, int) else None
    return RequestSeen(method=one.method, path=one.path, status=status, pending=one.status == "pending")


def _told(ctx: ToolContext, report: ActionReport, verb: str) -> ElementResult:
    effect = report.effect
    return ElementResult(
        ok=report.status == "ok",
        status=report.status,
        target_id=ctx.tab.target_id,
        url=report.url,
        reason_code=report.reason_code,
        stage=report.stage,
        retryable=report.retryable,
        retry_advice=report.retry_advice,
        action_dispatched=report.action_dispatched,
        dispatch_proof=report.dispatch_proof,
        effect=EffectSeen(
            observed=effect.observed,
            channels=list(effect.channels),
            new_text=list(effect.new_text),
            requests=[_request(one) for one in effect.requests],
            window_ms=effect.window_ms,
        ),
        verify_state=report.verify_state,
        rev=report.rev,
        dialogs=[DialogSeen(type=d.type, message=d.message, answer=d.answer) for d in report.dialogs],
        new_tab_ids=list(report.new_tab_ids),
        popups_closed=report.popups_closed,
        downloads=[DownloadSeen(file_name=d.file_name, state=d.state) for d in report.downloads],
        element=report.element,
        ref_rebound=report.ref_rebound,
        ref_drift=report.ref_drift,
        http_status=report.navigation.http_status if report.navigation else None,
        verb=verb,
    )


@tool(
    title="Click",
    effect="act",
    bundles=("core", "browser_automation", "form_submission"),
    gates=ACTING_GATES,
    deadline_ms=act_deadline,
)
async def click_selector(ctx: ToolContext, p: ClickParams) -> ElementResult:
    """Clicks exactly one element, by ref or selector, and reports what really happened. A covered, hidden, disabled or
    ambiguous target is refused untouched, and so are controls marked [commit]."""
    ctx.tab.require_ready()
    options = ClickOptions(
        button=p.button,
        click_count=p.click_count,
        modifiers=tuple(p.modifiers),
        timeout_ms=p.timeout_ms,
        wait_for_navigation=p.wait_for_navigation,
        navigation_timeout_ms=p.navigation_timeout_ms,
        on_dialog=p.on_dialog,
        prompt_text=p.prompt_text,
        on_dispatch=lambda prepared: _witness(ctx, prepared),
    )
    report = await click(ctx.tab, p.element(), options, ctx.ports)
    _note(ctx, report)
    return _told(ctx, report, "clicked")


class TypeParams(TargetParams, OneElementParams, ActParams):
    text: str = Field(max_length=100_000)
    clear: bool = True
    method: Literal["auto", "fill", "keys"] = "auto"
    press_enter: bool = False


@tool(
    title="Type",
    effect="act",
    bundles=("core", "browser_automation", "form_submission"),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + len(p.text) // 4,
    private_arguments=("text",),
)
async def type_selector(ctx: ToolContext, p: TypeParams) -> TypeResult:
    """Types into one field and reads it back; Enter follows only if the field holds exactly that text."""
    ctx.tab.require_ready()
    options = TypeOptions(
        text=p.text,
        clear=p.clear,
        method=p.method,
        press_enter=p.press_enter,
        timeout_ms=p.timeout_ms,
        wait_for_navigation=p.wait_for_navigation,
        navigation_timeout_ms=p.navigation_timeout_ms,
        on_dialog=p.on_dialog,
        prompt_text=p.prompt_text,
        on_dispatch=lambda prepared: _witness(ctx, prepared),
    )
    report = await type_text(ctx.tab, p.element(), options, ctx.ports)
    _note(ctx, report)
    ctx.evidence.flags.add("input_supplied")
    typed = report.typed
    if typed is None:
        raise LookupError("a typing report always says what was typed")
    return widened(
        _told(ctx, report, f"typed {typed.typed_chars} characters into"),
        TypeResult,
        value_matches=typed.value_matches,
        actual_value=None if typed.value_matches else typed.actual_value[:SHOWN_VALUE],
        method_used=typed.method_used,
        typed_chars=typed.typed_chars,
    )
