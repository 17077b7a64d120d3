"""Keeps runs: takes calls on them into the transaction of their record, and reminds agents of what is open."""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import anyio
from sqlalchemy import Connection, or_, select

from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Owner
from nova_mcp.evidence.grades import EvidenceSummary
from nova_mcp.evidence.model import Caller, CallRecord
from nova_mcp.evidence.rules import effective_page, host_of
from nova_mcp.memory.tasks.answers import Aborted, Completed, Progressed, Proof
from nova_mcp.memory.tasks.coverage import evidence_store, site_urls
from nova_mcp.memory.tasks.coverage.rules import recommended_scan
from nova_mcp.memory.tasks.model import ScanId, VerificationStep
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper, Recognised
from nova_mcp.memory.tasks.profiles.store import RunOutcome
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs import read, views
from nova_mcp.memory.tasks.runs.awareness import MOST_RUNS, ActiveRun, ResumeHint
from nova_mcp.memory.tasks.runs.completion import Standing, evaluate_completion
from nova_mcp.memory.tasks.runs.create import Created, RunCreator, RunWish, Seeds
from nova_mcp.memory.tasks.runs.read import RunView, Verified, Wanted
from nova_mcp.memory.tasks.runs.rules import Report
from nova_mcp.memory.tasks.runs.store import Run, run_of, to_run
from nova_mcp.memory.tasks.runs.transactions import Change, Lives, NotDone, Occasion, Reported, Runs, UnitEvidence
from nova_mcp.memory.tasks.runs.verification_rules import judge_steps
from nova_mcp.memory.tasks.tables import task_instance, task_instance_member, task_unit
from nova_mcp.settings import GateMode
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

# Labels decide nothing, so another server's runs may be noticed this late.
LABEL_MS: Final = 60_000
LABELS_KEPT: Final = 1_000
# Behind the few that are told there may be one whose pages still have to be covered.
RUNS_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page as runs know it."""

    host: str
    url_hash: str


@dataclass(frozen=True, slots=True)
class Aware:
    """What an agent is reminded of in an answer about one of its runs."""

    active: tuple[ActiveRun, ...]
    recognised: Recognised | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that was created, and what its agent has open."""

    created: Created
    proof: Proof
    aware: Aware


@dataclass(frozen=True, slots=True)
class Looked:
    view: RunView
    aware: Aware


@dataclass(frozen=True, slots=True)
class Checked:
    verified: Verified
    aware: Aware


@dataclass(frozen=True, slots=True)
class UrlContract:
    """What an exhaustive run of pages still has to cover, and by which scan."""

    instance_id: str
    remaining: int
    scan_id: ScanId


@dataclass(frozen=True, slots=True)
class OpenWork:
    """An agent's open runs, the evidence of the latest, and the contract of the latest that is exhaustive."""

    active: tuple[ActiveRun, ...] = ()
    evidence: EvidenceSummary | None = None
    contract: UrlContract | None = None


@dataclass(frozen=True, slots=True)
class _Labels:
    at_ms: float
    # Host and id of open runs, the latest first.
    runs: tuple[tuple[str | None, str], ...]


