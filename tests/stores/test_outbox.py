"""Jobs that follow a commit: leased, done once, tried again, parked, and never lost with their worker."""

import json

import pytest
from sqlalchemy import insert, select, update

from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.journal.outbox_store import (
    LAST_PAUSE_MS,
    LEASE_MS,
    TRIES,
    fail,
    finish,
    has_work,
    pause_ms,
    still_held,
    take,
)
from nova_mcp.memory.journal.outbox_worker import HANDLERS, OutboxWorker
from nova_mcp.memory.journal.statistics.tables import learning_proposal, statistic_total

NOW = 1_790_000_000_000
NOOP = ("finalize.noop",)


class Watch:
    now = NOW

    def now_ms(self):
        return self.now

    def monotonic_ms(self):
        return float(self.now)


def job(number, job_type="finalize.noop", payload=None, **changes):
    return {
        "job_id": f"j{number:04}",
        "job_key": f"finalize:t{number}",
        "job_type": job_type,
        "task_id": f"t{number}",
        "target_id": "tab_1",
        "principal": "local",
        "agent_id": "ada",
        "payload": json.dumps(payload or {}),
        "state": "pending",
        "attempts": 0,
        "due_at_ms": NOW,
        "created_at_ms": NOW,
        **changes,
    }


def add(db, *rows):
    db.write_sync(lambda conn: [conn.execute(insert(outbox_job), row) for row in rows])


def jobs(db):
    return db.read_sync(lambda conn: conn.execute(select(outbox_job).order_by(outbox_job.c.job_id)).all())


def marks(db, name="mark"):
    rows = db.read_sync(lambda conn: conn.execute(select(statistic_total).where(statistic_total.c.name == name)).all())
    return {row.label: row.count for row in rows}


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def worker(db, watch):
    return lambda handlers=HANDLERS, name="w": OutboxWorker(db, Ports(watch, SystemIds(watch)), name, handlers)


async def test_a_job_is_done_once_and_stays_done(db, worker):
    add(db, job(1))
    assert await worker().step() is True
    assert await worker().step() is False
    (row,) = jobs(db)
    assert (row.state, row.attempts, row.settled_at_ms, row.leased_by, row.last_error) == ("done", 1, NOW, None, None)
    assert marks(db, "outbox.done") == {"": 1}


async def test_a_promotion_is_put_forward_with_its_candidates(db, worker):
    add(db, job(1, "finalize.memory.promote", {"taskId": "t1", "targetId": "tab_1", "candidateIds": [7, 9]}))
    await worker().step()
    (proposal,) = db.read_sync(lambda conn: conn.execute(select(learning_proposal)).all())
    assert (proposal.job_key, proposal.task_id, proposal.state) == ("finalize:t1", "t1", "open")
    assert json.loads(proposal.candidate_ids) == [7, 9]
    assert jobs(db)[0].state == "done"


async def test_a_job_that_nobody_can_do_yet_waits_and_loses_no_try(db, worker, watch):
    add(db, job(1, "pks.domain.save", {"scope": "shop.example"}), job(2))
    assert await worker().step() is True
    watch.now += 10 * LEASE_MS
    assert await worker().step() is False
    waiting, done = jobs(db)
    assert (waiting.state, waiting.attempts, done.state) == ("pending", 0, "done")


async def test_the_first_worker_that_can_do_it_takes_a_waiting_job(db, worker):
    add(db, job(1, "pks.domain.save"))
    seen = []
    await worker({"pks.domain.save": lambda conn, found, now: seen.append(found.job_key)}).step()
    assert (seen, jobs(db)[0].state) == (["finalize:t1"], "done")


async def test_jobs_are_done_in_the_order_in_which_they_fell_due(db, worker):
    add(db, job(1, due_at_ms=NOW - 1), job(2, due_at_ms=NOW - 3), job(3, due_at_ms=NOW - 2), job(4, due_at_ms=NOW + 1))
    seen = []
    one = worker({"finalize.noop": lambda conn, found, now: seen.append(found.job_id)})
    while await one.step():
        pass
    assert seen == ["j0002", "j0003", "j0001"]


async def test_a_failing_job_is_tried_eight_times_with_growing_pauses_and_then_parked(db, worker, watch):
    def broken(conn, found, now):
        conn.execute(insert(learning_proposal), {**proposal_row(), "job_key": f"try{found.attempt}"})
        raise RuntimeError("the page fell over " + "x" * 500)

    add(db, job(1))
    one = worker({"finalize.noop": broken})
    for attempt in range(1, TRIES):
        assert await one.step() is True
        (row,) = jobs(db)
        assert (row.state, row.attempts, row.due_at_ms) == ("pending", attempt, watch.now + pause_ms(attempt))
        assert row.last_error.startswith("RuntimeError: the page fell over")
        assert len(row.last_error) <= 220
        watch.now += pause_ms(attempt) - 1
        assert await one.step() is False
        watch.now += 1
    assert await one.step() is True
    (row,) = jobs(db)
    assert (row.state, row.attempts, row.settled_at_ms) == ("failed", TRIES, watch.now)
    watch.now += 10 * LEASE_MS
    assert await one.step() is False
    assert db.read_sync(lambda conn: conn.execute(select(learning_proposal)).all()) == []


def proposal_row():
    return {
        **dict.fromkeys(("task_id", "target_id", "principal", "agent_id", "candidate_ids", "state"), ""),
        "proposed_at_ms": NOW,
    }


async def test_one_bad_job_does_not_hold_up_the_others(db, worker):
    add(db, job(1, "finalize.memory.promote", {"candidateIds": "all"}), job(2))
    one = worker()
    while await one.step():
        pass
    bad, good = jobs(db)
    assert (bad.state, bad.attempts, good.state) == ("pending", 1, "done")
    assert "candidateIds" in bad.last_error


