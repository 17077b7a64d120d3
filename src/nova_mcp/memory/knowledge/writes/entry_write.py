"""Writes of entries, and what the record of the call that asks for one says about it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import FAMILIES
from nova_mcp.evidence.decision import Deciding, failed, with_reason
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.journal.observations import context_host, tool_event_of
from nova_mcp.memory.journal.store import session_of
from nova_mcp.memory.knowledge.model import Problem
from nova_mcp.memory.knowledge.writes.hint_rules import HintWritten
from nova_mcp.memory.knowledge.writes.rules import Conflict, Refused, Written
from nova_mcp.memory.knowledge.writes.store import Missing

T = TypeVar("T")
CONFLICT: Final = "rev_conflict"
# Said as a plain answer with `ok: false`: the call was fine, and the store said no.
REFUSALS: Final = frozenset({"pks.evidence_required"})


def entry_write(write: Callable[[Connection, CallRecord], T]) -> Deciding[T]:
    def holding(conn: Connection, record: CallRecord) -> T:
        hold_session(conn, record)
        return write(conn, record)

    return Deciding(holding, told)


def hold_session(conn: Connection, record: CallRecord) -> None:
    """Evidence locks the session of a site before its entries; whoever writes entries has to do the same."""
    host = context_host(record)
    if host is not None:
        session_of(conn, tool_event_of(record), host)


def told(record: CallRecord, outcome: object) -> CallRecord:
    """The record with what the write came to."""
    match outcome:
        case Refused(problems) if problems[0].code in REFUSALS:
            return with_reason(record, problems[0].code)
        case Refused(problems):
            return _failed(record, problems[0].code)
        case Problem(code):
            return _failed(record, code)
        case Conflict():
            return with_reason(record, CONFLICT)
        case Missing(scope):
            return _failed(record, "pks.scope_not_found" if scope else "pks.phenomenon_not_found")
        case Written(kind) | HintWritten(kind) if kind != "unchanged":
            return replace(record, signals=replace(record.signals, high_signal=True))
    return record


def _failed(record: CallRecord, reason_code: str) -> CallRecord:
    return failed(record, next(one for one in FAMILIES if reason_code in one.reasons), reason_code)
