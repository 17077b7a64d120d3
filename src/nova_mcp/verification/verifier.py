"""Closed-loop acting: precondition, reservation of the intent, one dispatch, observation, verdict, advice."""

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import CallRecord, Link, ServerId
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.storage.engine import Database
from nova_mcp.verification import observation, refusals
from nova_mcp.verification.contracts.codec import contract_to_json
from nova_mcp.verification.contracts.evaluate import failed_traces, judge_set, retry_advice_for
from nova_mcp.verification.coordinator import Coordinator
from nova_mcp.verification.duplicates.check import CountContradiction, Memory, RepeatCheck
from nova_mcp.verification.goals.register import Goals, StepClaim
from nova_mcp.verification.kill_switches import commit_kill
from nova_mcp.verification.model import (
    AssertionSet,
    Contract,
    GuardedCommit,
    SetVerdict,
    Verdict,
)
from nova_mcp.verification.open_transitions import UnderWay
from nova_mcp.verification.receipts import Receipt
from nova_mcp.verification.request import Ask, Facing
from nova_mcp.verification.store import open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement
from nova_mcp.verification.witness import Follower

PRECONDITION_PAUSE_S: Final = 0.2
PROGRESS_EVERY_MS: Final = 1000

Tell = Callable[[float], Awaitable[None]]


