"""Several processes on one store: all work, nothing lost, nothing doubled, whoever dies."""

import pytest

from nova_mcp.evidence import store
from nova_mcp.evidence.audit import verify
from nova_mcp.storage.schema import HEAD


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def findings(conn):
    return list(verify(conn))


def test_four_processes_append_to_one_store_without_gaps_or_losses(store_url, open_db, spawn):
    workers = [spawn("append", store_url, f"s{number}", 100) for number in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        go(worker)
    acknowledged = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    db = open_db(store_url)
    assert [len(ids) for ids in acknowledged] == [100, 100, 100, 100]
    for ids in acknowledged:
        assert [db.read_sync(store.get_call, call_id).link.server_seq for call_id in ids] == list(range(1, 101))
    assert db.read_sync(findings) == []


def test_four_processes_open_a_fresh_store_at_once(empty_url, spawn):
    workers = [spawn("open", empty_url) for _ in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        go(worker)
    assert [worker.communicate(timeout=60)[0] for worker in workers] == [f"revision {HEAD}\n"] * 4


@pytest.mark.parametrize("after", [1, 3, 17, 40])
def test_a_process_killed_while_writing_loses_nothing_it_acknowledged(store_url, open_db, spawn, build, after):
    worker = spawn("append", store_url, "victim", 1_000_000)
    assert worker.stdout.readline() == "ready\n"
    go(worker)
    acknowledged = [worker.stdout.readline().strip() for _ in range(after)]
    worker.kill()
    acknowledged += [line.strip() for line in worker.stdout if line.endswith("\n")]
    worker.wait()
    db = open_db(store_url)
    assert db.notices == ()
    for seq, call_id in enumerate(acknowledged, 1):
        assert db.read_sync(store.get_call, call_id).link.server_seq == seq
    (head,) = db.read_sync(store.heads)
    assert head.head_seq in (len(acknowledged), len(acknowledged) + 1)
    open_before = db.read_sync(store.open_intents)
    db.write_sync(store.register_server, build.server("heir"))
    numbers = iter(range(10_000))
    closed = db.write_sync(store.recover, 9_000, "heir", lambda server: False, lambda: f"r{next(numbers)}")
    assert sorted(call.record.closes for call in closed) == open_before
    assert len(open_before) == -(-head.head_seq // 5)
    assert db.write_sync(store.recover, 9_001, "heir", lambda server: False, lambda: "again") == []
    assert db.read_sync(findings) == []
