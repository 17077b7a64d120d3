"""Transitions: every guarded dispatch from its intent to its verdict, and which commit is in flight."""

import json
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, Row, Table, Text, delete, insert, select, update
from sqlalchemy import text as sql

from nova_mcp.evidence.model import Caller, CallRecord, Link, ServerId
from nova_mcp.storage.schema import metadata
from nova_mcp.verification.contracts.codec import contract_from_json, contract_to_json
from nova_mcp.verification.goals.rules import StepOutcome
from nova_mcp.verification.goals.steps import StepEnd, settle_step
from nova_mcp.verification.model import Earlier, Omitted
from nova_mcp.verification.receipts import receipt_from_json, receipt_to_json
from nova_mcp.verification.transitions import (
    PROOF,
    NewTransition,
    ResolvedState,
    SettledState,
    Settlement,
    StoredTransition,
)

transition = Table(
    "transition",
    metadata,
    Column("transition_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("server_id", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("target_id", Text),
    Column("origin", Text, nullable=False),
    Column("identity", Text),
    Column("intent_key", Text),
    Column("action_kind", Text, nullable=False),
    Column("contract", Text, nullable=False),
    Column("goal_id", Text),
    Column("step_no", Integer),
    Column("element", Text, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("lost_request", Integer, nullable=False),
    Column("mutated", Integer, nullable=False),
    Column("completed_at_ms", BigInteger),
    Column("resolved_by", Text),
    Column("receipt", Text),
    Index(None, "principal", "identity", "started_at_ms"),
    Index(None, "started_at_ms"),
    Index(None, "completed_at_ms"),
)

transition_open = Table(
    "transition_open",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("transition_id", Text, nullable=False),
    Column("server_id", Text, nullable=False),
    Index(None, "transition_id", unique=True),
)


# Both databases read this sentence the same way. PostgreSQL lets the second writer wait for the first one's commit.
_TAKE = sql(
    "INSERT INTO transition_open (principal, identity, transition_id, server_id) "
    "VALUES (:principal, :identity, :transition_id, :server_id) ON CONFLICT (principal, identity) DO NOTHING"
)


def open_transition(conn: Connection, new: NewTransition) -> bool:
    """Write the transition down; False when its identity is in flight or was dispatched again meanwhile.

    After False nothing was written, and the caller has to look at `latest_of` anew.
    """
    if new.exclusive and new.identity is not None and not _taken(conn, new, new.identity):
        return False
    conn.execute(
        insert(transition),
        {
            "transition_id": new.transition_id,
            "principal": new.caller.principal,
            "agent_id": new.caller.agent_id,
            "server_id": new.caller.server_id,
            "call_id": new.call_id,
            "tool_name": new.tool_name,
            "target_id": new.target_id,
            "origin": new.origin,
            "identity": new.identity,
            "intent_key": new.intent_key,
            "action_kind": new.contract.action_kind,
            "contract": json.dumps(contract_to_json(new.contract)),
            "goal_id": new.goal_id,
            "step_no": new.step_no,
            "element": new.element,
            "started_at_ms": new.started_at_ms,
            "state": "open",
            "lost_request": 0,
            "mutated": 0,
        },
    )
    return True


def _taken(conn: Connection, new: NewTransition, identity: str) -> bool:
    principal = new.caller.principal
    place = {"principal": principal, "identity": identity}
    held = conn.execute(_TAKE, {**place, "transition_id": new.transition_id, "server_id": new.caller.server_id})
    if held.rowcount != 1:
        return False
    if isinstance(new.follows, Omitted):
        return True
    # Looked up after the place is taken: nobody else can add to this identity before we commit.
    latest = latest_of(conn, principal, identity)
    if (None if latest is None else latest.transition_id) == new.follows:
        return True
    _release(conn, new.transition_id)
    return False


def _release(conn: Connection, transition_id: str) -> None:
    conn.execute(delete(transition_open).where(transition_open.c.transition_id == transition_id))


# -- reading ---------------------------------------------------------------------------------------------------------

_NEWEST = (transition.c.started_at_ms.desc(), transition.c.transition_id.desc())


def latest_of(conn: Connection, principal: str, identity: str) -> StoredTransition | None:
    """The newest dispatch of an identity; one that provably sent nothing does not count."""
    row = conn.execute(
        select(transition)
        .where(transition.c.principal == principal, transition.c.identity == identity)
        .where(transition.c.state != "not_dispatched")
        .order_by(*_NEWEST)
        .limit(1)
    ).one_or_none()
    return None if row is None else _stored(row)


def find_transition(conn: Connection, principal: str | None, transition_id: str) -> StoredTransition | None:
    """One transition; another principal's is as unknown as none. Without a principal the operator asks."""
    wanted = select(transition).where(transition.c.transition_id == transition_id)
    if principal is not None:
        wanted = wanted.where(transition.c.principal == principal)
    row = conn.execute(wanted).one_or_none()
    return None if row is None else _stored(row)


def others_since(conn: Connection, earlier: StoredTransition | Earlier, principal: str, origin: str) -> bool:
    """Whether anything else of the principal was dispatched on that site after a transition ended.

    What the page shows by now may then be the doing of that other one.
    """
    after = earlier.completed_at_ms if earlier.completed_at_ms is not None else 0
    found = conn.execute(
        select(transition.c.transition_id)
        .where(transition.c.principal == principal, transition.c.origin == origin)
        .where(transition.c.state != "not_dispatched", transition.c.started_at_ms >= after)
        .where(transition.c.transition_id != earlier.transition_id)
        .limit(1)
    ).one_or_none()
    return found is not None


def last_dispatched(conn: Connection) -> StoredTransition | None:
    """The newest transition of the store that sent something, whoever asked for it."""
    row = conn.execute(
        select(transition).where(transition.c.state != "not_dispatched").order_by(*_NEWEST).limit(1)
    ).one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row[Any]) -> StoredTransition:
    return StoredTransition(
        transition_id=row.transition_id,
        caller=Caller(row.principal, row.agent_id, ServerId(row.server_id)),
        call_id=row.call_id,
        tool_name=row.tool_name,
        target_id=row.target_id,
        origin=row.origin,
        identity=row.identity,
        intent_key=row.intent_key,
        contract=contract_from_json(json.loads(row.contract), stored=True),
        goal_id=row.goal_id,
        step_no=row.step_no,
        element=row.element,
        started_at_ms=row.started_at_ms,
        state=row.state,
        reason=row.reason,
        lost_request=bool(row.lost_request),
        mutated=bool(row.mutated),
        completed_at_ms=row.completed_at_ms,
        resolved_by=row.resolved_by,
        receipt=None if row.receipt is None else receipt_from_json(row.receipt),
    )


# -- ending ----------------------------------------------------------------------------------------------------------

_STEP_OUTCOME: Final[dict[SettledState, StepOutcome]] = {
    "verified_success": "done",
    "verified_fail": "failed",
    "indeterminate": "ambiguous",
    "not_dispatched": "ready",
}


def settle(conn: Connection, transition_id: str, end: Settlement) -> bool:
    """Close an open transition and the goal step it ran as; the first settlement stands."""
    row = conn.execute(
        update(transition)
        .where(transition.c.transition_id == transition_id, transition.c.state == "open")
        .values(
            state=end.state,
            reason=end.reason,
            lost_request=int(end.lost_request),
            mutated=int(end.mutated),
            completed_at_ms=end.completed_at_ms,
            receipt=None if end.receipt is None else receipt_to_json(end.receipt),
        )
        .returning(transition.c.goal_id, transition.c.step_no)
    ).one_or_none()
    if row is not None:
        _settle_step(conn, row, transition_id, end.state, end.completed_at_ms)
    # Last: whoever begins an act locks its goal before its identity, and the other order could deadlock.
    _release(conn, transition_id)
    return row is not None


def resolve(conn: Connection, transition_id: str, state: ResolvedState, resolved_by: str) -> bool:
    """A later look at the page told what an indeterminate transition had come to; False when it was not one."""
    row = conn.execute(
        update(transition)
        .where(transition.c.transition_id == transition_id, transition.c.state == "indeterminate")
        .values(state=state, resolved_by=resolved_by)
        .returning(transition.c.goal_id, transition.c.step_no, transition.c.completed_at_ms)
    ).one_or_none()
    if row is None:
        return False
    _settle_step(conn, row, transition_id, state, row.completed_at_ms)
    return True


def _settle_step(conn: Connection, row: Row[Any], token: str, state: SettledState, at_ms: int) -> None:
    if row.goal_id is not None and row.step_no is not None:
        end = StepEnd(_STEP_OUTCOME[state], at_ms, PROOF[state])
        settle_step(conn, row.goal_id, row.step_no, token, end)


def settle_recovered(conn: Connection, record: CallRecord, link: Link) -> None:
    """What a dead server left in flight: nobody saw how it ended, so it may have happened."""
    if record.kind == "recovery" and record.closes is not None:
        end = Settlement("indeterminate", "timeout", mutated=True, completed_at_ms=record.started_at_ms)
        settle(conn, record.closes, end)
