"""The evidence of units: what was seen of them and which scan covers them, brought up to date and never lowered."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from sqlalchemy import Connection, bindparam, or_, select, update

from nova_mcp.core.values import Owner
from nova_mcp.evidence.grades import SeenWindow
from nova_mcp.evidence.page_sights import STILL, PageLife
from nova_mcp.evidence.rules import VisitWindow
from nova_mcp.memory.tasks.coverage import store, visit_store
from nova_mcp.memory.tasks.coverage.evidence_rules import UnitEvidence, raised, stored_grade
from nova_mcp.memory.tasks.coverage.locators import LocatorType
from nova_mcp.memory.tasks.coverage.rules import OK, policy_of, scan_eligibility
from nova_mcp.memory.tasks.coverage.store import StoredScan
from nova_mcp.memory.tasks.coverage.visit_store import Redirect, chunks
from nova_mcp.memory.tasks.coverage.visits import Visit, finished_at, seen_since, settled
from nova_mcp.memory.tasks.model import BEFORE_JOINING_MS, URL_KINDS
from nova_mcp.memory.tasks.tables import task_instance, task_instance_member, task_unit
from nova_mcp.storage.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Run:
    """An open run as one of its members' observations are held against it."""

    instance_id: str
    owner: Owner
    since_ms: int
    task_kind: str | None
    coverage_mode: str
    unit_kind: str
    target_host: str | None = None
    last_activity_ms: int = 0

    @property
    def counts_urls(self) -> bool:
        return self.unit_kind in URL_KINDS

    @property
    def exhaustive(self) -> bool:
        return self.coverage_mode == "exhaustive"


@dataclass(frozen=True, slots=True)
class Unit:
    """The part of a unit that evidence reads and writes."""

    instance_id: str
    unit_key: str
    url: str | None
    locator_type: LocatorType
    locator_hash: str
    status: str
    evidence: UnitEvidence
    covered_by: str | None = None
    covered_scan: str | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What one member has to show for some pages and controls; `redirects` lead from an address to a page."""

    visits: Sequence[Visit] = ()
    scans: Sequence[StoredScan] = ()
    touched: Mapping[str, int] | None = None
    redirects: Sequence[Redirect] = ()


_RUNS = Prepared(
    select(
        task_instance_member.c.instance_id,
        task_instance_member.c.joined_at_ms,
        task_instance.c.task_kind,
        task_instance.c.coverage_mode,
        task_instance.c.unit_kind,
        task_instance.c.target_host,
        task_instance.c.last_activity_at_ms,
    )
    .join(task_instance, task_instance.c.instance_id == task_instance_member.c.instance_id)
    .where(
        task_instance_member.c.principal == bindparam("owner_principal"),
        task_instance_member.c.agent_id == bindparam("owner_agent"),
        task_instance_member.c.ended_at_ms.is_(None),
        # Asked of the row that is held as well: a run that ended while this waited for it is left alone.
        task_instance.c.ended_at_ms.is_(None),
    )
    .order_by(task_instance_member.c.instance_id)
    # Whoever touches units holds their run first: a report and a visit that meet must not wait for each other.
    .with_for_update(of=task_instance)
)
_UNIT: Final = (
    task_unit.c.instance_id,
    task_unit.c.unit_key,
    task_unit.c.url,
    task_unit.c.locator_type,
    task_unit.c.locator_hash,
    task_unit.c.status,
    task_unit.c.grade,
    task_unit.c.grade_reason,
    task_unit.c.observed_count,
    task_unit.c.best_reads,
    task_unit.c.best_dwell_ms,
    task_unit.c.best_ended_at_ms,
    task_unit.c.covered_by_observation_id,
    task_unit.c.covered_by_scan_id,
)

_ITS_KEY: Final = (task_unit.c.instance_id == bindparam("instance"), task_unit.c.unit_key == bindparam("key"))
# Asked for without an order, which would make a large run be read from end to end.
_KEYS = Prepared(
    select(task_unit.c.unit_key).where(
        task_unit.c.instance_id == bindparam("instance"), task_unit.c.locator_hash == bindparam("hash")
    )
)
_ONE = Prepared(select(*_UNIT).where(*_ITS_KEY).with_for_update())
_RAISE = Prepared(
    update(task_unit)
    .where(*_ITS_KEY)
    .values(
        grade=bindparam("grade"),
        grade_reason=bindparam("reason"),
        observed_count=bindparam("observed"),
        best_reads=bindparam("reads"),
        best_dwell_ms=bindparam("dwell"),
        best_ended_at_ms=bindparam("ended"),
        covered_by_observation_id=bindparam("covered"),
        covered_by_scan_id=bindparam("scan"),
        updated_at_ms=bindparam("now"),
    )
)


# -- whose evidence counts


def open_runs(conn: Connection, owner: Owner) -> list[Run]:
    """The runs that an agent's calls belong to; one indexed lookup, which for most agents finds nothing."""
    rows = _RUNS.run(conn, {"owner_principal": owner[0], "owner_agent": owner[1]}).fetchall()
    return [Run(row[0], owner, row[1] - BEFORE_JOINING_MS, *row[2:7]) for row in rows]


