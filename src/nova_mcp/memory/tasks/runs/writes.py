"""Writes runs: how one begins, what an event changes, what is kept at its end; in its caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Insert, Table, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from nova_mcp.core.values import Json
from nova_mcp.evidence.grades import grade
from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.model import DiscoveryState, TaskContent, TaskKind
from nova_mcp.memory.tasks.runs.event_codec import checks_text, delta_json
from nova_mcp.memory.tasks.runs.rules import Delta, EventKind, Finding, RunState, Unit, advance
from nova_mcp.memory.tasks.runs.store import Run, run_of, units_named
from nova_mcp.memory.tasks.tables import (
    task_finding,
    task_instance,
    task_instance_event,
    task_instance_member,
    task_unit,
)


@dataclass(frozen=True, slots=True)
class Happening:
    """Who does what to a run, and when."""

    kind: EventKind
    client_event_id: str
    agent_id: str
    payload_hash: str
    at_ms: int


# -- beginning


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run at revision 0."""

    instance_id: str
    principal: str
    agent_id: str
    content: TaskContent
    effective_context: str
    effective_context_hash: str
    overrides: str
    discovery: DiscoveryState
    units: tuple[Unit, ...]
    task_kind: TaskKind | None
    task_kind_source: str
    seeding: Json
    at_ms: int
    profile_id: str | None = None
    profile_rev: int | None = None
    target_url: str | None = None
    target_host: str | None = None
    event_id: str | None = None
    payload_hash: str | None = None


def begin(conn: Connection, new: NewRun) -> bool:
    """Write a run with its first member and units; False when another one took the same event id meanwhile."""
    condition = new.content.completion_condition
    beginning: Json = {"discoveryState": new.discovery, "units": len(new.units), "seeding": new.seeding}
    put = _insert(conn, task_instance).values(
        instance_id=new.instance_id,
        principal=new.principal,
        profile_id=new.profile_id,
        profile_rev_applied=new.profile_rev,
        instance_rev=0,
        status="pending",
        discovery_state=new.discovery,
        effective_context=new.effective_context,
        effective_context_hash=new.effective_context_hash,
        overrides=new.overrides,
        target_url=new.target_url,
        target_host=new.target_host,
        task_kind=new.task_kind,
        task_kind_source=new.task_kind_source,
        unit_kind=condition.unit_kind,
        coverage_mode=condition.coverage_mode,
        resume_state="{}",
        checks_state="{}",
        units=len(new.units),
        beginning=canonical(beginning),
        ledger_gap=False,
        created_by=new.agent_id,
        create_event_id=new.event_id,
        create_payload_hash=new.payload_hash,
        started_at_ms=new.at_ms,
        last_activity_at_ms=new.at_ms,
    )
    key = [task_instance.c.principal, task_instance.c.created_by, task_instance.c.create_event_id]
    written = put.on_conflict_do_nothing(index_elements=key).returning(task_instance.c.instance_id)
    if conn.execute(written).first() is None:
        return False
    join(conn, new.instance_id, new.principal, new.agent_id, new.at_ms)
    _add_units(conn, new.instance_id, new.units, 0, new.at_ms)
    return True


def release_event_id(conn: Connection, instance_id: str) -> None:
    """After a day the same id begins another run."""
    conn.execute(update(task_instance).where(task_instance.c.instance_id == instance_id).values(create_event_id=None))


def join(conn: Connection, instance_id: str, principal: str, agent_id: str, at_ms: int) -> bool:
    """Make an agent a member; False when it is one."""
    put = _insert(conn, task_instance_member).values(
        instance_id=instance_id, principal=principal, agent_id=agent_id, joined_at_ms=at_ms
    )
    written = put.on_conflict_do_nothing().returning(task_instance_member.c.agent_id)
    return conn.execute(written).first() is not None


def _insert(conn: Connection, table: Table) -> Any:
    return (postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert)(table)


_ADD_UNIT: Final[Insert] = insert(task_unit)


def _add_units(conn: Connection, instance_id: str, units: Sequence[Unit], first: int, at_ms: int) -> None:
    rows = [_unit_row(instance_id, one, first + number, at_ms) for number, one in enumerate(units)]
    if rows:
        conn.execute(_ADD_UNIT, rows)


