"""Writes of notes: one at a time for each principal, so that limits hold."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, text

from nova_mcp.errors import NovaError
from nova_mcp.evidence.decision import Deciding, with_reason
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.journal.observations import ended_at_ms

T = TypeVar("T")

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def hold(conn: Connection, store: str, principal: str) -> None:
    """Keeps other writers of one principal's notes away until the transaction ends.

    SQLite has one writer at a time anyway.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(_HOLD, {"name": f"nova:{store}:{principal}"})


def note_write(
    write: Callable[[Connection, int], T | NovaError], reason: Callable[[T], str | None] = lambda _: None
) -> Deciding[T]:
    """A write that is told when the call ended; `reason` is why the answer to it is no, if it is."""

    def told(record: CallRecord, outcome: T) -> CallRecord:
        said = reason(outcome)
        return record if said is None else with_reason(record, said)

    return Deciding(lambda conn, record: write(conn, ended_at_ms(record)), told)
