"""Reading a run: how it stands, page by page, and whether it could be completed now."""

import json
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from nova_mcp.memory.tasks.answers import Proof, proof_of
from nova_mcp.memory.tasks.not_found import no_run
from nova_mcp.memory.tasks.runs import views
from nova_mcp.memory.tasks.runs.completion import Reason, Standing, StepResult, evaluate_completion
from nova_mcp.memory.tasks.runs.store import Event, Member, Run, held_run, members
from nova_mcp.memory.tasks.runs.transactions import Occasion, Reported, Runs, unknown_steps
from nova_mcp.memory.tasks.runs.views import UnitFilter, UnitRow


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a run's units and events is asked for; `after` is the ordinal the last page ended with."""

    units: UnitFilter = "discovered"
    unit_limit: int = 20
    after: int = -1
    event_limit: int = 0


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and what can be said about it now."""

    run: Run
    standing: Standing
    members: tuple[Member, ...]
    proof: Proof
    reasons: tuple[Reason, ...]
    units: tuple[UnitRow, ...] = ()
    next_ordinal: int | None = None
    events: tuple[Event, ...] = ()

    @property
    def completion_allowed(self) -> bool:
        return not self.reasons

    @property
    def reason_code(self) -> str | None:
        return self.reasons[0].reason_code if self.reasons else None


@dataclass(frozen=True, slots=True)
class Verified:
    """What reports on the verification steps come to, and what completing the run would."""

    view: RunView
    standing: Standing
    steps: tuple[StepResult, ...]


def look(conn: Connection, runs: Runs, at: Occasion, instance_id: str, wanted: Wanted) -> RunView:
    # Held, because counting visits up to now may raise its units.
    run = held_run(conn, at.owner[0], instance_id)
    if run is None:
        raise no_run(instance_id)
    now = runs.standing(conn, run, at)
    units, following = views.units_page(conn, run, wanted.units, wanted.after, wanted.unit_limit)
    return replace(
        viewed(conn, runs, run, now),
        units=tuple(units),
        next_ordinal=following,
        events=tuple(views.latest_events(conn, run, wanted.event_limit)),
    )


def verify(conn: Connection, runs: Runs, at: Occasion, instance_id: str, reported: Reported) -> Verified:
    # Held, because counting visits up to now may raise its units.
    run = held_run(conn, at.owner[0], instance_id)
    if run is None:
        raise no_run(instance_id)
    if (unknown := unknown_steps(run, reported)) is not None:
        raise unknown
    now = runs.standing(conn, run, at, reported)
    return Verified(viewed(conn, runs, run, now), now, now.steps)


def viewed(conn: Connection, runs: Runs, run: Run, now: Standing) -> RunView:
    """What was proven when a run ended is what stays; its units may be gone by now."""
    proof = runs.proof(conn, run, now) if run.evidence_snapshot is None else proof_of(json.loads(run.evidence_snapshot))
    reasons = evaluate_completion(now) if run.open else ended_reasons(run)
    return RunView(run, now, tuple(members(conn, run.instance_id)), proof, reasons)


def ended_reasons(run: Run) -> tuple[Reason, ...]:
    if run.state.status == "completed":
        return ()
    code = run.state.ended_reason or "terminal_status"
    return (Reason(code, f"the run is {run.state.status}"),)
