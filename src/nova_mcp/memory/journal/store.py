"""Remembers what calls showed: tool events, observations, activity sessions, and when something was last counted."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    Table,
    Text,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy import text as sql

from nova_mcp.memory.journal.evidence import Observation, Occasion, PageEvent, Seen, ToolEvent
from nova_mcp.memory.journal.observations import cluster_key_of, payload_text
from nova_mcp.memory.journal.sessions import SESSION_GAP_MS, session_id_for
from nova_mcp.memory.journal.throttle import Held, judge, throttle_key
from nova_mcp.storage.prepared import Prepared
from nova_mcp.storage.schema import metadata

Serial = BigInteger().with_variant(Integer, "sqlite")

tool_event = Table(
    "tool_event",
    metadata,
    Column("event_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("owner_agent_id", Text, nullable=False),
    Column("task_id", Text),
    Column("target_id", Text),
    Column("tool_name", Text, nullable=False),
    Column("success", Integer, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("error", Text),
    Column("context_host", Text),
    Column("arguments", Text, nullable=False),
    Column("activity_session_id", Text),
    Column("event_key", Text),
    Column("verdict", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Index(None, "created_at_ms"),
    sqlite_with_rowid=False,
)
# Only the calls of a work context that were carried out on a page can be the source of a candidate.
Index(
    "ix_tool_event_source",
    tool_event.c.task_id,
    tool_event.c.context_host,
    tool_event.c.created_at_ms,
    sqlite_where=tool_event.c.task_id.is_not(None) & tool_event.c.event_key.is_not(None),
    postgresql_where=tool_event.c.task_id.is_not(None) & tool_event.c.event_key.is_not(None),
)

observation = Table(
    "observation",
    metadata,
    Column("observation_id", Serial, primary_key=True),
    Column("owner_agent_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("task_id", Text),
    Column("target_id", Text, nullable=False),
    Column("activity_session_id", Text, nullable=False),
    Column("context_host", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("outcome", Integer, nullable=False),
    Column("severity", Integer, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("target_stable_id", Text),
    Column("candidate_key", Text),
    Column("fingerprint_hash", Text),
    Column("selector_norm", Text),
    Column("payload", Text, nullable=False),
    Column("throttle_key", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("server_id", Text, nullable=False),
    Column("server_seq", BigInteger, nullable=False),
    Column("source_scope", Text),
    Column("created_at_ms", BigInteger, nullable=False),
    # What it has in common with others, by which they are counted together.
    Column("cluster_key", Text),
    Index(None, "created_at_ms"),
    Index(None, "context_host", "created_at_ms"),
    Index(None, "context_host", "cluster_key", "observation_id"),
)

activity_session = Table(
    "activity_session",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("context_host", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

observation_throttle = Table(
    "observation_throttle",
    metadata,
    Column("throttle_key", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("observation_id", Serial, nullable=False),
    Column("outcome", Integer, nullable=False),
    Index(None, "at_ms"),
    sqlite_with_rowid=False,
)


# -- tool events

_ADD_EVENT: Final = Prepared(insert(tool_event), tuple(tool_event.c.keys()))


def add_tool_event(conn: Connection, event: ToolEvent, session_id: str | None) -> None:
    _ADD_EVENT.run(
        conn,
        {
            "event_id": event.event_id,
            "principal": event.principal,
            "owner_agent_id": event.owner_agent_id,
            "task_id": event.task_id,
            "target_id": event.target_id,
            "tool_name": event.tool_name,
            "success": int(event.success),
            "duration_ms": event.duration_ms,
            "error": event.error,
            "context_host": event.context_host,
            "arguments": event.arguments,
            "activity_session_id": session_id,
            "event_key": event.event_key,
            "verdict": event.verdict,
            "created_at_ms": event.created_at_ms,
        },
    )


def newest_page_event(conn: Connection, task_id: str, host: str, since_ms: int) -> PageEvent | None:
    """The last call of a work context that was carried out on that host, unless it is too long ago."""
    row = conn.execute(
        select(tool_event)
        .where(tool_event.c.task_id == task_id, tool_event.c.context_host == host)
        .where(tool_event.c.event_key.is_not(None), tool_event.c.created_at_ms >= since_ms)
        .order_by(tool_event.c.created_at_ms.desc(), tool_event.c.event_id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return PageEvent(row.event_id, row.event_key, row.verdict, row.activity_session_id or "", row.created_at_ms)


# -- activity sessions


# Both databases read the sentences below the same way.
_CONTINUE: Final = Prepared(
    sql(
        "INSERT INTO activity_session (principal, context_host, session_id, last_at_ms) "
        "VALUES (:principal, :context_host, :session_id, :last_at_ms) ON CONFLICT (principal, context_host) "
        "DO UPDATE SET session_id = CASE WHEN excluded.last_at_ms - activity_session.last_at_ms > :gap_ms "
        "THEN excluded.session_id ELSE activity_session.session_id END, "
        "last_at_ms = CASE WHEN excluded.last_at_ms > activity_session.last_at_ms "
        "THEN excluded.last_at_ms ELSE activity_session.last_at_ms END RETURNING session_id"
    )
)


def session_of(conn: Connection, event: ToolEvent, host: str) -> str:
    """The session a call belongs to; one after a long silence opens the next. Racing servers agree on one."""
    cursor = _CONTINUE.run(
        conn,
        {
            "principal": event.principal,
            "context_host": host,
            "session_id": session_id_for(event.event_id),
            "last_at_ms": event.created_at_ms,
            "gap_ms": SESSION_GAP_MS,
        },
    )
    return str(cursor.fetchone()[0])


# -- observations

_LAST: Final = Prepared(
    select(observation_throttle.c.at_ms, observation_throttle.c.observation_id, observation_throttle.c.outcome)
    .where(observation_throttle.c.throttle_key == bindparam("key"))
    .with_for_update()
)
_OBSERVED: Final = tuple(name for name in observation.c.keys() if name != "observation_id")  # noqa: SIM118
_ADD: Final = Prepared(insert(observation).returning(observation.c.observation_id), _OBSERVED)


_TAKE: Final = Prepared(
    sql(
        "INSERT INTO observation_throttle (throttle_key, at_ms, observation_id, outcome) "
        "VALUES (:throttle_key, :at_ms, 0, :outcome) ON CONFLICT (throttle_key) DO NOTHING RETURNING throttle_key"
    )
)
_HOLD: Final = Prepared(
    update(observation_throttle)
    .where(observation_throttle.c.throttle_key == bindparam("key"))
    .values(at_ms=bindparam("at"), observation_id=bindparam("number"), outcome=bindparam("direction"))
)
_SIGHTED_BY: Final = Prepared(select(observation.c.call_id).where(observation.c.observation_id == bindparam("number")))
_UPGRADE: Final = Prepared(
    update(observation)
    .where(observation.c.observation_id == bindparam("number"))
    .values(
        outcome=bindparam("direction"),
        payload=bindparam("facts"),
        call_id=bindparam("call"),
        server_id=bindparam("server"),
        server_seq=bindparam("seq"),
    )
)


_PUT_HELD: Final = Prepared(
    sql(
        "INSERT INTO observation_throttle (throttle_key, at_ms, observation_id, outcome) "
        "VALUES (:key, :at, :number, :outcome) ON CONFLICT (throttle_key) "
        "DO UPDATE SET at_ms = excluded.at_ms, observation_id = excluded.observation_id, outcome = excluded.outcome"
    )
)


def hold_key(conn: Connection, key: str, held: Held) -> None:
    """Let a key count as taken: what was observed without an entry goes by the entry's name from now on."""
    _PUT_HELD.run(conn, {"key": key, "at": held.at_ms, "number": held.observation_id, "outcome": held.outcome})


