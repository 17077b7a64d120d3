"""A time in which the store took no records: what went unrecorded, and the record that says so afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from nova_mcp.evidence.erasure import LEDGER_TOOL
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Link, ServerId

# Acts are refused during an outage, so only calls that were under way when it began leave a record to be written late.
MOST_LATE: Final = 1_000

Last = Callable[[Connection], None]
Also = Callable[[Connection, CallRecord, Link], Last | None]


@dataclass(frozen=True, slots=True)
class LateRecord:
    """The record of a call that touched a page before the failure was known, with what is derived from it."""

    record: CallRecord
    also: tuple[Also, ...]


@dataclass(slots=True)
class Outage:
    """What a server could not record since a moment, by the kind of call."""

    since_ms: int
    since_mono_ms: float
    reasons: list[str] = field(default_factory=list)
    reads: int = 0
    refused: int = 0
    lost: int = 0
    late: list[LateRecord] = field(default_factory=list)
    # Calls that count as not recorded although their commit may have got through.
    uncertain: list[CallRecord] = field(default_factory=list)

    def blame(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def add(self, record: CallRecord, also: tuple[Also, ...], *, tried: bool = True) -> None:
        """Count a record that was not written; that of a call which touched something is written later.

        `tried`: its write had begun, so that it may be in the ledger after all.
        """
        if record.kind == "intent":
            # The call that asks for it fails, and counts.
            return
        if record.outcome.action_dispatched or record.closes is not None:
            if len(self.late) < MOST_LATE:
                self.late.append(LateRecord(record, also))
            else:
                self.lost += 1
            return
        self._count(record, 1)
        if tried and len(self.uncertain) < MOST_LATE:
            self.uncertain.append(record)

    def found(self, record: CallRecord) -> None:
        """A call that counted as not recorded is in the ledger."""
        self._count(record, -1)

    def _count(self, record: CallRecord, by: int) -> None:
        if record.effect == "read":
            self.reads += by
        else:
            self.refused += by


def gap_record(outage: Outage, server_id: ServerId, call_id: str, now: tuple[int, float]) -> CallRecord:
    """Closes an outage; `now` is the time of day and the monotonic time, which no change of the clock moves."""
    now_ms, mono_ms = now
    return CallRecord(
        call_id=call_id,
        caller=Caller("", "", server_id),
        tool_name=LEDGER_TOOL,
        effect="admin",
        started_at_ms=outage.since_ms,
        duration_ms=max(0, round(mono_ms - outage.since_mono_ms)),
        outcome=CallOutcome("failed", reason_code="store.unavailable"),
        kind="gap",
        arguments={
            "fromMs": outage.since_ms,
            "toMs": now_ms,
            "reasons": list(outage.reasons),
            "readsUnrecorded": outage.reads,
            "callsRefused": outage.refused,
            "recordedLate": len(outage.late),
            "recordsLost": outage.lost,
        },
    )
