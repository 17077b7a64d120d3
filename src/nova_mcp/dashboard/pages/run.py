"""One run: what is claimed, what was seen, what is missing before it may be called done, unit by unit."""

import json
from dataclasses import dataclass
from typing import Final, get_args

from sqlalchemy import Connection, func, select

from nova_mcp.core.keywords import cut
from nova_mcp.dashboard.charts.coverage_map import CoverageMap, MapUnit, coverage_map
from nova_mcp.memory.tasks.answers import Proof, proof_of
from nova_mcp.memory.tasks.model import MOST_UNITS, Check, CheckState
from nova_mcp.memory.tasks.runs import store, views
from nova_mcp.memory.tasks.runs.completion import Reason, evaluate_completion
from nova_mcp.memory.tasks.runs.read import ended_reasons
from nova_mcp.memory.tasks.runs.rules import CheckMark
from nova_mcp.memory.tasks.runs.store import Event, Member, Run
from nova_mcp.memory.tasks.runs.views import UnitFilter, UnitRow
from nova_mcp.memory.tasks.tables import task_finding, task_instance, task_unit
from nova_mcp.settings import GateMode

UNITS: Final = 50
EVENTS: Final = 30
FINDINGS: Final = 30
NAME_CHARS: Final = 90
FILTERS: Final[tuple[UnitFilter, ...]] = get_args(UnitFilter)


@dataclass(frozen=True, slots=True)
class RunAsked:
    """Which units of a run to list, from behind which one."""

    instance_id: str
    units: UnitFilter | None = None
    after: int = -1


@dataclass(frozen=True, slots=True)
class Finding:
    key: str
    detail: str
    unit_key: str | None
    severity: str
    updated_at_ms: int


@dataclass(frozen=True, slots=True)
class RunPageView:
    asked: RunAsked
    run: Run
    members: tuple[Member, ...]
    proof: Proof
    # Why it can't be completed; none means that it can, or was.
    reasons: tuple[Reason, ...]
    checks: tuple[tuple[Check, CheckState], ...]
    map: CoverageMap | None
    units: tuple[UnitRow, ...]
    next_after: int | None
    findings: tuple[Finding, ...]
    all_findings: int
    events: tuple[Event, ...]


def run(conn: Connection, asked: RunAsked, gate_mode: GateMode) -> RunPageView | None:
    row = conn.execute(select(task_instance).where(task_instance.c.instance_id == asked.instance_id)).one_or_none()
    if row is None:
        return None
    found = store.to_run(row)
    now = views.standing(conn, found, gate_mode)
    ended = found.evidence_snapshot
    proof = (
        Proof(now.tally, now.evidence, views.url_coverage(conn, found, now))
        if ended is None
        else proof_of(json.loads(ended))
    )
    units, following = views.units_page(conn, found, asked.units, asked.after, UNITS)
    squares = map_units(conn, asked.instance_id)
    findings, all_findings = _findings(conn, asked.instance_id)
    return RunPageView(
        asked=asked,
        run=found,
        members=tuple(store.members(conn, asked.instance_id)),
        proof=proof,
        reasons=evaluate_completion(now) if found.open else ended_reasons(found),
        checks=tuple(
            (one, found.state.checks.get(one.check_id, CheckMark()).state) for one in found.content.mandatory_checks
        ),
        map=coverage_map(squares) if squares else None,
        units=tuple(units),
        next_after=following,
        findings=findings,
        all_findings=all_findings,
        events=tuple(views.latest_events(conn, found, EVENTS)),
    )


def map_units(conn: Connection, instance_id: str) -> list[MapUnit]:
    """Every unit of a run, which has a bounded number of them."""
    c = task_unit.c
    rows = conn.execute(
        select(c.status, c.grade, c.covered_by_observation_id, c.label, c.url, c.unit_key)
        .where(c.instance_id == instance_id)
        .order_by(c.ordinal)
        .limit(MOST_UNITS)
    )
    return [
        MapUnit(
            row.status,
            row.grade,
            row.covered_by_observation_id is not None,
            cut(row.label or row.url or row.unit_key, NAME_CHARS),
        )
        for row in rows
    ]


def _findings(conn: Connection, instance_id: str) -> tuple[tuple[Finding, ...], int]:
    c = task_finding.c
    rows = conn.execute(
        select(task_finding).where(c.instance_id == instance_id).order_by(c.finding_key).limit(FINDINGS)
    )
    every = select(func.count()).select_from(task_finding).where(c.instance_id == instance_id)
    told = (Finding(row.finding_key, row.detail, row.unit_key, row.severity, row.updated_at_ms) for row in rows)
    return tuple(told), conn.execute(every).scalar_one()
