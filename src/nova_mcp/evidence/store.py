"""The ledger's tables, and everything that appends to them or reads single calls back."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Row,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    null,
    select,
    update,
)

from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Link, ServerId
from nova_mcp.evidence.rules import (
    IndexColumns,
    body_hash,
    canonical_body,
    genesis_hash,
    index_columns,
    link_hash,
    record_from_body,
)
from nova_mcp.storage.prepared import Prepared
from nova_mcp.storage.schema import metadata

ledger_server = Table(
    "ledger_server",
    metadata,
    Column("server_id", Text, primary_key=True),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("process_started_ms", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("last_seen_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("end_reason", Text),
    Column("head_seq", BigInteger, nullable=False),
    Column("head_hash", LargeBinary, nullable=False),
)

ledger_link = Table(
    "ledger_link",
    metadata,
    Column("server_id", Text, ForeignKey("ledger_server.server_id"), primary_key=True),
    Column("server_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("call_id", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("erased_at_ms", BigInteger),
    Index(None, "call_id", unique=True),
    sqlite_with_rowid=False,
)

ledger_body = Table(
    "ledger_body",
    metadata,
    Column("server_id", Text, primary_key=True),
    Column("server_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("target_id", Text),
    Column("outcome_kind", Text, nullable=False),
    Column("reason_code", Text),
    Column("host", Text),
    Column("task_id", Text),
    Column("instance_id", Text),
    Column("closes", Text),
    Column("body", LargeBinary, nullable=False),
    ForeignKeyConstraint(["server_id", "server_seq"], ["ledger_link.server_id", "ledger_link.server_seq"]),
    Index(None, "at_ms"),
)
# What somebody is known to have done with a tool; only calls that worked can prove it.
Index(
    "ix_ledger_body_done",
    ledger_body.c.principal,
    ledger_body.c.agent_id,
    ledger_body.c.tool_name,
    ledger_body.c.at_ms,
    sqlite_where=ledger_body.c.outcome_kind == "ok",
    postgresql_where=ledger_body.c.outcome_kind == "ok",
)

ledger_open_intent = Table(
    "ledger_open_intent",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("server_id", Text, nullable=False),
    Column("server_seq", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    ForeignKeyConstraint(["server_id", "server_seq"], ["ledger_link.server_id", "ledger_link.server_seq"]),
    Index(None, "server_id"),
)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Who a server is, precisely enough to tell later whether its process still lives."""

    server_id: ServerId
    started_at_ms: int
    pid: int
    process_started_ms: int
    host: str
    version: str


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A registered server and the end of its chain."""

    server_id: ServerId
    started_at_ms: int
    pid: int
    process_started_ms: int
    host: str
    version: str
    last_seen_ms: int
    ended_at_ms: int | None
    end_reason: str | None
    head_seq: int
    head_hash: bytes


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A record with its place in the chain; the record is None when its body was erased.

    Without being erased, it is None when somebody took the body away, or put something else in its place.
    """

    link: Link
    record: CallRecord | None
    erased_at_ms: int | None = None

    @property
    def lost(self) -> bool:
        return self.record is None and self.erased_at_ms is None


# Built once: a statement made per call would cost more than running it.
_HEAD = Prepared(
    select(ledger_server.c.head_seq, ledger_server.c.head_hash)
    .where(ledger_server.c.server_id == bindparam("server"))
    .with_for_update()
)
_ADVANCE = Prepared(
    update(ledger_server)
    .where(ledger_server.c.server_id == bindparam("server"))
    .values(
        head_seq=bindparam("seq"),
        head_hash=bindparam("hash"),
        last_seen_ms=bindparam("seen"),
        ended_at_ms=null(),
        end_reason=null(),
    )
)
_ADD_LINK = Prepared(insert(ledger_link), ("server_id", "server_seq", "call_id", "body_hash", "hash"))
_ADD_BODY = Prepared(insert(ledger_body), tuple(ledger_body.c.keys()))
_CLOSE_INTENT = delete(ledger_open_intent).where(ledger_open_intent.c.call_id == bindparam("intent"))


