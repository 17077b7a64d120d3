"""Remembers guidance and how often it was given; every function runs inside its caller's transaction."""

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select, text, update

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.guidance.rules import (
    DECIDED,
    GuidanceKind,
    GuidanceLog,
    GuidanceStatus,
    SourceKind,
    grown_status,
    run_key,
)
from nova_mcp.memory.tasks.tables import task_guidance_log, task_guidance_occurrence, task_instance

# Of the runs of a profile, so many of the newest tell what is overridden again and again.
RUNS_LOOKED_AT: Final = 500
MOST_CANDIDATES: Final = 200


@dataclass(frozen=True, slots=True)
class Given:
    """Guidance on its way into the store."""

    log_id: str
    hash: str
    profile_id: str | None
    kind: GuidanceKind
    source_kind: SourceKind
    payload: dict[str, Json]
    occurrence_key: str
    at_ms: int


_ADD = text(
    "INSERT INTO task_guidance_log (log_id, principal, hash, profile_id, kind, source_kind, status, payload, "
    "occurrence_count, created_at_ms, updated_at_ms) VALUES (:log_id, :principal, :hash, :profile_id, :kind, "
    ":source_kind, 'logged', :payload, 0, :now, :now) ON CONFLICT (principal, hash) DO NOTHING"
)
_COUNT = text(
    "INSERT INTO task_guidance_occurrence (log_id, occurrence_key, at_ms) VALUES (:log_id, :key, :now) "
    "ON CONFLICT (log_id, occurrence_key) DO NOTHING"
)
_BY_HASH = (
    select(task_guidance_log)
    .where(task_guidance_log.c.principal == bindparam("of_principal"), task_guidance_log.c.hash == bindparam("of_hash"))
    .with_for_update()
)
_BY_ID = (
    select(task_guidance_log)
    .where(
        task_guidance_log.c.principal == bindparam("of_principal"), task_guidance_log.c.log_id == bindparam("of_log")
    )
    .with_for_update()
)


def add(conn: Connection, principal: str, given: Given) -> tuple[GuidanceLog, bool]:
    """The log as it now stands, and whether it is new; saying it again in the same run counts once."""
    values = {
        "log_id": given.log_id,
        "principal": principal,
        "hash": given.hash,
        "profile_id": given.profile_id,
        "kind": given.kind,
        "source_kind": given.source_kind,
        "payload": canonical(given.payload),
        "now": given.at_ms,
    }
    created = conn.execute(_ADD, values).rowcount == 1
    log = _to_log(conn.execute(_BY_HASH, {"of_principal": principal, "of_hash": given.hash}).one())
    which = {"log_id": log.log_id, "key": given.occurrence_key, "now": given.at_ms}
    count = log.occurrence_count + conn.execute(_COUNT, which).rowcount
    status = grown_status(log.status, count)
    conn.execute(
        update(task_guidance_log)
        .where(task_guidance_log.c.log_id == log.log_id)
        .values(occurrence_count=count, status=status, updated_at_ms=given.at_ms)
    )
    return _found(conn, principal, log.log_id), created


def held_log(conn: Connection, principal: str, log_id: str) -> GuidanceLog | None:
    """A principal's own log, kept from other writers until the transaction ends."""
    row = conn.execute(_BY_ID, {"of_principal": principal, "of_log": log_id}).one_or_none()
    return None if row is None else _to_log(row)


def _found(conn: Connection, principal: str, log_id: str) -> GuidanceLog:
    return _to_log(conn.execute(_BY_ID, {"of_principal": principal, "of_log": log_id}).one())


def decide(
    conn: Connection, log: GuidanceLog, status: GuidanceStatus, *, rev: int | None, reason: str | None, at_ms: int
) -> None:
    conn.execute(
        update(task_guidance_log)
        .where(task_guidance_log.c.log_id == log.log_id)
        .values(status=status, promoted_to_content_rev=rev, decided_reason=reason, updated_at_ms=at_ms)
    )


def _to_log(row: Row[Any]) -> GuidanceLog:
    return GuidanceLog(
        log_id=row.log_id,
        profile_id=row.profile_id,
        kind=row.kind,
        source_kind=row.source_kind,
        status=row.status,
        payload=json.loads(row.payload),
        occurrence_count=row.occurrence_count,
        promoted_to_content_rev=row.promoted_to_content_rev,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
    )


# -- reading


@dataclass(frozen=True, slots=True)
class Asked:
    """Which logs are wanted; None does not ask."""

    profile_id: str | None = None
    instance_id: str | None = None
    kind: GuidanceKind | None = None
    status: GuidanceStatus | None = None
    limit: int = 50


def logs(conn: Connection, principal: str, asked: Asked) -> list[GuidanceLog]:
    """Last refreshed first."""
    log = task_guidance_log.c
    found = select(task_guidance_log).where(log.principal == principal)
    if asked.instance_id is not None:
        said = select(task_guidance_occurrence.c.log_id).where(
            task_guidance_occurrence.c.occurrence_key == run_key(asked.instance_id)
        )
        found = found.where(log.log_id.in_(said))
    for column, value in ((log.profile_id, asked.profile_id), (log.kind, asked.kind), (log.status, asked.status)):
        if value is not None:
            found = found.where(column == value)
    rows = conn.execute(found.order_by(log.updated_at_ms.desc(), log.log_id).limit(asked.limit))
    return [_to_log(row) for row in rows]


def ripe_logs(conn: Connection, principal: str, profile_id: str, threshold: int) -> list[GuidanceLog]:
    """Undecided guidance of a profile that was given at least so often, the most frequent first."""
    log = task_guidance_log.c
    found = (
        select(task_guidance_log)
        .where(log.principal == principal, log.profile_id == profile_id)
        .where(log.occurrence_count >= threshold, log.status.not_in(sorted(DECIDED)))
        .order_by(log.occurrence_count.desc(), log.updated_at_ms.desc(), log.log_id)
        .limit(MOST_CANDIDATES)
    )
    return [_to_log(row) for row in conn.execute(found)]


def overrides_of(conn: Connection, principal: str, profile_id: str) -> list[dict[str, Json]]:
    """What the newest runs of a profile changed for themselves."""
    run = task_instance.c
    found = (
        select(run.overrides)
        .where(run.principal == principal, run.profile_id == profile_id)
        .order_by(run.started_at_ms.desc(), run.instance_id)
        .limit(RUNS_LOOKED_AT)
    )
    return [json.loads(one) for one in conn.execute(found).scalars() if one]


_RUN = select(task_instance.c.profile_id).where(
    task_instance.c.instance_id == bindparam("of_instance"), task_instance.c.principal == bindparam("of_principal")
)


def profile_of_run(conn: Connection, principal: str, instance_id: str) -> tuple[bool, str | None]:
    """Whether a principal has that run, and the profile it follows."""
    row = conn.execute(_RUN, {"of_instance": instance_id, "of_principal": principal}).one_or_none()
    return (False, None) if row is None else (True, row.profile_id)
