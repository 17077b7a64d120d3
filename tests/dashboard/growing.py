"""Many ledger rows at once, as a long-running server would have left them; also used by the benchmark."""

from collections.abc import Iterator

from sqlalchemy import Connection, insert

from nova_mcp.journal.counters import bump
from nova_mcp.journal.counting import Tally, bucket_of, hour_of
from nova_mcp.observation.model import Caller, CallOutcome, CallRecord, PageState, ServerId
from nova_mcp.observation.recorder import describe_server
from nova_mcp.observation.rules import body_hash, canonical_body, genesis_hash, index_columns, link_hash
from nova_mcp.observation.store import ledger_body, ledger_link, ledger_server, register_server
from nova_mcp.storage.engine import Database

SERVERS = 4
CHUNK = 20_000
SPAN_MS = 29 * 86_400_000
TOOLS = ("perceive", "click_selector", "type_selector", "navigate", "read_text", "scroll_smart")


def grow(db: Database, rows: int, end_ms: int) -> None:
    """Append rows in bulk, spread over a month and some servers; chains and figures are as they should be."""
    for number in range(SERVERS):
        server = ServerId(f"{number:032x}")
        db.write_sync(register_server, describe_server(server, end_ms - SPAN_MS, "grown"))
        previous = genesis_hash(server)
        count = rows // SERVERS
        for start in range(0, count, CHUNK):
            previous = db.write_sync(
                _append, server, range(start, min(count, start + CHUNK)), (count, end_ms), previous
            )
    db.write_sync(_figures, rows, end_ms)


def _append(conn: Connection, server: ServerId, numbers: range, span: tuple[int, int], previous: bytes) -> bytes:
    links, bodies = [], []
    for number, record in zip(numbers, _records(server, numbers, span), strict=True):
        body = canonical_body(record)
        digest = body_hash(body)
        seq = number + 1
        previous = link_hash(previous, seq, digest)
        place = {"server_id": server, "server_seq": seq}
        links.append({**place, "call_id": record.call_id, "body_hash": digest, "hash": previous})
        columns = index_columns(record)
        bodies.append({**place, **{name: getattr(columns, name) for name in columns.__slots__}, "body": body})
    conn.execute(insert(ledger_link), links)
    conn.execute(insert(ledger_body), bodies)
    head = {"head_seq": numbers.stop, "head_hash": previous, "last_seen_ms": span[1]}
    conn.execute(ledger_server.update().where(ledger_server.c.server_id == server).values(**head))
    return previous


def _records(server: ServerId, numbers: range, span: tuple[int, int]) -> Iterator[CallRecord]:
    count, end_ms = span
    page = PageState("t1", "main", "https://shop.example/cart", "shop.example/cart", 2)
    for number in numbers:
        yield CallRecord(
            call_id=f"{server[-4:]}-{number}",
            caller=Caller("local", f"agent{number % 5}", server),
            tool_name=f"nova.{TOOLS[number % len(TOOLS)]}",
            effect="act",
            started_at_ms=end_ms - (count - number) * SPAN_MS // count,
            duration_ms=number % 900,
            outcome=CallOutcome("ok" if number % 11 else "failed", action_dispatched=True),
            before=page,
            after=page,
        )


def _figures(conn: Connection, rows: int, end_ms: int) -> None:
    """The counters that so many calls would have moved: their number depends on hours, not on calls."""
    last = hour_of(end_ms)
    hours = range(last - 29 * 24, last)
    each = max(1, rows // len(hours))
    tally = Tally(
        {("tool", hour, ""): (each, each - each // 11) for hour in hours},
        {("tool.scrollSmart", hour, bucket_of(40 * step + 1)): each for hour in hours for step in range(6)},
        {("tool", ""): rows},
    )
    bump(conn, "grown", tally)
