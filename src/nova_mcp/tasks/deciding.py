"""Writes of task memory, decided in the transaction that records the call which asks for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import InvalidParams, NovaError
from nova_mcp.observation.model import CallRecord, Json, OutcomeKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refused:
    """The call was fine and the store said no: an ordinary answer with `ok: false`. Nothing was written."""

    reason_code: str
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wrong:
    """The call could not be done as it was asked, which only the store could tell. Nothing was written."""

    error: NovaError


@dataclass(slots=True)
class Deciding(Generic[T]):
    """A write on its way into the store; what came of it is known once the call's record is committed.

    Hand `decide` to the call's evidence. `write` has to return before it changes anything whenever it says no.
    """

    write: Callable[[Connection, CallRecord], T | Refused | Wrong]
    outcome: T | Refused | Wrong | None = field(default=None)

    def decide(self, conn: Connection, record: CallRecord) -> CallRecord:
        if record.outcome.kind not in ("ok", "partial"):
            return record
        self.outcome = self.write(conn, record)
        return _told(record, self.outcome)

    def settled(self) -> T | Refused:
        """What was decided; raises what was wrong with the call."""
        match self.outcome:
            case None:
                raise AssertionError("a write was answered before it was decided")
            case Wrong(error):
                raise error
            case outcome:
                return outcome


def _told(record: CallRecord, outcome: object) -> CallRecord:
    """The record with what the write came to."""
    match outcome:
        case Refused(reason_code):
            return replace(record, outcome=replace(record.outcome, reason_code=reason_code))
        case Wrong(error):
            kind: OutcomeKind = "invalid" if isinstance(error, InvalidParams) else "failed"
            ended = replace(record.outcome, kind=kind, error_code=error.error_code, reason_code=error.reason_code)
            return replace(record, outcome=ended)
    return record