def _unit_row(instance_id: str, unit: Unit, ordinal: int, at_ms: int) -> dict[str, Any]:
    place = unit.locator
    kind = None if place is None else place.type
    unseen = grade(None if kind is None else "selector" if kind == "selector" else "url", (), ledger_complete=True)
    return {
        "instance_id": instance_id,
        "unit_key": unit.key,
        "ordinal": ordinal,
        "label": unit.label,
        "url": unit.url,
        "locator_type": kind,
        "locator_value": None if place is None else place.value,
        "locator_hash": None if place is None else place.hash,
        "status": unit.status,
        "reason": unit.reason,
        "late": unit.late,
        "observed_count": 0,
        "grade": unseen.name,
        "grade_reason": unseen.reason_code,
        "best_reads": 0,
        "best_dwell_ms": 0,
        "updated_at_ms": at_ms,
    }


# -- going on


def apply(conn: Connection, run: Run, delta: Delta, happening: Happening, ended_at_ms: int | None = None) -> Run | None:
    """Write what an event changes and move the revision by one; None when another call was faster.

    Nothing is written in that case. The event itself follows with `add_event` once its answer is known.
    """
    named = units_named(conn, run.instance_id, [move.key for move in delta.moves])
    after = advance(replace(run.state, units=named), delta)
    moved = conn.execute(
        update(task_instance)
        .where(
            task_instance.c.instance_id == run.instance_id,
            task_instance.c.instance_rev == run.state.rev,
            task_instance.c.status.in_(("pending", "active")),
        )
        .values(
            instance_rev=after.rev,
            status=after.status,
            discovery_state=after.discovery,
            units=after.total_units,
            resume_state=canonical(dict(after.resume)),
            checks_state=checks_text(after.checks),
            ended_reason=after.ended_reason,
            last_activity_at_ms=max(run.last_activity_at_ms, happening.at_ms),
            ended_at_ms=ended_at_ms,
        )
    ).rowcount
    if moved != 1:
        return None
    _add_units(conn, run.instance_id, delta.units, run.state.total_units, happening.at_ms)
    _move_units(conn, run.instance_id, after, delta, happening.at_ms)
    _put_findings(conn, run.instance_id, delta.findings, happening.at_ms)
    if ended_at_ms is not None:
        conn.execute(
            update(task_instance_member)
            .where(task_instance_member.c.instance_id == run.instance_id)
            .values(ended_at_ms=ended_at_ms)
        )
    return run_of(conn, run.principal, run.instance_id)


_MOVE: Final = (
    update(task_unit)
    .where(task_unit.c.instance_id == bindparam("run"), task_unit.c.unit_key == bindparam("unit"))
    .values(status=bindparam("now_is"), reason=bindparam("why"), updated_at_ms=bindparam("at"))
)


def _move_units(conn: Connection, instance_id: str, after: RunState, delta: Delta, at_ms: int) -> None:
    # In one order everywhere: two servers that touch the same units must not wait for each other.
    rows = [
        {
            "run": instance_id,
            "unit": key,
            "now_is": after.units[key].status,
            "why": after.units[key].reason,
            "at": at_ms,
        }
        for key in sorted({move.key for move in delta.moves})
    ]
    if rows:
        conn.execute(_MOVE, rows)


def _put_findings(conn: Connection, instance_id: str, findings: Sequence[Finding], at_ms: int) -> None:
    if not findings:
        return
    rows = [
        {
            "instance_id": instance_id,
            "finding_key": one.key,
            "detail": one.detail,
            "unit_key": one.unit_key,
            "severity": one.severity,
            "updated_at_ms": at_ms,
        }
        for one in findings
    ]
    put = _insert(conn, task_finding)
    changed = {name: put.excluded[name] for name in ("detail", "unit_key", "severity", "updated_at_ms")}
    key = [task_finding.c.instance_id, task_finding.c.finding_key]
    conn.execute(put.on_conflict_do_update(index_elements=key, set_=changed), rows)


def add_event(conn: Connection, run: Run, happening: Happening, delta: Delta, response: Json) -> None:
    """The event that took a run to the revision it has now."""
    conn.execute(
        insert(task_instance_event),
        {
            "instance_id": run.instance_id,
            "rev_after": run.state.rev,
            "client_event_id": happening.client_event_id,
            "kind": happening.kind,
            "agent_id": happening.agent_id,
            "payload_hash": happening.payload_hash,
            "rev_before": run.state.rev - 1,
            "delta": canonical(delta_json(delta)),
            "response": canonical(response),
            "at_ms": happening.at_ms,
        },
    )


def freeze(conn: Connection, instance_id: str, snapshot: Json) -> None:
    """Keep what was proven at the end, for when the units themselves are gone."""
    conn.execute(
        update(task_instance)
        .where(task_instance.c.instance_id == instance_id)
        .values(evidence_snapshot=canonical(snapshot))
    )
