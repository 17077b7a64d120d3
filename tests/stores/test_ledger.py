"""What the ledger promises on every kind of store."""

import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import psutil
import pytest
from sqlalchemy import text

from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.evidence import store
from nova_mcp.evidence.audit import Head, verify
from nova_mcp.evidence.model import CallOutcome, PageState
from nova_mcp.evidence.pruner import PruneRequest, erase_bodies, prune
from nova_mcp.evidence.reader import EventFilter, events, recent
from nova_mcp.evidence.recorder import Recorder, describe_server, process_alive
from nova_mcp.evidence.rules import DAY_MS, Holds, genesis_hash

DAY = DAY_MS


def findings(conn, kept=None):
    return list(verify(conn, kept))


@pytest.fixture
def fill(db, build):
    def write(server_id, count, **changes):
        db.write_sync(store.register_server, build.server(server_id))
        return [
            db.write_sync(store.append_call, build.call(server_id, f"{server_id}-{number}", **changes))
            for number in range(1, count + 1)
        ]

    return write


def test_a_chain_starts_at_genesis_and_each_link_follows_the_last(db, fill):
    links = fill("a", 3)
    assert [link.server_seq for link in links] == [1, 2, 3]
    assert db.read_sync(findings) == []
    (head,) = db.read_sync(store.heads)
    assert (head.head_seq, head.head_hash) == (3, links[-1].hash)


def test_a_server_that_wrote_nothing_has_no_head_to_keep(db, build):
    db.write_sync(store.register_server, build.server("quiet"))
    assert db.read_sync(store.heads) == []
    (row,) = db.read_sync(store.servers)
    assert row.head_hash == genesis_hash("quiet")


def test_an_unregistered_server_cannot_append(db, build):
    with pytest.raises(LookupError, match="not registered"):
        db.write_sync(store.append_call, build.call("ghost", "c1"))


def test_a_stored_call_reads_back_equal_to_what_was_recorded(db, build):
    record = build.call(
        "a",
        "c1",
        outcome=CallOutcome("failed", -32000, "page.crashed", None, True, "failed"),
        before=PageState("t1", "s1", "https://example.com/ä", "example.com/ä", 4),
        arguments={"text": "line\nbreak \u2028 \x00 €", "numbers": [1, 2.5, None, True]},
    )
    db.write_sync(store.register_server, build.server("a"))
    db.write_sync(store.append_call, record)
    assert db.read_sync(store.get_call, "c1").record == record
    assert db.read_sync(store.get_call, "other") is None


def test_hostile_text_in_indexed_fields_is_recorded_and_verifies(db, build):
    db.write_sync(store.register_server, build.server("a"))
    db.write_sync(store.append_call, build.call("a", "c1", tool_name="nul\x00 and \ud800", task_id="\x00"))
    assert db.read_sync(findings) == []
    assert db.read_sync(recent, EventFilter(tool="nul\x00 and \ud800"))[0].link.call_id == "c1"