class RunKeeper:
    """One per server."""

    def __init__(
        self,
        db: Database,
        ports: Ports,
        gate_mode: GateMode,
        profiles: ProfileKeeper,
        evidence: UnitEvidence = evidence_store,
        seeds: Seeds = site_urls.seeds,
    ) -> None:
        self._db = db
        self._ports = ports
        self._profiles = profiles
        self._runs = Runs(gate_mode, evidence)
        self._creator = RunCreator(evidence, seeds)
        self._labels: OrderedDict[Owner, _Labels] = OrderedDict()

    # -- in the transaction of the call that asks

    def occasion(self, owner: Owner, lives: Lives) -> Occasion:
        return Occasion(owner, self._ports.clock.now_ms(), lives)

    def create(self, conn: Connection, at: Occasion, wish: RunWish) -> Begun | Refused:
        created = self._creator.create(conn, at, wish, self._ports.ids.token(16))
        if not isinstance(created, Created):
            return created
        now = self._runs.standing(conn, created.run, at)
        aware = self._aware(conn, created.run, now, at.owner)
        return Begun(created, self._runs.proof(conn, created.run, now), aware)

    def progress(self, conn: Connection, at: Occasion, change: Change, report: Report) -> Progressed | Refused:
        return self._runs.progress(conn, at, change, report)

    def complete(
        self, conn: Connection, at: Occasion, change: Change, reported: Reported, note: str | None
    ) -> Completed | NotDone | Refused:
        return self._runs.complete(conn, at, change, reported, note)

    def abort(
        self, conn: Connection, at: Occasion, change: Change, outcome: RunOutcome, reason: str
    ) -> Aborted | Refused:
        return self._runs.abort(conn, at, change, outcome, reason)

    def look(self, conn: Connection, at: Occasion, instance_id: str, wanted: Wanted) -> Looked:
        view = read.look(conn, self._runs, at, instance_id, wanted)
        return Looked(view, self._aware(conn, view.run, view.standing, at.owner))

    def verify(self, conn: Connection, at: Occasion, instance_id: str, reported: Reported) -> Checked:
        found = read.verify(conn, self._runs, at, instance_id, reported)
        return Checked(found, self._aware(conn, found.view.run, found.standing, at.owner))

    # -- reading beside calls

    async def steps(self, principal: str, instance_id: str) -> tuple[VerificationStep, ...]:
        """The verification steps of a run, which never change; none for a run that is not there."""
        run = await self._db.read(run_of, principal, instance_id)
        return () if run is None else run.content.verification

    async def awareness(self, caller: Caller) -> tuple[ActiveRun, ...]:
        """The open runs of an agent, the latest first."""
        return await self._db.read(self._active, caller.owner)

    async def awareness_on(self, caller: Caller, page: RunPage) -> Aware:
        """The open runs of an agent that a page belongs to, the latest first, and the profile that fits that one."""
        return await self._db.read(self._active_on, caller.owner, page)

    async def open_work(self, caller: Caller) -> OpenWork:
        """The same with the proof of the latest one, and what an exhaustive one still has to cover."""
        return await self._db.read(self._open_work, caller.owner)

    def _open_work(self, conn: Connection, owner: Owner) -> OpenWork:
        runs = open_runs(conn, owner, most=RUNS_LOOKED_AT)
        pages = (run for run in runs if run.content.completion_condition.exhaustive)
        exhaustive = next((run for run in pages if run.content.completion_condition.counts_urls), None)
        return OpenWork(
            active=tuple(self._reminder(conn, run) for run in runs[:MOST_RUNS]),
            evidence=views.standing(conn, runs[0], self._runs.gate_mode).evidence if runs else None,
            contract=None if exhaustive is None else self._contract(conn, exhaustive),
        )

    def _contract(self, conn: Connection, run: Run) -> UrlContract:
        coverage = views.standing(conn, run, self._runs.gate_mode, naming=False).coverage
        return UrlContract(run.instance_id, coverage.remaining, recommended_scan(run.task_kind))

    async def label_of(self, record: CallRecord) -> str | None:
        """The run that a call is labelled with: its agent's latest open one on that host. It decides nothing, so a
        store that can't be asked leaves it out."""
        host = host_of(effective_page(record).url)
        if host is None:
            return None
        owner, now = record.caller.owner, self._ports.clock.monotonic_ms()
        known = self._labels.get(owner)
        if known is None or now - known.at_ms > LABEL_MS:
            known = self._labels[owner] = _Labels(now, await self._open_runs(owner))
            while len(self._labels) > LABELS_KEPT:
                self._labels.popitem(last=False)
        return next((run for of, run in known.runs if of == host), None)

    async def _open_runs(self, owner: Owner) -> tuple[tuple[str | None, str], ...]:
        # A call that is cut off here would never be recorded.
        found: tuple[tuple[str | None, str], ...] = ()
        with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
            found = tuple(await self._db.read(_open_runs, owner))
        return found

    def moved(self) -> None:
        """Runs have begun or ended: labels are looked up anew."""
        self._labels.clear()

    def _aware(self, conn: Connection, run: Run, now: Standing, owner: Owner) -> Aware:
        counted = {run.instance_id: now}
        runs = tuple(self._reminder(conn, one, counted.get(one.instance_id)) for one in open_runs(conn, owner))
        return Aware(runs, self._profile_of(conn, run))

    def _active(self, conn: Connection, owner: Owner) -> tuple[ActiveRun, ...]:
        return tuple(self._reminder(conn, run) for run in open_runs(conn, owner))

    def _active_on(self, conn: Connection, owner: Owner, page: RunPage) -> Aware:
        runs = open_runs(conn, owner, page)
        found = self._profile_of(conn, runs[0]) if runs else None
        return Aware(tuple(self._reminder(conn, run) for run in runs), found)

    def _profile_of(self, conn: Connection, run: Run) -> Recognised | None:
        if run.profile_id is None:
            return self._profiles.best_for(conn, run.principal, run.content, run.target_host)
        return self._profiles.known(conn, run.principal, run.profile_id)

    def _reminder(self, conn: Connection, run: Run, known: Standing | None = None) -> ActiveRun:
        """With what was just counted for the same call nothing is counted again; reports are not part of a reminder."""
        if known is None:
            now = views.standing(conn, run, self._runs.gate_mode, naming=False)
        else:
            now = replace(known, steps=judge_steps(run.content.verification, {}, {}, {}))
        reasons = evaluate_completion(now)
        resume = run.state.resume
        return ActiveRun(
            instance_id=run.instance_id,
            profile_id=run.profile_id,
            display_name=run.content.display_name,
            status=run.state.status,
            discovery=run.state.discovery,
            instance_rev=run.state.rev,
            target_url=run.target_url,
            tally=now.tally,
            completion_allowed=not reasons,
            reason_code=reasons[0].reason_code if reasons else None,
            resume=ResumeHint(
                resume.get("cursor"),
                resume.get("lastProcessedUrl"),
                resume.get("lastAction"),
                resume.get("checkpoint"),
            ),
            last_activity_at_ms=run.last_activity_at_ms,
        )


