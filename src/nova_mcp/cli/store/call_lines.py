"""Calls of the ledger as commands show them: a row for people, an object for programs, a stream for both."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from nova_mcp.cli.terminal import fail, moment
from nova_mcp.evidence.model import CallRecord, PageState, ServerId
from nova_mcp.evidence.reader import EventFilter, events, recent
from nova_mcp.evidence.rules import effective_page
from nova_mcp.evidence.store import StoredCall, servers
from nova_mcp.storage.engine import Database

COLUMNS = ("time", "agent", "tool", "outcome", "why", "ms", "tab", "url")
POLL_S = 0.5
_PAGE = 500
_AGO = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

Positions = Mapping[ServerId, int]


def since(text: str, now_ms: int) -> int:
    """`10m` ago or an ISO time (UTC unless it says otherwise) as milliseconds; ValueError says what is allowed."""
    if (ago := _AGO.fullmatch(text.strip())) is not None:
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'"{text}" is no time; write 30s, 10m, 2h, 7d or 2026-01-31T12:00') from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def row(call: StoredCall) -> tuple[str, ...]:
    record = call.record
    if record is None:
        return ("", "", "(erased)", "", "", "", "", "")
    outcome = record.outcome
    name = record.tool_name if record.kind == "call" else f"{record.tool_name} ({record.kind})"
    why = " ".join(part for part in (outcome.reason_code or outcome.gate_id, outcome.verification) if part)
    page = effective_page(record)
    return (
        moment(record.started_at_ms),
        record.caller.agent_id,
        name,
        outcome.kind,
        why,
        str(record.duration_ms),
        page.target_id or "",
        page.url or "",
    )


def as_json(call: StoredCall) -> dict[str, Any]:
    place = {"serverId": call.link.server_id, "serverSeq": call.link.server_seq, "callId": call.link.call_id}
    link = {"bodyHash": call.link.body_hash.hex(), "hash": call.link.hash.hex()}
    if call.record is None:
        return {**place, "erasedAtMs": call.erased_at_ms, **link}
    return {**place, **_record(call.record), **link}


def _record(record: CallRecord) -> dict[str, Any]:
    outcome, touched = record.outcome, record.touched
    return {
        "kind": record.kind,
        "startedAtMs": record.started_at_ms,
        "durationMs": record.duration_ms,
        "principal": record.caller.principal,
        "agentId": record.caller.agent_id,
        "toolName": record.tool_name,
        "effect": record.effect,
        "via": record.via,
        "taskId": record.task_id,
        "instanceId": record.instance_id,
        "before": _page(record.before),
        "after": _page(record.after),
        "outcomeKind": outcome.kind,
        "errorCode": outcome.error_code,
        "reasonCode": outcome.reason_code,
        "gateId": outcome.gate_id,
        "actionDispatched": outcome.action_dispatched,
        "verification": outcome.verification,
        "selector": touched.selector,
        "selectorHash": touched.selector_hash,
        "fingerprintId": touched.fingerprint_id,
        "flags": sorted(touched.flags),
        "arguments": record.arguments,
        "closes": record.closes,
    }


def _page(page: PageState) -> dict[str, Any]:
    return {
        "targetId": page.target_id,
        "sandboxId": page.sandbox_id,
        "url": page.url,
        "routeKey": page.route_key,
        "pageEpoch": page.page_epoch,
    }


def last_calls(database: Database, wanted: EventFilter) -> tuple[list[StoredCall], Positions]:
    """The last calls, oldest first, and the positions behind which everything else will come."""
    calls, positions = database.read_sync(_last_calls, wanted)
    return _whole(calls), positions


def _last_calls(conn: Connection, wanted: EventFilter) -> tuple[list[StoredCall], Positions]:
    # One transaction, so that no call falls between the list and the positions.
    return recent(conn, wanted)[::-1], {server.server_id: server.head_seq for server in servers(conn)}


def new_calls(database: Database, wanted: EventFilter, after: Positions) -> tuple[list[StoredCall], Positions]:
    """Everything recorded behind the positions, in order, however much it is."""
    found: list[StoredCall] = []
    paged = replace(wanted, since_ms=None, limit=_PAGE)
    while True:
        page = database.read_sync(events, paged, after)
        found += _whole(page.calls)
        after = page.positions
        if not page.more:
            return found, after


def follow(database: Database, wanted: EventFilter, after: Positions) -> Iterator[StoredCall]:
    """Calls as they are recorded, for ever."""
    while True:
        calls, after = new_calls(database, wanted, after)
        yield from calls
        if not calls:
            time.sleep(POLL_S)


def _whole(calls: Iterable[StoredCall]) -> list[StoredCall]:
    found = list(calls)
    if lost := next((call for call in found if call.lost), None):
        fail(f"the ledger holds a record that can't be read: {lost.link.call_id}", "`nova ledger verify` names it")
    return found