def test_a_unit_of_work_that_fails_leaves_no_gap_in_the_sequence(db, build, fill):
    fill("a", 2)

    def broken(conn):
        store.append_call(conn, build.call("a", "lost"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.write_sync(broken)
    assert db.write_sync(store.append_call, build.call("a", "kept")).server_seq == 3
    assert db.read_sync(findings) == []


def test_sequences_stay_gap_free_under_concurrent_writers(db, open_db, store_url, build):
    second = open_db(store_url)
    for server_id in ("a", "b"):
        db.write_sync(store.register_server, build.server(server_id))

    def write(number):
        base = (db, second)[number % 2]
        server_id = "ab"[number // 2 % 2]
        return base.write_sync(store.append_call, build.call(server_id, f"c{number}"))

    with ThreadPoolExecutor(8) as threads:
        links = list(threads.map(write, range(200)))
    for server_id in ("a", "b"):
        assert sorted(link.server_seq for link in links if link.server_id == server_id) == list(range(1, 101))
    assert db.read_sync(findings) == []


# -- removal and erasure ---------------------------------------------------------------------------------------------


def test_a_removed_tail_is_named_by_the_head(bare_engine, db, fill):
    fill("a", 5)
    with bare_engine.begin() as conn:
        for table in ("ledger_body", "ledger_link"):
            conn.execute(text(f"DELETE FROM {table} WHERE server_seq > 3"))
        (finding,) = findings(conn)
        assert (finding.server_id, finding.server_seq, finding.fault) == ("a", 4, "truncated")


def test_a_tail_removed_together_with_its_head_is_named_by_an_exported_head(bare_engine, db, fill):
    links = fill("a", 5)
    kept = {links[-1].server_id: Head(5, links[-1].hash)}
    assert db.read_sync(findings, kept) == []
    with bare_engine.begin() as conn:
        for table in ("ledger_body", "ledger_link"):
            conn.execute(text(f"DELETE FROM {table} WHERE server_seq > 3"))
        conn.execute(text("UPDATE ledger_server SET head_seq = 3, head_hash = :hash"), {"hash": links[2].hash})
        assert findings(conn) == []
        (finding,) = findings(conn, kept)
        assert (finding.server_seq, finding.fault) == (4, "kept_head")


def test_a_whole_chain_that_vanished_is_named_by_an_exported_head(db, fill):
    links = fill("a", 1)
    (finding,) = db.read_sync(findings, {"gone": Head(7, links[0].hash)})
    assert (finding.server_id, finding.fault) == ("gone", "kept_head")


def test_a_rewritten_chain_is_named_by_an_exported_head(db, fill):
    links = fill("a", 3)
    (finding,) = db.read_sync(findings, {links[0].server_id: Head(2, b"\0" * 32)})
    assert (finding.server_seq, finding.fault) == (2, "kept_head")


@pytest.mark.parametrize("table", ["ledger_link", "ledger_body"])
@pytest.mark.parametrize("seq", [1, 3, 5])
def test_a_deleted_row_is_named(bare_engine, db, fill, table, seq):
    fill("a", 5)
    fill("b", 2)
    with bare_engine.begin() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET session_replication_role = replica"))
        conn.execute(text(f"DELETE FROM {table} WHERE server_id = 'a' AND server_seq = :seq"), {"seq": seq})
        first = findings(conn)[0]
    assert (first.server_id, first.server_seq) == ("a", seq)
    assert first.fault in {"missing_link", "missing_body", "truncated"}


def test_erased_bodies_leave_a_chain_that_verifies(db, build, fill):
    fill("a", 5)
    assert db.write_sync(erase_bodies, ["a-2", "a-5", "unknown"], 9_000, build.eraser("a")) == 2
    assert db.write_sync(erase_bodies, ["a-2"], 9_001, build.eraser("a")) == 0
    assert db.read_sync(findings) == []
    erased = db.read_sync(store.get_call, "a-2")
    assert (erased.record, erased.erased_at_ms, erased.link.server_seq) == (None, 9_000, 2)


def test_the_body_of_an_open_intent_cannot_be_erased(db, build, fill):
    fill("a", 1, kind="intent", effect="commit")
    assert db.write_sync(erase_bodies, ["a-1"], 9_000, build.eraser("a")) == 0
    assert db.write_sync(prune, 99 * DAY, PruneRequest(build.eraser("a"))).kept == {"open_intent": 1}


# -- retention -------------------------------------------------------------------------------------------------------


@pytest.fixture
def aged(db, build):
    db.write_sync(store.register_server, build.server("a"))
    cases = {
        "young": {"started_at_ms": 99 * DAY},
        "ended-10": {"started_at_ms": 90 * DAY, "task_id": "done"},
        "gap-10": {"started_at_ms": 90 * DAY, "task_id": "gappy"},
        "gap-40": {"started_at_ms": 60 * DAY, "task_id": "gappy"},
        "open-40": {"started_at_ms": 60 * DAY, "instance_id": "running", "task_id": "done"},
        "blocked-10": {"started_at_ms": 90 * DAY, "task_id": "done", "outcome": CallOutcome("blocked_preflight")},
        "other-40": {"started_at_ms": 60 * DAY},
        "referenced-40": {"started_at_ms": 60 * DAY},
    }
    for call_id, changes in cases.items():
        db.write_sync(store.append_call, build.call("a", call_id, **changes))
    return Holds(
        open=frozenset({"running"}),
        ended=frozenset({"done", "gappy"}),
        with_gaps=frozenset({"gappy"}),
        referenced=frozenset({"referenced-40"}),
    )


def test_pruning_erases_what_the_rule_says_and_the_chain_verifies(db, build, aged):
    report = db.write_sync(prune, 100 * DAY, PruneRequest(build.eraser("a"), holds=aged))
    gone = {row.link.call_id for row in _all_calls(db) if row.record is None}
    assert gone == {"ended-10", "gap-40", "other-40"}
    assert report.erased == {"ended": 1, "gaps": 1, "other": 1}
    assert db.read_sync(findings) == []
    assert db.write_sync(prune, 100 * DAY, PruneRequest(build.eraser("a"), holds=aged)).total == 0


def test_a_dry_run_counts_what_a_real_run_erases_and_changes_nothing(db, build, aged):
    dry = db.read_sync(prune, 100 * DAY, PruneRequest(holds=aged, dry_run=True))
    assert all(row.record is not None for row in _all_calls(db))
    assert db.write_sync(prune, 100 * DAY, PruneRequest(build.eraser("a"), holds=aged)) == dry
    assert dry.bytes > 0


def test_a_prune_in_small_steps_erases_the_same(db, build, aged):
    total, resume = 0, None
    for _ in range(20):
        report = db.write_sync(prune, 100 * DAY, PruneRequest(build.eraser("a"), holds=aged, limit=2, resume=resume))
        total, resume = total + report.total, report.resume
        if resume is None:
            break
    assert (total, resume) == (3, None)


def _all_calls(db):
    ids = db.read_sync(lambda conn: conn.execute(text("SELECT call_id FROM ledger_link")).scalars().all())
    return [db.read_sync(store.get_call, call_id) for call_id in ids]


# -- intents and recovery --------------------------------------------------------------------------------------------


def test_an_intent_stays_open_until_a_record_closes_it(db, build):
    db.write_sync(store.register_server, build.server("a"))
    db.write_sync(store.append_call, build.call("a", "i1", kind="intent", effect="commit"))
    db.write_sync(store.append_call, build.call("a", "c0"))
    assert db.read_sync(store.open_intents) == ["i1"]
    db.write_sync(store.append_call, build.call("a", "c1", closes="i1"))
    assert db.read_sync(store.open_intents) == []


def test_recovery_closes_the_intents_of_dead_servers_only(db, build):
    for server_id in ("dead", "living", "me"):
        db.write_sync(store.register_server, build.server(server_id))
    for server_id in ("dead", "living"):
        intent = build.call(
            server_id, f"i-{server_id}", kind="intent", effect="commit", task_id="k1", before=PageState("t1", "s1")
        )
        db.write_sync(store.append_call, intent)
    closed = db.write_sync(store.recover, 5_000, "me", lambda server: server.server_id == "living", lambda: "r1")
    (call,) = closed
    assert (call.link.server_id, call.record.closes, call.record.kind) == ("me", "i-dead", "recovery")
    assert (call.record.outcome.kind, call.record.outcome.verification) == ("crashed", "indeterminate")
    assert (call.record.caller.agent_id, call.record.task_id, call.record.before.target_id) == ("agent", "k1", "t1")
    assert db.read_sync(store.open_intents) == ["i-living"]
    states = {row.server_id: row.end_reason for row in db.read_sync(store.servers)}
    assert states == {"dead": "gone", "living": None, "me": None}
    assert db.read_sync(findings) == []


def test_a_server_taken_for_dead_counts_as_living_once_it_writes_again(db, build):
    for server_id in ("slow", "me"):
        db.write_sync(store.register_server, build.server(server_id))
    db.write_sync(store.recover, 5_000, "me", lambda server: False, lambda: "r1")
    db.write_sync(store.append_call, build.call("slow", "c1"))
    assert {row.server_id: row.ended_at_ms for row in db.read_sync(store.servers)}["slow"] is None


async def test_several_servers_recovering_at_once_close_each_intent_exactly_once(store_url, open_db, build):
    ports = Ports(SystemClock(), SystemIds(SystemClock()))
    bases = [open_db(store_url) for _ in range(4)]
    await bases[0].write(store.register_server, build.server("dead"))
    for number in range(12):
        await bases[0].write(store.append_call, build.call("dead", f"i{number}", kind="intent", effect="commit"))
    closed = []

    async def recover(number):
        recorder = Recorder(bases[number], ports, f"s{number}")
        await recorder.start(build.server(f"s{number}"))
        closed.extend(await recorder.recover(alive=lambda server: server.server_id != "dead"))

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(recover, number)
    assert sorted(call.record.closes for call in closed) == sorted(f"i{number}" for number in range(12))
    assert await bases[0].read(store.open_intents) == []
    assert await bases[0].read(findings) == []


def test_a_process_is_told_apart_from_a_later_one_with_its_number(db):
    info = describe_server("a", 1_000, "0")
    db.write_sync(store.register_server, info)
    (row,) = db.read_sync(store.servers)
    assert process_alive(row, 2_000, row.host)
    db.write_sync(lambda conn: conn.execute(text("UPDATE ledger_server SET process_started_ms = 12345")))
    (other,) = db.read_sync(store.servers)
    assert not process_alive(other, 2_000, other.host)


def test_a_server_on_another_machine_is_gone_after_long_silence(db, build):
    db.write_sync(store.register_server, build.server("far", host="elsewhere", started_at_ms=1_000))
    (row,) = db.read_sync(store.servers)
    assert process_alive(row, 1_000 + 14 * 60_000, "here")
    assert not process_alive(row, 1_000 + 16 * 60_000, "here")


# -- the recorder ----------------------------------------------------------------------------------------------------


class Tripwire:
    def __init__(self, point):
        self.point, self.seen = point, []

    def hit(self, point):
        self.seen.append(point)
        if point == self.point:
            raise OSError(point)


@pytest.fixture
async def recorder_with(db, build):
    async def make(faults, also=()):
        recorder = Recorder(db, Ports(SystemClock(), SystemIds(SystemClock()), faults), "a", also)
        await recorder.start(build.server("a"))
        return recorder

    return make


async def test_a_failure_before_the_commit_records_nothing(db, build, recorder_with):
    recorder = await recorder_with(Tripwire("ledger.before_commit"))
    with pytest.raises(OSError, match="before_commit"):
        await recorder.record(build.call("a", "c1"))
    assert await db.read(store.get_call, "c1") is None


async def test_a_failure_after_the_commit_leaves_the_record(db, build, recorder_with):
    recorder = await recorder_with(Tripwire("ledger.after_commit"))
    with pytest.raises(OSError, match="after_commit"):
        await recorder.record(build.call("a", "c1"))
    assert (await db.read(store.get_call, "c1")).link.server_seq == 1


async def test_derived_rows_share_the_transaction_of_their_record(db, build, recorder_with):
    def count(conn, record, link):
        conn.execute(
            text("INSERT INTO id_counter (name, value) VALUES (:name, :seq)"),
            {"name": record.call_id, "seq": link.server_seq},
        )

    def fail(conn, record, link):
        if record.call_id == "bad":
            raise KeyError(record.call_id)

    recorder = await recorder_with(Tripwire(None), also=[count])
    await recorder.record(build.call("a", "good"), also=[fail])
    with pytest.raises(KeyError):
        await recorder.record(build.call("a", "bad"), also=[fail])
    rows = await db.read(lambda conn: conn.execute(text("SELECT name, value FROM id_counter")).all())
    assert [tuple(row) for row in rows] == [("good", 1)]
    assert await db.read(store.get_call, "bad") is None


async def test_a_cancelled_caller_still_gets_its_call_recorded(db, build, recorder_with):
    started, release = threading.Event(), threading.Event()

    def slow(conn, record, link):
        started.set()
        release.wait(20)

    recorder = await recorder_with(Tripwire(None))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recorder.record, build.call("a", "c1"), [slow])
            await anyio.to_thread.run_sync(started.wait)
            scope.cancel()
            release.set()
    assert (await db.read(store.get_call, "c1")).link.server_seq == 1


async def test_stopping_says_when_and_why(db, recorder_with):
    recorder = await recorder_with(Tripwire(None))
    await recorder.stop("shutdown")
    (row,) = await db.read(store.servers)
    assert row.end_reason == "shutdown"
    assert row.ended_at_ms is not None


# -- followers -------------------------------------------------------------------------------------------------------


def test_filters_select_and_positions_pass_over_what_they_hide(db, build):
    db.write_sync(store.register_server, build.server("a"))
    for number in range(1, 7):
        call = build.call(
            "a",
            f"c{number}",
            tool_name="perceive" if number % 2 else "navigate",
            started_at_ms=number,
            after=PageState(target_id=f"t{number % 3}"),
            outcome=CallOutcome("failed" if number == 4 else "ok"),
        )
        db.write_sync(store.append_call, call)

    def ids(**wanted):
        return [call.link.call_id for call in db.read_sync(events, EventFilter(**wanted)).calls]

    assert ids(tool="navigate") == ["c2", "c4", "c6"]
    assert ids(outcome="failed") == ["c4"]
    assert ids(target="t0") == ["c3", "c6"]
    assert ids(since_ms=5) == ["c5", "c6"]
    assert ids(agent="nobody") == []
    assert ids(principal="local", limit=2) == ["c1", "c2"]
    assert db.read_sync(events, EventFilter(outcome="failed")).positions == {"a": 6}
    assert [call.link.call_id for call in db.read_sync(recent, EventFilter(limit=2))] == ["c6", "c5"]


def test_small_pages_deliver_every_call_once_and_each_chain_in_order(db, build):
    for server_id in ("a", "b", "c"):
        db.write_sync(store.register_server, build.server(server_id))
    for number in range(30):
        server_id = "abc"[number * 7 % 3]
        call = build.call(server_id, f"c{number}", started_at_ms=(number * 37) % 11)
        db.write_sync(store.append_call, call)
    seen, positions, more = [], {}, True
    while more:
        page = db.read_sync(events, EventFilter(limit=4), positions)
        seen += page.calls
        positions, more = page.positions, page.more
    assert len(seen) == 30
    for server_id in ("a", "b", "c"):
        assert [call.link.server_seq for call in seen if call.link.server_id == server_id] == list(range(1, 11))


async def test_followers_miss_nothing_while_servers_commit_concurrently(store_url, open_db, build):
    writers = [open_db(store_url) for _ in range(3)]
    follower = open_db(store_url)
    for number, base in enumerate(writers):
        await base.write(store.register_server, build.server(f"s{number}"))

    async def write(number, lane):
        for count in range(25):
            await writers[number].write(store.append_call, build.call(f"s{number}", f"c{number}-{lane}-{count}"))

    seen = []
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                for lane in range(3):
                    tasks.start_soon(write, number, lane)
            positions = {}
            while len(seen) < 225:
                page = await follower.read(events, EventFilter(limit=50), positions)
                seen += [call.link.call_id for call in page.calls]
                positions = page.positions
    assert len(set(seen)) == len(seen) == 225


def test_a_quiet_server_elsewhere_lives_as_long_as_it_gives_signs(db, build):
    db.write_sync(store.register_server, build.server("far"))
    (row,) = db.read_sync(store.servers)
    late = row.last_seen_ms + 20 * 60_000
    assert process_alive(row, late, "another machine") is False
    db.write_sync(store.touch_server, row.server_id, late - 60_000)
    (row,) = db.read_sync(store.servers)
    assert process_alive(row, late, "another machine") is True
    assert db.read_sync(findings) == []


def test_a_living_server_stays_alive_when_the_clock_is_set(db, monkeypatch):
    db.write_sync(store.register_server, describe_server("a", 1_000, "0"))
    (row,) = db.read_sync(store.servers)
    real = psutil.Process.create_time
    # The date of a start is counted back from now, so it moves with the clock.
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: real(process) - 86_400)
    assert process_alive(row, 2_000, row.host)
