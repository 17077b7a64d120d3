"""Erasures are recorded from here on: one record names every body that was erased before.

It stands in a chain of its own, so that no head of another chain changes. The format of chain and body is version 1,
written out here because a migration must not change with the code.
"""

import hashlib
import json
import os
import time
import uuid

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ERASED = sa.text(
    "SELECT server_id, server_seq FROM ledger_link WHERE erased_at_ms IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM ledger_body WHERE ledger_body.server_id = ledger_link.server_id "
    "AND ledger_body.server_seq = ledger_link.server_seq) ORDER BY server_id, server_seq"
)
_NOWHERE = {"target_id": None, "sandbox_id": None, "url": None, "route_key": None, "page_epoch": None}


def upgrade() -> None:
    conn = op.get_bind()
    links: dict[str, list[list[int]]] = {}
    count = 0
    for server_id, seq in conn.execute(_ERASED):
        ranges = links.setdefault(server_id, [])
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
        count += 1
    if count:
        _record(conn, links, count)


def _record(conn: sa.Connection, links: dict[str, list[list[int]]], count: int) -> None:
    server_id, call_id, now_ms = uuid.uuid4().hex, str(uuid.uuid4()), time.time_ns() // 1_000_000
    body = _body(server_id, call_id, now_ms, links, count)
    digest = hashlib.sha256(body).digest()
    genesis = hashlib.sha256(b"nova-ledger/genesis/1\n" + server_id.encode()).digest()
    link = hashlib.sha256(b"nova-ledger/link/1\n" + genesis + (1).to_bytes(8, "big") + digest).digest()
    place = {"server_id": server_id, "server_seq": 1, "call_id": call_id}
    _insert(
        conn,
        "ledger_server",
        {
            "server_id": server_id,
            "started_at_ms": now_ms,
            "pid": os.getpid(),
            "process_started_ms": 0,
            "host": "migration",
            "version": revision,
            "last_seen_ms": now_ms,
            "ended_at_ms": now_ms,
            "end_reason": "migrated",
            "head_seq": 1,
            "head_hash": link,
        },
    )
    _insert(conn, "ledger_link", {**place, "body_hash": digest, "hash": link})
    _insert(
        conn,
        "ledger_body",
        {
            "server_id": server_id,
            "server_seq": 1,
            "at_ms": now_ms,
            "kind": "erasure",
            "principal": "",
            "agent_id": "",
            "tool_name": "ledger",
            "outcome_kind": "ok",
            "body": body,
        },
    )


def _body(server_id: str, call_id: str, now_ms: int, links: dict[str, list[list[int]]], count: int) -> bytes:
    record = {
        "v": 1,
        "call_id": call_id,
        "kind": "erasure",
        "caller": {"principal": "", "agent_id": "", "server_id": server_id},
        "tool_name": "ledger",
        "effect": "admin",
        "via": None,
        "task_id": None,
        "instance_id": None,
        "started_at_ms": now_ms,
        "duration_ms": 0,
        "before": _NOWHERE,
        "after": _NOWHERE,
        "outcome": {
            "kind": "ok",
            "error_code": None,
            "reason_code": None,
            "gate_id": None,
            "action_dispatched": None,
            "verification": None,
        },
        "touched": {"selector": None, "selector_hash": None, "fingerprint_id": None, "flags": []},
        "arguments": {"by": "an upgrade of the store", "why": {"before_records": count}, "links": links},
        "closes": None,
    }
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _insert(conn: sa.Connection, table: str, row: dict[str, object]) -> None:
    conn.execute(sa.insert(sa.table(table, *(sa.column(name) for name in row))), row)