def observe(conn: Connection, seen: Observation, occasion: Occasion) -> Seen | None:
    """Write an observation unless the same was counted a moment ago; a success replaces the sighting it follows.

    The key's row is taken first, so that of two servers only one counts.
    """
    key = throttle_key(seen, occasion.host, occasion.target_id, occasion.event.tool_name)
    at_ms = occasion.event.created_at_ms
    held = _held(conn, key, at_ms, seen)
    verdict = judge(held, seen, at_ms)
    if held is None or verdict == "count":
        number = _ADD.run(conn, _row(seen, occasion, key)).fetchone()[0]
        _HOLD.run(conn, {"key": key, "at": at_ms, "number": number, "direction": seen.outcome})
        return Seen(number, seen, occasion)
    if verdict == "drop":
        return None
    replaced = _upgrade(conn, held.observation_id, seen, occasion)
    _HOLD.run(conn, {"key": key, "at": held.at_ms, "number": held.observation_id, "direction": seen.outcome})
    return Seen(held.observation_id, seen, occasion, replaced)


def _held(conn: Connection, key: str, at_ms: int, seen: Observation) -> Held | None:
    """What a key counted last; None when it is taken now for the first time."""
    while _TAKE.run(conn, {"throttle_key": key, "at_ms": at_ms, "outcome": seen.outcome}).fetchone() is None:
        # Old keys are forgotten now and then, so the row that was in the way may be gone again.
        if (row := _LAST.run(conn, {"key": key}).fetchone()) is not None:
            return Held(*row)
    return None


def _upgrade(conn: Connection, number: int, seen: Observation, occasion: Occasion) -> str:
    """Put a proof in the place of a sighting; the call that the sighting came from."""
    replaced = str(_SIGHTED_BY.run(conn, {"number": number}).fetchone()[0])
    values = {
        "number": number,
        "direction": seen.outcome,
        "facts": payload_text(seen),
        "call": occasion.event.event_id,
        "server": occasion.link.server_id,
        "seq": occasion.link.server_seq,
    }
    _UPGRADE.run(conn, values)
    return replaced


def _row(seen: Observation, occasion: Occasion, key: str) -> dict[str, Any]:
    event = occasion.event
    return {
        "owner_agent_id": event.owner_agent_id,
        "principal": event.principal,
        "task_id": event.task_id,
        "target_id": occasion.target_id,
        "activity_session_id": occasion.session_id,
        "context_host": occasion.host,
        "kind": seen.kind,
        "outcome": seen.outcome,
        "severity": seen.severity,
        "tool_name": event.tool_name,
        "target_stable_id": seen.target_stable_id,
        "candidate_key": seen.candidate_key,
        "fingerprint_hash": seen.fingerprint_hash,
        "selector_norm": seen.selector_norm,
        "payload": payload_text(seen),
        "throttle_key": key,
        "call_id": event.event_id,
        "server_id": occasion.link.server_id,
        "server_seq": occasion.link.server_seq,
        "source_scope": seen.source_scope,
        "created_at_ms": event.created_at_ms,
        "cluster_key": cluster_key_of(seen, event.tool_name),
    }
