"""Writes that are decided in the transaction that records the call which asks for them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import InvalidParams, NovaError
from nova_mcp.evidence.model import CallRecord, OutcomeKind

T = TypeVar("T")


@dataclass(slots=True)
class Deciding(Generic[T]):
    """A write on its way into the store; `outcome` is there once the call's record is committed.

    Hand `decide` to the call's evidence. `write` returns an error instead of raising it, which would take the call's
    record with it, and has to do so before it changes anything. `told` puts everything else on record.
    """

    write: Callable[[Connection, CallRecord], T | NovaError]
    told: Callable[[CallRecord, T], CallRecord]
    outcome: T | NovaError | None = field(default=None)

    def decide(self, conn: Connection, record: CallRecord) -> CallRecord:
        if record.outcome.kind not in ("ok", "partial"):
            return record
        self.outcome = outcome = self.write(conn, record)
        if isinstance(outcome, NovaError):
            return failed(record, type(outcome), outcome.reason_code)
        return self.told(record, outcome)

    def result(self) -> T:
        """What it came to; raises what was wrong with the call."""
        if isinstance(self.outcome, NovaError):
            raise self.outcome
        if self.outcome is None:
            raise AssertionError("a write was answered before it was decided")
        return self.outcome


def with_reason(record: CallRecord, reason_code: str) -> CallRecord:
    """The call went well, and its answer says why it came to nothing."""
    return replace(record, outcome=replace(record.outcome, reason_code=reason_code))


def failed(record: CallRecord, family: type[NovaError], reason_code: str) -> CallRecord:
    kind: OutcomeKind = "invalid" if issubclass(family, InvalidParams) else "failed"
    outcome = replace(record.outcome, kind=kind, error_code=family.error_code, reason_code=reason_code)
    return replace(record, outcome=outcome)