def _members(conn: Connection, instance_id: str) -> list[Run]:
    wanted = (
        select(
            task_instance_member.c.principal,
            task_instance_member.c.agent_id,
            task_instance_member.c.joined_at_ms,
            task_instance.c.task_kind,
            task_instance.c.coverage_mode,
            task_instance.c.unit_kind,
        )
        .join(task_instance, task_instance.c.instance_id == task_instance_member.c.instance_id)
        .where(task_instance_member.c.instance_id == instance_id)
        .order_by(task_instance_member.c.principal, task_instance_member.c.agent_id)
    )
    return [
        Run(
            instance_id,
            (row.principal, row.agent_id),
            row.joined_at_ms - BEFORE_JOINING_MS,
            row.task_kind,
            row.coverage_mode,
            row.unit_kind,
        )
        for row in conn.execute(wanted)
    ]


# -- when units are registered and agents join


def fill(conn: Connection, instance_id: str, unit_keys: Collection[str], now_ms: int) -> None:
    """Give units that were just registered what members have seen of them since they joined."""
    members = _members(conn, instance_id)
    for some in chunks(unit_keys):
        registered = _units(conn, task_unit.c.instance_id == instance_id, task_unit.c.unit_key.in_(some))
        units = registered
        for run in members:
            found = _found(conn, run, units)
            units = [_credited(unit, run, found) for unit in units]
        # Most of what is registered has not been seen yet.
        _save(conn, [unit for unit, before in zip(units, registered, strict=True) if unit != before], now_ms)


def fill_for(conn: Connection, instance_id: str, owner: Owner, now_ms: int) -> None:
    """Give all units of a run what an agent that has just joined it had seen of them shortly before."""
    for run in _members(conn, instance_id):
        if run.owner == owner:
            visits = visit_store.since(conn, owner, run.since_ms)
            scans = store.of_pages(conn, owner, None, run.since_ms)
            touched = visit_store.touched(conn, owner, None, run.since_ms)
            pages = {visit.url_hash for visit in visits} | {scan.url_hash for scan in scans}
            redirects = visit_store.leads_to(conn, owner, pages, run.since_ms)
            apply(conn, [run], Findings(visits, scans, touched, redirects), now_ms)


def refresh(conn: Connection, instance_id: str, now_ms: int, lives: Mapping[str, PageLife]) -> None:
    """Count visits that are still going on up to now, before a run is judged. Only tabs in `lives` are known to show
    what they showed; the visits of others wait until they are settled."""
    for run in _members(conn, instance_id):
        open_ones = visit_store.open_of(conn, run.owner, run.since_ms)
        visits = [finished_at(visit, now_ms, lives[visit.target_id]) for visit in open_ones if visit.target_id in lives]
        if visits:
            redirects = visit_store.leads_to(conn, run.owner, {visit.url_hash for visit in visits}, run.since_ms)
            apply(conn, [run], Findings(visits, redirects=redirects), now_ms)


def target_ended(conn: Connection, target_id: str, at_ms: int, life: PageLife = STILL) -> None:
    """A tab is gone: its visits are over, and their pages stayed as long as the tab showed them."""
    for owner, visit in visit_store.open_on(conn, target_id):
        over = settled(visit, at_ms, life)
        visit_store.settle(conn, over)
        if runs := open_runs(conn, owner):
            redirects = visit_store.leads_to(conn, owner, [over.url_hash], min(run.since_ms for run in runs))
            apply(conn, runs, Findings([over], redirects=redirects), at_ms)


# -- applying


def apply(
    conn: Connection, runs: Sequence[Run], found: Findings, now_ms: int, *, observed: Collection[str] = ()
) -> list[Unit]:
    """Hold findings of one agent against all units of its runs that they speak about; the units as they stand then.

    `observed` are the hashes that the call at hand matches, which counts as one observation of such a unit.
    """
    hashes = _hashes(found) | set(observed)
    if not hashes:
        return []
    touched: list[Unit] = []
    by_id = {run.instance_id: run for run in runs}
    for instance_id, key in _spoken_of(conn, sorted(by_id), hashes):
        unit = _unit(_ONE.run(conn, {"instance": instance_id, "key": key}).fetchone())
        counted = 1 if unit.locator_hash in observed else 0
        touched.append(_credited(unit, by_id[instance_id], found, counted))
    _save(conn, touched, now_ms)
    return touched


def _spoken_of(conn: Connection, instance_ids: Sequence[str], hashes: Collection[str]) -> list[tuple[str, str]]:
    """Runs and keys of units, in the order in which their rows are taken."""
    found: set[tuple[str, str]] = set()
    for instance_id in instance_ids:
        for digest in hashes:
            rows = _KEYS.run(conn, {"instance": instance_id, "hash": digest}).fetchall()
            found.update((instance_id, row[0]) for row in rows)
    return sorted(found)


