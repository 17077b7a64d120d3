"""Reading: what the page says."""

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.read.coverage import judged_read
from nova_mcp.browser.read.progress import Piece, advanced
from nova_mcp.browser.read.text import ReadReport, ReadRequest, as_page_text
from nova_mcp.browser.read.text import read_text as read
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import MaybeElementParams
from nova_mcp.tools.read.hint import unless_down
from nova_mcp.tools.spec import PageResult, TargetParams, maybe, tool

MAX_URL = 300
ReadScope = Literal["auto", "main", "page"]


class ReadTextParams(TargetParams, MaybeElementParams):
    scope: ReadScope = "auto"
    max_chars: int = Field(8000, ge=200, le=200_000)
    offset: int = Field(0, ge=0, le=5_000_000)
    continuation_token: str | None = Field(None, min_length=1, max_length=512)
    include_hidden: bool = False

    @model_validator(mode="after")
    def _one_position(self) -> Self:
        if self.continuation_token is not None and self.offset != 0:
            raise ValueError("give offset or continuationToken, not both")
        return self


class ReadTextResult(PageResult):
    page_text: str = Field(serialization_alias="text")
    chars: int
    total_chars: int
    scope_used: str
    truncated: bool = maybe(default=False)
    continuation_token: str | None = maybe()
    content_hash: str
    scan_truncated: bool = maybe(default=False)
    navigated_during_call: bool = maybe(default=False)

    def text(self) -> str:
        """What Nova says stands in the first line; everything below it is the page's."""
        head = f"{self.target_id} {self.url} · {self.chars} of {self.total_chars} characters"
        parts = [f"{head} ({self.scope_used})"]
        if self.scan_truncated:
            parts.append("the page is too large to be read whole")
        if self.truncated:
            parts.append(f"more: continuationToken {self.continuation_token}")
        return f"{' · '.join(parts)}\n{as_page_text(self.page_text)}"


def _read_to_its_end(ctx: ToolContext, p: ReadTextParams, report: ReadReport) -> bool:
    """Whether the caller now has the whole page's text, be it in one piece or in several of the same text."""
    if p.locator() is not None or report.scope_used != "page" or report.hidden_too or report.navigated_during_call:
        return False
    piece = Piece(report.content_hash, report.url, report.start, report.start + report.chars)
    standing = advanced(ctx.tab.read_on.get(ctx.caller.owner), piece)
    ctx.tab.read_on[ctx.caller.owner] = standing
    return standing.upto >= report.total_chars


@tool(title="Read text", effect="read", bundles=("core", "page_reading"))
async def read_text(ctx: ToolContext, p: ReadTextParams) -> ReadTextResult:
    """Reads the visible text of the page or of one element in reading order, with light Markdown."""
    tab = ctx.tab
    tab.require_ready()
    # Only the text of a whole page can cover one, and only then it has to be measured.
    whole = p.selector is None and p.ref is None
    counts = whole and await unless_down(ctx.tasks.coverage.counts_pages(ctx.caller.owner), otherwise=False)
    request = ReadRequest(p.locator(), p.scope, p.max_chars, p.offset, p.continuation_token, p.include_hidden, counts)
    report = await read(tab, request)
    ctx.evidence.selector = p.selector
    ctx.evidence.flags.add("content_exposed")
    if report.whole_page:
        ctx.evidence.flags.add("full_document")
    if _read_to_its_end(ctx, p, report) and counts:
        ctx.evidence.signals = replace(ctx.evidence.signals, scan=await judged_read(tab, report))
    return ReadTextResult(
        target_id=tab.target_id,
        url=one_line(report.url, MAX_URL),
        page_text=report.text,
        chars=report.chars,
        total_chars=report.total_chars,
        scope_used=report.scope_used,
        truncated=report.truncated,
        continuation_token=report.continuation_token,
        content_hash=report.content_hash,
        scan_truncated=report.scan_truncated,
        navigated_during_call=report.navigated_during_call,
    )
