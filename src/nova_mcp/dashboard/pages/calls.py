"""The list of calls: newest first, page by page, filtered within a bounded stretch of the ledger."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, Subquery, and_, or_, select, true

from nova_mcp.dashboard.context import Entry, Place, View, Visit
from nova_mcp.dashboard.data.call_lines import CallLine, line_of, outcome_words
from nova_mcp.dashboard.data.chain import in_chain
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.rules import storable_text
from nova_mcp.evidence.store import ledger_body
from nova_mcp.server.http.dashboard_home import ROOT

SHOWN: Final = 50
# How many calls one page looks at for those that fit its filters; a rare one is found by going on from there.
LOOKED_AT: Final = 5_000
# Enough for a page of calls of which each has an announcement that is left out.
UNFILTERED: Final = 2 * SHOWN + 20
OUTCOMES: Final = ("ok", "partial", "failed", "blocked_preflight", "invalid", "cancelled", "crashed")
_CURSOR: Final = re.compile(r"([0-9]{1,15})\.([0-9]{1,18})\.([0-9A-Za-z_-]{1,64})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place of a call in the order of this list."""

    at_ms: int
    server_seq: int
    server_id: str

    def text(self) -> str:
        return f"{self.at_ms}.{self.server_seq}.{self.server_id}"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which calls to show; an empty field lets everything through."""

    tool: str = ""
    outcome: str = ""
    agent: str = ""
    host: str = ""
    intents: bool = False
    # A minute of UTC before which to begin, as a form writes it.
    until: str = ""

    @property
    def any(self) -> bool:
        return bool(self.tool or self.outcome or self.agent or self.host)

    def query(self, **more: str) -> str:
        given = {
            "tool": self.tool,
            "outcome": self.outcome,
            "agent": self.agent,
            "host": self.host,
            "until": self.until,
        }
        chosen = {**given, "intents": "1" if self.intents else "", **more}
        return urlencode({name: value for name, value in chosen.items() if value})


@dataclass(frozen=True, slots=True)
class CallsPage:
    """One page: what fits, where it goes on, and how far back was looked."""

    lines: tuple[CallLine, ...]
    next: Cursor | None
    # Set when the stretch ended before the page was full.
    looked_back_to_ms: int | None


def cursor_of(text: str) -> Cursor | None:
    found = _CURSOR.fullmatch(text)
    return None if found is None else Cursor(int(found[1]), int(found[2]), found[3])


def moment_of(text: str) -> Cursor | None:
    """The place of a minute: everything that began before it stands behind."""
    try:
        at = datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        return None
    return Cursor(int(at.timestamp() * 1000), 0, "~")


def calls(conn: Connection, wanted: Filters, before: Cursor | None) -> CallsPage:
    """The newest calls before a place that fit, out of a bounded stretch; bodies are opened of those that are shown."""
    body = ledger_body.c
    order = (body.at_ms.desc(), body.server_id, body.server_seq.desc())
    stretch = (
        select(body.at_ms, body.server_id, body.server_seq, body.kind, body.tool_name, body.outcome_kind)
        .add_columns(body.agent_id, body.host)
        .where(true() if before is None else _before(before))
        .order_by(*order)
    )
    size = LOOKED_AT if wanted.any else UNFILTERED
    looked_at = stretch.limit(size).subquery()
    newest = (looked_at.c.at_ms.desc(), looked_at.c.server_id, looked_at.c.server_seq.desc())
    found = conn.execute(
        select(looked_at.c.at_ms, looked_at.c.server_seq, looked_at.c.server_id)
        .where(*_conditions(looked_at, wanted))
        .order_by(*newest)
        .limit(SHOWN + 1)
    ).all()
    places = [Cursor(row.at_ms, row.server_seq, row.server_id) for row in found]
    if len(places) > SHOWN:
        return CallsPage(_lines(conn, places[:SHOWN]), places[SHOWN - 1], None)
    end = conn.execute(stretch.offset(size - 1).limit(1)).one_or_none()
    last = None if end is None else Cursor(end.at_ms, end.server_seq, end.server_id)
    return CallsPage(_lines(conn, places), last, None if end is None else end.at_ms)


def _before(place: Cursor) -> ColumnElement[bool]:
    body = ledger_body.c
    # The first condition is what the index is asked for; the second only breaks ties of one millisecond.
    return and_(
        body.at_ms <= place.at_ms,
        or_(
            body.at_ms < place.at_ms,
            body.server_id > place.server_id,
            and_(body.server_id == place.server_id, body.server_seq < place.server_seq),
        ),
    )


def _conditions(stretch: Subquery, wanted: Filters) -> list[ColumnElement[bool]]:
    columns = stretch.c
    pairs = (
        (columns.tool_name, wanted.tool and f"nova.{wanted.tool.removeprefix('nova.')}"),
        (columns.outcome_kind, wanted.outcome),
        (columns.agent_id, wanted.agent),
        (columns.host, wanted.host),
    )
    conditions: list[ColumnElement[bool]] = [column == storable_text(value) for column, value in pairs if value]
    if not wanted.intents:
        conditions.append(columns.kind != "intent")
    return conditions


def _lines(conn: Connection, places: Sequence[Cursor]) -> tuple[CallLine, ...]:
    """The calls at these places, in their order."""
    wanted: dict[str, list[int]] = {}
    for place in places:
        wanted.setdefault(place.server_id, []).append(place.server_seq)
    known = {
        (call.link.server_id, call.link.server_seq): line_of(call)
        for server, seqs in wanted.items()
        for call in in_chain(conn, server, seqs)
    }
    found = ((ServerId(place.server_id), place.server_seq) for place in places)
    return tuple(known[place] for place in found if place in known)


def filters_of(visit: Visit) -> Filters:
    outcome, until = visit.query("outcome"), visit.query("until", 20)
    return Filters(
        tool=visit.query("tool", 80),
        outcome=outcome if outcome in OUTCOMES else "",
        agent=visit.query("agent", 120),
        host=visit.query("host", 253).lower(),
        intents=visit.query("intents") == "1",
        until=until if moment_of(until) else "",
    )


async def listed(visit: Visit) -> View:
    wanted, turned = filters_of(visit), cursor_of(visit.query("before"))
    before = turned or moment_of(wanted.until)
    page = await visit.desk.read(calls, wanted, before)
    return View(
        "calls/calls.html",
        {
            "title": "Calls",
            "lines": page.lines,
            "wanted": wanted,
            "outcomes": [(one, outcome_words(one)[0]) for one in OUTCOMES],
            "paged": turned is not None,
            "looked_back_to_ms": page.looked_back_to_ms,
            "older": page.next and f"{ROOT}/calls?{wanted.query(before=page.next.text())}",
            "newest": f"{ROOT}/calls?{wanted.query()}",
        },
    )


PLACES = (Place("/calls", "calls", get=listed, menu=Entry("Now", "Calls")),)