def register_server(conn: Connection, info: ServerInfo) -> None:
    """Start an empty chain."""
    conn.execute(
        insert(ledger_server),
        {
            **asdict(info),
            "last_seen_ms": info.started_at_ms,
            "head_seq": 0,
            "head_hash": genesis_hash(info.server_id),
        },
    )


def ensure_registered(conn: Connection, info: ServerInfo) -> None:
    """Start a chain unless it has begun already."""
    known = select(ledger_server.c.server_id).where(ledger_server.c.server_id == info.server_id)
    if conn.execute(known).first() is None:
        register_server(conn, info)


def end_server(conn: Connection, server_id: ServerId, now_ms: int, reason: str) -> None:
    conn.execute(
        update(ledger_server)
        .where(ledger_server.c.server_id == server_id, ledger_server.c.ended_at_ms.is_(None))
        .values(ended_at_ms=now_ms, end_reason=reason)
    )


def touch_server(conn: Connection, server_id: ServerId, now_ms: int) -> None:
    """A sign of life from a server that has nothing to record."""
    conn.execute(update(ledger_server).where(ledger_server.c.server_id == server_id).values(last_seen_ms=now_ms))


def hold_chain(conn: Connection, server_id: ServerId) -> None:
    """Lock the end of a chain ahead of the record that is going to be added."""
    _HEAD.run(conn, {"server": server_id}).fetchone()


def append_call(conn: Connection, record: CallRecord) -> Link:
    """Add one record to its server's chain; call ids are unique, so an intent and its outcome have one each.

    The head row is locked until the commit: within a chain, sequence order is commit order.
    """
    server_id = record.caller.server_id
    head = _HEAD.run(conn, {"server": server_id}).fetchone()
    if head is None:
        raise LookupError(f"server {server_id} is not registered")
    body = canonical_body(record)
    digest = body_hash(body)
    seq, previous = head[0] + 1, head[1]
    link = Link(server_id, seq, record.call_id, digest, link_hash(previous, seq, digest))
    _ADD_LINK.run(
        conn,
        {
            "server_id": server_id,
            "server_seq": seq,
            "call_id": record.call_id,
            "body_hash": digest,
            "hash": link.hash,
        },
    )
    _ADD_BODY.run(conn, _body_row(link, index_columns(record), body))
    seen = record.started_at_ms + record.duration_ms
    _ADVANCE.run(conn, {"server": server_id, "seq": seq, "hash": link.hash, "seen": seen})
    if record.kind == "intent":
        conn.execute(
            insert(ledger_open_intent),
            {"call_id": record.call_id, "server_id": server_id, "server_seq": seq, "at_ms": record.started_at_ms},
        )
    if record.closes is not None:
        conn.execute(_CLOSE_INTENT, {"intent": record.closes})
    return link


def _body_row(link: Link, columns: IndexColumns, body: bytes) -> dict[str, str | int | bytes | None]:
    return {
        "server_id": link.server_id,
        "server_seq": link.server_seq,
        "at_ms": columns.at_ms,
        "kind": columns.kind,
        "principal": columns.principal,
        "agent_id": columns.agent_id,
        "tool_name": columns.tool_name,
        "target_id": columns.target_id,
        "outcome_kind": columns.outcome_kind,
        "reason_code": columns.reason_code,
        "host": columns.host,
        "task_id": columns.task_id,
        "instance_id": columns.instance_id,
        "closes": columns.closes,
        "body": body,
    }


# -- servers and recovery --------------------------------------------------------------------------------------------


def servers(conn: Connection) -> list[ServerRow]:
    return [_server_row(row) for row in conn.execute(select(ledger_server).order_by(ledger_server.c.server_id))]


def heads(conn: Connection) -> list[ServerRow]:
    """The ends of all chains that hold anything; worth keeping outside the store."""
    return [row for row in servers(conn) if has_sound_head(row) and row.head_seq > 0]


