"""Acting with the pointer: click one element, or rest on it."""

from typing import Literal

from pydantic import Field

from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.act.hover import hover as hover_over
from nova_mcp.tools.browse.act_support import (
    ACTING_GATES,
    Answering,
    ElementResult,
    act_deadline,
    manner_of,
    reserves,
    tell,
    wish_of,
)
from nova_mcp.tools.browse.screenshot import PicturePart, beside
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import (
    ActParams,
    ContractParams,
    DetailParams,
    DialogParams,
    LeadingParams,
    OneElementParams,
)
from nova_mcp.tools.guarded.guard import CallGuard, Wish
from nova_mcp.tools.spec import RARE, Image, TargetParams, maybe, tool, widened


class ClickParams(TargetParams, OneElementParams, ActParams, LeadingParams, DialogParams, ContractParams, DetailParams):
    button: Literal["left", "middle", "right"] = "left"
    click_count: int = Field(1, ge=1, le=3)
    modifiers: list[Literal["Alt", "Control", "Meta", "Shift"]] = Field(default_factory=list, max_length=4)
    include_screenshot: bool = Field(default=False, json_schema_extra=RARE)


class ClickResult(ElementResult):
    screenshot: PicturePart | None = maybe()

    def images(self) -> tuple[Image, ...]:
        return () if self.screenshot is None or self.screenshot.picture is None else (self.screenshot.picture,)


@tool(
    title="Click",
    effect="act",
    bundles=("core", "browser_automation", "form_submission"),
    gates=ACTING_GATES,
    deadline_ms=act_deadline,
    guards=reserves,
)
async def click_selector(ctx: ToolContext, p: ClickParams) -> ClickResult:
    """Clicks exactly one element, by ref or selector, and reports what really happened. A covered, hidden, disabled or
    ambiguous target is refused untouched. Controls marked [commit] need expect or transitionContract."""
    ctx.tab.require_ready()
    guard = CallGuard(ctx, wish_of(p))
    press = Press(p.button, p.click_count, tuple(p.modifiers))
    acted = await click(ctx.tab, p.element(), press, manner_of(p, guard), ctx.ports)
    told = await tell(ctx, guard, acted, Answering("clicked", detail=p.output_detail))
    return widened(told, ClickResult, screenshot=await beside(ctx) if p.include_screenshot else None)


class HoverParams(TargetParams, OneElementParams, ActParams):
    hold_ms: int = Field(150, ge=0, le=3000)


class HoverResult(ElementResult):
    revealed: list[str]

    def text(self) -> str:
        return "\n".join([super().text(), *self.revealed])


@tool(
    title="Hover",
    effect="act",
    bundles=("browser_automation",),
    gates=ACTING_GATES,
    repeat_safe=True,
    deadline_ms=lambda p: act_deadline(p) + p.hold_ms,
)
async def hover(ctx: ToolContext, p: HoverParams) -> HoverResult:
    """Rests the pointer on one element without pressing; revealed lists what became visible."""
    ctx.tab.require_ready()
    guard = CallGuard(ctx, Wish())
    hovered = await hover_over(ctx.tab, p.element(), p.hold_ms, manner_of(p, guard), ctx.ports)
    known = Judgement(hovered.verdict, repeat_safe=True, differs_reason="action.obstructed")
    return widened(
        await tell(ctx, guard, hovered.acted, Answering("pointer on", known)),
        HoverResult,
        revealed=list(hovered.revealed),
    )
