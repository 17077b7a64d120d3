"""Claims, tabs and sandboxes that ended long ago are forgotten, and the ledger knows which claims still matter."""

import pytest
from sqlalchemy import select

from nova_mcp.evidence import store
from nova_mcp.evidence.janitor import Janitor, retention_policy
from nova_mcp.evidence.model import CallOutcome
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.evidence.targets import store as target_store
from nova_mcp.evidence.targets.store import OpenedTarget
from nova_mcp.memory.claims import store as claim_store
from nova_mcp.memory.claims.retention import claim_holds, due_to_go, forgetting
from nova_mcp.memory.claims.rules import Claim
from nova_mcp.memory.claims.store import Closing, Taking, claim_journal
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job
from nova_mcp.memory.journal.model import FinalizeOrder
from nova_mcp.settings import RetentionSettings

NOW = 100 * DAY_MS


class Now:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return float(NOW)


def claimed(db, task_id, ended_ms=None, order=None):
    claim = Claim(task_id, "tab_1", "A", ("local", "ada"), "hash", 1, 2)
    db.write_sync(claim_store.claim_taken, Taking(claim, "server"), 1)
    if ended_ms is not None:
        closing = Closing(claim, "released", order or FinalizeOrder(), f"job_{task_id}", ended_ms)
        db.write_sync(claim_store.claim_closed, closing, lambda: None)
    return claim


def tasks(db, table):
    return set(db.read_sync(lambda conn: conn.execute(select(table.c.task_id)).scalars().all()))


@pytest.fixture
def memory(db):
    claimed(db, "old", 69 * DAY_MS)
    claimed(db, "young", 71 * DAY_MS)
    claimed(db, "standing")
    claimed(db, "waiting", 10 * DAY_MS, FinalizeOrder("commit"))
    for number, ended in ((1, 69), (2, 71), (3, None)):
        target = f"tab_{journal_number(db)}"
        db.write_sync(target_store.target_opened, OpenedTarget(target, "A", "server", "local", "", number))
        if ended is not None:
            db.write_sync(target_store.target_ended, target, ended * DAY_MS, "closed")
    return db


def journal_number(db):
    return db.write_sync(target_store.next_id, "tab")


def test_what_ended_long_ago_goes_with_its_decision_and_nothing_else(memory):
    assert memory.read_sync(due_to_go, NOW - 30 * DAY_MS) == 2
    assert memory.write_sync(forgetting(30), NOW) == 2
    assert tasks(memory, claim_journal) == {"young", "standing", "waiting"}
    assert tasks(memory, finalize_decision) == {"young", "waiting"}
    assert memory.read_sync(target_store.last_seen, "local", "tab_1") is None
    assert memory.read_sync(target_store.last_seen, "local", "tab_2") is not None
    assert memory.read_sync(target_store.last_seen, "local", "tab_3") is not None
    assert memory.write_sync(forgetting(30), NOW) == 0


def test_a_claim_whose_job_nobody_has_done_yet_stays_until_it_is_settled(memory):
    memory.write_sync(forgetting(30), NOW)
    assert tasks(memory, outbox_job) == {"waiting"}
    memory.write_sync(lambda conn: conn.execute(outbox_job.update().values(state="done")))
    assert memory.write_sync(forgetting(30), NOW) == 1
    assert tasks(memory, outbox_job) == set()
    assert "waiting" not in tasks(memory, claim_journal)


def test_a_forgotten_number_is_not_given_again(memory):
    memory.write_sync(forgetting(0), NOW)
    assert journal_number(memory) == 4


async def test_calls_of_ended_claims_go_first_and_those_of_a_standing_one_stay(db, build):
    db.write_sync(store.register_server, build.server("a"))
    claimed(db, "done", 90 * DAY_MS)
    claimed(db, "broken", 90 * DAY_MS)
    claimed(db, "standing")
    cases = {
        "done-10": {"task_id": "done", "started_at_ms": 90 * DAY_MS},
        "broken-10": {"task_id": "broken", "started_at_ms": 90 * DAY_MS},
        "broken-end": {"task_id": "broken", "started_at_ms": 90 * DAY_MS, "outcome": CallOutcome("crashed")},
        "standing-40": {"task_id": "standing", "started_at_ms": 60 * DAY_MS},
        "plain-10": {"started_at_ms": 90 * DAY_MS},
    }
    for call_id, changes in cases.items():
        db.write_sync(store.append_call, build.call("a", call_id, **changes))
    policy = retention_policy(RetentionSettings())
    assert await Janitor(db, Now(), policy, build.eraser("a"), keeping=claim_holds).sweep() == 1
    left = {call_id for call_id in cases if db.read_sync(store.get_call, call_id).record is not None}
    assert left == cases.keys() - {"done-10"}


def test_claims_that_a_restart_cut_off_count_as_having_gaps(db, build):
    claimed(db, "cut")
    db.write_sync(store.register_server, build.server("server"))
    db.write_sync(store.end_server, "server", NOW, "crashed")
    db.write_sync(claim_store.claims_of_ended_servers, NOW)
    holds = db.read_sync(claim_holds)
    assert (holds.open, holds.ended, holds.with_gaps) == (frozenset(), {"cut"}, {"cut"})
