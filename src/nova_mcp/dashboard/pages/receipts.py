"""Receipts: every guarded act, newest first, with what was proven about it."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, and_, or_, select, true

from nova_mcp.dashboard.context import Entry, Place, View, Visit
from nova_mcp.dashboard.formatting import plain, tool_name
from nova_mcp.evidence.rules import host_of
from nova_mcp.server.http.dashboard_home import ROOT
from nova_mcp.verification.store import transition

SHOWN: Final = 50
# How many acts one page looks at for those with the wanted verdict.
LOOKED_AT: Final = 2_000
STATES: Final = {
    "verified_success": ("verified", "good"),
    "verified_fail": ("disproved", "bad"),
    "indeterminate": ("undecided", "warn"),
    "open": ("in flight", "plain"),
    "not_dispatched": ("not sent", "plain"),
}
_CURSOR: Final = re.compile(r"([0-9]{1,15})\.([0-9A-Za-z_-]{1,64})")


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """One guarded act."""

    call_id: str
    at_ms: int
    tool: str
    element: str
    host: str
    agent: str
    verdict: str
    tone: str
    reason: str
    took_ms: int | None


@dataclass(frozen=True, slots=True)
class ReceiptsPage:
    """One page, and where it goes on."""

    lines: tuple[ReceiptLine, ...]
    following: str | None


def receipts(conn: Connection, state: str, before: tuple[int, str] | None) -> ReceiptsPage:
    """The newest acts before a place with that state, out of a bounded stretch."""
    table = transition.c
    order = (table.started_at_ms.desc(), table.transition_id.desc())
    stretch = (
        select(table.transition_id, table.call_id, table.tool_name, table.element, table.origin, table.agent_id)
        .add_columns(table.state, table.reason, table.started_at_ms, table.completed_at_ms)
        .where(true() if before is None else _before(*before))
        .order_by(*order)
    )
    size = LOOKED_AT if state else SHOWN
    inner = stretch.limit(size).subquery()
    rows = conn.execute(
        select(inner)
        .where(inner.c.state == state if state else true())
        .order_by(inner.c.started_at_ms.desc(), inner.c.transition_id.desc())
        .limit(SHOWN)
    ).all()
    following: str | None = None
    if len(rows) == SHOWN:
        following = _place(rows[-1].started_at_ms, rows[-1].transition_id)
    elif (end := conn.execute(stretch.offset(size - 1).limit(1)).one_or_none()) is not None:
        following = _place(end.started_at_ms, end.transition_id)
    return ReceiptsPage(
        tuple(
            ReceiptLine(
                # The announcement has the act's own id, and leads to the call; the call's record may be missing.
                call_id=row.transition_id,
                at_ms=row.started_at_ms,
                tool=tool_name(row.tool_name),
                element=plain(row.element),
                host=plain(host_of(row.origin) or row.origin),
                agent=plain(row.agent_id),
                verdict=STATES[row.state][0],
                tone=STATES[row.state][1],
                reason=plain(row.reason or ""),
                took_ms=None if row.completed_at_ms is None else max(0, row.completed_at_ms - row.started_at_ms),
            )
            for row in rows
        ),
        following,
    )


def _place(at_ms: int, transition_id: str) -> str:
    return f"{at_ms}.{transition_id}"


def _before(at_ms: int, transition_id: str) -> ColumnElement[bool]:
    table = transition.c
    return and_(
        table.started_at_ms <= at_ms,
        or_(table.started_at_ms < at_ms, table.transition_id < transition_id),
    )


def place_of(text: str) -> tuple[int, str] | None:
    found = _CURSOR.fullmatch(text)
    return None if found is None else (int(found[1]), found[2])


async def listed(visit: Visit) -> View:
    asked = visit.query("verdict")
    state = asked if asked in STATES else ""
    before = place_of(visit.query("before"))
    page = await visit.desk.read(receipts, state, before)
    asking = {"verdict": state, "before": page.following or ""}
    return View(
        "calls/receipts.html",
        {
            "title": "Receipts",
            "lines": page.lines,
            "state": state,
            "states": [("", "all"), *((key, words) for key, (words, _) in STATES.items())],
            "paged": before is not None,
            "older": page.following and f"{ROOT}/receipts?{urlencode({k: v for k, v in asking.items() if v})}",
        },
    )


PLACES = (Place("/receipts", "receipts", get=listed, menu=Entry("Now", "Receipts")),)
