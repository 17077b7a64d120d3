"""Walks every chain of the ledger: names the first thing in each that does not fit, and every body that is missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, func, select
from sqlalchemy.exc import DatabaseError

from nova_mcp.evidence.erasure import Coverage, erased_ranges, is_from_before
from nova_mcp.evidence.model import CallRecord, ServerId
from nova_mcp.evidence.rules import body_hash, genesis_hash, index_columns, link_hash, record_from_body
from nova_mcp.evidence.store import (
    ServerRow,
    has_sound_head,
    ledger_body,
    ledger_link,
    ledger_open_intent,
    ledger_server,
    servers,
)

_BATCH = 500

Fault = Literal[
    "missing_link",
    "link_hash",
    "body_hash",
    "missing_body",
    "body_not_erased",
    "second_start_of_erasures",
    "body_unreadable",
    "unreadable",
    "wrong_call_id",
    "wrong_server",
    "index_columns",
    "truncated",
    "head",
    "kept_head",
    "unknown_server",
    "body_without_link",
    "open_intent",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One break: where it is and what does not fit."""

    server_id: str
    server_seq: int | None
    call_id: str | None
    fault: Fault
    detail: str


@dataclass(frozen=True, slots=True)
class Head:
    """A chain's end as it was exported at some time."""

    server_seq: int
    hash: bytes


@dataclass(slots=True)
class Erased:
    """How many bodies are gone with a record of it, and how many of them before erasures were recorded."""

    recorded: int = 0
    before_records: int = 0


@dataclass(slots=True)
class _Erasures:
    """What sound erasure records of sound chains say, as far as they were walked."""

    coverage: Coverage = field(default_factory=Coverage)
    starts: list[tuple[str, int, str]] = field(default_factory=list)

    def take(self, record: CallRecord, server_seq: int) -> None:
        self.coverage.add(record)
        if is_from_before(record):
            self.starts.append((record.caller.server_id, server_seq, record.call_id))


_CHAIN: Select[Any] = (
    select(
        *ledger_link.c,
        ledger_body.c.server_seq.label("has_body"),
        *(column for column in ledger_body.c if column.name not in ("server_id", "server_seq")),
    )
    .outerjoin_from(
        ledger_link,
        ledger_body,
        (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq),
    )
    .order_by(ledger_link.c.server_seq)
)


_BODILESS: Select[Any] = (
    select(ledger_link.c.server_id, ledger_link.c.server_seq, ledger_link.c.call_id)
    .outerjoin_from(
        ledger_link,
        ledger_body,
        (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq),
    )
    .join(ledger_server, ledger_server.c.server_id == ledger_link.c.server_id)
    .where(ledger_body.c.server_seq.is_(None), ledger_link.c.server_seq <= ledger_server.c.head_seq)
    .order_by(ledger_link.c.server_id, ledger_link.c.server_seq)
)


def verify(
    conn: Connection, kept: Mapping[ServerId, Head] | None = None, erased: Erased | None = None
) -> Iterator[Finding]:
    """At most one break per chain (the first), every missing body that no erasure record covers, then strays.

    `kept` are heads exported earlier: only they can show that a whole tail was removed together with its head. Bodies
    that are rightly gone are counted in `erased`.
    """
    exported, erasures = dict(kept or {}), _Erasures()
    for server in servers(conn):
        finding = _walk(conn, server, exported.pop(server.server_id, None), erasures)
        if finding is not None:
            yield finding
    for server_id, head in exported.items():
        yield Finding(server_id, head.server_seq, None, "kept_head", "the chain of this exported head is gone")
    yield from _missing(conn, erasures, erased or Erased())
    yield from _strays(conn)


def _missing(conn: Connection, erasures: _Erasures, erased: Erased) -> Iterator[Finding]:
    coverage = erasures.coverage
    coverage.merge()
    for row in conn.execute(_BODILESS):
        if coverage.covers_from_before(row.server_id, row.server_seq):
            erased.before_records += 1
        if coverage.covers(row.server_id, row.server_seq):
            erased.recorded += 1
        else:
            yield _finding(row, "missing_body", "the body is gone and no erasure record covers it")
    for server_id, (first, last) in coverage.every():
        body = ledger_body.c
        there = select(body.server_seq).where(body.server_id == server_id, body.server_seq.between(first, last))
        for seq in conn.execute(there.order_by(body.server_seq)).scalars():
            yield Finding(server_id, seq, None, "body_not_erased", "an erasure record names it, and the body is there")
    for server_id, seq, call_id in erasures.starts[1:]:
        detail = "a second record of what was erased before erasures were recorded"
        yield Finding(server_id, seq, call_id, "second_start_of_erasures", detail)


def _walk(conn: Connection, server: ServerRow, kept: Head | None, erasures: _Erasures) -> Finding | None:
    if not has_sound_head(server):
        return Finding(server.server_id, None, None, "unreadable", "the head is not made of numbers and a hash")
    last, batch = Head(0, genesis_hash(server.server_id)), _BATCH
    while True:
        try:
            rows = _links(conn, server, last.server_seq, batch)
        except (TypeError, ValueError, DatabaseError) as error:
            # Some row of the batch holds what its column cannot; row by row shows which.
            if batch == 1:
                return Finding(server.server_id, last.server_seq + 1, None, "unreadable", str(error).split("\n")[0])
            batch = 1
            continue
        if not rows:
            return _check_end(conn, server, kept, last)
        for row in rows:
            finding = _check(row, last.server_seq + 1, last.hash, erasures)
            if finding is None and kept is not None and kept.server_seq == row.server_seq and kept.hash != row.hash:
                finding = _finding(row, "kept_head", "the link differs from the head exported here")
            if finding is not None:
                return finding
            last = Head(row.server_seq, row.hash)


