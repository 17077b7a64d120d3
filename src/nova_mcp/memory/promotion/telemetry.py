"""Which call stands behind an agent's report about an entry; without one, a report is only a claim."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy import text as sql

from nova_mcp.memory.journal.evidence import EventVerdict
from nova_mcp.memory.journal.observations import digest
from nova_mcp.memory.journal.store import tool_event
from nova_mcp.memory.promotion.tables import telemetry_backing
from nova_mcp.storage.prepared import Prepared

BACKING_MS: Final = 10 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Report:
    """A report, with the keys of the calls that could stand behind it: the entry's controls, by tools that act."""

    principal: str
    host: str
    verdict: EventVerdict
    event_keys: frozenset[str]
    call_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Backing:
    call_id: str
    target_id: str


def event_keys(host: str, tools: Iterable[str], selectors: Collection[str]) -> frozenset[str]:
    """As the journal marks calls of those tools on those controls."""
    return frozenset(digest("event", host, tool, selector)[:32] for tool in tools for selector in selectors)


_TAKE: Final = Prepared(
    sql(
        "INSERT INTO telemetry_backing (call_id, report_call_id, at_ms) VALUES (:call, :report, :at) "
        "ON CONFLICT (call_id) DO NOTHING RETURNING call_id"
    )
)


def backing(conn: Connection, report: Report) -> Backing | None:
    """The newest call of the same principal that shows what is reported; it is spent with this report."""
    if not report.event_keys:
        return None
    found = tool_event.c
    rows = conn.execute(
        select(found.event_id, found.event_key, found.target_id)
        .outerjoin(telemetry_backing, telemetry_backing.c.call_id == found.event_id)
        .where(found.created_at_ms >= report.at_ms - BACKING_MS, found.created_at_ms <= report.at_ms)
        .where(found.principal == report.principal, found.context_host == report.host)
        .where(found.verdict == report.verdict, found.event_key.is_not(None))
        .where(telemetry_backing.c.call_id.is_(None))
        .order_by(found.created_at_ms.desc(), found.event_id.desc())
    ).all()
    for row in rows:
        if row.event_key not in report.event_keys or row.target_id is None:
            continue
        taken = _TAKE.run(conn, {"call": row.event_id, "report": report.call_id, "at": report.at_ms}).fetchone()
        if taken is not None:
            return Backing(row.event_id, row.target_id)
    return None