def has_sound_head(server: ServerRow) -> bool:
    """SQLite keeps whatever somebody writes into a column; a head that is none must not stop those who look at it."""
    numbers: tuple[object, ...] = (server.head_seq, server.last_seen_ms)
    blob: object = server.head_hash
    return all(isinstance(number, int) for number in numbers) and isinstance(blob, bytes)


def open_intents(conn: Connection) -> list[str]:
    return list(conn.execute(select(ledger_open_intent.c.call_id).order_by(ledger_open_intent.c.call_id)).scalars())


def recover(
    conn: Connection,
    now_ms: int,
    server_id: ServerId,
    alive: Callable[[ServerRow], bool],
    new_call_id: Callable[[], str],
) -> list[StoredCall]:
    """End servers that are gone and close what they left open, on the chain of the server that recovers.

    The open row is taken away by the same transaction that appends the closing record. Of several servers that try,
    only the one whose delete found the row appends.
    """
    unfinished = select(ledger_open_intent.c.server_id).distinct()
    candidates = conn.execute(
        select(ledger_server)
        .where(ledger_server.c.ended_at_ms.is_(None) | ledger_server.c.server_id.in_(unfinished))
        .where(ledger_server.c.server_id != server_id)
        .order_by(ledger_server.c.server_id)
    ).all()
    closed: list[StoredCall] = []
    for server in (_server_row(row) for row in candidates):
        # A server that has ended is gone even if its process lives on.
        if server.ended_at_ms is None and alive(server):
            continue
        end_server(conn, server.server_id, now_ms, "gone")
        left = conn.execute(
            select(ledger_open_intent)
            .where(ledger_open_intent.c.server_id == server.server_id)
            .order_by(ledger_open_intent.c.server_seq)
        ).all()
        for intent in left:
            if conn.execute(_CLOSE_INTENT, {"intent": intent.call_id}).rowcount == 1:
                known = get_call(conn, intent.call_id)
                record = _recovery_record(known, intent.call_id, Caller("", "", server_id), (new_call_id(), now_ms))
                closed.append(StoredCall(append_call(conn, record), record))
    return closed


def _recovery_record(intent: StoredCall | None, closes: str, caller: Caller, at: tuple[str, int]) -> CallRecord:
    call_id, now_ms = at
    blank = CallRecord(
        call_id=call_id,
        caller=caller,
        tool_name="",
        effect="commit",
        started_at_ms=now_ms,
        duration_ms=0,
        outcome=CallOutcome("crashed", reason_code="server_restart", verification="indeterminate"),
        kind="recovery",
        closes=closes,
    )
    if intent is None or intent.record is None:
        return blank
    known = intent.record
    return replace(
        blank,
        caller=replace(known.caller, server_id=caller.server_id),
        tool_name=known.tool_name,
        effect=known.effect,
        via=known.via,
        task_id=known.task_id,
        instance_id=known.instance_id,
        before=known.before,
    )


def _server_row(row: Row[Any]) -> ServerRow:
    return ServerRow(**row._asdict())


# -- single calls ----------------------------------------------------------------------------------------------------

_CALL = select(ledger_link, ledger_body.c.body).outerjoin_from(
    ledger_link,
    ledger_body,
    (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq),
)


def get_call(conn: Connection, call_id: str) -> StoredCall | None:
    row = conn.execute(_CALL.where(ledger_link.c.call_id == call_id)).one_or_none()
    return None if row is None else stored_call(row)


def stored_call(row: Row[Any]) -> StoredCall:
    data = row._mapping
    link = Link(ServerId(data["server_id"]), data["server_seq"], data["call_id"], data["body_hash"], data["hash"])
    return StoredCall(link, readable_record(data["body"]), data["erased_at_ms"])


def readable_record(body: bytes | None) -> CallRecord | None:
    """One body that somebody has tampered with must not hide all others; `nova ledger verify` says what it is."""
    try:
        return None if body is None else record_from_body(body)
    except ValueError:
        return None
