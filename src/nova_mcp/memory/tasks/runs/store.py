"""Runs, their members, units and events as the store has them; every function runs in its caller's transaction."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import content_from_context
from nova_mcp.memory.tasks.coverage.locators import Locator
from nova_mcp.memory.tasks.model import BEFORE_JOINING_MS, TaskContent, TaskKind
from nova_mcp.memory.tasks.runs.event_codec import checks_of
from nova_mcp.memory.tasks.runs.rules import EventKind, RunState, Terms, Unit
from nova_mcp.memory.tasks.tables import task_instance, task_instance_event, task_instance_member, task_unit

CHUNK: Final = 400


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a task, apart from its units."""

    instance_id: str
    principal: str
    content: TaskContent
    state: RunState
    effective_context: str
    effective_context_hash: str
    profile_id: str | None
    profile_rev_applied: int | None
    target_url: str | None
    target_host: str | None
    task_kind: TaskKind | None
    task_kind_source: str
    beginning: Mapping[str, Json]
    ledger_gap: bool
    evidence_snapshot: str | None
    created_by: str
    create_event_id: str | None
    create_payload_hash: str | None
    started_at_ms: int
    last_activity_at_ms: int
    ended_at_ms: int | None

    @property
    def terms(self) -> Terms:
        checks = frozenset(one.check_id for one in self.content.mandatory_checks)
        return Terms(self.content.completion_condition.unit_kind, self.target_url, checks)

    @property
    def open(self) -> bool:
        return self.ended_at_ms is None


@dataclass(frozen=True, slots=True)
class Member:
    agent_id: str
    joined_at_ms: int

    @property
    def since_ms(self) -> int:
        """From when on what the agent did belongs to the run."""
        return self.joined_at_ms - BEFORE_JOINING_MS


@dataclass(frozen=True, slots=True)
class Event:
    """An applied call, with what was answered to it."""

    client_event_id: str
    kind: EventKind
    agent_id: str
    payload_hash: str
    rev_after: int
    delta: str
    response: str
    at_ms: int


# -- reading

_RUN = select(task_instance).where(
    task_instance.c.instance_id == bindparam("run"), task_instance.c.principal == bindparam("whose")
)
_HELD = _RUN.with_for_update()


def run_of(conn: Connection, principal: str, instance_id: str) -> Run | None:
    """A principal's own run; another's is simply not there."""
    row = conn.execute(_RUN, {"run": instance_id, "whose": principal}).one_or_none()
    return None if row is None else to_run(row)


def held_run(conn: Connection, principal: str, instance_id: str) -> Run | None:
    """The same, kept from other writers until the transaction ends."""
    row = conn.execute(_HELD, {"run": instance_id, "whose": principal}).one_or_none()
    return None if row is None else to_run(row)


def run_created_by(conn: Connection, principal: str, agent_id: str, event_id: str) -> Run | None:
    row = conn.execute(
        select(task_instance).where(
            task_instance.c.principal == principal,
            task_instance.c.created_by == agent_id,
            task_instance.c.create_event_id == event_id,
        )
    ).one_or_none()
    return None if row is None else to_run(row)


def to_run(row: Row[Any]) -> Run:
    state = RunState(
        rev=row.instance_rev,
        status=row.status,
        discovery=row.discovery_state,
        total_units=row.units,
        checks=checks_of(row.checks_state),
        resume=json.loads(row.resume_state),
        ended_reason=row.ended_reason,
    )
    return Run(
        instance_id=row.instance_id,
        principal=row.principal,
        content=content_from_context(row.effective_context),
        state=state,
        effective_context=row.effective_context,
        effective_context_hash=row.effective_context_hash,
        profile_id=row.profile_id,
        profile_rev_applied=row.profile_rev_applied,
        target_url=row.target_url,
        target_host=row.target_host,
        task_kind=row.task_kind,
        task_kind_source=row.task_kind_source,
        beginning=json.loads(row.beginning),
        ledger_gap=row.ledger_gap,
        evidence_snapshot=row.evidence_snapshot,
        created_by=row.created_by,
        create_event_id=row.create_event_id,
        create_payload_hash=row.create_payload_hash,
        started_at_ms=row.started_at_ms,
        last_activity_at_ms=row.last_activity_at_ms,
        ended_at_ms=row.ended_at_ms,
    )


def units_named(conn: Connection, instance_id: str, keys: Iterable[str]) -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    wanted = sorted(keys)
    for start in range(0, len(wanted), CHUNK):
        rows = conn.execute(
            select(task_unit).where(
                task_unit.c.instance_id == instance_id, task_unit.c.unit_key.in_(wanted[start : start + CHUNK])
            )
        )
        found.update({row.unit_key: to_unit(row) for row in rows})
    return found


def to_unit(row: Row[Any]) -> Unit:
    place = row.locator_type
    locator = None if place is None else Locator(place, row.locator_value, row.locator_hash)
    return Unit(row.unit_key, row.label, row.url, locator, row.status, row.reason, row.late)


def members(conn: Connection, instance_id: str) -> list[Member]:
    rows = conn.execute(
        select(task_instance_member.c.agent_id, task_instance_member.c.joined_at_ms)
        .where(task_instance_member.c.instance_id == instance_id)
        .order_by(task_instance_member.c.joined_at_ms, task_instance_member.c.agent_id)
    )
    return [Member(row.agent_id, row.joined_at_ms) for row in rows]


def event_named(conn: Connection, instance_id: str, client_event_id: str) -> Event | None:
    row = conn.execute(
        select(task_instance_event).where(
            task_instance_event.c.instance_id == instance_id,
            task_instance_event.c.client_event_id == client_event_id,
        )
    ).one_or_none()
    return None if row is None else to_event(row)


def to_event(row: Row[Any]) -> Event:
    return Event(
        client_event_id=row.client_event_id,
        kind=row.kind,
        agent_id=row.agent_id,
        payload_hash=row.payload_hash,
        rev_after=row.rev_after,
        delta=row.delta,
        response=row.response,
        at_ms=row.at_ms,
    )
