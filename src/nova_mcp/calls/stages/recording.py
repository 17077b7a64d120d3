"""Writes the record of each call once: when the call ends, or earlier, where its tool commits what it writes."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from nova_mcp.calls.endings import Ending, committed, is_refusal, not_done, outcome_of
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.lessons import Lessons
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.core.clock import Clock
from nova_mcp.errors import NovaError
from nova_mcp.evidence.decision import Derive, Write
from nova_mcp.evidence.model import CallOutcome, CallRecord
from nova_mcp.evidence.outage import Also
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.memory.tasks.runs.service import RunKeeper
from nova_mcp.storage.errors import StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreCheck:
    """With the store down only reads run; whatever else is done must be on record."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        if call.spec.effect != "read":
            try:
                await self._recorder.require()
            except StoreUnavailable as failure:
                raise not_done(failure) from failure
        return await proceed()


class Recording:
    """One per pipeline."""

    def __init__(
        self, recorder: Recorder, runs: RunKeeper, lessons: Lessons, clock: Clock, *, keep_raw_urls: bool
    ) -> None:
        self._recorder = recorder
        self._runs = runs
        self._lessons = lessons
        self._clock = clock
        self._keep_raw_urls = keep_raw_urls

    async def close(self, envelope: Envelope, ending: Ending) -> StoreUnavailable | None:
        """Record how the call ended, unless its tool has; why it is not on record, or None."""
        if envelope.recorded or envelope.unrecorded is not None:
            return envelope.unrecorded
        envelope.refused = is_refusal(ending)
        envelope.lesson = self._lessons.draw(envelope, ending)
        return await self.record(envelope, _gated(envelope, outcome_of(ending, envelope.evidence)))

    async def record(self, envelope: Envelope, outcome: CallOutcome) -> StoreUnavailable | None:
        if envelope.recorded or envelope.unrecorded is not None:
            return envelope.unrecorded
        try:
            await self._append(envelope, outcome, self._recorder.record, commits=False)
        except StoreUnavailable as failure:
            return failure
        return None

    async def commit(self, envelope: Envelope, write: Write[T]) -> T:
        """Record a call that still runs, together with what it writes. What was wrong with it is raised."""
        outcome = self._begin_commit(envelope)
        done = await self._append(envelope, outcome, partial(self._recorder.commit, write=write), commits=True)
        if isinstance(done, NovaError):
            envelope.decided = done
            raise done
        return done

    async def commit_derived(self, envelope: Envelope, derive: Derive[T], reason_code: str | None) -> T:
        outcome = self._begin_commit(envelope, reason_code)
        return await self._append(
            envelope, outcome, partial(self._recorder.commit_derived, derive=derive), commits=True
        )

    def _begin_commit(self, envelope: Envelope, reason_code: str | None = None) -> CallOutcome:
        if envelope.recorded or envelope.unrecorded is not None:
            raise AssertionError("a call is committed once")
        envelope.lesson = self._lessons.draw(envelope)
        return _gated(envelope, committed(envelope.evidence, reason_code))

    async def _append(
        self,
        envelope: Envelope,
        outcome: CallOutcome,
        append: Callable[[CallRecord, tuple[Also, ...]], Awaitable[T]],
        *,
        commits: bool,
    ) -> T:
        """StoreUnavailable once for every call that could not be recorded. A defect of what a tool commits is raised
        as it is: the call ends with it, and is recorded as one that broke."""
        try:
            record = envelope.close(outcome, self._clock.monotonic_ms(), keep_raw_urls=self._keep_raw_urls)
            record = replace(record, instance_id=await self._runs.label_of(record))
            # Set before the write: a cancellation that arrives while the shielded write runs must not record twice.
            envelope.recorded, envelope.committed = True, commits
            return await append(record, tuple(envelope.evidence.also))
        except StoreUnavailable as failure:
            log.error("call %s was not recorded: %s", envelope.call_id, failure)
            envelope.recorded, envelope.unrecorded = False, failure
            raise
        except Exception as defective:
            if commits:
                envelope.recorded = envelope.committed = False
                raise
            # The page may have been touched: the answer has to say so, whatever broke behind it.
            log.exception("call %s was not recorded", envelope.call_id)
            envelope.unrecorded = StoreUnavailable(
                "down", type(defective).__name__, hint="The server's log has the details."
            )
            raise envelope.unrecorded from defective


def _gated(envelope: Envelope, outcome: CallOutcome) -> CallOutcome:
    """A call that ran although a gate would have stopped it is counted by the gate's name on its record."""
    return replace(outcome, gate_id=outcome.gate_id or envelope.shadow_gate)


@dataclass(frozen=True, slots=True)
class EnvelopeRecord:
    """The record of a call whose tool still runs, as the tool may commit it."""

    recording: Recording
    envelope: Envelope

    async def commit(self, write: Write[T]) -> T:
        return await self.recording.commit(self.envelope, write)

    async def commit_derived(self, derive: Derive[T], reason_code: str | None = None) -> T:
        return await self.recording.commit_derived(self.envelope, derive, reason_code)
