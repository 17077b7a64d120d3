"""Writes that are decided in the transaction of the call that asks for them, and what its record says about them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import FAMILIES, InvalidParams
from nova_mcp.journal.observing import context_host, tool_event_of
from nova_mcp.journal.store import session_of
from nova_mcp.knowledge.hint_writing import HintWritten
from nova_mcp.knowledge.model import Problem
from nova_mcp.knowledge.writer import Missing
from nova_mcp.knowledge.writing import Conflict, Refused, Written
from nova_mcp.observation.model import CallRecord, OutcomeKind

T = TypeVar("T")
CONFLICT: Final = "rev_conflict"
# Said as a plain answer with `ok: false`: the call was fine, and the store said no.
REFUSALS: Final = frozenset({"pks.evidence_required"})


@dataclass(slots=True)
class Deciding(Generic[T]):
    """A write on its way into the store; `outcome` is there once the call's record is committed."""

    write: Callable[[Connection, CallRecord], T]
    outcome: T | None = field(default=None)

    def decide(self, conn: Connection, record: CallRecord) -> CallRecord:
        if record.outcome.kind not in ("ok", "partial"):
            return record
        hold_session(conn, record)
        self.outcome = self.write(conn, record)
        return told(record, self.outcome)


def hold_session(conn: Connection, record: CallRecord) -> None:
    """Evidence locks the session of a site before its entries; whoever writes entries has to do the same."""
    host = context_host(record)
    if host is not None:
        session_of(conn, tool_event_of(record), host)


def told(record: CallRecord, outcome: object) -> CallRecord:
    """The record with what the write came to."""
    match outcome:
        case Refused(problems) if problems[0].code in REFUSALS:
            return _with(record, reason_code=problems[0].code)
        case Refused(problems):
            return _failed(record, problems[0].code)
        case Problem(code):
            return _failed(record, code)
        case Conflict():
            return _with(record, reason_code=CONFLICT)
        case Missing(scope):
            return _failed(record, "pks.scope_not_found" if scope else "pks.phenomenon_not_found")
        case Written(kind) | HintWritten(kind) if kind != "unchanged":
            return replace(record, signals=replace(record.signals, high_signal=True))
    return record


def _with(record: CallRecord, *, reason_code: str) -> CallRecord:
    return replace(record, outcome=replace(record.outcome, reason_code=reason_code))


def _failed(record: CallRecord, reason_code: str) -> CallRecord:
    family = next(one for one in FAMILIES if reason_code in one.reasons)
    kind: OutcomeKind = "invalid" if family is InvalidParams else "failed"
    outcome = replace(record.outcome, kind=kind, error_code=family.error_code, reason_code=reason_code)
    return replace(record, outcome=outcome)
