"""Searching the page for words."""

from typing import Literal

from pydantic import Field

from nova_mcp.browser.perceive.element_lines import is_fragile, one_line, quoted, shown_selector
from nova_mcp.browser.read.search import FoundText, SearchReport, SearchRequest
from nova_mcp.browser.read.search import search_text as search
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.spec import RARE, PageResult, Part, TargetParams, maybe, tool

MAX_URL = 300


class SearchTextParams(TargetParams):
    text: str = Field(min_length=1, max_length=500, pattern=PRINTABLE)
    match: Literal["contains", "exact", "starts_with", "regex"] = "contains"
    case_sensitive: bool = Field(default=False, json_schema_extra=RARE)
    visible_only: bool = True
    max_results: int = Field(20, ge=1, le=200)
    context_chars: int = Field(80, ge=0, le=400, json_schema_extra=RARE)


class TextMatch(Part):
    ref: str
    tag: str
    snippet: str
    selector: str | None
    fragile: bool = maybe(default=False)
    visible: bool
    in_viewport: bool
    line: str = Field(exclude=True)


class SearchTextResult(PageResult):
    count: int
    matches: list[TextMatch]
    scan_truncated: bool = maybe(default=False)
    unsearched_frames: int = maybe(0)
    navigated_during_call: bool = maybe(default=False)

    def text(self) -> str:
        shown = f", shown {len(self.matches)}" if len(self.matches) < self.count else ""
        head = [f"{self.target_id} {self.url} · {self.count} found{shown}"]
        if self.scan_truncated:
            head.append("the page is too large to be searched whole")
        if self.unsearched_frames:
            head.append(f"{self.unsearched_frames} frames of other sites not searched")
        return "\n".join([" · ".join(head), *(match.line for match in self.matches)])


@tool(title="Search text", effect="read", bundles=("core", "page_reading"), deadline_ms=lambda _: 40_000)
async def search_text(ctx: ToolContext, p: SearchTextParams) -> SearchTextResult:
    """Finds words anywhere on the page and gives a ref, a snippet and a selector for each place."""
    ctx.tab.require_ready()
    request = SearchRequest(p.text, p.match, p.case_sensitive, p.visible_only, p.max_results, p.context_chars)
    report = await search(ctx.tab, request)
    ctx.evidence.flags.add("search_executed")
    if report.matches:
        ctx.evidence.flags.add("content_exposed")
    return _found(ctx.tab.target_id, report)


def _found(target_id: str, report: SearchReport) -> SearchTextResult:
    return SearchTextResult(
        target_id=target_id,
        url=one_line(report.url, MAX_URL),
        count=report.count,
        matches=[_match(found) for found in report.matches],
        scan_truncated=report.scan_truncated,
        unsearched_frames=report.unsearched_frames,
        navigated_during_call=report.navigated_during_call,
    )


def _match(found: FoundText) -> TextMatch:
    flags = [] if found.visible else ["hidden"]
    if found.visible and not found.in_viewport:
        flags.append("offscreen")
    known = found.selector
    if known is not None and is_fragile(known):
        flags.append("fragile")
    shown = shown_selector(known)
    tail = f" [{' '.join(flags)}]" if flags else ""
    return TextMatch(
        ref=found.ref,
        tag=found.element.facts.tag,
        snippet=found.snippet,
        selector=None if known is None else known.selector,
        fragile=found.fragile,
        visible=found.visible,
        in_viewport=found.in_viewport,
        line=f"{found.ref} {found.element.facts.tag[:40]} {quoted(found.snippet, 1400)} {shown}{tail}",
    )
