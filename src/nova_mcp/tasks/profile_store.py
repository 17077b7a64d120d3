"""Remembers profiles and how their runs went; every function runs inside its caller's transaction."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, bindparam, func, select, update

from nova_mcp.tasks import content_codec as codec
from nova_mcp.tasks.model import TaskContent
from nova_mcp.tasks.tables import task_profile

RunOutcome = Literal["completed", "failed", "aborted"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a recurring task needs, and how often it was done."""

    profile_id: str
    content: TaskContent
    base_confidence: float
    content_rev: int
    archived: bool
    created_at_ms: int
    updated_at_ms: int
    # Runs that were started, and how those that ended did.
    runs: int = 0
    completed: int = 0
    failed: int = 0
    aborted: int = 0
    last_ended_at_ms: int | None = None


_ONE = select(task_profile).where(
    task_profile.c.principal == bindparam("of_principal"), task_profile.c.profile_id == bindparam("of_profile")
)
_HELD = _ONE.with_for_update()


def profile(conn: Connection, principal: str, profile_id: str) -> Profile | None:
    """A principal's own profile; another's is simply not there."""
    row = conn.execute(_ONE, {"of_principal": principal, "of_profile": profile_id}).one_or_none()
    return None if row is None else to_profile(row)


def held_profile(conn: Connection, principal: str, profile_id: str) -> Profile | None:
    """The same, kept from other writers until the transaction ends."""
    row = conn.execute(_HELD, {"of_principal": principal, "of_profile": profile_id}).one_or_none()
    return None if row is None else to_profile(row)


def to_profile(row: Row[Any]) -> Profile:
    content = TaskContent(
        task_type=row.task_type,
        display_name=row.display_name,
        goal=row.goal,
        completion_condition=codec.condition_of(json.loads(row.completion_condition)),
        domain=row.domain,
        platform=row.platform,
        task_kind=row.task_kind,
        stable_guidance=codec.guidance_of(json.loads(row.stable_guidance)),
        mandatory_checks=codec.checks_of(json.loads(row.mandatory_checks)),
        known_exceptions=codec.exceptions_of(json.loads(row.known_exceptions)),
        verification=codec.verification_of(None if row.verification is None else json.loads(row.verification)),
    )
    return Profile(
        profile_id=row.profile_id,
        content=content,
        base_confidence=row.base_confidence,
        content_rev=row.content_rev,
        archived=row.archived,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        runs=row.runs,
        completed=row.completed_runs,
        failed=row.failed_runs,
        aborted=row.aborted_runs,
        last_ended_at_ms=row.last_ended_at_ms,
    )


# -- how its runs go

_THIS = (
    task_profile.c.principal == bindparam("of_principal"),
    task_profile.c.profile_id == bindparam("of_profile"),
)
_STARTED = update(task_profile).where(*_THIS).values(runs=task_profile.c.runs + 1)
_COUNTED: Final[dict[RunOutcome, Any]] = {
    "completed": task_profile.c.completed_runs,
    "failed": task_profile.c.failed_runs,
    "aborted": task_profile.c.aborted_runs,
}
# Runs may end in another order than their calls were made; the newest end is the one that counts.
_LATEST = func.coalesce(task_profile.c.last_ended_at_ms, 0)
_ENDED: Final = {
    outcome: update(task_profile)
    .where(*_THIS)
    .values({column.name: column + 1, "last_ended_at_ms": bindparam("ended_at")})
    for outcome, column in _COUNTED.items()
}
_END_BEFORE = select(_LATEST).where(*_THIS).with_for_update()


def note_started(conn: Connection, principal: str, profile_id: str) -> None:
    """A run of the profile was created; counts as one use of it."""
    conn.execute(_STARTED, {"of_principal": principal, "of_profile": profile_id})


def note_ended(conn: Connection, principal: str, profile_id: str, outcome: RunOutcome, at_ms: int) -> None:
    """A run of the profile ended; nothing happens where the profile is not known."""
    which = {"of_principal": principal, "of_profile": profile_id}
    before = conn.execute(_END_BEFORE, which).scalar()
    if before is not None:
        conn.execute(_ENDED[outcome], {**which, "ended_at": max(before, at_ms)})
