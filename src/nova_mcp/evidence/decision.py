"""Runs what a call writes in the transaction of its record, before the record is appended."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

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
        return failed(record, error), error
    return value.on_record(record) if isinstance(value, OnRecord) else record, value


def failed(record: CallRecord, error: NovaError) -> CallRecord:
    kind: OutcomeKind = "invalid" if isinstance(error, InvalidParams) else "failed"
    outcome = replace(record.outcome, kind=kind, error_code=error.error_code, reason_code=error.reason_code)
    return replace(record, outcome=outcome)