def _count_nothing(conn: Connection, server_id: ServerId, now_ms: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Verifier:
    """What transitions are made of; one per server."""

    db: Database
    recorder: Recorder
    ports: Ports
    coordinator: Coordinator
    goals: Goals
    # Replaces what must not be stored.
    hides: Callable[[str], str] = str
    count_contradiction: CountContradiction = _count_nothing
    under_way: UnderWay = field(default_factory=UnderWay)

    def begin(self, ask: Ask) -> "Transition":
        return Transition(self, ask)


class Transition:
    """One action under a contract, from the look before it to the verdict after it."""

    def __init__(self, parts: Verifier, ask: Ask) -> None:
        self._parts = parts
        self._ask = ask
        self.transition_id = f"tr_{parts.ports.ids.token(10)}"
        self.contract = ask.contract
        self._started_at = parts.ports.clock.now_ms()
        self._precondition: SetVerdict | None = None
        memory = Memory(parts.db, parts.recorder, parts.ports.clock, parts.under_way, parts.count_contradiction)
        self._repeat = RepeatCheck(memory, ask, self._unsent)
        self._claim: StepClaim | None = None
        self._facing: Facing | None = None
        self._follower: Follower | None = None
        self._open = AsyncExitStack()
        self._verdict: Verdict | None = None
        self._completed_at: int | None = None
        self.receipt: Receipt | None = None

    @property
    def in_force(self) -> bool:
        """Whether there is anything to verify or to keep track of."""
        return self.contract is not None or self._claim is not None or self._says_unrepeatable()

    # -- before anything is sent

    async def bind(self) -> None:
        """Take part in the goal that is active on the target; its step may bring the contract."""
        ask = self._ask
        self._claim = await self._parts.goals.claim(ask.caller, ask.target_id, ask.session_id)
        if self.contract is None and self._claim is not None:
            self.contract = self._claim.contract

    async def check(self, facing: Facing) -> None:
        """Everything that may speak against dispatching; raises, and then nothing was touched."""
        self._facing = facing
        if self._claim is not None and self._claim.rejected is not None and (facing.is_commit or self.contract):
            raise refusals.not_the_goals_turn(self._unsent(), self._claim.rejected)
        guarded = facing.is_commit or self._says_unrepeatable()
        if guarded:
            await self._refuse_killed(facing)
        self._refuse_unreadable(facing)
        try:
            await self._check_preconditions(facing)
        except NovaError:
            if self._claim is not None:
                await self._parts.goals.blocked(self._claim)
            raise
        if guarded or self._may_commit_unseen():
            await self._repeat.run(facing, strict=guarded)

    def _says_unrepeatable(self) -> bool:
        ask, contract = self._ask, self.contract
        if ask.intent_key is not None or ask.retry_of is not None:
            return True
        return contract is not None and contract.retry_policy_given and contract.retry_policy != "idempotent"

    def _may_commit_unseen(self) -> bool:
        """A contract on a control that does not look like a commit: what it sends decides what it was."""
        contract = self.contract
        return contract is not None and contract.has_outcome and contract.retry_policy != "idempotent"

    def _refuse_unreadable(self, facing: Facing) -> None:
        if facing.unreadable and self.contract is not None:
            outcome = {member.fact_key for member in self.contract.outcome_members}
            before = not any(one.fact_key in outcome for one in facing.unreadable)
            raise refusals.not_evaluable(self._unsent(), facing.unreadable, before=before)

    async def _refuse_killed(self, facing: Facing) -> None:
        if (kill := await self._parts.db.read(commit_kill, facing.host)) is not None:
            raise refusals.killed(kill, facing.host)

    async def _check_preconditions(self, facing: Facing) -> None:
        conditions = self.contract.preconditions if self.contract is not None else AssertionSet()
        if not conditions:
            return
        addresses = {member.address for member in conditions.members}
        reading = await facing.witness.read(addresses)
        verdict = judge_set(conditions, reading)
        if verdict == "unknown":
            await anyio.sleep(PRECONDITION_PAUSE_S)
            reading = await facing.witness.read(addresses)
            verdict = judge_set(conditions, reading)
        self._precondition = verdict
        if verdict == "satisfied":
            return
        raise refusals.precondition(self._unsent(), failed_traces(conditions, reading))

    def _unsent(self) -> GuardedCommit:
        """The commit as it stands while nothing was sent."""
        return GuardedCommit(
            transition_id=self.transition_id,
            dispatch_status="blocked_goal",
            verification_status="skipped",
            retry_advice="safe_to_retry",
            precondition_verdict=self._precondition,
            started_at=self._started_at,
            completed_at=self._parts.ports.clock.now_ms(),
        )

    # -- dispatch

    async def commit(self, intent: Callable[[str], CallRecord]) -> None:
        """Arm the watch, put the intent on record, and let the one dispatch go."""
        contract, facing = self.contract, self._facing
        if facing is not None and contract is not None and contract.has_outcome:
            addresses = {member.address for member in contract.outcome_members}
            self._follower = await self._open.enter_async_context(facing.witness.follow(addresses))
            if self._follower.document != facing.document:
                raise refusals.page_changed()
        if self.in_force:
            self._parts.under_way.begin(self.transition_id, self._parts.ports.clock.monotonic_ms())
            await self._parts.recorder.record(intent(self.transition_id), also=(self._open_row,))
        if self._follower is not None:
            self._follower.pressed()

    def _open_row(self, conn: Connection, record: CallRecord, link: Link) -> None:
        """In the intent's own transaction: one dispatch in flight per commit, one per step."""
        ask, facing = self._ask, self._facing
        if facing is None:
            raise LookupError("an intent needs a page")
        # Asked again in here: an operator who has just pulled the switch must not see one more commit go out.
        if self._repeat.strict and (kill := commit_kill(conn, facing.host)) is not None:
            raise refusals.killed(kill, facing.host)
        if self._claim is not None:
            rejected = self._parts.goals.prepare_step(conn, self._claim, self.transition_id, record.started_at_ms)
            if rejected is not None:
                raise refusals.not_the_goals_turn(self._unsent(), rejected)
        row = NewTransition(
            transition_id=self.transition_id,
            caller=ask.caller,
            call_id=ask.call_id,
            tool_name=ask.tool_name,
            target_id=ask.target_id,
            origin=facing.origin,
            identity=self._repeat.identity,
            exclusive=self._repeat.strict,
            intent_key=ask.intent_key,
            contract=self._keep(self._kept_contract()),
            goal_id=self._claim.goal_id if self._claim is not None else None,
            step_no=self._claim.step_no if self._claim is not None else None,
            started_at_ms=self._started_at,
            element=facing.element,
            follows=self._repeat.follows,
        )
        if not open_transition(conn, row):
            raise refusals.in_flight(self._unsent())

    def _keep(self, contract: Contract) -> Contract:
        """One that names a secret is kept without its outcome: half of it could only mislead a later look."""
        text = json.dumps(contract_to_json(contract), ensure_ascii=False)
        return contract if self._parts.hides(text) == text else Contract(action_kind=contract.action_kind)

    def _kept_contract(self) -> Contract:
        """As a later look at the page may use it: an outcome that stood before the dispatch would prove nothing."""
        contract = self.contract or Contract()
        if self._follower is None:
            return contract
        baseline, nothing = self._follower.baseline, AssertionSet()
        stood = [judge_set(bucket, baseline) == "satisfied" for bucket in (contract.success, contract.forbidden)]
        return replace(
            contract,
            success=nothing if stood[0] else contract.success,
            forbidden=nothing if stood[1] else contract.forbidden,
        )

    # -- after the input

    async def follow(self, tell: Tell) -> Verdict | None:
        """Watch until the outcome is decided; None when the contract names none."""
        follower, facing, contract = self._follower, self._facing, self.contract
        if follower is None or facing is None or contract is None:
            return None
        clock = self._parts.ports.clock
        begun = clock.monotonic_ms()
        if self._claim is not None:
            await self._parts.goals.verifying(self._claim, self.transition_id)
        plan = observation.make_plan(
            contract, follower.baseline, follower.document, started_ms=begun, commit_point=facing.is_commit
        )
        state, told = observation.begin(plan), begun
        while True:
            verdict = observation.judge(plan, state, clock.monotonic_ms())
            if verdict is not None and verdict.status != "indeterminate":
                # News may be late on a busy machine, and a page that stopped telling looks like one where nothing
                # changed: what a verdict claims is asked for once more.
                state = observation.advance(plan, state, await follower.look())
                verdict = observation.judge(plan, state, clock.monotonic_ms())
            if verdict is not None:
                break
            wait = observation.next_wake(plan, state, clock.monotonic_ms()) - clock.monotonic_ms()
            sample = await follower.next(max(0.0, min(wait, PROGRESS_EVERY_MS)))
            if sample is not None:
                state = observation.advance(plan, state, sample)
            if clock.monotonic_ms() - told >= PROGRESS_EVERY_MS:
                told = clock.monotonic_ms()
                await tell(told - begun)
        self._verdict = verdict
        self._completed_at = clock.now_ms()
        return verdict

    async def end(self) -> None:
        """Stop watching; safe to call at any time."""
        self._parts.under_way.end(self.transition_id, self._parts.ports.clock.monotonic_ms())
        with anyio.CancelScope(shield=True):
            await self._open.aclose()

    # -- what is kept and told

    def close(self, conn: Connection, record: CallRecord, *, delivered: bool = True) -> None:
        """In the transaction of the call's own record: what became of the intent and of the goal's step."""
        outcome = record.outcome
        if not delivered:
            settlement = Settlement("not_dispatched", outcome.reason_code)
        elif self._verdict is None:
            # Without an outcome to look for the effect alone has spoken; a call that broke off decided nothing.
            settled = outcome.kind in ("ok", "partial") and not (self.contract and self.contract.has_outcome)
            done = settled and outcome.verification == "verified"
            settlement = Settlement("verified_success" if done else "indeterminate", None if done else "timeout")
        else:
            verdict = self._verdict
            settlement = Settlement(
                verdict.status, verdict.reason, lost_request=verdict.lost_request, mutated=verdict.mutated
            )
        now = self._completed_at or self._parts.ports.clock.now_ms()
        settle(conn, self.transition_id, replace(settlement, completed_at_ms=now, receipt=self.receipt))

    def told(self) -> GuardedCommit | None:
        """What the answer reports of it; None when no contract was in force."""
        contract, verdict = self.contract, self._verdict
        if contract is None:
            return None
        completed = self._completed_at or self._parts.ports.clock.now_ms()
        commit = GuardedCommit(
            transition_id=self.transition_id,
            dispatch_status="dispatched",
            verification_status="skipped",
            retry_advice="check_postcondition_first",
            precondition_verdict=self._precondition,
            started_at=self._started_at,
            completed_at=completed,
        )
        if verdict is None:
            return commit
        return replace(
            commit,
            verification_status=verdict.status,
            retry_advice=retry_advice_for(contract, verdict, is_retry=self._ask.retry_of is not None),
            indeterminate_reason=verdict.reason,
            outcome_verdict=verdict.outcome_verdict,
            failed_assertions=verdict.failed_assertions,
            diagnostics=verdict.diagnostics if verdict.reason is not None else None,
        )