_MEMBER = task_instance_member.c
_LATEST = (task_instance.c.last_activity_at_ms.desc(), task_instance.c.instance_id)


def open_runs(conn: Connection, owner: Owner, page: RunPage | None = None, most: int = MOST_RUNS) -> list[Run]:
    """Open runs that an agent is a member of; with a page those of its host and those that have it as a unit."""
    wanted = (
        select(task_instance)
        .join(task_instance_member, _MEMBER.instance_id == task_instance.c.instance_id)
        .where(_MEMBER.principal == owner[0], _MEMBER.agent_id == owner[1], _MEMBER.ended_at_ms.is_(None))
    )
    if page is not None:
        unit = select(task_unit.c.unit_key).where(
            task_unit.c.instance_id == task_instance.c.instance_id, task_unit.c.unit_key == f"url:{page.url_hash}"
        )
        wanted = wanted.where(or_(task_instance.c.target_host == page.host, unit.exists()))
    return [to_run(row) for row in conn.execute(wanted.order_by(*_LATEST).limit(most))]


def _open_runs(conn: Connection, owner: Owner) -> list[tuple[str | None, str]]:
    rows = conn.execute(
        select(task_instance.c.target_host, task_instance.c.instance_id)
        .join(task_instance_member, _MEMBER.instance_id == task_instance.c.instance_id)
        .where(_MEMBER.principal == owner[0], _MEMBER.agent_id == owner[1], _MEMBER.ended_at_ms.is_(None))
        .order_by(*_LATEST)
    )
    return [(row.target_host, row.instance_id) for row in rows]
