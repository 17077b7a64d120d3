"""Calls on runs as the store decides them: in the transaction that records the call, all of it or nothing."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlalchemy import Connection

from nova_mcp.core.values import Json, Owner
from nova_mcp.errors import InvalidParams
from nova_mcp.evidence.page_sights import PageLife
from nova_mcp.memory.tasks.answers import (
    Aborted,
    Completed,
    Progressed,
    Proof,
    WaivedCheck,
    aborted_json,
    aborted_of,
    completed_json,
    completed_of,
    progressed_json,
    progressed_of,
    snapshot_json,
)
from nova_mcp.memory.tasks.not_found import no_run
from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.profiles.store import RunOutcome
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs import views, writes
from nova_mcp.memory.tasks.runs.completion import Reason, Standing, StepResult, evaluate_completion, shadow_refusal
from nova_mcp.memory.tasks.runs.executed_calls import executed_steps
from nova_mcp.memory.tasks.runs.next_actions import NextAction, Pointers, next_actions
from nova_mcp.memory.tasks.runs.rules import Delta, EventKind, Problem, Report, named_keys, progress
from nova_mcp.memory.tasks.runs.store import Event, Run, event_named, held_run, members, units_named
from nova_mcp.memory.tasks.runs.verification_rules import PatternVerdict, StepReport, judge_steps
from nova_mcp.memory.tasks.runs.writes import Happening
from nova_mcp.settings import GateMode

Lives = Mapping[str, PageLife]


class UnitEvidence(Protocol):
    """What was seen of units, kept by whoever records what is seen."""

    def fill(self, conn: Connection, instance_id: str, unit_keys: Collection[str], now_ms: int) -> None:
        """Units were just registered: give them what members have seen of them."""

    def fill_for(self, conn: Connection, instance_id: str, owner: Owner, now_ms: int) -> None:
        """An agent has just joined: give the units what it had seen shortly before."""

    def refresh(self, conn: Connection, instance_id: str, now_ms: int, lives: Lives) -> None:
        """A run is about to be judged: count visits that still go on up to now."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """Who calls, when, and which tabs are known to show what they showed."""

    owner: Owner
    now_ms: int
    lives: Lives = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """A call that is to move a run by one revision."""

    kind: EventKind
    instance_id: str
    expected_rev: int
    client_event_id: str
    payload_hash: str


@dataclass(frozen=True, slots=True)
class Reported:
    """What an agent says about verification steps, with what trying its patterns came to."""

    reports: Mapping[str, StepReport] = field(default_factory=dict)
    patterns: Mapping[str, PatternVerdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDone(Refused):
    """A run that can't be completed yet: why, how it stands, and what to do about it."""

    run: Run
    reasons: tuple[Reason, ...]
    standing: Standing
    proof: Proof
    actions: tuple[NextAction, ...]


