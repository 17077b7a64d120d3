"""Questions about a page as it was perceived, without looking at it again."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.channel.frame_ids import shown_id
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.browser.perceive.element_ranking import line_cost
from nova_mcp.browser.read.patterns import BadPattern, Pattern, TimedOut, too_slow, try_pattern
from nova_mcp.browser.read.snapshot_element import RefRead, attributes_of, read_ref
from nova_mcp.browser.read.snapshot_query import (
    Entry,
    Filter,
    QueryRegion,
    containing,
    elements_of,
    entry_line,
    outline_of,
    searchable,
    summary_of,
)
from nova_mcp.browser.read.snapshots import Snapshot
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.tokens import estimate_tokens, fit_tokens
from nova_mcp.errors import InvalidParams, NotFound
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE, REF_PATTERN
from nova_mcp.tools.spec import AgentParams, Part, Result, maybe, tool

QueryOp = Literal["summary", "elements", "search", "outline", "read_ref"]
# For the first line and the one that says how to go on.
HEAD_TOKENS = 40


class SnapshotQueryParams(AgentParams):
    perception_id: str = Field(min_length=1, max_length=80, pattern=PRINTABLE)
    op: QueryOp = "summary"
    query: str | None = Field(None, min_length=1, max_length=500, pattern=PRINTABLE)
    match: Literal["contains", "regex"] = "contains"
    role: str | None = Field(None, min_length=1, max_length=40, pattern=PRINTABLE)
    region: QueryRegion | None = None
    ref: str | None = Field(None, pattern=REF_PATTERN)
    offset: int = Field(0, ge=0, le=100_000)
    limit: int = Field(30, ge=1, le=200)
    max_tokens: int = Field(1500, ge=200, le=20_000)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.op == "search" and self.query is None:
            raise ValueError("op search needs query")
        if self.op == "read_ref" and self.ref is None:
            raise ValueError("op read_ref needs ref")
        return self


class SelectorCandidate(Part):
    selector: str
    kind: str
    fragile: bool
    unique: bool


class SeenRef(Part):
    ref: str
    role: str
    name: str
    tag: str
    attributes: dict[str, str]
    rect: list[int]
    state: list[str]
    value: str = maybe("")
    selector_candidates: list[SelectorCandidate]
    row_key: str
    frame_id: str | None
    still_live: bool | None


class SnapshotQueryResult(Result):
    perception_id: str
    target_id: str
    rev: int
    op: QueryOp
    total: int
    returned: int
    next_offset: int | None = maybe()
    items: list[str] = maybe([])
    element: SeenRef | None = maybe()

    def text(self) -> str:
        lines = [f"{self.perception_id} rev {self.rev} {self.op}: {self.returned} of {self.total}"]
        lines.extend(self.items)
        if self.element is not None:
            lines.extend(_element_lines(self.element))
        if self.next_offset is not None:
            lines.append(f"more: offset {self.next_offset}")
        return "\n".join(lines)


def _element_lines(seen: SeenRef) -> list[str]:
    live = {True: "still on the page", False: "no longer on the page", None: "page can't be asked"}[seen.still_live]
    given = " ".join(f"{name}={quoted(value, 80)}" for name, value in seen.attributes.items())
    value = f" ={quoted(seen.value, 80)}" if seen.value else ""
    lines = [f"{seen.ref} {quoted(seen.role, 24)} {quoted(seen.name, 200)}{value} {' '.join(seen.state)} · {live}"]
    lines.append(f"{quoted(seen.tag, 40)} {given} at {','.join(map(str, seen.rect))}")
    if seen.row_key:
        lines.append(f"row {quoted(seen.row_key, 80)}")
    for one in seen.selector_candidates:
        notes = [one.kind, *(["fragile"] if one.fragile else []), *([] if one.unique else ["not unique"])]
        lines.append(f"selector {quoted(one.selector, 200)} [{' '.join(notes)}]")
    return lines


@tool(
    title="Ask about an earlier look",
    effect="read",
    bundles=("browser_automation", "page_reading"),
    target="none",
    deadline_ms=lambda _: 25_000,
)
async def perceive_snapshot_query(ctx: ToolContext, p: SnapshotQueryParams) -> SnapshotQueryResult:
    """Lists, searches or details what an earlier perceive saw, by its perceptionId, without looking again.
    Snapshots last ten minutes."""
    tab, snapshot = _snapshot(ctx, p.perception_id)
    ctx.evidence.tab = tab
    ctx.evidence.flags.add("dom_exposed")
    if p.op == "read_ref" and p.ref is not None:
        return _fitted(_read(tab, snapshot, await read_ref(tab, snapshot, p.ref)), p.max_tokens)
    entries = await _entries(tab, snapshot, p)
    return _page(tab, snapshot, entries, p)


def _snapshot(ctx: ToolContext, perception_id: str) -> tuple[Tab, Snapshot]:
    tab = ctx.browser.targets.find(ctx.caller, perception_id.rpartition(".")[0])
    snapshot = None if tab is None else tab.perception.snapshot(perception_id, ctx.ports.clock.now_ms())
    if tab is None or snapshot is None:
        raise NotFound("snapshot.expired", f"There is no snapshot {quoted(perception_id, 80)} any more.")
    return tab, snapshot


async def _entries(tab: Tab, snapshot: Snapshot, p: SnapshotQueryParams) -> list[Entry]:
    scan, chosen = snapshot.scan, Filter(p.role, p.region)
    match p.op:
        case "summary":
            return summary_of(scan)
        case "outline":
            return outline_of(scan)
        case "elements":
            return [Entry("", element) for element in elements_of(scan, chosen)]
        case _:
            entries, query = searchable(scan, chosen), p.query or ""
            return await _matching(tab, entries, query) if p.match == "regex" else containing(entries, query)


async def _matching(tab: Tab, entries: list[Entry], query: str) -> list[Entry]:
    found = await try_pattern(Pattern(query), [entry.searched for entry in entries], 20_000)
    match found:
        case BadPattern(why=why):
            raise InvalidParams(
                "invalid_params",
                f"query is not a regular expression: {quoted(why, 80)}.",
                "Correct it, or match contains.",
            )
        case TimedOut():
            raise too_slow(host_busy=tab.host_busy(1000))
        case hits:
            return [entries[index] for index in sorted({hit.text for hit in hits})]


def _page(tab: Tab, snapshot: Snapshot, entries: list[Entry], p: SnapshotQueryParams) -> SnapshotQueryResult:
    """As many lines from the offset on as limit and budget allow."""
    lines: list[str] = []
    left = p.max_tokens - HEAD_TOKENS
    for entry in entries[p.offset : p.offset + p.limit]:
        line = entry_line(tab.perception, snapshot, entry)
        cost = line_cost(line)
        if cost > left and lines:
            break
        # Something must come, or nobody could ever get past a line that is too long.
        lines.append(line if cost <= left else fit_tokens(line, left))
        left -= cost
    reached = p.offset + len(lines)
    return SnapshotQueryResult(
        perception_id=snapshot.perception_id,
        target_id=tab.target_id,
        rev=snapshot.rev,
        op=p.op,
        total=len(entries),
        returned=len(lines),
        next_offset=reached if reached < len(entries) else None,
        items=lines,
    )


def _read(tab: Tab, snapshot: Snapshot, read: RefRead) -> SnapshotQueryResult:
    element = read.element
    seen = SeenRef(
        ref=read.ref,
        role=element.facts.role,
        name=element.facts.name,
        tag=element.facts.tag,
        attributes=attributes_of(element),
        rect=list(element.box),
        state=["visible" if element.visible else "hidden", *element.flags],
        value=element.value,
        selector_candidates=[
            SelectorCandidate(selector=one.selector, kind=one.kind, fragile=one.fragile, unique=one.unique)
            for one in read.candidates
        ],
        row_key=element.facts.row_key,
        frame_id=shown_id(element.facts.frame) or None,
        still_live=read.still_live,
    )
    return SnapshotQueryResult(
        perception_id=snapshot.perception_id,
        target_id=tab.target_id,
        rev=snapshot.rev,
        op="read_ref",
        total=1,
        returned=1,
        element=seen,
    )


def _fitted(result: SnapshotQueryResult, max_tokens: int) -> SnapshotQueryResult:
    """Long selectors give way first; what the element is always stands."""
    while (seen := result.element) is not None and estimate_tokens(result.text()) > max_tokens:
        shorter = next((less for less in _shorter(seen) if less != seen), None)
        if shorter is None:
            break
        result = result.model_copy(update={"element": shorter})
    return result


def _shorter(seen: SeenRef) -> Iterator[SeenRef]:
    """What can be left out next, the least missed first."""
    yield seen.model_copy(update={"selector_candidates": seen.selector_candidates[:-1]})
    yield seen.model_copy(update={"attributes": {}})
    yield seen.model_copy(update={"row_key": ""})
    for chars in (40, 20, 10):
        yield seen.model_copy(update={"name": seen.name[:chars], "value": seen.value[:chars]})
