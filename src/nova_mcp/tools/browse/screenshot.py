"""Pictures of a page."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, Self

import anyio.to_thread
from pydantic import Field, model_validator

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.read.element_area import element_area
from nova_mcp.browser.read.marks import every_mark, one_mark, widened_area
from nova_mcp.browser.read.screenshot import INLINE_LIMIT_BYTES, Region, Shot, ShotOptions, capture, screenshot_shelf
from nova_mcp.errors import NovaError
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import MaybeElementParams
from nova_mcp.tools.spec import RARE, Image, PageResult, Params, Part, TargetParams, maybe, tool
from nova_mcp.tools.times import utc

BESIDE_LIMIT_S = 3.0
MAX_URL = 300


class RegionParams(Params):
    x: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    y: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    width: float = Field(ge=1, le=20_000, allow_inf_nan=False)
    height: float = Field(ge=1, le=20_000, allow_inf_nan=False)


class CaptureParams(TargetParams, MaybeElementParams):
    region: RegionParams | None = Field(None, description="{x,y,width,height} in page pixels", json_schema_extra=RARE)
    full_page: bool = False
    format: Literal["jpeg", "png"] = Field("jpeg", json_schema_extra=RARE)
    quality: int = Field(60, ge=1, le=100, json_schema_extra=RARE)
    max_width: int = Field(1024, ge=64, le=4096)
    response_mode: Literal["inline", "reference"] = Field("inline", json_schema_extra=RARE)
    highlight: bool = Field(default=False, description="frames the element, or all with their refs")

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
    highlighted: int = maybe(0)
    picture: Image | None = Field(default=None, exclude=True)

    def text(self) -> str:
        note = f" · {self.reason_code}: read it at the address" if self.reason_code else ""
        return f"{self.width}×{self.height} {self.mime_type} {self.bytes} bytes {self.uri}{note}"

    def images(self) -> tuple[Image, ...]:
        return () if self.picture is None else (self.picture,)


class PicturePart(Part):
    """A picture that came along with another answer."""

    uri: str
    mime_type: str
    bytes: int
    width: int
    height: int
    sha256: str
    captured_at_utc: str
    masked_fields: int = maybe(0)
    picture: Image | None = Field(default=None, exclude=True)


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
    shot = await capture(tab, await _options(ctx, p), ctx.secrets.shown_at)
    kept = await _kept(ctx, shot)
    inline = p.response_mode == "inline" and len(shot.data) <= INLINE_LIMIT_BYTES
    ctx.evidence.selector = p.selector
    ctx.evidence.flags |= {"visual_exposed", "full_document" if p.full_page and not shot.cut else "viewport_only"}
    if inline:
        tab.perceived_epoch = tab.page_epoch
    return CaptureResult(
        target_id=tab.target_id,
        url=one_line(tab.url, MAX_URL),
        reason_code="screenshot.downgraded" if p.response_mode == "inline" and not inline else None,
        mime_type=shot.mime_type,
        bytes=len(shot.data),
        width=shot.width,
        height=shot.height,
        source_width=shot.source_width,
        source_height=shot.source_height,
        scale=shot.scale,
        sha256=shot.sha256,
        uri=kept.uri,
        captured_at_utc=kept.captured_at_utc,
        masked_fields=shot.masked_fields,
        cut=shot.cut,
        highlighted=shot.marked,
        picture=Image(shot.data, shot.mime_type) if inline else None,
    )


@dataclass(frozen=True, slots=True)
class _KeptShot:
    uri: str
    captured_at_utc: str


async def _kept(ctx: ToolContext, shot: Shot) -> _KeptShot:
    """The picture on the shelf, and its weight on the session's account."""
    now = ctx.ports.clock.now_ms()
    shot_id = f"{shelf_mark(ctx.caller.principal)}{ctx.ports.ids.token(16)}"
    await anyio.to_thread.run_sync(screenshot_shelf(ctx.settings.data_dir).put, shot_id, shot, now)
    ctx.evidence.image_bytes += len(shot.data)
    return _KeptShot(f"nova://screenshot/{shot_id}", utc(now))


async def beside(ctx: ToolContext) -> PicturePart | None:
    """A picture that rides on another call; where none can be taken, that call's answer stands without it."""
    tab = ctx.evidence.tab
    if tab is None:
        return None
    with anyio.move_on_after(BESIDE_LIMIT_S):
        try:
            shot = await capture(tab, ShotOptions(), ctx.secrets.shown_at)
            kept = await _kept(ctx, shot)
        except (NovaError, DocumentChanged, PageScriptError, OSError):
            return None
        ctx.evidence.flags |= {"visual_exposed", "viewport_only"}
        inline = Image(shot.data, shot.mime_type) if len(shot.data) <= INLINE_LIMIT_BYTES else None
        return PicturePart(
            uri=kept.uri,
            mime_type=shot.mime_type,
            bytes=len(shot.data),
            width=shot.width,
            height=shot.height,
            sha256=shot.sha256,
            captured_at_utc=kept.captured_at_utc,
            masked_fields=shot.masked_fields,
            picture=inline,
        )
    return None


async def _options(ctx: ToolContext, p: CaptureParams) -> ShotOptions:
    if p.region is not None:
        clip = Region(p.region.x, p.region.y, p.region.width, p.region.height)
        marks = await every_mark(ctx.tab, whole=True) if p.highlight else {}
        return ShotOptions(p.format, p.quality, p.max_width, clip=clip, marks=marks)
    if (locator := p.locator()) is None:
        marks = await every_mark(ctx.tab, whole=p.full_page) if p.highlight else {}
        return ShotOptions(p.format, p.quality, p.max_width, full_page=p.full_page, marks=marks)
    clip = await element_area(ctx.tab, locator)
    marks = await one_mark(ctx.tab, locator) if p.highlight else {}
    # With its surroundings, or the frame around the element would be all that is added.
    clip = widened_area(clip) if p.highlight else clip
    return ShotOptions(p.format, p.quality, p.max_width, clip=clip, in_viewport=True, marks=marks)