class Runs:
    """Progress, completion and end of runs."""

    def __init__(self, gate_mode: GateMode, evidence: UnitEvidence) -> None:
        self.gate_mode = gate_mode
        self.evidence = evidence

    # -- one revision further

    def progress(self, conn: Connection, at: Occasion, change: Change, report: Report) -> Progressed | Refused:
        match self._admitted(conn, at, change):
            case Event() as known:
                return progressed_of(json.loads(known.response))
            case Run() as run:
                return self._progressed(conn, at, change, run, report)
            case refused:
                return refused

    def _progressed(
        self, conn: Connection, at: Occasion, change: Change, run: Run, report: Report
    ) -> Progressed | Refused:
        known = units_named(conn, run.instance_id, named_keys(report, run.terms))
        delta = progress(replace(run.state, units=known), report, run.terms)
        if isinstance(delta, Problem):
            raise problem_error(delta)
        happening = _happening(change, at)
        after = writes.apply(conn, run, delta, happening)
        if after is None:
            return _conflict(run)
        if writes.join(conn, run.instance_id, at.owner[0], at.owner[1], at.now_ms):
            self.evidence.fill_for(conn, run.instance_id, at.owner, at.now_ms)
        if delta.units:
            self.evidence.fill(conn, run.instance_id, [one.key for one in delta.units], at.now_ms)
        now = self.standing(conn, after, at)
        reasons = evaluate_completion(now)
        first = reasons[0].reason_code if reasons else None
        done = Progressed(after.state.rev, after.state.status, after.state.discovery, now.tally, first)
        writes.add_event(conn, after, happening, delta, progressed_json(done))
        return done

    # -- the end

    def complete(
        self, conn: Connection, at: Occasion, change: Change, reported: Reported, note: str | None
    ) -> Completed | NotDone | Refused:
        match self._admitted(conn, at, change):
            case Event() as known:
                return completed_of(json.loads(known.response))
            case Run() as run:
                return self._completed(conn, at, change, run, (reported, note))
            case refused:
                return refused

    def _completed(
        self, conn: Connection, at: Occasion, change: Change, run: Run, said: tuple[Reported, str | None]
    ) -> Completed | NotDone | Refused:
        reported, note = said
        if (unknown := unknown_steps(run, reported)) is not None:
            raise unknown
        now = self.standing(conn, run, at, reported)
        reasons = evaluate_completion(now)
        proof = self.proof(conn, run, now)
        if reasons:
            return self.not_done(conn, run, now, reasons, proof)
        happening, shadow = _happening(change, at), shadow_refusal(now)
        delta = Delta(status="completed", note=note)
        after = writes.apply(conn, run, delta, happening, ended_at_ms=at.now_ms)
        if after is None:
            return _conflict(run)
        done = Completed(after.state.rev, at.now_ms, now.steps, proof, _waived(run), shadow)
        writes.add_event(conn, after, happening, delta, completed_json(done))
        self._ended(conn, after, snapshot_json(proof, shadow), "completed", at.now_ms)
        return done

    def abort(
        self, conn: Connection, at: Occasion, change: Change, outcome: RunOutcome, reason: str
    ) -> Aborted | Refused:
        match self._admitted(conn, at, change):
            case Event() as known:
                return aborted_of(json.loads(known.response))
            case Run() as run:
                return self.ended(conn, at, run, _happening(change, at), Delta(status=outcome, note=reason))
            case refused:
                return refused

    def ended(self, conn: Connection, at: Occasion, run: Run, happening: Happening, delta: Delta) -> Aborted | Refused:
        """End an open run without completing it."""
        proof = self.proof(conn, run, self.standing(conn, run, at))
        after = writes.apply(conn, run, delta, happening, ended_at_ms=at.now_ms)
        if after is None:
            return _conflict(run)
        done = Aborted(after.state.rev, after.state.status, run.state.status)
        writes.add_event(conn, after, happening, delta, aborted_json(done))
        outcome: RunOutcome = "failed" if after.state.status == "failed" else "aborted"
        self._ended(conn, after, snapshot_json(proof), outcome, at.now_ms)
        return done

    def _ended(self, conn: Connection, run: Run, snapshot: Json, outcome: RunOutcome, at_ms: int) -> None:
        writes.freeze(conn, run.instance_id, snapshot)
        if run.profile_id is not None:
            store.note_ended(conn, run.principal, run.profile_id, outcome, at_ms)

    # -- who may go on

    def _admitted(self, conn: Connection, at: Occasion, change: Change) -> Run | Event | Refused:
        """The run, held for this call; or the answer that was already given; or why not."""
        run = held_run(conn, at.owner[0], change.instance_id)
        if run is None:
            raise no_run(change.instance_id)
        known = event_named(conn, run.instance_id, change.client_event_id)
        if known is not None:
            same = (known.kind, known.payload_hash) == (change.kind, change.payload_hash)
            if not same:
                raise reused_event(change.client_event_id)
            return known
        if not run.open:
            return Refused("terminal_status", {"instanceRev": run.state.rev, "status": run.state.status})
        if run.state.rev != change.expected_rev:
            return _conflict(run)
        return run

    # -- judging

    def standing(self, conn: Connection, run: Run, at: Occasion, reported: Reported | None = None) -> Standing:
        if run.open:
            self.evidence.refresh(conn, run.instance_id, at.now_ms, at.lives)
        return views.standing(conn, run, self.gate_mode, self.judged(conn, run, reported or Reported()))

    def judged(self, conn: Connection, run: Run, reported: Reported) -> tuple[StepResult, ...]:
        steps = run.content.verification
        executed = executed_steps(conn, run, members(conn, run.instance_id)) if steps and reported.reports else {}
        return judge_steps(steps, reported.reports, executed, reported.patterns)

    def proof(self, conn: Connection, run: Run, now: Standing) -> Proof:
        return Proof(now.tally, now.evidence, views.url_coverage(conn, run, now))

    def not_done(self, conn: Connection, run: Run, now: Standing, reasons: Sequence[Reason], proof: Proof) -> NotDone:
        actions = next_actions(now, reasons, _pointers(conn, run, now, proof))
        return NotDone(
            reason_code=reasons[0].reason_code,
            run=run,
            reasons=tuple(reasons),
            standing=now,
            proof=proof,
            actions=actions,
        )


