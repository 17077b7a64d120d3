"""Pictures of a page."""

from hashlib import sha256
from typing import Literal, Self

import anyio.to_thread
from pydantic import Field, model_validator

from nova_mcp.browser.element_area import element_area
from nova_mcp.browser.screenshot import INLINE_LIMIT_BYTES, Region, ShotOptions, capture, screenshot_shelf
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import MaybeElementParams
from nova_mcp.tools.spec import Image, PageResult, Params, TargetParams, maybe, tool
from nova_mcp.tools.times import utc


class RegionParams(Params):
    x: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    y: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    width: float = Field(ge=1, le=20_000, allow_inf_nan=False)
    height: float = Field(ge=1, le=20_000, allow_inf_nan=False)


class CaptureParams(TargetParams, MaybeElementParams):
    region: RegionParams | None = Field(None, description="{x,y,width,height} in page pixels")
    full_page: bool = False
    format: Literal["jpeg", "png"] = "jpeg"
    quality: int = Field(60, ge=1, le=100)
    max_width: int = Field(1024, ge=64, le=4096)
    response_mode: Literal["inline", "reference"] = "inline"

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        chosen = (self.selector or self.ref) is not None, self.region is not None, self.full_page
        if sum(chosen) > 1:
            raise ValueError("give one of element, region and fullPage")
        return self


class CaptureResult(PageResult):
    mime_type: str
    bytes: int
    width: int
    height: int
    source_width: int
    source_height: int
    scale: float
    sha256: str
    uri: str
    captured_at_utc: str
    masked_fields: int = maybe(0)
    cut: bool = maybe(default=False)
    picture: Image | None = Field(default=None, exclude=True)

    def text(self) -> str:
        note = f" · {self.reason_code}: read it at the address" if self.reason_code else ""
        return f"{self.width}×{self.height} {self.mime_type} {self.bytes} bytes {self.uri}{note}"

    def images(self) -> tuple[Image, ...]:
        return () if self.picture is None else (self.picture,)


def shelf_mark(principal: str) -> str:
    """What the names of a principal's pictures begin with, so that nobody is handed another's."""
    return sha256(principal.encode()).hexdigest()[:16]


@tool(
    title="Take a picture",
    effect="read",
    bundles=("core", "browser_automation", "page_reading"),
    deadline_ms=lambda _: 20_000,
    makes_artifacts=True,
)
async def capture_screenshot(ctx: ToolContext, p: CaptureParams) -> CaptureResult:
    """Takes a picture of the viewport, an element, a region or the full page. Secrets are covered."""
    tab = ctx.tab
    tab.require_ready()
    shot = await capture(tab, await _options(ctx, p))
    now = ctx.ports.clock.now_ms()
    shot_id = f"{shelf_mark(ctx.caller.principal)}{ctx.ports.ids.token(16)}"
    await anyio.to_thread.run_sync(screenshot_shelf(ctx.settings.data_dir).put, shot_id, shot, now)
    inline = p.response_mode == "inline" and len(shot.data) <= INLINE_LIMIT_BYTES
    ctx.evidence.selector = p.selector
    ctx.evidence.flags |= {"visual_exposed", "full_document" if p.full_page and not shot.cut else "viewport_only"}
    if inline:
        tab.perceived_epoch = tab.page_epoch
    return CaptureResult(
        target_id=tab.target_id,
        url=tab.url,
        reason_code="screenshot.downgraded" if p.response_mode == "inline" and not inline else None,
        mime_type=shot.mime_type,
        bytes=len(shot.data),
        width=shot.width,
        height=shot.height,
        source_width=shot.source_width,
        source_height=shot.source_height,
        scale=shot.scale,
        sha256=shot.sha256,
        uri=f"nova://screenshot/{shot_id}",
        captured_at_utc=utc(now),
        masked_fields=shot.masked_fields,
        cut=shot.cut,
        picture=Image(shot.data, shot.mime_type) if inline else None,
    )


async def _options(ctx: ToolContext, p: CaptureParams) -> ShotOptions:
    if p.region is not None:
        clip = Region(p.region.x, p.region.y, p.region.width, p.region.height)
        return ShotOptions(p.format, p.quality, p.max_width, clip=clip)
    if (locator := p.locator()) is None:
        return ShotOptions(p.format, p.quality, p.max_width, full_page=p.full_page)
    clip = await element_area(ctx.tab, locator)
    return ShotOptions(p.format, p.quality, p.max_width, clip=clip, in_viewport=True)
