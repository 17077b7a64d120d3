"""Remembers candidates, one open row per claim, and the curated entries that promoted ones become."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    Row,
    Table,
    Text,
    bindparam,
    literal_column,
    select,
    update,
)
from sqlalchemy import text as sql

from nova_mcp.memory.journal.candidates import (
    Candidate,
    CandidateChange,
    Place,
    Raise,
    candidate_key,
    curated_key,
    raised,
    repeated,
)
from nova_mcp.memory.journal.evidence import PageEvent
from nova_mcp.memory.journal.store import Serial
from nova_mcp.storage.prepared import Prepared
from nova_mcp.storage.schema import metadata

candidate = Table(
    "candidate",
    metadata,
    Column("candidate_id", Serial, primary_key=True),
    Column("candidate_key", Text, nullable=False),
    Column("stable_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("owner_agent_id", Text, nullable=False),
    Column("task_id", Text),
    Column("target_id", Text),
    Column("context_host", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("claim", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("origin", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("event_key", Text),
    Column("source_event_id", Text),
    Column("source_verdict", Text),
    Column("resolution_event_id", Text),
    Column("verified_at_ms", BigInteger),
    Column("high_signal", Integer, nullable=False),
    Column("recovered", Integer, nullable=False),
    Column("sessions", Text, nullable=False),
    Column("failures_in_row", Integer, nullable=False),
    Column("last_failure_at_ms", BigInteger),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Index(None, "task_id"),
    Index(None, "updated_at_ms"),
)
_OPEN: Final = candidate.c.status != literal_column("'disproven'")
# However many servers raise the same claim at once, one row takes them all until it is disproven.
Index(
    "ix_candidate_open",
    candidate.c.principal,
    candidate.c.context_host,
    candidate.c.candidate_key,
    unique=True,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index(
    "ix_candidate_event_key",
    candidate.c.principal,
    candidate.c.event_key,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)

curated_entry = Table(
    "curated_entry",
    metadata,
    Column("curated_id", Serial, primary_key=True),
    Column("dedupe_key", Text, nullable=False),
    Column("stable_id", Text, nullable=False),
    Column("context_host", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("claim", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("candidate_id", BigInteger, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("evidence_score", Float, nullable=False),
    Column("merge_count", Integer, nullable=False),
    Column("first_promoted_at_ms", BigInteger, nullable=False),
    Column("last_promoted_at_ms", BigInteger, nullable=False),
    Index(None, "dedupe_key", unique=True),
    Index(None, "last_promoted_at_ms"),
)

_COLUMNS: Final = tuple(candidate.c.keys())
_UNNUMBERED: Final = _COLUMNS[1:]


def _values(found: Candidate) -> dict[str, Any]:
    place = found.place
    return {
        "candidate_key": found.candidate_key,
        "stable_id": found.stable_id,
        "principal": place.principal,
        "owner_agent_id": place.agent_id,
        "task_id": place.task_id,
        "target_id": place.target_id,
        "context_host": place.host,
        "component": found.component,
        "claim": found.claim,
        "status": found.status,
        "confidence": found.confidence,
        "origin": found.origin,
        "level": found.level,
        "event_key": found.event_key,
        "source_event_id": found.source_event_id,
        "source_verdict": found.source_verdict,
        "resolution_event_id": found.resolution_event_id,
        "verified_at_ms": found.verified_at_ms,
        "high_signal": int(found.high_signal),
        "recovered": int(found.recovered),
        "sessions": json.dumps(found.sessions),
        "failures_in_row": found.failures_in_row,
        "last_failure_at_ms": found.last_failure_at_ms,
        "created_at_ms": found.created_at_ms,
        "updated_at_ms": found.updated_at_ms,
    }


def _candidate(row: "Row[Any] | tuple[Any, ...]") -> Candidate:
    told = dict(zip(_COLUMNS, row, strict=True))
    place = Place(
        told.pop("principal"),
        told.pop("owner_agent_id"),
        told.pop("context_host"),
        told.pop("task_id"),
        told.pop("target_id"),
    )
    return Candidate(
        place=place,
        high_signal=bool(told.pop("high_signal")),
        recovered=bool(told.pop("recovered")),
        sessions=tuple(json.loads(told.pop("sessions"))),
        **told,
    )


# -- looking

_ON_KEYS: Final = Prepared(
    select(candidate)
    .where(candidate.c.principal == bindparam("whose"), _OPEN)
    .where(candidate.c.event_key.in_([bindparam("one"), bindparam("other")]))
    .order_by(candidate.c.candidate_id)
    .with_for_update()
)


_ON_KEYS_OR_SAME: Final = (
    select(candidate)
    .where(candidate.c.principal == bindparam("whose"), _OPEN)
    .where(
        candidate.c.event_key.in_([bindparam("one"), bindparam("other")])
        | ((candidate.c.context_host == bindparam("host")) & (candidate.c.candidate_key == bindparam("same")))
    )
    .order_by(candidate.c.candidate_id)
    .with_for_update()
)


def open_on_keys(
    conn: Connection, principal: str, keys: tuple[str, str], raising: Raise | None = None
) -> list[Candidate]:
    """The open candidates that a call speaks about, locked in the order that every writer takes.

    What the call is about to raise is locked with them: taken later, it could be in the way of a finalize that waits.
    """
    values = {"whose": principal, "one": keys[0], "other": keys[1]}
    if raising is None:
        return [_candidate(row) for row in _ON_KEYS.run(conn, values).fetchall()]
    host = raising.place.host
    same = candidate_key(host, raising.component, raising.claim)
    rows = conn.execute(_ON_KEYS_OR_SAME, values | {"host": host, "same": same})
    return [found for found in map(_candidate, rows) if found.event_key in keys]


def candidates_of(conn: Connection, task_id: str, *, lock: bool = True) -> list[Candidate]:
    """What a work context has gathered."""
    found = select(candidate).where(candidate.c.task_id == task_id).order_by(candidate.c.candidate_id)
    return [_candidate(row) for row in conn.execute(found.with_for_update() if lock else found)]


def find_candidate(conn: Connection, candidate_id: int) -> Candidate | None:
    row = conn.execute(select(candidate).where(candidate.c.candidate_id == candidate_id)).one_or_none()
    return None if row is None else _candidate(row)


def newest(conn: Connection, most: int) -> list[Candidate]:
    """For the operator: what was last noted or moved, whoever's it is."""
    found = select(candidate).order_by(candidate.c.updated_at_ms.desc(), candidate.c.candidate_id.desc()).limit(most)
    return [_candidate(row) for row in conn.execute(found)]