def _links(conn: Connection, server: ServerRow, after: int, limit: int) -> Sequence[Row[Any]]:
    return conn.execute(
        _CHAIN.where(
            ledger_link.c.server_id == server.server_id,
            ledger_link.c.server_seq > after,
            ledger_link.c.server_seq <= server.head_seq,
        ).limit(limit)
    ).all()


def _check(row: Row[Any], expected: int, previous: bytes, erasures: _Erasures) -> Finding | None:
    if row.server_seq != expected:
        return Finding(row.server_id, expected, None, "missing_link", f"the next link is {row.server_seq}")
    blobs = (row.body_hash, row.hash) if row.has_body is None else (row.body_hash, row.hash, row.body)
    if not all(isinstance(blob, bytes) for blob in blobs):
        return _finding(row, "unreadable", "a hash or the body is not made of bytes")
    if len(row.body_hash) != len(previous) or link_hash(previous, expected, row.body_hash) != row.hash:
        return _finding(row, "link_hash", "the link does not follow from its predecessor and its body hash")
    if row.has_body is None:
        # Whether it was rightly erased is known once every chain was walked.
        return None
    if row.erased_at_ms is not None:
        return _finding(row, "body_not_erased", "the link says erased, the body is there")
    if body_hash(row.body) != row.body_hash:
        return _finding(row, "body_hash", "the body is not the one that was hashed")
    return _check_body(row, erasures)


def _check_body(row: Row[Any], erasures: _Erasures) -> Finding | None:
    try:
        record = record_from_body(row.body)
    except ValueError as error:
        return _finding(row, "body_unreadable", str(error))
    if record.call_id != row.call_id:
        return _finding(row, "wrong_call_id", f"the body belongs to call {record.call_id}")
    if record.caller.server_id != row.server_id:
        return _finding(row, "wrong_server", f"the body was written by server {record.caller.server_id}")
    stored = row._mapping
    wrong = [name for name, value in asdict(index_columns(record)).items() if stored[name] != value]
    if wrong:
        return _finding(row, "index_columns", f"differs from the body: {', '.join(wrong)}")
    if record.kind == "erasure":
        try:
            erased_ranges(record)
        except ValueError as error:
            return _finding(row, "body_unreadable", str(error))
        erasures.take(record, row.server_seq)
    return None


def _check_end(conn: Connection, server: ServerRow, kept: Head | None, last: Head) -> Finding | None:
    if last.server_seq < server.head_seq:
        detail = f"the head says {server.head_seq} links, {last.server_seq} are there"
        return Finding(server.server_id, last.server_seq + 1, None, "truncated", detail)
    if last.hash != server.head_hash:
        return Finding(server.server_id, last.server_seq, None, "head", "the head's hash is not that of the last link")
    # One statement, so that an append between two of them cannot look like a fault.
    beyond = conn.execute(
        select(func.min(ledger_link.c.server_seq))
        .join_from(ledger_link, ledger_server, ledger_link.c.server_id == ledger_server.c.server_id)
        .where(
            ledger_link.c.server_id == server.server_id,
            (ledger_link.c.server_seq > ledger_server.c.head_seq) | (ledger_link.c.server_seq < 1),
        )
    ).scalar()
    if beyond is not None:
        return Finding(server.server_id, beyond, None, "head", "there are links outside the head's range")
    if kept is not None and kept.server_seq > server.head_seq:
        detail = f"a head with {kept.server_seq} links was exported, {server.head_seq} are there"
        return Finding(server.server_id, server.head_seq + 1, None, "kept_head", detail)
    return None


def _strays(conn: Connection) -> Iterator[Finding]:
    known = select(ledger_server.c.server_id)
    for row in conn.execute(
        select(ledger_link.c.server_id, func.min(ledger_link.c.server_seq).label("first"))
        .where(ledger_link.c.server_id.not_in(known))
        .group_by(ledger_link.c.server_id)
    ):
        yield Finding(row.server_id, row.first, None, "unknown_server", "links of a server that is not registered")
    same = (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq)
    for row in conn.execute(
        select(ledger_body.c.server_id, ledger_body.c.server_seq)
        .where(~select(ledger_link.c.server_seq).where(same).exists())
        .limit(_BATCH)
    ):
        yield Finding(row.server_id, row.server_seq, None, "body_without_link", "a body that no link names")
    intent = ledger_open_intent.c
    matching = (
        select(ledger_link.c.server_seq)
        .join_from(ledger_link, ledger_body, same)
        .where(
            ledger_link.c.server_id == intent.server_id,
            ledger_link.c.server_seq == intent.server_seq,
            ledger_link.c.call_id == intent.call_id,
            ledger_body.c.kind == "intent",
            ledger_body.c.at_ms == intent.at_ms,
        )
    )
    for row in conn.execute(select(ledger_open_intent).where(~matching.exists())):
        yield Finding(row.server_id, row.server_seq, row.call_id, "open_intent", "an open intent that no link matches")


def _finding(row: Row[Any], fault: Fault, detail: str) -> Finding:
    return Finding(row.server_id, row.server_seq, row.call_id, fault, detail)