async def test_a_promotion_of_nothing_proposes_nothing(db, worker):
    add(db, job(1, "finalize.memory.promote", {"taskId": "t1", "targetId": "tab_1", "candidateIds": []}))
    await worker().step()
    assert jobs(db)[0].state == "done"
    assert db.read_sync(lambda conn: conn.execute(select(learning_proposal)).all()) == []


@pytest.mark.parametrize("text", ["{", "[]", "null", ""])
async def test_a_job_that_cannot_be_read_is_parked_and_the_next_one_done(db, worker, text):
    add(db, job(1) | {"payload": text}, job(2))
    one = worker()
    while await one.step():
        pass
    bad, good = jobs(db)
    assert (bad.state, good.state) == ("failed", "done")
    assert "payload" in bad.last_error


@pytest.mark.parametrize(
    "held",
    [
        {"state": "pending", "attempts": 3, "due_at_ms": NOW + LAST_PAUSE_MS},
        {"state": "leased", "attempts": 1, "leased_by": "dead", "lease_until_ms": NOW + LEASE_MS},
    ],
    ids=["pause", "lease"],
)
def test_a_clock_that_was_set_back_holds_no_job_up(db, held):
    add(db, job(1, **held))
    assert db.read_sync(has_work, NOW, NOOP) is False
    # Another server's clock may be a little behind without taking what is not its own.
    assert db.read_sync(has_work, NOW - LEASE_MS // 2, NOOP) is False
    yesterday = NOW - 86_400_000
    assert db.read_sync(has_work, yesterday, NOOP) is True
    taken = db.write_sync(take, "heir", yesterday, NOOP)
    assert taken.attempt == held["attempts"] + 1
    assert db.write_sync(take, "other", yesterday + LEASE_MS - 1, NOOP) is None


def test_a_leased_job_is_nobody_elses_until_the_lease_runs_out(db):
    add(db, job(1))
    first = db.write_sync(take, "one", NOW, NOOP)
    assert first.attempt == 1
    assert db.write_sync(take, "two", NOW + LEASE_MS - 1, NOOP) is None
    assert db.read_sync(has_work, NOW + LEASE_MS - 1, NOOP) is False
    second = db.write_sync(take, "two", NOW + LEASE_MS, NOOP)
    assert (second.job_id, second.attempt) == (first.job_id, 2)
    assert db.write_sync(still_held, first) is False
    assert db.write_sync(still_held, second) is True


def test_a_worker_that_lost_its_lease_can_neither_fail_nor_give_back_the_job(db):
    add(db, job(1))
    first = db.write_sync(take, "one", NOW, NOOP)
    second = db.write_sync(take, "two", NOW + LEASE_MS, NOOP)
    db.write_sync(fail, first, NOW + LEASE_MS, "too slow")
    (row,) = jobs(db)
    assert (row.state, row.leased_by, row.last_error) == ("leased", "two", None)
    db.write_sync(finish, second, NOW + LEASE_MS)
    assert jobs(db)[0].state == "done"


async def test_a_worker_that_lost_its_lease_does_nothing_any_more(db, worker):
    done = []
    slow = worker({"finalize.noop": lambda conn, found, now: done.append(found.leased_by)}, "slow")
    add(db, job(1))
    leased = db.write_sync(take, "slow", NOW, NOOP)
    db.write_sync(take, "fast", NOW + LEASE_MS, NOOP)
    db.write_sync(slow._perform, leased)
    assert done == []
    assert jobs(db)[0].leased_by == "fast"


def test_a_job_whose_workers_all_died_is_parked_too(db):
    add(db, job(1, state="leased", attempts=TRIES, leased_by="dead", lease_until_ms=NOW - 1))
    assert db.write_sync(take, "heir", NOW, NOOP) is None
    (row,) = jobs(db)
    assert (row.state, row.settled_at_ms) == ("failed", NOW)
    assert "gone" in row.last_error


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def test_four_processes_share_the_jobs_and_each_is_done_once(store_url, open_db, spawn):
    db = open_db(store_url)
    add(db, *(job(number) for number in range(24)))
    workers = [spawn("work", store_url, f"w{number}") for number in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        go(worker)
    for worker in workers:
        worker.communicate(timeout=120)
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert {row.state for row in jobs(db)} == {"done"}
    assert marks(db) == {f"finalize:t{number}": 1 for number in range(24)}
    assert sum(row.attempts for row in jobs(db)) == 24


@pytest.mark.parametrize("point", ["outbox.leased", "outbox.before_commit"])
def test_a_worker_killed_in_the_middle_of_a_job_neither_loses_nor_repeats_it(store_url, open_db, spawn, point):
    db = open_db(store_url)
    add(db, job(1))
    victim = spawn("work", store_url, "victim", point)
    assert victim.stdout.readline() == "ready\n"
    go(victim)
    assert victim.stdout.readline() == f"{point}\n"
    victim.kill()
    victim.wait()
    (row,) = jobs(db)
    assert (row.state, row.leased_by, marks(db)) == ("leased", "victim", {})
    heir = spawn("work", store_url, "heir")
    assert heir.stdout.readline() == "ready\n"
    # The lease stands until it runs out; the test does not wait for that.
    db.write_sync(lambda conn: conn.execute(update(outbox_job).values(lease_until_ms=NOW - 1)))
    go(heir)
    heir.communicate(timeout=60)
    (row,) = jobs(db)
    assert (row.state, row.attempts, marks(db)) == ("done", 2, {"finalize:t1": 1})
