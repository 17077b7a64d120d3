"""Goals: what an agent works towards on a target, step by step, so that it can be resumed without guessing."""

import json
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.errors import NotFound, Precondition
from nova_mcp.evidence.model import Caller
from nova_mcp.storage.engine import Database
from nova_mcp.verification.contracts.codec import contract_from_json, contract_to_json
from nova_mcp.verification.contracts.evaluate import judge_set
from nova_mcp.verification.goals import steps as goal_steps
from nova_mcp.verification.goals import store
from nova_mcp.verification.goals.model import Annotated, Closed, NewGoal, Note, PlannedStep, StoredGoal, Unknown
from nova_mcp.verification.goals.rules import (
    LEASE_MS,
    Ended,
    GoalMode,
    GoalState,
    Ownership,
    Refuse,
    StepHold,
    StepStatus,
    TerminalState,
    Why,
    start_step,
)
from nova_mcp.verification.goals.steps import Prepared, Rejected, StepEnd, Taker
from nova_mcp.verification.model import AssertionSet, Contract, SetVerdict
from nova_mcp.verification.witness import Witness

# Longer than the longest window with its one extension and the time after which a holder counts as dead.
STEP_LEASE_MS: Final = 60_000
EVENTS_LIMIT: Final = 50

Words: TypeAlias = tuple[str, str]

_WHY: Final[dict[Why, Words]] = {
    "other_owner": (
        "A goal of another agent is active on this tab.",
        "Ask nova.goal_register query for its state; act on a tab of your own, or wait until that goal ends.",
    ),
    "in_flight": (
        "The goal's current step is already being carried out.",
        "Wait for its answer, then look at the page and query the goal before acting again.",
    ),
    "not_current": (
        "The goal has moved on since this call began.",
        "Query the goal, look at the page, and act on the step that is current now.",
    ),
    "not_active": (
        "The goal is no longer active.",
        "Query the goal; annotate revives one whose lease ran out, or create a new one.",
    ),
}


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step as its author describes it."""

    action_desc: str
    contract: Contract | None = None


@dataclass(frozen=True, slots=True)
class GoalPlan:
    """What somebody wants to reach, and how."""

    summary: str
    mode: GoalMode = "agent_driven"
    target_id: str | None = None
    owner_agent_id: str | None = None
    session_id: str | None = None
    lease_ms: int = LEASE_MS
    preconditions: AssertionSet = field(default_factory=AssertionSet)
    steps: tuple[StepPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class GoalContext:
    """Where the caller's goal on a target stands: the anchor to resume from."""

    goal_id: str
    summary: str
    mode: GoalMode
    state: GoalState
    current_step: int
    total_steps: int
    step_status: StepStatus | None
    step_action: str | None


@dataclass(frozen=True, slots=True)
class StepClaim:
    """What an act on a target has to do with the goal that counts there.

    `rejected` says in words why the act may not run as a step; a guarded act must then not run at all.
    """

    goal_id: str
    step_no: int | None
    contract: Contract | None
    caller: Caller
    target_id: str
    session_id: str | None = None
    rejected: Words | None = None


