"""A quick look at the ends of the youngest chains: what an audit of everything would find there, at a fixed price."""

from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy.exc import DatabaseError

from nova_mcp.evidence.rules import body_hash, genesis_hash, link_hash
from nova_mcp.evidence.store import ServerRow, has_sound_head, ledger_body, ledger_link, ledger_server

CHAINS: Final = 8
LINKS: Final = 16


def tail_broken(conn: Connection) -> bool:
    """Whether one of the last links of the servers seen last does not fit; older breaks are an audit's to find."""
    rows = conn.execute(select(ledger_server).order_by(ledger_server.c.last_seen_ms.desc()).limit(CHAINS)).all()
    try:
        return any(_broken(conn, ServerRow(**row._asdict())) for row in rows)
    except (TypeError, ValueError, DatabaseError):
        # A column that holds what it cannot is a break by itself.
        return True


def _broken(conn: Connection, server: ServerRow) -> bool:
    if not has_sound_head(server):
        return True
    link, body = ledger_link.c, ledger_body.c
    rows = conn.execute(
        select(link.server_seq, link.body_hash, link.hash, link.erased_at_ms, body.body)
        .outerjoin_from(
            ledger_link,
            ledger_body,
            (body.server_id == link.server_id) & (body.server_seq == link.server_seq),
        )
        .where(link.server_id == server.server_id, link.server_seq >= server.head_seq - LINKS)
        .order_by(link.server_seq)
        .limit(LINKS + 2)
    ).all()
    previous, expected = genesis_hash(server.server_id), 1
    if server.head_seq > LINKS:
        if not rows or rows[0].server_seq != server.head_seq - LINKS:
            return True
        previous, expected = rows[0].hash, rows[0].server_seq + 1
        rows = rows[1:]
    for row in rows:
        fits = row.server_seq == expected and link_hash(previous, expected, row.body_hash) == row.hash
        gone = row.body is None
        if not fits or gone != (row.erased_at_ms is not None) or (not gone and body_hash(row.body) != row.body_hash):
            return True
        previous, expected = row.hash, expected + 1
    return expected != server.head_seq + 1 or previous != server.head_hash
