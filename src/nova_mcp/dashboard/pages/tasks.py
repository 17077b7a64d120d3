"""Recurring tasks and their runs, of every principal, the last active first."""

import json
from dataclasses import dataclass
from typing import Final, get_args

from sqlalchemy import Connection, or_, select

from nova_mcp.dashboard.data.principals import principals
from nova_mcp.memory.tasks import overview
from nova_mcp.memory.tasks.answers import proof_of
from nova_mcp.memory.tasks.model import OPEN, RunStatus
from nova_mcp.memory.tasks.overview import OwnedProfile
from nova_mcp.memory.tasks.profiles.confidence import Tuning
from nova_mcp.memory.tasks.profiles.service import tuning_of
from nova_mcp.memory.tasks.runs import store, views
from nova_mcp.memory.tasks.runs.completion import Tally
from nova_mcp.memory.tasks.runs.store import Run
from nova_mcp.memory.tasks.tables import task_instance, task_profile

RUNS: Final = 20
PROFILES: Final = 30
STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The place of a run in the order of this list; several may have been active in one millisecond."""

    at_ms: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class RunRow:
    run: Run
    tally: Tally


@dataclass(frozen=True, slots=True)
class ProfileRow:
    principal: str
    owned: OwnedProfile
    tuning: Tuning


@dataclass(frozen=True, slots=True)
class TasksView:
    """`following` is where the list goes on, with runs that were active earlier."""

    runs: tuple[RunRow, ...]
    ended: bool
    following: RunPlace | None
    profiles: tuple[ProfileRow, ...]
    more_profiles: bool


def tasks(conn: Connection, after: RunPlace | None, now_ms: int, *, ended: bool) -> TasksView:
    found = runs(conn, after, RUNS + 1, ended=ended)
    shown = found[:RUNS]
    last = shown[-1] if len(found) > RUNS else None
    known = profiles(conn, PROFILES + 1)
    return TasksView(
        runs=tuple(RunRow(one, tally_of(conn, one)) for one in shown),
        ended=ended,
        following=None if last is None else RunPlace(last.last_activity_at_ms, last.instance_id),
        profiles=tuple(ProfileRow(one.principal, one, tuning_of(one.profile, now_ms)) for one in known[:PROFILES]),
        more_profiles=len(known) > PROFILES,
    )


def runs(conn: Connection, after: RunPlace | None, most: int, *, ended: bool) -> list[Run]:
    """Each status has an index by activity, so the newest of all are among the newest of each."""
    c = task_instance.c
    found: list[Run] = []
    for status in STATUSES:
        if not ended and status not in OPEN:
            continue
        asked = select(task_instance).where(c.status == status)
        if after is not None:
            # The first condition is what the index is asked for; the second only breaks ties of one millisecond.
            asked = asked.where(
                c.last_activity_at_ms <= after.at_ms,
                or_(c.last_activity_at_ms < after.at_ms, c.instance_id > after.instance_id),
            )
        rows = conn.execute(asked.order_by(c.last_activity_at_ms.desc(), c.instance_id).limit(most))
        found += (store.to_run(row) for row in rows)
    return sorted(found, key=lambda one: (-one.last_activity_at_ms, one.instance_id))[:most]


def tally_of(conn: Connection, run: Run) -> Tally:
    """What was proven when a run ended is what stays; its units may be gone by now."""
    if run.evidence_snapshot is not None:
        return proof_of(json.loads(run.evidence_snapshot)).tally
    return views.tally_of(views.counted(conn, run.instance_id))


def profiles(conn: Connection, most: int) -> list[OwnedProfile]:
    found: list[OwnedProfile] = []
    for name in principals(conn, task_profile.c.principal):
        found += overview.profiles(conn, name, most, archived=False)
    return sorted(found, key=lambda one: (-one.profile.updated_at_ms, one.principal, one.profile.profile_id))[:most]


def profile(conn: Connection, principal: str, profile_id: str, now_ms: int) -> ProfileRow | None:
    found = overview.profiles_called(conn, profile_id, principal)
    return ProfileRow(principal, found[0], tuning_of(found[0].profile, now_ms)) if found else None
