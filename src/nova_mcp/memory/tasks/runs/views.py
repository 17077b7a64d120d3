"""What is read of a run to judge and to show it: counts, units page by page, events."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, literal_column, select

from nova_mcp.evidence.grades import (
    TOP_EXCEPTIONS,
    Claimed,
    EvidenceSummary,
    Grade,
    GradeName,
    accepted_grades,
    summary_of,
)
from nova_mcp.memory.tasks.coverage.evidence_rules import as_told, stored_grade
from nova_mcp.memory.tasks.coverage.rules import recommended_scan
from nova_mcp.memory.tasks.model import EvidencePolicy, UnitStatus
from nova_mcp.memory.tasks.runs.completion import CoverageTally, Standing, StepResult, Tally, UrlCoverage
from nova_mcp.memory.tasks.runs.rules import CheckMark
from nova_mcp.memory.tasks.runs.store import Event, Run, to_event
from nova_mcp.memory.tasks.runs.verification_rules import judge_steps
from nova_mcp.memory.tasks.tables import task_finding, task_instance_event, task_unit
from nova_mcp.settings import GateMode

UnitFilter = Literal["discovered", "checked", "excluded", "blocked", "failed", "uncovered"]
NEXT_URLS: Final = 10
NEXT_UNITS: Final = 5
_SEEN: Final = ("strong", "weak")


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit as it is shown: what agents say of it, and what was seen."""

    unit_key: str
    url: str | None
    label: str
    status: UnitStatus
    reason: str | None
    grade: Grade
    covered: bool
    ordinal: int


@dataclass(frozen=True, slots=True)
class Counted:
    """One group of units that stand alike."""

    status: UnitStatus
    late: bool
    grade: str
    number: int
    covered: int


# Groups in the order of an index that holds all of it: nothing is sorted, and no unit is read.
_GROUPS: Final = (task_unit.c.status, task_unit.c.late, task_unit.c.grade)
_COUNTED: Final = (
    select(*_GROUPS, func.count(), func.count(task_unit.c.covered_by_observation_id))
    .where(task_unit.c.instance_id == bindparam("run"))
    .group_by(*_GROUPS)
)


def counted(conn: Connection, instance_id: str) -> list[Counted]:
    """All units of a run in one look; the answer has as many rows as there are kinds of standing."""
    rows = conn.execute(_COUNTED, {"run": instance_id}).all()
    return [Counted(row[0], bool(row[1]), row[2], row[3], row[4]) for row in rows]


def tally_of(groups: Iterable[Counted], findings: int = 0, proven: int = 0) -> Tally:
    by_status: Counter[str] = Counter()
    late = 0
    for one in groups:
        by_status[one.status] += one.number
        late += one.number if one.late else 0
    return Tally(
        checked=by_status["checked"],
        excluded=by_status["excluded"],
        remaining=by_status["discovered"],
        blocked=by_status["blocked"],
        failed=by_status["failed"],
        late=late,
        findings=findings,
        proven_findings=proven,
    )


def coverage_of(groups: Iterable[Counted]) -> CoverageTally:
    total = covered = excluded = 0
    for one in groups:
        total += one.number
        if one.status == "excluded":
            excluded += one.number
        else:
            covered += one.covered
    return CoverageTally(total, covered, excluded)


def standing(
    conn: Connection,
    run: Run,
    gate_mode: GateMode,
    steps: Sequence[StepResult] | None = None,
    *,
    naming: bool = True,
) -> Standing:
    """Everything that decides about completing a run; without reports every step is skipped.

    Without `naming` the units that lack proof are counted and not looked up.
    """
    groups = counted(conn, run.instance_id)
    condition = run.content.completion_condition
    findings, proven = _findings(conn, run)
    checks = run.state.checks
    return Standing(
        condition=condition,
        checks=tuple((one, checks.get(one.check_id, CheckMark()).state) for one in run.content.mandatory_checks),
        discovery=run.state.discovery,
        tally=tally_of(groups, findings, proven),
        coverage=coverage_of(groups) if condition.counts_urls else CoverageTally(),
        gate_mode=gate_mode,
        evidence=_evidence(conn, run, groups, naming=naming),
        steps=tuple(steps) if steps is not None else judge_steps(run.content.verification, {}, {}, {}),
    )


def _findings(conn: Connection, run: Run) -> tuple[int, int]:
    of_run = task_finding.c.instance_id == run.instance_id
    total = conn.execute(select(func.count()).select_from(task_finding).where(of_run)).scalar_one()
    if total == 0 or run.content.completion_condition.evidence.mode == "none":
        return total, total
    seen = task_unit.c.grade.in_(_SEEN)
    same = (task_unit.c.instance_id == task_finding.c.instance_id) & (task_unit.c.unit_key == task_finding.c.unit_key)
    joined = select(func.count()).select_from(task_finding.join(task_unit, same)).where(of_run, seen)
    return total, conn.execute(joined).scalar_one()


