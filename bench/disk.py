"""What a call leaves on the disk, and what of it is left once its time is over, on SQLite."""

import tempfile
from dataclasses import replace

from sqlalchemy import Connection, text

from bench.journal import NOW_MS, a_call, recorded
from bench.tables import machine, show
from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.janitor import retention_policy
from nova_mcp.evidence.model import CallRecord, ServerId, Touched
from nova_mcp.evidence.pruner import PruneRequest, prune
from nova_mcp.evidence.store import ServerInfo, register_server
from nova_mcp.memory.journal.statistics.counters import Counters
from nova_mcp.memory.retention import journal_chore
from nova_mcp.settings import RetentionSettings
from nova_mcp.storage.engine import Database

CALLS, LONG_CALLS = 20_000, 200_000
WARMING = 2_000
STEP = 500
SERVER = ServerId("disk")
DAY_MS = 86_400_000


def _used(conn: Connection) -> int:
    """Bytes of pages that hold something; what was freed is used again before the file grows."""
    pages, free, size = (conn.scalar(text(f"PRAGMA {name}")) for name in ("page_count", "freelist_count", "page_size"))
    return (int(pages or 0) - int(free or 0)) * int(size or 0)


def _looked(record: CallRecord) -> CallRecord:
    """Half of what agents do is looking."""
    return replace(record, tool_name="nova.perceive", effect="read", touched=Touched(), arguments={"mode": "summary"})


def _lay_down(db: Database, first: int, last: int) -> None:
    counters = Counters()

    def several(conn: Connection, numbers: range) -> None:
        for number in numbers:
            record = a_call("disk", number)
            recorded(conn, counters, _looked(record) if number % 2 else record)

    for start in range(first, last, STEP):
        db.write_sync(several, range(start, min(start + STEP, last)))


def _prune(db: Database, kept: RetentionSettings, now_ms: int) -> None:
    by = Eraser(SERVER, SystemIds(SystemClock()).call_id, "a benchmark")
    request = PruneRequest(by, retention_policy(kept), limit=STEP)
    while (report := db.write_sync(prune, now_ms, request)).resume is not None:
        request = replace(request, resume=report.resume)
    chore = journal_chore(kept)
    while db.write_sync(chore, now_ms):
        pass


def main(*, long: bool) -> int:
    print(f"disk · {machine()}\n")
    calls = LONG_CALLS if long else CALLS
    with (
        tempfile.TemporaryDirectory() as folder,
        Database.open(f"sqlite:///{folder}/nova.db") as db,
    ):
        db.write_sync(register_server, ServerInfo(SERVER, NOW_MS, 1, 1, "bench", "0"))
        empty = db.read_sync(_used)
        _lay_down(db, 0, WARMING)
        before = db.read_sync(_used)
        _lay_down(db, WARMING, WARMING + calls)
        full = db.read_sync(_used)
        _prune(db, RetentionSettings(), NOW_MS + (WARMING + calls) * 60_000 + 120 * DAY_MS)
        left = db.read_sync(_used)
    rows = [
        ["written with a call", calls, (full - before) / calls],
        ["left of it after every time limit", WARMING + calls, (left - empty) / (WARMING + calls)],
    ]
    show("Bytes on disk per call (half of them acts, half looks; SQLite pages in use)", ["", "calls", "bytes"], rows)
    return 0