class Goals:
    """Registers goals, answers for them, and ties acts to their steps."""

    def __init__(self, db: Database, ports: Ports) -> None:
        self._db = db
        self._ports = ports

    # -- what the register offers

    async def create(self, caller: Caller, plan: GoalPlan, witness: Witness | None = None) -> StoredGoal:
        """Register a goal; its conditions are judged once, now, and block nothing."""
        new = NewGoal(
            goal_id=f"goal_{self._ports.ids.token(8)}",
            principal=caller.principal,
            created_by=caller.agent_id,
            summary=plan.summary,
            created_at_ms=self._ports.clock.now_ms(),
            lease_ms=plan.lease_ms,
            mode=plan.mode,
            target_id=plan.target_id,
            owner=Ownership(plan.owner_agent_id, plan.session_id),
            preconditions=_kept(Contract(preconditions=plan.preconditions)) if plan.preconditions else None,
            precondition_verdict=await _judged(plan.preconditions, witness),
            steps=tuple(
                PlannedStep(step.action_desc, None if step.contract is None else _kept(step.contract))
                for step in plan.steps
            ),
        )
        return await self._db.write(_created, new)

    async def query(self, caller: Caller, goal_id: str, events: int = 0) -> StoredGoal:
        """One goal with its steps and, if wanted, its last events."""
        found = await self._db.read(_found, caller.principal, goal_id, self._ports.clock.now_ms(), events)
        if found is None:
            raise not_found(goal_id)
        return found

    async def listed(self, caller: Caller, target_id: str | None = None, events: int = 0) -> list[StoredGoal]:
        """The newest goals of the caller's principal."""
        return await self._db.read(_listed, caller.principal, target_id, self._ports.clock.now_ms(), events)

    async def close(self, caller: Caller, goal_id: str, state: TerminalState) -> tuple[StoredGoal, GoalState]:
        """End a goal; the state it had before comes with it."""
        now = self._ports.clock.now_ms()
        match await self._db.write(store.close_goal, caller.principal, goal_id, state, now):
            case Closed(previous):
                return await self.query(caller, goal_id), previous
            case Ended(ended):
                raise terminal(goal_id, ended)
            case Unknown():
                raise not_found(goal_id)

    async def annotate(self, caller: Caller, goal_id: str, note: Note) -> tuple[StoredGoal, str]:
        """Write something down about a goal, which keeps it alive; the event's id comes with it."""
        now = self._ports.clock.now_ms()
        match await self._db.write(store.annotate_goal, caller.principal, goal_id, note, now):
            case Annotated(event_id):
                return await self.query(caller, goal_id), event_id
            case Ended(ended):
                raise terminal(goal_id, ended)
            case Unknown():
                raise not_found(goal_id)

    # -- what looking and acting need

    async def active_for(self, principal: str, target_id: str) -> StoredGoal | None:
        """The goal that counts on a target, whoever owns it."""
        return await self._db.read(store.active_goal, principal, target_id, self._ports.clock.now_ms())

    async def context(self, caller: Caller, target_id: str, session_id: str | None = None) -> GoalContext | None:
        """Where the goal that counts on the target stands; None unless it is the caller's."""
        found = await self.active_for(caller.principal, target_id)
        if found is None or not found.owner.admits(caller.agent_id, session_id):
            return None
        return context_of(found)

    async def claim(self, caller: Caller, target_id: str, session_id: str | None = None) -> StepClaim | None:
        """What an act of the caller on the target has to do with its goal; None when there is none."""
        found = await self.active_for(caller.principal, target_id)
        if found is None:
            return None
        bare = StepClaim(found.goal_id, None, None, caller, target_id, session_id)
        if not found.owner.admits(caller.agent_id, session_id):
            return replace(bare, rejected=_WHY["other_owner"])
        if (step := found.open_step) is None:
            return bare
        match start_step(StepHold(step.status, step.lease_expires_at_ms), self._ports.clock.now_ms()):
            case Refuse(why):
                return replace(bare, rejected=_WHY[why])
            case _:
                contract = None if step.contract is None else kept_contract(step.contract)
                return replace(bare, step_no=step.step_no, contract=contract)

    def prepare_step(self, conn: Connection, claim: StepClaim, token: str, now_ms: int) -> Words | None:
        """Take the claimed step, in the transaction of the intent; words when it can't be had any more.

        A claim that was rejected takes nothing: only an unguarded act gets this far with one, and it is no step.
        """
        if claim.rejected is not None:
            return None
        taker = Taker(
            token=token,
            agent_id=claim.caller.agent_id,
            expires_at_ms=now_ms + STEP_LEASE_MS,
            session_id=claim.session_id,
            goal_id=claim.goal_id,
            step_no=claim.step_no,
        )
        match goal_steps.prepare_step(conn, claim.caller.principal, claim.target_id, taker, now_ms):
            case Rejected(why=why):
                return _WHY[why]
            case Prepared() | None:
                return None

    def settle_step(self, conn: Connection, claim: StepClaim, token: str, end: StepEnd) -> bool:
        """End the act that took the claimed step; a transition's own settlement does this by itself."""
        if claim.step_no is None:
            return False
        return goal_steps.settle_step(conn, claim.goal_id, claim.step_no, token, end)

    async def verifying(self, claim: StepClaim, token: str) -> None:
        """The input of the claimed step went out; its outcome is being watched."""
        if claim.step_no is not None:
            now = self._ports.clock.now_ms()
            await self._db.write(goal_steps.verifying_step, claim.goal_id, claim.step_no, token, now)

    async def blocked(self, claim: StepClaim) -> None:
        """The page was not ready for the claimed step; nothing was sent."""
        if claim.step_no is not None:
            now = self._ports.clock.now_ms()
            await self._db.write(goal_steps.block_step, claim.goal_id, claim.step_no, now)


def _kept(contract: Contract) -> str:
    return json.dumps(contract_to_json(contract))


def kept_contract(text: str) -> Contract:
    return contract_from_json(json.loads(text), stored=True)


def context_of(found: StoredGoal) -> GoalContext:
    step = found.step
    return GoalContext(
        goal_id=found.goal_id,
        summary=found.summary,
        mode=found.mode,
        state=found.state,
        current_step=found.current_step,
        total_steps=len(found.steps),
        step_status=None if step is None else step.status,
        step_action=None if step is None else step.action_desc,
    )


def not_found(goal_id: str) -> NotFound:
    return NotFound("goal.not_found", f"There is no goal {goal_id[:64]}.")


def terminal(goal_id: str, state: GoalState) -> Precondition:
    hint = (
        "Its lease ran out more than a day ago; create a new goal."
        if state == "orphaned"
        else "An ended goal stays as it is; create a new one to go on."
    )
    return Precondition("goal.terminal", f"Goal {goal_id[:64]} is {state}.", hint, details={"state": state})


async def _judged(conditions: AssertionSet, witness: Witness | None) -> SetVerdict | None:
    if not conditions:
        return None
    if witness is None:
        return "unknown"
    return judge_set(conditions, await witness.read({member.address for member in conditions.members}))


def _created(conn: Connection, new: NewGoal) -> StoredGoal:
    store.create_goal(conn, new)
    made = store.find_goal(conn, new.principal, new.goal_id, new.created_at_ms)
    if made is None:
        raise LookupError(f"goal {new.goal_id} is gone in the transaction that made it")
    return made


def _found(conn: Connection, principal: str, goal_id: str, now_ms: int, events: int) -> StoredGoal | None:
    found = store.find_goal(conn, principal, goal_id, now_ms)
    return None if found is None else _with_events(conn, found, events)


def _listed(conn: Connection, principal: str, target_id: str | None, now_ms: int, events: int) -> list[StoredGoal]:
    goals = store.list_goals(conn, principal, target_id, now_ms)
    return [_with_events(conn, one, events) for one in goals]


def _with_events(conn: Connection, found: StoredGoal, events: int) -> StoredGoal:
    if not events:
        return found
    return replace(found, events=tuple(store.goal_events(conn, found.goal_id, events)))
