"""Pictures of a page: scaled by the browser, secrets covered before encoding, kept for a day."""

import base64
import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.urls import MAX_PAGE_ADDRESS
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, Unavailable

ImageFormat = Literal["jpeg", "png"]

FOLDER = "screenshots"
MAX_HEIGHT_PX = 20_000
MAX_AREA_PX = 20_000_000
INLINE_LIMIT_BYTES = 1_000_000
KEEP_MS = 24 * 3600 * 1000
KEEP_BYTES = 500_000_000
RECEIPT_FOLDER = "receipts"
RECEIPT_KEEP_MS = 30 * KEEP_MS
CAPTURE_MS = 10_000
_ADDRESS = f"location.href.slice(0,{MAX_PAGE_ADDRESS})"

# Which secrets may be looked for in a frame, by the address of the page and of the frame.
SecretsAt = Callable[[str, str], Sequence[str]]


def no_secrets(top_url: str, frame_url: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle in CSS pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ShotOptions:
    """What to picture. A clip lies in the document; `in_viewport` says it was measured on screen instead."""

    format: ImageFormat = "jpeg"
    quality: int = 60
    max_width: int = 1024
    full_page: bool = False
    clip: Region | None = None
    in_viewport: bool = False
    # Elements to frame in the picture, by frame: node and what to write beside it.
    marks: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the window stands on the document."""

    viewport: Region
    content_width: float
    content_height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """What the browser is asked for; `cut` when a full page was longer than a picture may be."""

    area: Region
    scale: float
    beyond_viewport: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Shot:
    """An encoded picture and its measure."""

    data: bytes
    mime_type: str
    width: int
    height: int
    source_width: int
    source_height: int
    scale: float
    sha256: str
    masked_fields: int = 0
    cut: bool = False
    marked: int = 0


def frame_shot(layout: Layout, options: ShotOptions) -> Frame | None:
    """The area to picture and its scale; nothing when the clip holds no pixel of the document."""
    view = layout.viewport
    cut = False
    if options.clip is not None:
        clip = options.clip
        left, top = (clip.x + view.x, clip.y + view.y) if options.in_viewport else (clip.x, clip.y)
        area = _inside(Region(left, top, clip.width, clip.height), layout)
    elif options.full_page:
        area = Region(0, 0, max(1.0, layout.content_width), max(1.0, layout.content_height))
    else:
        area = view
    if area.width < 1 or area.height < 1:
        return None
    limit = min(MAX_HEIGHT_PX, int(MAX_AREA_PX / area.width))
    if area.height > limit:
        area, cut = Region(area.x, area.y, area.width, limit), True
    beyond = not _contains(view, area)
    return Frame(area, min(1.0, options.max_width / area.width), beyond, cut)


def _inside(clip: Region, layout: Layout) -> Region:
    width = max(layout.content_width, layout.viewport.x + layout.viewport.width)
    height = max(layout.content_height, layout.viewport.y + layout.viewport.height)
    left, top = max(0.0, clip.x), max(0.0, clip.y)
    return Region(left, top, min(clip.x + clip.width, width) - left, min(clip.y + clip.height, height) - top)


def _contains(outer: Region, inner: Region) -> bool:
    return (
        inner.x >= outer.x
        and inner.y >= outer.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height as the file itself states them."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack(">II", data[16:24])
        return int(width), int(height)
    at = 2
    while at + 9 < len(data):
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return int(width), int(height)
        at += 2 + length
    raise ValueError("neither a PNG nor a JPEG file")


async def capture(tab: Tab, options: ShotOptions, secrets_at: SecretsAt = no_secrets) -> Shot:
    """Picture a tab; what holds or shows a secret is covered while it is taken."""
    tab.require_ready()
    frame = frame_shot(await _layout(tab), options)
    if frame is None:
        raise NotFound("screenshot.not_capturable")
    marked = 0
    covered: dict[str, int] = {}
    try:
        covered = await _cover(tab, secrets_at)
        marked = await _mark(tab, options.marks)
        data = await _encoded(tab, frame, options)
    finally:
        with anyio.CancelScope(shield=True):
            await _asked(tab, options.marks, "unmark")
            await _asked(tab, covered, "uncover")
    width, height = image_size(data)
    return Shot(
        data=data,
        mime_type=f"image/{options.format}",
        width=width,
        height=height,
        source_width=round(frame.area.width),
        source_height=round(frame.area.height),
        scale=round(frame.scale, 4),
        sha256=hashlib.sha256(data).hexdigest(),
        masked_fields=sum(covered.values()),
        cut=frame.cut,
        marked=marked,
    )


async def _layout(tab: Tab) -> Layout:
    metrics = await tab.channel.send("Page.getLayoutMetrics")
    view, content = metrics["cssVisualViewport"], metrics["cssContentSize"]
    return Layout(
        Region(view["pageX"], view["pageY"], view["clientWidth"], view["clientHeight"]),
        content["width"],
        content["height"],
    )


async def _encoded(tab: Tab, frame: Frame, options: ShotOptions) -> bytes:
    area = frame.area
    clip = {"x": area.x, "y": area.y, "width": area.width, "height": area.height, "scale": frame.scale}
    request: dict[str, Json] = {
        "format": options.format,
        "clip": {**clip},
        "captureBeyondViewport": frame.beyond_viewport,
    }
    if options.format == "jpeg":
        request["quality"] = options.quality
    answer = await tab.channel.send("Page.captureScreenshot", request, timeout_ms=CAPTURE_MS)
    return base64.b64decode(answer["data"])


async def _cover(tab: Tab, secrets_at: SecretsAt) -> dict[str, int]:
    """How much was covered in each frame; a frame that left meanwhile is not in the picture either."""
    covered: dict[str, int] = {}
    # A secret that is not meant for the page itself is not meant for any of its frames.
    expected = bool(secrets_at(tab.url, tab.url))
    for frame_id in await tab.channel.frame_ids():
        try:
            secrets: Sequence[str] = ()
            if expected:
                url = await tab.channel.evaluate(_ADDRESS, frame_id=frame_id)
                secrets = secrets_at(tab.url, url if isinstance(url, str) else "")
            count = await tab.channel.ask("cover", {"secrets": list(secrets)}, frame_id=frame_id)
        except (DocumentChanged, NotFound, PageScriptError):
            continue
        covered[frame_id] = count if isinstance(count, int) else 0
    return covered


async def _mark(tab: Tab, marks: Mapping[str, Sequence[tuple[int, str]]]) -> int:
    marked = 0
    for frame_id, wanted in marks.items():
        try:
            drawn = await tab.channel.ask("mark", {"wanted": [list(one) for one in wanted]}, frame_id=frame_id or None)
        except (DocumentChanged, NotFound, PageScriptError):
            continue
        marked += drawn if isinstance(drawn, int) else 0
    return marked


async def _asked(tab: Tab, frames: Iterable[str], question: str) -> None:
    """Put the page back as it was, wherever it is still there."""
    for frame_id in frames:
        try:
            await tab.channel.ask(question, frame_id=frame_id or None)
        except (DocumentChanged, NotFound, PageScriptError, Unavailable):
            continue


# -- keeping


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored picture."""

    name: str
    size: int
    made_at_ms: int


def outdated(kept: Sequence[Kept], now_ms: int, keep_ms: int = KEEP_MS) -> tuple[str, ...]:
    """Which pictures go: those past their time, then the oldest beyond the allowed total."""
    gone: list[str] = []
    total = 0
    for one in sorted(kept, key=lambda one: (-one.made_at_ms, one.name)):
        total += one.size
        if now_ms - one.made_at_ms > keep_ms or total > KEEP_BYTES:
            total -= one.size
            gone.append(one.name)
    return tuple(gone)


def screenshot_shelf(data_dir: Path) -> "ScreenshotShelf":
    return ScreenshotShelf(data_dir / FOLDER)


def receipt_shelf(data_dir: Path) -> "ScreenshotShelf":
    """Pictures that prove a commit stay as long as the commit is remembered."""
    return ScreenshotShelf(data_dir / RECEIPT_FOLDER, RECEIPT_KEEP_MS)


class ScreenshotShelf:
    """The folder of pictures; blocking, so call it from a worker thread."""

    def __init__(self, folder: Path, keep_ms: int = KEEP_MS) -> None:
        self._folder = folder
        self._keep_ms = keep_ms

    def put(self, shot_id: str, shot: Shot, now_ms: int) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{shot_id}.{shot.mime_type.removeprefix('image/')}"
        draft = path.with_suffix(".part")
        draft.write_bytes(shot.data)
        draft.chmod(0o600)
        draft.replace(path)
        self.prune(now_ms)
        return path

    def find(self, shot_id: str) -> Path | None:
        """The file behind `nova://screenshot/<id>`; ids are hex, so nothing else is looked up."""
        if not shot_id or any(c not in "0123456789abcdef" for c in shot_id):
            return None
        return next((path for path in self._folder.glob(f"{shot_id}.*") if path.suffix in (".jpeg", ".png")), None)

    def prune(self, now_ms: int) -> int:
        kept = [Kept(path.name, at.st_size, int(at.st_mtime * 1000)) for path, at in self._files()]
        names = outdated(kept, now_ms, self._keep_ms)
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        return len(names)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        for path in self._folder.glob("*.*"):
            try:
                found.append((path, path.stat()))
            except FileNotFoundError:
                continue
        return found
