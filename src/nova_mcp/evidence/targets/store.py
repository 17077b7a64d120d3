"""Remembers every target the store ever named: counters that never repeat an id, and what became of each tab."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import BigInteger, Column, Connection, Index, Table, Text, insert, select, text, update

from nova_mcp.evidence.store import ledger_server
from nova_mcp.storage.schema import metadata

EndReason = Literal["closed", "server_restart", "browser_exit", "sandbox_deleted"]

id_counter = Table(
    "id_counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

target_journal = Table(
    "target_journal",
    metadata,
    Column("target_id", Text, primary_key=True),
    Column("sandbox_id", Text, nullable=False),
    Column("server_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("url", Text),
    Column("opened_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("end_reason", Text),
    Index(None, "server_id", "ended_at_ms"),
)


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """A tab at the moment it got its id."""

    target_id: str
    sandbox_id: str
    server_id: str
    principal: str
    url: str | None
    opened_at_ms: int


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The last thing known of a target; `ended_at_ms` is None while it lives."""

    target_id: str
    sandbox_id: str
    server_id: str
    url: str | None
    opened_at_ms: int
    ended_at_ms: int | None
    end_reason: EndReason | None


# Both databases read this sentence the same way, and one statement leaves no gap for a second writer.
_NEXT = text(
    "INSERT INTO id_counter (name, value) VALUES (:name, 1) "
    "ON CONFLICT (name) DO UPDATE SET value = id_counter.value + 1 RETURNING value"
)


def next_id(conn: Connection, name: str) -> int:
    """The next number under a name, never given twice in one store."""
    return int(conn.execute(_NEXT, {"name": name}).scalar_one())


def target_opened(conn: Connection, target: OpenedTarget) -> None:
    conn.execute(
        insert(target_journal),
        {
            "target_id": target.target_id,
            "sandbox_id": target.sandbox_id,
            "server_id": target.server_id,
            "principal": target.principal,
            "url": target.url,
            "opened_at_ms": target.opened_at_ms,
        },
    )


# A store that was lost or exchanged counts from the start; what the data folder still knows must not be given again.
_AT_LEAST = text(
    "INSERT INTO id_counter (name, value) VALUES (:name, :value) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE id_counter.value < excluded.value"
)


def target_resumed(conn: Connection, target: OpenedTarget, counter: str, number: int) -> None:
    """A target that outlived its server is open again; its row says so as if it had never ended."""
    conn.execute(_AT_LEAST, {"name": counter, "value": number})
    again = (
        update(target_journal)
        .where(target_journal.c.target_id == target.target_id)
        .values(
            server_id=target.server_id,
            principal=target.principal,
            opened_at_ms=target.opened_at_ms,
            ended_at_ms=None,
            end_reason=None,
        )
    )
    if conn.execute(again).rowcount == 0:
        target_opened(conn, target)


def target_moved(conn: Connection, target_id: str, url: str | None) -> None:
    conn.execute(update(target_journal).where(target_journal.c.target_id == target_id).values(url=url))


def target_ended(conn: Connection, target_id: str, ended_at_ms: int, reason: EndReason) -> None:
    """The first reason stands: a tab that was closed does not end again with its browser."""
    conn.execute(
        update(target_journal)
        .where(target_journal.c.target_id == target_id, target_journal.c.ended_at_ms.is_(None))
        .values(ended_at_ms=ended_at_ms, end_reason=reason)
    )


def targets_of_ended_servers(conn: Connection, now_ms: int) -> int:
    """End what servers left open that are known to be gone; says how many targets that were."""
    gone = select(ledger_server.c.server_id).where(ledger_server.c.ended_at_ms.is_not(None))
    return conn.execute(
        update(target_journal)
        .where(target_journal.c.ended_at_ms.is_(None), target_journal.c.server_id.in_(gone))
        .values(ended_at_ms=now_ms, end_reason="server_restart")
    ).rowcount


def last_seen(conn: Connection, principal: str, target_id: str) -> LastSeen | None:
    """What became of a target; another principal's target is as unknown as one that never was."""
    row = conn.execute(
        select(target_journal).where(target_journal.c.target_id == target_id, target_journal.c.principal == principal)
    ).one_or_none()
    if row is None:
        return None
    return LastSeen(
        target_id=row.target_id,
        sandbox_id=row.sandbox_id,
        server_id=row.server_id,
        url=row.url,
        opened_at_ms=row.opened_at_ms,
        ended_at_ms=row.ended_at_ms,
        end_reason=row.end_reason,
    )
