"""Runs what a call writes in the transaction of its record, before the record is appended."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar, runtime_checkable

from sqlalchemy import Connection

from nova_mcp.errors import InvalidParams, NovaError
from nova_mcp.evidence.model import CallRecord, Link, OutcomeKind
from nova_mcp.storage.savepoints import savepoint

T = TypeVar("T")

# Writes what a call asks for. A NovaError takes back everything it wrote and is put on the record.
Write = Callable[[Connection, CallRecord], T]
# Writes what is only known once the record is appended and everything the server derives from it is written.
Derive = Callable[[Connection, CallRecord, Link], T]


@runtime_checkable
class OnRecord(Protocol):
    """What a write came to, where the record of its call has to say so: a reason, a signal or a gate."""

    def on_record(self, record: CallRecord) -> CallRecord: ...


def decide(conn: Connection, record: CallRecord, write: Write[T]) -> tuple[CallRecord, T | NovaError]:
    """The record as it has to be appended, and what the write came to."""
    try:
        with savepoint(conn):
            value = write(conn, record)
    except NovaError as error:
        return failed(record, type(error), error.reason_code), error
    return value.on_record(record) if isinstance(value, OnRecord) else record, value


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
    return record.with_reason(reason_code)


def failed(record: CallRecord, family: type[NovaError], reason_code: str) -> CallRecord:
    kind: OutcomeKind = "invalid" if issubclass(family, InvalidParams) else "failed"
    outcome = replace(record.outcome, kind=kind, error_code=family.error_code, reason_code=reason_code)
    return replace(record, outcome=outcome)
