"""Never twice by accident: a commit is looked up, and looked at, before it may be sent again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.storage.engine import Database
from nova_mcp.verification import refusals
from nova_mcp.verification.contracts.evaluate import judge_set
from nova_mcp.verification.duplicates import rules
from nova_mcp.verification.duplicates.identity import identity_hash
from nova_mcp.verification.model import OMITTED, CommitIdentity, Earlier, GuardedCommit, Omitted
from nova_mcp.verification.open_transitions import UnderWay
from nova_mcp.verification.request import Ask, Facing, ResolvedEarlier
from nova_mcp.verification.store import find_transition, latest_of, others_since, resolve, settle
from nova_mcp.verification.transitions import Settlement, StoredTransition

# Counts a verified success that has been refuted since: which server counts it, and when.
CountContradiction: TypeAlias = Callable[[Connection, ServerId, int], None]


@dataclass(frozen=True, slots=True)
class Memory:
    """Where earlier dispatches are remembered, and which of them this server still works on."""

    db: Database
    recorder: Recorder
    clock: Clock
    under_way: UnderWay
    count_contradiction: CountContradiction


class RepeatCheck:
    """The question whether one call may send its commit, given what was sent before.

    `identity` and `follows` are what the answer was based on; the intent is written only if that still holds.
    """

    def __init__(self, memory: Memory, ask: Ask, unsent: Callable[[], GuardedCommit]) -> None:
        self._db = memory.db
        self._recorder = memory.recorder
        self._clock = memory.clock
        self._under_way = memory.under_way
        self._count_contradiction = memory.count_contradiction
        self._ask = ask
        self._unsent = unsent
        self.identity: str | None = None
        self.follows: str | Omitted | None = OMITTED
        self.strict = False

    async def run(self, facing: Facing, *, strict: bool) -> None:
        """`strict` for what is known to commit; else only an unclear one that has sent something stands in the way."""
        self.strict = strict
        ask = self._ask
        identity = identity_hash(
            CommitIdentity(ask.caller.principal, facing.origin, facing.control, facing.fields, ask.intent_key)
        )
        self.identity = identity
        stored = await self._earlier(identity, facing)
        earlier = None if stored is None else stored.as_earlier(ask.caller.server_id)
        if not strict and (earlier is None or earlier.state != "indeterminate" or not earlier.mutated):
            return
        verdict = rules.judge_repeat(
            earlier,
            now_ms=self._clock.now_ms(),
            observed_at_ms=facing.observed_at_ms,
            retry_of=ask.retry_of,
        )
        match verdict:
            case rules.Send():
                return
            case rules.InFlight():
                raise refusals.in_flight(self._unsent())
            case rules.Suspect():
                raise refusals.suspected(self._unsent(), verdict.earlier)
            case rules.Recheck(earlier=known):
                await self._recheck(known, facing)

    async def _earlier(self, identity: str, facing: Facing) -> StoredTransition | None:
        """The last dispatch of this commit; one that a dead server left open is closed on the way."""
        principal, retry_of = self._ask.caller.principal, self._ask.retry_of
        latest = await self._closed(await self._db.read(latest_of, principal, identity))
        self.follows = None if latest is None else latest.transition_id
        if retry_of is None:
            return latest
        named = await self._closed(await self._db.read(find_transition, principal, retry_of))
        if named is None or named.origin != facing.origin:
            raise refusals.nothing_to_retry(self._unsent(), retry_of)
        # One with another control or other fields is taken at its name, unless this very commit has a question open.
        unresolved = latest is not None and latest.state in ("open", "indeterminate")
        theirs = named.identity != identity and named.state != "not_dispatched"
        return named if theirs and not unresolved else latest

    async def _closed(self, stored: StoredTransition | None) -> StoredTransition | None:
        """The same, settled if whoever left it open is gone or failed to close it."""
        if stored is None or stored.state != "open":
            return stored
        await self._recorder.recover()
        if self._under_way.abandoned(stored.transition_id, self._clock.monotonic_ms()):
            now = self._clock.now_ms()
            end = Settlement("indeterminate", "timeout", lost_request=True, mutated=True, completed_at_ms=now)
            await self._db.write(settle, stored.transition_id, end)
        return await self._db.read(find_transition, stored.caller.principal, stored.transition_id)

    async def _recheck(self, earlier: Earlier, facing: Facing) -> None:
        """Nothing is sent yet: the page may show by now what became of the earlier dispatch.

        One that is only named, with another control or other fields, is not answered for by this page; nor is any once
        something else was sent there, because what shows then may be the other one's.
        """
        principal = self._ask.caller.principal
        same = self.follows == earlier.transition_id
        theirs = await self._db.read(others_since, earlier, principal, facing.origin)
        contract = earlier.contract
        reading = await facing.witness.read({member.address for member in contract.outcome_members})
        success, forbidden = judge_set(contract.success, reading), judge_set(contract.forbidden, reading)
        if not same or theirs:
            success = forbidden = None
        observed = rules.observed_since(earlier, facing.observed_at_ms)
        verdict = rules.judge_recheck(earlier, success, forbidden, observed_since=observed, retry_of=self._ask.retry_of)
        match verdict:
            case rules.AlreadyDone():
                await self._db.write(resolve, earlier.transition_id, "verified_success", self._ask.call_id)
                raise ResolvedEarlier(self._resolved(earlier))
            case rules.CloseAsFailedAndSend():
                await self._db.write(resolve, earlier.transition_id, "verified_fail", self._ask.call_id)
            case rules.SendAgain(refuted=refuted):
                if refuted:
                    await self._db.write(self._count_contradiction, self._ask.caller.server_id, self._clock.now_ms())
            case rules.Suspect():
                raise refusals.suspected(self._unsent(), verdict.earlier)

    def _resolved(self, earlier: Earlier) -> GuardedCommit:
        return replace(
            self._unsent(),
            verification_status="verified_success",
            retry_advice="do_not_retry",
            outcome_verdict="satisfied",
            resolved_from=earlier.transition_id,
        )
