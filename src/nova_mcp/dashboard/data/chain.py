"""Calls by their place in a server's chain, and whether a record fits into it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from nova_mcp.evidence.model import Link, ServerId
from nova_mcp.evidence.rules import body_hash, canonical_body, genesis_hash, link_hash
from nova_mcp.evidence.store import StoredCall, ledger_body, ledger_link, readable_record

Columns = ReadOnlyColumnCollection[str, Any]
ChainVerdict = Literal["fits", "broken", "erased"]


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a record stands in its server's chain, whether it fits there, and which calls stand beside it."""

    server_id: str
    server_seq: int
    body_hash: str
    hash: str
    verdict: ChainVerdict
    words: str
    previous: str | None
    following: str | None


def in_chain(conn: Connection, server_id: str, seqs: Collection[int]) -> list[StoredCall]:
    """The calls with these numbers, in their order; erased ones have no body to show and are left out.

    Asked server by server, because SQLite makes no search by key of pairs, and table by table, so that nothing can be
    joined in another order.
    """
    if not seqs:
        return []
    body, link = ledger_body.c, ledger_link.c
    bodies = conn.execute(select(body.server_seq, body.body).where(body.server_id == server_id, _among(body, seqs)))
    found = {row.server_seq: readable_record(row.body) for row in bodies}
    links = conn.execute(
        select(link.server_id, link.server_seq, link.call_id, link.body_hash, link.hash, link.erased_at_ms)
        .where(link.server_id == server_id, _among(link, seqs))
        .order_by(link.server_seq)
    )
    return [
        StoredCall(
            Link(ServerId(row.server_id), row.server_seq, row.call_id, row.body_hash, row.hash),
            found[row.server_seq],
            row.erased_at_ms,
        )
        for row in links
        if row.server_seq in found
    ]


def _among(columns: Columns, seqs: Collection[int]) -> ColumnElement[bool]:
    """These numbers and no others. The bounds look idle: of a server that it has no statistics of yet, PostgreSQL
    expects so few rows that it would walk the whole chain for a list alone."""
    number = columns.server_seq
    return and_(number.between(min(seqs), max(seqs)), number.in_(seqs))


def chain_of(conn: Connection, call: StoredCall) -> Chain:
    """Recomputed on the spot: the body's hash, and the link from the record before."""
    link = call.link
    beside = {
        row.server_seq: (row.call_id, row.hash)
        for row in conn.execute(
            select(ledger_link.c.server_seq, ledger_link.c.call_id, ledger_link.c.hash).where(
                ledger_link.c.server_id == link.server_id,
                ledger_link.c.server_seq.between(link.server_seq - 1, link.server_seq + 1),
            )
        )
    }
    previous, following = beside.get(link.server_seq - 1), beside.get(link.server_seq + 1)
    before = genesis_hash(link.server_id) if link.server_seq == 1 else None if previous is None else previous[1]
    verdict, words = _fits(call, before)
    return Chain(
        server_id=link.server_id,
        server_seq=link.server_seq,
        body_hash=link.body_hash.hex(),
        hash=link.hash.hex(),
        verdict=verdict,
        words=words,
        previous=None if previous is None else previous[0],
        following=None if following is None else following[0],
    )


def _fits(call: StoredCall, before: bytes | None) -> tuple[ChainVerdict, str]:
    link = call.link
    if before is None:
        return "broken", "The record before this one is missing."
    if link_hash(before, link.server_seq, link.body_hash) != link.hash:
        return "broken", "The link to the record before does not fit."
    if call.lost:
        return "broken", "The body is gone without having been erased, or something else stands in its place."
    if call.record is None:
        return (
            "erased",
            "The body was erased; its hash still fits into the chain. `nova ledger verify` looks for the record of it.",
        )
    if call.erased_at_ms is not None:
        return "broken", "The record is marked as erased, but a body is there."
    if body_hash(canonical_body(call.record)) != link.body_hash:
        return "broken", "The body is not the one that was recorded."
    return "fits", "The body's hash and the link to the record before it fit."
