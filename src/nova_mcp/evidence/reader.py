"""Reads the ledger as a stream: what is new since a follower's positions, and what happened last."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, select

from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.rules import storable_text
from nova_mcp.evidence.store import StoredCall, ledger_body, ledger_link, ledger_server, stored_call

_JOINED = select(ledger_link, ledger_body.c.body).join_from(
    ledger_link,
    ledger_body,
    (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq),
)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which calls to show; an empty field lets everything through."""

    tool: str | None = None
    outcome: str | None = None
    agent: str | None = None
    principal: str | None = None
    target: str | None = None
    since_ms: int | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class EventPage:
    """Calls in order, and the positions to ask with next; call again at once while `more` is true."""

    calls: tuple[StoredCall, ...]
    positions: Mapping[ServerId, int] = field(default_factory=dict)
    more: bool = False


def events(conn: Connection, wanted: EventFilter, after: Mapping[ServerId, int] | None = None) -> EventPage:
    """Calls behind the follower's positions, one position per server.

    Positions are per chain because only there sequence order is commit order; a store-wide sequence would skip rows
    that commit late. Heads are read first and bound the search, so nothing between two statements is lost.
    """
    positions = dict(after or {})
    streams: dict[ServerId, list[StoredCall]] = {}
    ends: dict[ServerId, int] = {}
    for row in conn.execute(select(ledger_server.c.server_id, ledger_server.c.head_seq)).all():
        server_id, head = ServerId(row.server_id), int(row.head_seq)
        start = positions.get(server_id, 0)
        if head <= start:
            continue
        found = conn.execute(
            _JOINED.where(
                ledger_link.c.server_id == server_id,
                ledger_link.c.server_seq > start,
                ledger_link.c.server_seq <= head,
                *_conditions(wanted),
            )
            .order_by(ledger_link.c.server_seq)
            .limit(wanted.limit + 1)
        ).all()
        streams[server_id] = [stored_call(item) for item in found]
        ends[server_id] = head
    merged = list(heapq.merge(*streams.values(), key=_moment))
    page = merged[: wanted.limit]
    shown: dict[ServerId, int] = {}
    for call in page:
        shown[call.link.server_id] = shown.get(call.link.server_id, 0) + 1
    for server_id, found_calls in streams.items():
        count = shown.get(server_id, 0)
        if count == len(found_calls):
            positions[server_id] = ends[server_id]
        elif count:
            positions[server_id] = found_calls[count - 1].link.server_seq
    return EventPage(tuple(page), positions, more=len(merged) > len(page))


def recent(conn: Connection, wanted: EventFilter) -> list[StoredCall]:
    """The last calls by start time, newest first."""
    rows = conn.execute(
        _JOINED.where(*_conditions(wanted))
        .order_by(ledger_body.c.at_ms.desc(), ledger_body.c.server_id, ledger_body.c.server_seq.desc())
        .limit(wanted.limit)
    )
    return [stored_call(row) for row in rows]


def _moment(call: StoredCall) -> tuple[int, str]:
    return (call.record.started_at_ms if call.record else 0, call.link.server_id)


def _conditions(wanted: EventFilter) -> list[ColumnElement[bool]]:
    columns = ledger_body.c
    pairs = [
        (columns.tool_name, wanted.tool),
        (columns.outcome_kind, wanted.outcome),
        (columns.agent_id, wanted.agent),
        (columns.principal, wanted.principal),
        (columns.target_id, wanted.target),
    ]
    conditions: list[ColumnElement[bool]] = [
        column == storable_text(value) for column, value in pairs if value is not None
    ]
    if wanted.since_ms is not None:
        conditions.append(columns.at_ms >= wanted.since_ms)
    return conditions
