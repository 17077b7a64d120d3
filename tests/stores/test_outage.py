"""A recorder whose store fails for real: a database server that is stopped, a disk without room, a locked file."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest
from bench.postgres import private_cluster

from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.evidence import store
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.model import CallOutcome
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.storage.engine import Database, Tuning
from nova_mcp.storage.errors import StoreUnavailable

TOUCHED = CallOutcome("ok", action_dispatched=True)


async def recorder_on(db, build):
    recorder = Recorder(db, Ports(SystemClock(), SystemIds(SystemClock())), "a")
    await recorder.start(build.server("a"))
    await recorder.record(build.call("a", "before"))
    return recorder


async def lose_three(recorder, build, reasons):
    """A touched page whose record fails, then a read, then an act that is refused."""
    with pytest.raises(StoreUnavailable) as failure:
        await recorder.record(build.call("a", "touched", outcome=TOUCHED))
    assert failure.value.reason in reasons
    with pytest.raises(StoreUnavailable):
        await recorder.record(build.call("a", "look", effect="read"))
    with pytest.raises(StoreUnavailable) as refused:
        await recorder.require()
    assert refused.value.reason in reasons


async def written(db):
    page = await db.read(events, EventFilter(limit=1000))
    return [call.record for call in page.calls]


async def assert_closed(db, recorder):
    # A store that was slow to fail is not asked at once again.
    with anyio.fail_after(60):
        while (failure := await recorder.trouble(30)) is not None:
            assert failure.reason
            await anyio.lowlevel.checkpoint()
    before, late, gap = await written(db)
    assert [record.call_id for record in (before, late)] == ["before", "touched"]
    assert gap.kind == "gap"
    assert (gap.arguments["recordedLate"], gap.arguments["readsUnrecorded"]) == (1, 1)
    assert await db.read(lambda conn: list(verify(conn))) == []


async def test_a_call_whose_commit_got_through_is_not_counted_as_missing(open_db, store_url, build, monkeypatch):
    db = open_db(store_url)
    recorder = await recorder_on(db, build)
    write = db.write

    async def answer_lost(*arguments):
        await write(*arguments)
        raise StoreUnavailable("down", "the connection ended behind COMMIT")

    monkeypatch.setattr(db, "write", answer_lost)
    with pytest.raises(StoreUnavailable):
        await recorder.record(build.call("a", "looked", effect="read"))
    monkeypatch.undo()
    assert await recorder.trouble() is None
    _, looked, gap = await written(db)
    assert (looked.call_id, gap.kind) == ("looked", "gap")
    assert (gap.arguments["readsUnrecorded"], gap.arguments["callsRefused"]) == (0, 0)


@pytest.mark.postgres
async def test_a_database_server_that_is_stopped_and_comes_back(build):
    with private_cluster() as cluster, Database.open(cluster.fresh_database(cluster.migrated)) as db:
        recorder = await recorder_on(db, build)
        cluster.stop("fast")
        try:
            with pytest.raises(StoreUnavailable):
                await recorder.require()
            await lose_three(recorder, build, {"down"})
        finally:
            cluster.restart()
        await assert_closed(db, recorder)


@contextmanager
def no_room(bytes_at_most: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes, as under a quota."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_at_most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_takes_no_more(sqlite_url, tmp_path, build):
    with Database.open(sqlite_url) as db:
        recorder = await recorder_on(db, build)
        with no_room((tmp_path / "nova.db-wal").stat().st_size):
            await lose_three(recorder, build, {"full", "down"})
        await assert_closed(db, recorder)


async def test_a_file_that_another_program_keeps_locked(sqlite_url, tmp_path, build):
    with Database.open(sqlite_url, tuning=Tuning(busy_timeout_ms=50)) as db:
        recorder = await recorder_on(db, build)
        other = sqlite3.connect(tmp_path / "nova.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(StoreUnavailable) as refused:
                await recorder.require()
            assert refused.value.reason == "locked"
            await lose_three(recorder, build, {"locked"})
        finally:
            other.execute("ROLLBACK")
            other.close()
        await assert_closed(db, recorder)


async def test_a_commit_that_got_through_although_it_seemed_to_fail_is_written_once(db, build):
    class Lost:
        armed = False

        def hit(self, point):
            if self.armed and point == "ledger.after_commit":
                raise StoreUnavailable("down", "the connection broke while the commit was answered")

    faults = Lost()
    recorder = Recorder(db, Ports(SystemClock(), SystemIds(SystemClock()), faults), "a")
    await recorder.start(build.server("a"))
    faults.armed = True
    with pytest.raises(StoreUnavailable):
        await recorder.record(build.call("a", "before"))
    with pytest.raises(StoreUnavailable):
        await recorder.record(build.call("a", "touched", outcome=TOUCHED))
    faults.armed = False
    await recorder.record(build.call("a", "after"))
    ids = [record.call_id for record in await written(db) if record.kind == "call"]
    assert ids == ["before", "touched", "after"]
    assert await db.read(lambda conn: list(verify(conn))) == []


async def test_a_server_that_ends_during_an_outage_closes_it_if_it_can(sqlite_url, tmp_path, build):
    with Database.open(sqlite_url) as db:
        recorder = await recorder_on(db, build)
        with no_room((tmp_path / "nova.db-wal").stat().st_size):
            await lose_three(recorder, build, {"full", "down"})
        await recorder.stop("ended")
        assert [record.kind for record in await written(db)] == ["call", "call", "gap"]
        assert (await db.read(store.servers))[0].end_reason == "ended"