def _hashes(found: Findings) -> set[str]:
    hashes = {visit.url_hash for visit in found.visits} | {visit.path_hash for visit in found.visits}
    hashes |= {scan.url_hash for scan in found.scans}
    hashes |= {redirect.from_hash for redirect in found.redirects}
    return hashes | set(found.touched or ())


def _found(conn: Connection, run: Run, units: Sequence[Unit]) -> Findings:
    pages = {unit.locator_hash for unit in units if unit.locator_type != "selector"}
    controls = {unit.locator_hash for unit in units if unit.locator_type == "selector"}
    redirects = visit_store.led_from(conn, run.owner, pages, run.since_ms)
    reached = pages | {redirect.to_hash for redirect in redirects}
    return Findings(
        visit_store.on_pages(conn, run.owner, reached, run.since_ms),
        store.of_pages(conn, run.owner, reached, run.since_ms),
        visit_store.touched(conn, run.owner, controls, run.since_ms),
        redirects,
    )


def _credited(unit: Unit, run: Run, found: Findings, counted: int | None = None) -> Unit:
    """A unit after what a member has to show for it. Without a count, every call of the visits is one observation."""
    pages = {unit.locator_hash} | {
        redirect.to_hash
        for redirect in found.redirects
        if redirect.from_hash == unit.locator_hash and redirect.at_ms >= run.since_ms
    }
    seen = list(_seen(unit, pages, run, found))
    calls = sum(one.window.calls for one in seen) if counted is None else counted
    after = replace(unit, evidence=raised(unit.evidence, unit.locator_type, seen, calls))
    if unit.covered_by is not None or unit.status == "excluded" or unit.locator_type != "url_exact":
        return after
    policy = policy_of(run.task_kind)
    for scan in found.scans:
        if scan.url_hash in pages and scan.at_ms >= run.since_ms and scan_eligibility(scan.judged, policy) == OK:
            return replace(after, covered_by=scan.observation_id, covered_scan=scan.judged.scan_id)
    return after


def _seen(unit: Unit, pages: Collection[str], run: Run, found: Findings) -> Iterable[SeenWindow]:
    if unit.locator_type == "selector":
        at_ms = (found.touched or {}).get(unit.locator_hash)
        if at_ms is not None and at_ms >= run.since_ms:
            yield SeenWindow(VisitWindow("", "", None, at_ms, at_ms, 0, 1, 0, frozenset()))
        return
    for visit in found.visits:
        key = visit.path_hash if unit.locator_type == "url_path" else visit.url_hash
        if key in pages and (window := seen_since(visit, run.since_ms)) is not None:
            yield window


# -- rows


def _units(conn: Connection, *where: Any) -> list[Unit]:
    """Held until the commit: two servers that raise one unit must not undo each other."""
    wanted = select(*_UNIT).where(task_unit.c.locator_hash.is_not(None), *where)
    rows = conn.execute(wanted.order_by(task_unit.c.instance_id, task_unit.c.unit_key).with_for_update())
    return [_unit(row) for row in rows]


def _unit(row: Any) -> Unit:
    """In the order of the columns."""
    instance_id, key, url, locator_type, digest, status, name, reason, observed, reads, dwell, ended, by, scan = row
    evidence = UnitEvidence(stored_grade(name, reason), observed, reads, dwell, ended)
    return Unit(instance_id, key, url, cast(LocatorType, locator_type), digest, status, evidence, by, scan)


def _save(conn: Connection, units: Iterable[Unit], now_ms: int) -> None:
    for unit in sorted(units, key=lambda unit: (unit.instance_id, unit.unit_key)):
        evidence = unit.evidence
        _RAISE.run(
            conn,
            {
                "instance": unit.instance_id,
                "key": unit.unit_key,
                "grade": evidence.grade.name,
                "reason": evidence.grade.reason_code,
                "observed": evidence.observed,
                "reads": evidence.reads,
                "dwell": evidence.dwell_ms,
                "ended": evidence.ended_at_ms,
                "covered": unit.covered_by,
                "scan": unit.covered_scan,
                "now": now_ms,
            },
        )


def mark_gap(conn: Connection, owner: Owner, at_ms: int) -> None:
    """A record of a member could not be written: what its open runs don't know may have been seen all the same."""
    member = task_instance_member.c
    own = select(member.instance_id).where(
        member.principal == owner[0],
        member.agent_id == owner[1],
        member.joined_at_ms <= at_ms + BEFORE_JOINING_MS,
        or_(member.ended_at_ms.is_(None), member.ended_at_ms >= at_ms),
    )
    open_ones = sorted(conn.execute(own).scalars())
    if open_ones:
        conn.execute(
            update(task_instance)
            .where(task_instance.c.instance_id.in_(open_ones), task_instance.c.status.in_(("pending", "active")))
            .values(ledger_gap=True)
        )
