"""Many ledger rows at once, spread over a month and some servers, with the figures that so many calls leave."""

from collections.abc import Iterator

from sqlalchemy import Connection, insert, update

from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.rules import canonical_body, index_columns
from nova_mcp.evidence.store import ledger_body, ledger_link, ledger_server, register_server
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import Tally, bucket_of, hour_of
from nova_mcp.storage.engine import Database

SERVERS = 4
CHUNK = 20_000
DAYS = 29
SPAN_MS = DAYS * 86_400_000
TOOLS = ("perceive", "click_selector", "type_selector", "navigate", "read_text", "scroll_smart")


def grow(db: Database, rows: int, end_ms: int) -> None:
    """Append that many rows. Their hashes are made up: pages read them, only an audit would recompute them all."""
    count = rows // SERVERS
    for number in range(SERVERS):
        server = ServerId(f"{number:032x}")
        db.write_sync(register_server, describe_server(server, end_ms - SPAN_MS, "grown"))
        for start in range(0, count, CHUNK):
            db.write_sync(append, server, range(start, min(count, start + CHUNK)), count, end_ms)
    db.write_sync(_figures, rows, end_ms)


def append(conn: Connection, server: ServerId, numbers: range, count: int, end_ms: int) -> None:
    kinds = list(_kinds(server))
    links, bodies = [], []
    for number in numbers:
        columns, body = kinds[number % len(kinds)]
        place = {"server_id": server, "server_seq": number + 1}
        digest = number.to_bytes(32, "big")
        links.append({**place, "call_id": call_id(server, number), "body_hash": digest, "hash": digest})
        at_ms = end_ms - (count - number) * SPAN_MS // count
        bodies.append({**place, **columns, "at_ms": at_ms, "body": body})
    conn.execute(insert(ledger_link), links)
    conn.execute(insert(ledger_body), bodies)
    head = {"head_seq": numbers.stop, "head_hash": digest, "last_seen_ms": end_ms}
    conn.execute(update(ledger_server).where(ledger_server.c.server_id == server).values(**head))


def call_id(server: ServerId, number: int) -> str:
    return f"{server[-4:]}-{number}"


def _kinds(server: ServerId) -> Iterator[tuple[dict[str, object], bytes]]:
    """A few records that stand for all."""
    page = PageState("t1", "main", "https://shop.example/cart", "shop.example/cart", 2)
    for number in range(30):
        record = CallRecord(
            call_id="grown",
            caller=Caller("local", f"agent{number % 5}", server),
            tool_name=f"nova.{TOOLS[number % len(TOOLS)]}",
            effect="act",
            started_at_ms=0,
            duration_ms=31 * number,
            outcome=CallOutcome("ok" if number % 11 else "failed", action_dispatched=True),
            before=page,
            after=page,
        )
        columns = index_columns(record)
        yield {name: getattr(columns, name) for name in columns.__slots__}, canonical_body(record)


def _figures(conn: Connection, rows: int, end_ms: int) -> None:
    """The counters that so many calls would have moved: how many there are depends on hours, not on calls."""
    last = hour_of(end_ms)
    hours = range(last - DAYS * 24, last)
    each = max(1, rows // len(hours))
    tally = Tally(
        {("tool", hour, ""): (each, each - each // 11) for hour in hours},
        {("tool.scrollSmart", hour, bucket_of(40 * step + 1)): each for hour in hours for step in range(6)},
        {("tool", ""): rows},
    )
    bump(conn, "grown", tally)
