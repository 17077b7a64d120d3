"""Remembers which claims learn a site, what has counted in each, and how each visit ended."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, insert, select, update

from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.rules import DAY_MS, storable_text
from nova_mcp.memory.claims.store import claim_journal
from nova_mcp.memory.tasks.instructions.learn_rules import (
    Countable,
    CountKind,
    Floors,
    LearnOutcome,
    Progress,
    admits,
    countables,
    outcome_of,
)
from nova_mcp.memory.tasks.tables import learn_activation, learn_count

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Activation:
    """A claim in which a site is being learned."""

    task_id: str
    principal: str
    agent_id: str
    target_id: str
    domain: str
    activated_at_ms: int
    progress: Progress = field(default_factory=Progress)
    outcome: LearnOutcome | None = None
    exhausted_reason: str | None = None
    ended: bool = False


def activate(conn: Connection, wanted: Activation) -> Activation | None:
    """Begin to count for a claim; one that counts already goes on as it is, and one that has ended learns no more."""
    claim = claim_journal.c
    standing = select(claim.task_id).where(claim.task_id == wanted.task_id, claim.ended_at_ms.is_(None))
    if conn.execute(standing.with_for_update()).one_or_none() is None:
        return None
    if (found := find(conn, wanted.task_id)) is not None:
        return found
    conn.execute(
        insert(learn_activation),
        {
            "task_id": wanted.task_id,
            "principal": storable_text(wanted.principal),
            "agent_id": storable_text(wanted.agent_id),
            "target_id": storable_text(wanted.target_id),
            "domain": wanted.domain,
            "surfaces": 0,
            "interactions": 0,
            "activated_at_ms": wanted.activated_at_ms,
        },
    )
    return wanted


def find(conn: Connection, task_id: str) -> Activation | None:
    row = conn.execute(select(learn_activation).where(learn_activation.c.task_id == task_id)).one_or_none()
    return None if row is None else _activation(row)


def open_of(conn: Connection, principal: str, agent_id: str, *, lock: bool = False) -> list[Activation]:
    """The visits an agent is in the middle of, oldest first."""
    c = learn_activation.c
    found = (
        select(learn_activation)
        .where(c.principal == storable_text(principal), c.agent_id == storable_text(agent_id), c.ended_at_ms.is_(None))
        # Always in the same order, so that two servers never wait for each other.
        .order_by(c.activated_at_ms, c.task_id)
    )
    return [_activation(row) for row in conn.execute(found.with_for_update() if lock else found)]


def _activation(row: Row[Any]) -> Activation:
    return Activation(
        task_id=row.task_id,
        principal=row.principal,
        agent_id=row.agent_id,
        target_id=row.target_id,
        domain=row.domain,
        activated_at_ms=row.activated_at_ms,
        progress=Progress(row.surfaces, row.interactions),
        outcome=row.outcome,
        exhausted_reason=row.exhausted_reason,
        ended=row.ended_at_ms is not None,
    )


# -- counting


def count(conn: Connection, record: CallRecord, multi_tenant: Collection[str]) -> None:
    """Add what a call shows to every visit its agent is in; without one it costs a single lookup."""
    for visit in open_of(conn, record.caller.principal, record.caller.agent_id, lock=True):
        if record.started_at_ms >= visit.activated_at_ms:
            _count(conn, visit, countables(record, visit.domain, multi_tenant))


def _count(conn: Connection, visit: Activation, found: Iterable[Countable]) -> None:
    surfaces = interactions = 0
    for one in found:
        if not _admitted(conn, visit.task_id, one):
            continue
        row = {"task_id": visit.task_id, "kind": one.kind, "key": one.key, "group_key": one.group}
        conn.execute(insert(learn_count), row)
        interactions += one.kind == "interaction"
        surfaces += one.kind != "interaction"
    if surfaces or interactions:
        c = learn_activation.c
        conn.execute(
            update(learn_activation)
            .where(c.task_id == visit.task_id)
            .values(surfaces=c.surfaces + surfaces, interactions=c.interactions + interactions)
        )


def _admitted(conn: Connection, task_id: str, one: Countable) -> bool:
    if _known(conn, task_id, one.kind, one.key):
        return False
    needed = one.needs is None or _known(conn, task_id, "surface", one.needs)
    return admits(one, known=False, in_group=_in_group(conn, task_id, one), needed=needed)


def _known(conn: Connection, task_id: str, kind: CountKind, key: str) -> bool:
    c = learn_count.c
    return conn.execute(select(c.key).where(c.task_id == task_id, c.kind == kind, c.key == key)).first() is not None


def _in_group(conn: Connection, task_id: str, one: Countable) -> int:
    if one.group is None or one.cap is None:
        return 0
    c = learn_count.c
    found = select(c.key).where(c.task_id == task_id, c.kind == one.kind, c.group_key == one.group).limit(one.cap)
    return len(conn.execute(found).all())


# -- ends


def end(conn: Connection, task_id: str, floors: Floors, at_ms: int, exhausted: str | None) -> None:
    """The first end of a visit stands."""
    c = learn_activation.c
    row = conn.execute(
        select(learn_activation).where(c.task_id == task_id, c.ended_at_ms.is_(None)).with_for_update()
    ).one_or_none()
    if row is None:
        return
    outcome = outcome_of(_activation(row).progress, floors, exhausted)
    conn.execute(
        update(learn_activation)
        .where(c.task_id == task_id)
        .values(
            outcome=outcome,
            exhausted_reason=exhausted if outcome == "exhausted" else None,
            ended_at_ms=at_ms,
        )
    )


def forgetting(days: int) -> Callable[[Connection, int], int]:
    """A chore: visits that ended that long ago go with what they counted, some at a time."""

    def forget(conn: Connection, now_ms: int) -> int:
        c = learn_activation.c
        old = select(c.task_id).where(c.ended_at_ms < now_ms - days * DAY_MS).order_by(c.ended_at_ms).limit(BATCH)
        gone = list(conn.execute(old).scalars())
        if gone:
            conn.execute(delete(learn_count).where(learn_count.c.task_id.in_(gone)))
            conn.execute(delete(learn_activation).where(c.task_id.in_(gone)))
        return len(gone)

    return forget
