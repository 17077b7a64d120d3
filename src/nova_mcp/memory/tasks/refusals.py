"""Writes of task memory, which the store may turn down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from nova_mcp.errors import NovaError
from nova_mcp.evidence.decision import Deciding, with_reason
from nova_mcp.evidence.model import CallRecord, Json

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


def task_write(write: Callable[[Connection, CallRecord], T | Refused | Wrong]) -> Deciding[T | Refused]:
    def decided(conn: Connection, record: CallRecord) -> T | Refused | NovaError:
        outcome = write(conn, record)
        return outcome.error if isinstance(outcome, Wrong) else outcome

    return Deciding(decided, _told)


def _told(record: CallRecord, outcome: object) -> CallRecord:
    return with_reason(record, outcome.reason_code) if isinstance(outcome, Refused) else record
