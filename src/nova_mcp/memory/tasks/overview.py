"""Tasks as the operator sees them, of every principal or of one; read-only, inside its caller's transaction."""

from dataclasses import dataclass
from typing import get_args

from sqlalchemy import Connection, select

from nova_mcp.memory.tasks.model import UnitStatus
from nova_mcp.memory.tasks.profiles import store as profile_store
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.runs import store as run_store
from nova_mcp.memory.tasks.runs import views
from nova_mcp.memory.tasks.runs.completion import Tally
from nova_mcp.memory.tasks.runs.store import Event, Member, Run
from nova_mcp.memory.tasks.runs.views import UnitRow
from nova_mcp.memory.tasks.tables import task_instance, task_profile


@dataclass(frozen=True, slots=True)
class OwnedProfile:
    principal: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class RunBrief:
    run: Run
    tally: Tally


@dataclass(frozen=True, slots=True)
class RunWhole:
    """A run with what its agents say and what was seen."""

    run: Run
    tally: Tally
    covered: int
    members: list[Member]
    units: list[UnitRow]
    events: list[Event]


def profiles(conn: Connection, principal: str | None, limit: int, *, archived: bool) -> list[OwnedProfile]:
    """Last changed first."""
    asked = select(task_profile)
    if principal is not None:
        asked = asked.where(task_profile.c.principal == principal)
    if not archived:
        asked = asked.where(task_profile.c.archived.is_(False))
    ordered = asked.order_by(
        task_profile.c.updated_at_ms.desc(), task_profile.c.principal, task_profile.c.profile_id
    ).limit(limit)
    return [OwnedProfile(row.principal, profile_store.to_profile(row)) for row in conn.execute(ordered)]


def profiles_called(conn: Connection, profile_id: str, principal: str | None) -> list[OwnedProfile]:
    """Every principal may have a profile of that id."""
    asked = select(task_profile).where(task_profile.c.profile_id == profile_id)
    if principal is not None:
        asked = asked.where(task_profile.c.principal == principal)
    rows = conn.execute(asked.order_by(task_profile.c.principal))
    return [OwnedProfile(row.principal, profile_store.to_profile(row)) for row in rows]


def runs(conn: Connection, principal: str | None, limit: int, *, ended: bool) -> list[RunBrief]:
    """Last active first."""
    asked = select(task_instance)
    if principal is not None:
        asked = asked.where(task_instance.c.principal == principal)
    if not ended:
        asked = asked.where(task_instance.c.ended_at_ms.is_(None))
    rows = conn.execute(
        asked.order_by(task_instance.c.last_activity_at_ms.desc(), task_instance.c.instance_id).limit(limit)
    ).all()
    found = [run_store.to_run(row) for row in rows]
    return [RunBrief(one, views.tally_of(views.counted(conn, one.instance_id))) for one in found]


def run(conn: Connection, instance_id: str, units: int, events: int) -> RunWhole | None:
    row = conn.execute(select(task_instance).where(task_instance.c.instance_id == instance_id)).one_or_none()
    if row is None:
        return None
    found = run_store.to_run(row)
    groups = views.counted(conn, instance_id)
    return RunWhole(
        found,
        views.tally_of(groups),
        views.coverage_of(groups).covered,
        run_store.members(conn, instance_id),
        _units(conn, found, units),
        views.latest_events(conn, found, events),
    )


def _units(conn: Connection, found: Run, most: int) -> list[UnitRow]:
    """In the order of their registration, whatever became of them."""
    of_each = (views.units_page(conn, found, status, -1, most)[0] for status in get_args(UnitStatus))
    return sorted((one for page in of_each for one in page), key=lambda one: one.ordinal)[:most]
