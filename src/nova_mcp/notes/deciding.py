"""Writes of notes, decided in the transaction of the call that asks for them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from sqlalchemy import Connection, text

from nova_mcp.errors import InvalidParams, NovaError
from nova_mcp.observation.model import CallRecord, OutcomeKind

T = TypeVar("T")

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def hold(conn: Connection, store: str, principal: str) -> None:
    """Keeps other writers of one principal's notes away until the transaction ends, so that limits hold.

    SQLite has one writer at a time anyway.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(_HOLD, {"name": f"nova:{store}:{principal}"})


@dataclass(slots=True)
class Deciding(Generic[T]):
    """A write on its way into the store; `outcome` is there once the call's record is committed.

    A refusal is an outcome like any other: raised, it would take the call's record with it. Whoever writes decides
    first and refuses before anything is changed.
    """

    write: Callable[[Connection, int], T | NovaError]
    reason: Callable[[T], str | None] = lambda _: None
    outcome: T | NovaError | None = field(default=None)

    def decide(self, conn: Connection, record: CallRecord) -> CallRecord:
        if record.outcome.kind not in ("ok", "partial"):
            return record
        self.outcome = self.write(conn, record.started_at_ms + record.duration_ms)
        if isinstance(self.outcome, NovaError):
            error = self.outcome
            kind: OutcomeKind = "invalid" if isinstance(error, InvalidParams) else "failed"
            told = replace(record.outcome, kind=kind, error_code=error.error_code, reason_code=error.reason_code)
            return replace(record, outcome=told)
        if (said := self.reason(self.outcome)) is not None:
            return replace(record, outcome=replace(record.outcome, reason_code=said))
        return record

    def result(self) -> T:
        """What it came to; raises what the write was refused with."""
        if isinstance(self.outcome, NovaError):
            raise self.outcome
        if self.outcome is None:
            raise AssertionError("a write was answered before it was decided")
        return self.outcome
