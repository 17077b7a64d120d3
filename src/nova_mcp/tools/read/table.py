"""Reading tables as data."""

import json

from pydantic import Field

from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.read.table import Table, TableRequest, TablesReport, extract_tables
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import MaybeElementParams
from nova_mcp.tools.spec import PageResult, Part, TargetParams, maybe, tool

MAX_URL = 300


class ExtractTableParams(TargetParams, MaybeElementParams):
    max_tables: int = Field(5, ge=1, le=50)
    max_rows: int = Field(100, ge=1, le=5000)
    max_cols: int = Field(50, ge=1, le=200)
    max_cell_chars: int = Field(300, ge=1, le=5000)
    offset_row: int = Field(0, ge=0)


class TablePart(Part):
    index: int
    ref: str
    caption: str | None = maybe()
    headers: list[str]
    rows: list[list[str]]
    row_count: int
    col_count: int
    declared_rows: int = maybe(0)
    truncated: bool = maybe(default=False)

    def lines(self, offset: int) -> list[str]:
        """A line about the table, then one JSON list per row: page text stays inside quotes."""
        about = [f"table {self.index} {self.ref}"]
        if self.caption:
            about.append(quoted(self.caption, 120))
        about.append(f"{self.row_count} rows × {self.col_count} columns")
        if self.declared_rows:
            about.append(f"the page says {self.declared_rows} rows; scroll for the rest")
        after = offset + len(self.rows)
        if self.truncated:
            about.append(f"more with offsetRow {after}" if after < self.row_count else "cut")
        rows = [self.headers, *self.rows] if self.headers else self.rows
        return [" · ".join(about), *(json.dumps(row, ensure_ascii=False) for row in rows)]


class ExtractTableResult(PageResult):
    table_count: int
    tables: list[TablePart]
    scan_truncated: bool = maybe(default=False)
    navigated_during_call: bool = maybe(default=False)
    offset_row: int = Field(0, exclude=True)

    def text(self) -> str:
        shown = f", shown {len(self.tables)}" if len(self.tables) < self.table_count else ""
        head = f"{self.target_id} {self.url} · {self.table_count} tables{shown}"
        return "\n".join([head, *(line for table in self.tables for line in table.lines(self.offset_row))])


@tool(title="Read tables", effect="read", bundles=("page_reading",), deadline_ms=lambda _: 30_000)
async def extract_table(ctx: ToolContext, p: ExtractTableParams) -> ExtractTableResult:
    """Reads tables and grids as headers and rows, spans filled in; offsetRow reads on in long ones."""
    ctx.tab.require_ready()
    request = TableRequest(p.locator(), p.max_tables, p.max_rows, p.max_cols, p.max_cell_chars, p.offset_row)
    report = await extract_tables(ctx.tab, request)
    ctx.evidence.selector = p.selector
    if report.tables:
        ctx.evidence.flags.add("content_exposed")
    return _told(ctx.tab.target_id, report, p.offset_row)


def _told(target_id: str, report: TablesReport, offset_row: int) -> ExtractTableResult:
    return ExtractTableResult(
        target_id=target_id,
        url=one_line(report.url, MAX_URL),
        table_count=report.table_count,
        tables=[_part(table) for table in report.tables],
        scan_truncated=report.scan_truncated,
        navigated_during_call=report.navigated_during_call,
        offset_row=offset_row,
    )


def _part(table: Table) -> TablePart:
    return TablePart(
        index=table.index,
        ref=table.ref,
        caption=table.caption,
        headers=list(table.headers),
        rows=[list(row) for row in table.rows],
        row_count=table.row_count,
        col_count=table.col_count,
        declared_rows=table.declared_rows,
        truncated=table.truncated,
    )
