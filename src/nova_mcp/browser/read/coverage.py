"""Registered scans of a page: its text and build taken by one question, measured by another, once it has settled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.page import READING_SOURCES, scan_hash, source_hash
from nova_mcp.browser.read.text import ReadReport
from nova_mcp.core.hosts import normalize_host, site
from nova_mcp.core.urls import normalize_url, page_host, url_hash
from nova_mcp.core.values import Json
from nova_mcp.evidence.page_sights import Channels, Hydration, ScanMeasures, ScanSeen

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

ANSWER_MS: Final = 10_000
PAUSE_MS: Final = 500
# A read is not held up as long as a scan: a page that is still growing by then is called unstable.
READ_SETTLES_MS: Final = 1_500
STEADY_CHARS: Final = 20
STEADY_PERCENT: Final = 2
_COUNTS: Final = ("button", "input", "link", "form", "heading", "modalLike")


@dataclass(frozen=True, slots=True)
class ScanOptions:
    scan_id: str
    shadow_dom: bool = True
    iframes: bool = True
    # How long a page may take to stop growing; None does not look.
    hydration_ms: int | None = 5_000
    max_chars: int = 8_000


@dataclass(frozen=True, slots=True)
class Skeleton:
    """How a page is built: its sections in order, its landmarks, its roles, and how many controls of which kind."""

    tag_order: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = tuple((name, 0) for name in _COUNTS)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text with the way it is said and its language, as far as the page names one."""

    channel: str
    lang: str
    text: str


@dataclass(frozen=True, slots=True)
class ScanLook:
    """What a scan saw. `length` is that of the visible text, `total` the number of all blocks before any was cut."""

    url_before: str
    url_after: str
    measures: ScanMeasures
    skeleton: Skeleton = Skeleton()
    links: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    total: int = 0
    length: int = 0
    hidden: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    chars: int
    whole: bool
    ready: bool
    status: int | None
    url: str


class ScanFailed(Exception):
    """The script threw, gave an answer of another shape, or lost its document on the way."""


async def scan(tab: "Tab", options: ScanOptions) -> ScanLook:
    """Wait until the page has settled, take it in, and measure it apart. A scan that failed is told as one."""
    before, epoch = tab.url, tab.page_epoch
    hydration: Hydration = "unchecked"
    try:
        if options.hydration_ms is not None:
            hydration = await hydrated(tab, options.hydration_ms, iframes=options.iframes)
        told = await _ask(tab, "coverageScan", _question(options))
        measured = await measure(tab, iframes=options.iframes)
        look = _read(told, measured, options, before)
        if tab.page_epoch != epoch and normalize_url(tab.url) == normalize_url(before):
            raise ScanFailed
    except ScanFailed:
        look = ScanLook("", "", ScanMeasures(url_hash="", failed=True))
    return _placed(look, tab, before, hydration)


async def hydrated(tab: "Tab", timeout_ms: int, *, iframes: bool = True) -> Hydration:
    """Whether the text of a loaded page stays what it is for half a second, within the time given."""
    deadline = anyio.current_time() + timeout_ms / 1000
    earlier = await measure(tab, iframes=iframes)
    while anyio.current_time() + PAUSE_MS / 1000 <= deadline:
        await anyio.sleep(PAUSE_MS / 1000)
        later = await measure(tab, iframes=iframes)
        if later.ready and is_steady(earlier.chars, later.chars):
            return "stable"
        earlier = later
    return "unstable"