def _happening(change: Change, at: Occasion) -> Happening:
    return Happening(change.kind, change.client_event_id, at.owner[1], change.payload_hash, at.now_ms)


def _conflict(run: Run) -> Refused:
    return Refused("rev_conflict", {"instanceRev": run.state.rev, "status": run.state.status})


def _waived(run: Run) -> tuple[WaivedCheck, ...]:
    marks = run.state.checks
    known = [(one.check_id, marks[one.check_id]) for one in run.content.mandatory_checks if one.check_id in marks]
    return tuple(
        WaivedCheck(check_id, mark.state, mark.note)
        for check_id, mark in known
        if mark.state in ("waived", "not_applicable")
    )


def _pointers(conn: Connection, run: Run, now: Standing, proof: Proof) -> Pointers:
    tally = now.tally
    remaining = views.first_units(conn, run, "discovered") if tally.remaining else ()
    stuck = views.first_units(conn, run, "blocked", "failed") if tally.blocked + tally.failed else ()
    unproven = [one.unit_key for one in now.evidence.top_exceptions]
    urls = {key: unit.url for key, unit in units_named(conn, run.instance_id, unproven).items()}
    return Pointers(
        instance_id=run.instance_id,
        remaining=tuple(one.url or one.unit_key for one in remaining),
        stuck=tuple(one.url or one.unit_key for one in stuck),
        uncovered=proof.coverage.next_urls,
        unproven=tuple(urls.get(key) or key for key in unproven),
        steps=run.content.verification,
        scan_id=proof.coverage.recommended_scan_id,
    )


# -- what is wrong with a call


def reused_event(client_event_id: str) -> InvalidParams:
    return InvalidParams("event_id_reused", details={"clientEventId": client_event_id})


def problem_error(problem: Problem) -> InvalidParams:
    offenders: list[Json] = [*problem.offenders]
    return InvalidParams(
        problem.reason_code,
        problem.message,
        problem.hint,
        details={"offenders": offenders} if offenders else None,
    )


def unknown_steps(run: Run, reported: Reported) -> InvalidParams | None:
    known = [one.step_id for one in run.content.verification]
    unknown = [one for one in reported.reports if one not in known]
    if not unknown:
        return None
    ids: list[Json] = [*known]
    return InvalidParams(
        "invalid_params",
        f'evidenceReport names a step that the run does not have ("{unknown[0][:64]}").',
        "Report on the steps that nova.task_instance_verify lists.",
        details={"argument": "evidenceReport", "knownStepIds": ids},
    )
