"""Waiting for the page."""

from typing import Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.read.wait import WaitRequest, wait_for
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import OneElementParams
from nova_mcp.tools.spec import PageResult, TargetParams, maybe, tool

MAX_URL = 300
SHOWN_TEXT = 200


class WaitParams(TargetParams, OneElementParams):
    state: Literal["visible", "hidden", "attached", "detached"] = "visible"
    timeout_ms: int = Field(10_000, ge=0, le=120_000)
    stable_ms: int = Field(0, ge=0, le=10_000, description="text unchanged for so long")

    @model_validator(mode="after")
    def _room_for_rest(self) -> Self:
        if self.stable_ms > self.timeout_ms:
            raise ValueError("stableMs must not be longer than timeoutMs")
        return self


class WaitResult(PageResult):
    met: bool = True
    waited_ms: int
    match_count: int
    element: str | None = maybe()
    element_text: str | None = Field(None, serialization_alias="text", exclude_if=lambda text: not text)
    wanted: str = Field(exclude=True)

    def text(self) -> str:
        parts = [f"{self.wanted} after {self.waited_ms} ms"]
        if self.match_count > 1:
            parts.append(f"{self.match_count} matches")
        if self.element:
            parts.append(self.element)
        if self.element_text:
            parts.append(quoted(self.element_text, SHOWN_TEXT))
        return " · ".join(parts)


@tool(
    title="Wait for an element",
    effect="read",
    bundles=("browser_automation", "form_submission"),
    # Whoever waits holds nobody up: others may act on the page meanwhile.
    lock="none",
    deadline_ms=lambda p: p.timeout_ms,
)
async def wait_for_selector(ctx: ToolContext, p: WaitParams) -> WaitResult:
    """Waits until an element is visible, hidden, attached or detached; with stableMs, until its text stands still."""
    ctx.tab.require_ready()
    report = await wait_for(ctx.tab, WaitRequest(p.element(), p.state, p.timeout_ms, p.stable_ms))
    ctx.evidence.selector = p.selector
    return WaitResult(
        target_id=ctx.tab.target_id,
        url=one_line(report.url, MAX_URL),
        waited_ms=report.waited_ms,
        match_count=report.match_count,
        element=report.element,
        element_text=report.text,
        wanted=p.state,
    )