def _newest(conn: Connection, wanted: Candidate, *, is_open: bool) -> Candidate | None:
    row = conn.execute(
        select(candidate)
        .where(candidate.c.principal == wanted.place.principal, candidate.c.context_host == wanted.place.host)
        .where(candidate.c.candidate_key == wanted.candidate_key, _OPEN if is_open else ~_OPEN)
        .order_by(candidate.c.candidate_id.desc())
        .limit(1)
        .with_for_update()
    ).one_or_none()
    return None if row is None else _candidate(row)


# -- writing


_ADD: Final = Prepared(
    sql(
        f"INSERT INTO candidate ({', '.join(_UNNUMBERED)}) VALUES (:{', :'.join(_UNNUMBERED)}) "  # noqa: S608
        "ON CONFLICT (principal, context_host, candidate_key) WHERE status != 'disproven' "
        "DO NOTHING RETURNING candidate_id"
    )
)


def save(conn: Connection, changed: Candidate) -> None:
    conn.execute(update(candidate).where(candidate.c.candidate_id == changed.candidate_id).values(**_values(changed)))


def put(conn: Connection, wish: Raise, source: PageEvent | None, at_ms: int) -> CandidateChange:
    """Raise a candidate, or add to the open one that says the same; of several writers at once one creates it."""
    fresh = raised(wish, source, at_ms)
    while True:
        if (found := _newest(conn, fresh, is_open=True)) is not None:
            again = repeated(found, wish, source, at_ms)
            save(conn, again)
            return CandidateChange(found, again)
        if not fresh.is_open and (gone := _newest(conn, fresh, is_open=False)) is not None:
            # Saying once more that it does not hold is no new claim.
            return CandidateChange(gone, gone)
        added = _ADD.run(conn, _values(fresh)).fetchone()
        if added is not None:
            return CandidateChange(None, replace(fresh, candidate_id=added[0]))


# -- curated entries


_CURATED: Final = tuple(curated_entry.c.keys())[1:]
_PROMOTE: Final = Prepared(
    sql(
        f"INSERT INTO curated_entry ({', '.join(_CURATED)}) VALUES (:{', :'.join(_CURATED)}) "  # noqa: S608
        "ON CONFLICT (dedupe_key) DO UPDATE SET merge_count = curated_entry.merge_count + 1, "
        "last_promoted_at_ms = excluded.last_promoted_at_ms, candidate_id = excluded.candidate_id, "
        "confidence = excluded.confidence, evidence_score = excluded.evidence_score RETURNING merge_count"
    )
)


@dataclass(frozen=True, slots=True)
class Curated:
    """A curated entry that was written: a new one, or one that the same claim was added to."""

    component: str
    is_new: bool


def curate(conn: Connection, promoted: Iterable[tuple[Candidate, float]], at_ms: int) -> list[Curated]:
    """Write promoted candidates, each claim of a host once; everything that was written."""
    written: list[Curated] = []
    entries = [(curated_key(one.place.host, one.component, one.claim), one, score) for one, score in promoted]
    for key, one, score in sorted(entries, key=lambda entry: entry[0]):
        cursor = _PROMOTE.run(
            conn,
            {
                "dedupe_key": key,
                "stable_id": one.stable_id,
                "context_host": one.place.host,
                "component": one.component,
                "claim": one.claim,
                "principal": one.place.principal,
                "candidate_id": one.candidate_id,
                "confidence": one.confidence,
                "evidence_score": score,
                "merge_count": 0,
                "first_promoted_at_ms": at_ms,
                "last_promoted_at_ms": at_ms,
            },
        )
        written.extend(Curated(one.component, is_new=row[0] == 0) for row in cursor.fetchall())
    return written
