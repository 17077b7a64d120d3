"""Scrolling the page or a box in it."""

import re
from collections.abc import Iterator
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.scroll import SEEK_MS, ScrollRequest, scroll
from nova_mcp.tools.browse.act_support import ACT_MS, ACTING_GATES, Answering, ElementResult, tell
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import REF_PATTERN, MaybeElementParams
from nova_mcp.tools.guarded.guard import CallGuard, Wish
from nova_mcp.tools.spec import TargetParams, tool, widened

_REF: Final = re.compile(REF_PATTERN)


class ScrollParams(TargetParams, MaybeElementParams):
    delta_y: int | None = Field(None, ge=-20_000, le=20_000)
    delta_x: int | None = Field(None, ge=-20_000, le=20_000)
    to: Literal["top", "bottom", "next", "prev"] | None = None
    container: str | None = Field(None, min_length=1, max_length=2000, description="selector or ref of a box")
    settle_ms: int = Field(300, ge=0, le=5000)

    @model_validator(mode="after")
    def _one_wish(self) -> Self:
        wishes = (self.delta_y, self.delta_x, self.to, self.selector, self.ref)
        if sum(wish is not None for wish in wishes) != 1:
            raise ValueError("give exactly one of deltaY, deltaX, to, selector and ref")
        return self

    def request(self) -> ScrollRequest:
        given = self.container
        box = None if given is None else Locator(ref=given) if _REF.match(given) else Locator(selector=given)
        return ScrollRequest(self.locator(), self.delta_x, self.delta_y, self.to, box, self.settle_ms)


class ScrollResult(ElementResult):
    moved_x: int
    moved_y: int
    scroll_top: int
    scroll_height: int
    at_end: bool
    grew_px: int
    new_elements: int
    container: str

    def _details(self) -> Iterator[str]:
        if self.moved_y:
            yield f"{'down' if self.moved_y > 0 else 'up'} {abs(self.moved_y)} px"
        if self.moved_x:
            yield f"{'right' if self.moved_x > 0 else 'left'} {abs(self.moved_x)} px"
        if self.at_end:
            yield "at the end"
        if self.grew_px:
            yield f"grew {self.grew_px} px"
        if self.new_elements:
            yield f"{self.new_elements} new elements"
        yield from super()._details()


@tool(
    title="Scroll",
    effect="act",
    bundles=("browser_automation",),
    gates=ACTING_GATES,
    repeat_safe=True,
    deadline_ms=lambda p: ACT_MS + SEEK_MS + p.settle_ms,
)
async def scroll_smart(ctx: ToolContext, p: ScrollParams) -> ScrollResult:
    """Scrolls by pixels, to an end, by a page, or until an element is in view, and says how far it really went and what
    came with it. Finds the box that scrolls; container names another."""
    ctx.tab.require_ready()
    guard = CallGuard(ctx, Wish())
    done = await scroll(ctx.tab, p.request(), Manner(guard=guard), ctx.ports)
    known = Judgement(done.verdict, repeat_safe=True, differs_reason=done.reason, already_set=done.already)
    at = done.position
    return widened(
        await tell(ctx, guard, done.acted, Answering("scrolled", known)),
        ScrollResult,
        moved_x=at.moved_x,
        moved_y=at.moved_y,
        scroll_top=at.scroll_top,
        scroll_height=at.scroll_height,
        at_end=at.at_end,
        grew_px=at.grew_px,
        new_elements=at.new_elements,
        container=done.container,
    )
