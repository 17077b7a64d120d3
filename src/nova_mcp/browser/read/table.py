"""Tables of a page as headers and rows."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nova_mcp.browser.act.locate import Locator, find
from nova_mcp.browser.channel.inline_frames import ask_inline
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

ANSWER_MS: Final = 10_000
# However many rows and columns are asked for, an answer stays readable.
MAX_CHARS: Final = 400_000


@dataclass(frozen=True, slots=True)
class TableRequest:
    locator: Locator | None = None
    max_tables: int = 5
    max_rows: int = 100
    max_cols: int = 50
    max_cell_chars: int = 300
    offset_row: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """One table; `row_count` leaves the rows of headings out, `declared_rows` is what the page says there are."""

    index: int
    ref: str
    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int
    col_count: int
    declared_rows: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class TablesReport:
    url: str
    table_count: int
    tables: tuple[Table, ...]
    scan_truncated: bool = False
    navigated_during_call: bool = False


@dataclass(slots=True)
class _Gathered:
    url: str = ""
    count: int = 0
    truncated: bool = False
    tables: list[tuple[SeenElement, Answer]] = field(default_factory=list)

    def take(self, frame_id: str | None, told: Answer, most: int) -> None:
        self.url = self.url or told["url"]
        for raw in told["tables"][: max(0, most - len(self.tables))]:
            self.tables.append(
                (read_element(raw["element"], frame_id or ""), {**raw, "index": self.count + raw["index"]})
            )
        self.count += told["tableCount"]
        self.truncated = self.truncated or told["scanTruncated"]


async def extract_tables(tab: "Tab", request: TableRequest) -> TablesReport:
    """The tables of the page, or those in, at or around one element."""

    async def look() -> _Gathered:
        gathered = _Gathered()
        if request.locator is not None:
            element, frame_id = await find(tab, request.locator)
            question = _question(request, element.node)
            told = answer(await tab.channel.ask("tables", question, frame_id=frame_id, timeout_ms=ANSWER_MS))
            if told.get("gone"):
                raise NotFound("ref.stale", "The element left the page meanwhile.")
            gathered.take(frame_id, told, request.max_tables)
            return gathered
        async for frame_id, told in ask_inline(tab, "tables", _question(request, None), ANSWER_MS):
            gathered.take(frame_id, told, request.max_tables)
        return gathered

    gathered, moved = await on_one_document(tab, look)
    elements = [element for element, _ in gathered.tables]
    names = tab.perception.assign(elements, gathered.url, tab.page_epoch, elements)
    return TablesReport(
        url=gathered.url,
        table_count=gathered.count,
        tables=tuple(_table(name, raw) for name, (_, raw) in zip(names, gathered.tables, strict=True)),
        scan_truncated=gathered.truncated,
        navigated_during_call=moved,
    )


def _question(request: TableRequest, node: int | None) -> dict[str, Json]:
    return {
        "node": node,
        "maxTables": request.max_tables,
        "maxRows": request.max_rows,
        "maxCols": request.max_cols,
        "maxCellChars": request.max_cell_chars,
        "offsetRow": request.offset_row,
        "chars": MAX_CHARS,
    }


def _table(ref: str, raw: Answer) -> Table:
    return Table(
        index=raw["index"],
        ref=ref,
        caption=raw["caption"],
        headers=tuple(raw["headers"]),
        rows=tuple(tuple(row) for row in raw["rows"]),
        row_count=raw["rowCount"],
        col_count=raw["colCount"],
        declared_rows=raw["declaredRows"],
        truncated=raw["truncated"],
    )