async def measure(tab: "Tab", *, iframes: bool = True) -> Measured:
    told = await _ask(tab, "coverageMeasure", {"frames": iframes})
    try:
        tab.learn_status(told["status"])
        return Measured(int(told["chars"]), bool(told["whole"]), bool(told["ready"]), tab.http_status, str(told["url"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ScanFailed from error


async def judged_read(tab: "Tab", report: ReadReport) -> ScanSeen | None:
    """A text that was read to its end, as the scan it amounts to; None where the page was gone before it could be."""
    before, epoch = tab.url, tab.page_epoch
    try:
        hydration = await hydrated(tab, READ_SETTLES_MS)
        measured = await measure(tab)
    except ScanFailed:
        return None
    if tab.page_epoch != epoch or normalize_url(report.url) != normalize_url(before):
        return None
    measures = ScanMeasures(
        url_hash=_hash(before),
        url_changed=is_elsewhere(before, tab.url, measured.url),
        hydration=hydration,
        http_status=measured.status,
        extracted_chars=report.letters,
        measured_chars=measured.chars,
        whole=measured.whole and not report.scan_truncated,
        channels=Channels(visible_text=True),
    )
    return ScanSeen("nova_full_page_text_v1", source_hash(READING_SOURCES), measures, asks_channels=False)


def is_steady(earlier_chars: int, later_chars: int) -> bool:
    """Whether two measures of a page's text say that it has stopped growing."""
    change = abs(later_chars - earlier_chars)
    return change <= STEADY_CHARS or 100 * change <= STEADY_PERCENT * max(earlier_chars, later_chars)


def is_elsewhere(url: str, *others: str) -> bool:
    """Whether one of these addresses is another page's."""
    return any(normalize_url(other) != normalize_url(url) for other in others)


async def _ask(tab: "Tab", question: str, args: Json) -> dict[str, Any]:
    try:
        told = await tab.channel.ask(question, args, timeout_ms=ANSWER_MS)
    except (DocumentChanged, PageScriptError) as error:
        raise ScanFailed from error
    if not isinstance(told, dict):
        raise ScanFailed
    return told


def _question(options: ScanOptions) -> Json:
    return {
        "scanId": options.scan_id,
        "shadow": options.shadow_dom,
        "frames": options.iframes,
        "maxChars": options.max_chars,
    }


def _read(told: Mapping[str, Any], measured: Measured, options: ScanOptions, before: str) -> ScanLook:
    try:
        channels = set(told["channels"])
        hidden = told["hidden"]
        return ScanLook(
            url_before="",
            url_after="",
            measures=ScanMeasures(
                url_hash="",
                # A page may go elsewhere and be back before the tab is looked at again; its own answers say where.
                url_changed=is_elsewhere(before, str(told["url"]), measured.url),
                http_status=measured.status,
                extracted_chars=int(told["chars"]),
                measured_chars=measured.chars,
                nodes=int(told["nodes"]),
                iframes=int(told["iframes"]),
                frames=int(told["frames"]),
                opaque_frames=int(told["opaqueFrames"]),
                shadow_roots=int(told["shadowRoots"]),
                whole=bool(told["whole"]) and measured.whole,
                channels=Channels("text" in channels, "aria" in channels, "input" in channels, "alt" in channels),
                shadow_included=options.shadow_dom,
                frames_included=options.iframes,
            ),
            skeleton=_skeleton(told["skeleton"]),
            links=tuple(str(link) for link in told["links"]),
            blocks=tuple(Block(str(channel), str(lang), str(text)) for channel, lang, text in told["blocks"]),
            total=int(told["total"]),
            length=int(told["length"]),
            hidden=None if hidden is None else (int(hidden["elements"]), int(hidden["chars"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ScanFailed from error


def _skeleton(told: Mapping[str, Any]) -> Skeleton:
    return Skeleton(
        tuple(map(str, told["tagOrder"])),
        tuple(map(str, told["landmarks"])),
        tuple(map(str, told["roles"])),
        tuple((name, int(told["counts"][name])) for name in _COUNTS),
    )


def _placed(look: ScanLook, tab: "Tab", before: str, hydration: Hydration) -> ScanLook:
    measures = replace(
        look.measures,
        url_hash=_hash(before),
        url_changed=look.measures.url_changed or is_elsewhere(before, tab.url),
        hydration=hydration,
        http_status=tab.http_status,
    )
    return replace(look, url_before=before, url_after=tab.url, measures=measures, links=same_site(look.links, tab.url))


def same_site(links: tuple[str, ...], url: str) -> tuple[str, ...]:
    """The links that stay on the site of a page, each once in normal form."""
    here = _site(url)
    found = dict.fromkeys(normal for link in links if (normal := normalize_url(link)) is not None)
    return tuple(link for link in found if here is not None and _site(link) == here)


def _site(url: str) -> str | None:
    raw = page_host(url)
    host = None if raw is None else normalize_host(raw)
    return None if host is None else site(host)


def _hash(url: str) -> str:
    return url_hash(normalize_url(url) or url)


def seen(look: ScanLook, scan_id: str, skeleton_json: str) -> ScanSeen:
    return ScanSeen(scan_id, scan_hash(scan_id), look.measures, skeleton_json, look.links)