def _evidence(conn: Connection, run: Run, groups: Sequence[Counted], *, naming: bool) -> EvidenceSummary:
    accepted = _accepted(run.content.completion_condition.evidence)
    count: Counter[GradeName] = Counter()
    for one in groups:
        if one.status == "checked":
            count[as_told(stored_grade(one.grade, None), ledger_gap=run.ledger_gap).name] += one.number
    lacking = sum(number for name, number in count.items() if name not in accepted)
    short = _short(conn, run, accepted) if lacking and naming else []
    return summary_of(count, short, accepted, ledger_complete=not run.ledger_gap)


def _accepted(policy: EvidencePolicy) -> frozenset[GradeName]:
    mode = "require_observed" if policy.mode == "none" else policy.mode
    return accepted_grades(mode, unknown_passes=policy.treat_unknown_as == "pass")


def _short(conn: Connection, run: Run, accepted: frozenset[GradeName]) -> list[Claimed]:
    """The first checked units that lack proof; a gap in the ledger makes `none` unknown before it is judged."""
    refused = {"strong", "weak", "none", "unknown"} - accepted
    if run.ledger_gap and "unknown" in accepted:
        refused -= {"none"}
    rows = conn.execute(
        select(task_unit.c.unit_key, task_unit.c.grade, task_unit.c.grade_reason)
        .where(
            task_unit.c.instance_id == run.instance_id,
            task_unit.c.status == "checked",
            task_unit.c.grade.in_(sorted(refused)),
        )
        .order_by(task_unit.c.unit_key)
        .limit(TOP_EXCEPTIONS)
    )
    told = [(row.unit_key, stored_grade(row.grade, row.grade_reason)) for row in rows]
    return [Claimed(key, as_told(found, ledger_gap=run.ledger_gap)) for key, found in told]


# -- units, page by page


def _uncovered() -> tuple[ColumnElement[bool], ...]:
    return (
        task_unit.c.url.is_not(None),
        # Said out, because only then the store knows that an index has just these.
        task_unit.c.status != literal_column("'excluded'"),
        task_unit.c.covered_by_observation_id.is_(None),
    )


def url_coverage(conn: Connection, run: Run, now: Standing) -> UrlCoverage:
    return UrlCoverage(
        gate_mode=now.gate_mode,
        gate_status=now.gate_status,
        tally=now.coverage,
        next_urls=next_urls(conn, run) if now.coverage.remaining else (),
        recommended_scan_id=recommended_scan(run.task_kind),
    )


def next_urls(conn: Connection, run: Run, most: int = NEXT_URLS) -> tuple[str, ...]:
    """The first pages of a run that no accepted scan has covered yet."""
    rows = conn.execute(
        select(task_unit.c.url)
        .where(task_unit.c.instance_id == run.instance_id, *_uncovered())
        .order_by(task_unit.c.ordinal)
        .limit(most)
    )
    return tuple(rows.scalars())


def units_page(
    conn: Connection, run: Run, wanted: UnitFilter | None, after: int, limit: int
) -> tuple[list[UnitRow], int | None]:
    """Units in the order of their registration, all of them without a filter, and where the next page begins."""
    if limit == 0:
        return [], None
    chosen = () if wanted is None else _uncovered() if wanted == "uncovered" else (task_unit.c.status == wanted,)
    rows = conn.execute(
        select(task_unit)
        .where(task_unit.c.instance_id == run.instance_id, task_unit.c.ordinal > after, *chosen)
        .order_by(task_unit.c.ordinal)
        .limit(limit + 1)
    ).all()
    page = [_shown(row, ledger_gap=run.ledger_gap) for row in rows[:limit]]
    return page, page[-1].ordinal if len(rows) > limit else None


def _shown(row: Row[Any], *, ledger_gap: bool) -> UnitRow:
    return UnitRow(
        unit_key=row.unit_key,
        url=row.url,
        label=row.label,
        status=row.status,
        reason=row.reason,
        grade=as_told(stored_grade(row.grade, row.grade_reason), ledger_gap=ledger_gap),
        covered=row.covered_by_observation_id is not None,
        ordinal=row.ordinal,
    )


def first_units(conn: Connection, run: Run, *statuses: UnitStatus) -> tuple[UnitRow, ...]:
    """A few units in one of these states, to name in a hint."""
    rows = conn.execute(
        select(task_unit)
        .where(task_unit.c.instance_id == run.instance_id, task_unit.c.status.in_(statuses))
        .order_by(task_unit.c.ordinal)
        .limit(NEXT_UNITS)
    )
    return tuple(_shown(row, ledger_gap=run.ledger_gap) for row in rows)


def latest_events(conn: Connection, run: Run, limit: int) -> list[Event]:
    """The newest events first."""
    if limit == 0:
        return []
    rows = conn.execute(
        select(task_instance_event)
        .where(task_instance_event.c.instance_id == run.instance_id)
        .order_by(task_instance_event.c.rev_after.desc())
        .limit(limit)
    )
    return [to_event(row) for row in rows]
