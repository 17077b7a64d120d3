"""One commit in flight per identity, the first verdict stands, and a crash leaves no doubt out."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.verification import retention, store
from nova_mcp.verification.goals import steps as goal_steps
from nova_mcp.verification.goals import store as goal_store
from nova_mcp.verification.goals.model import NewGoal, PlannedStep
from nova_mcp.verification.goals.steps import Taker
from nova_mcp.verification.model import Assertion, AssertionSet, Contract
from nova_mcp.verification.receipts import Receipt, ReceiptRequest
from nova_mcp.verification.transitions import NewTransition, Settlement

CONTRACT = Contract(
    action_kind="submit_form",
    success=AssertionSet(
        any=(Assertion("page.urlChanged", "eq", True),),
        also=(AssertionSet(all=(Assertion("dom.#x", "exists"),)),),
    ),
    forbidden=AssertionSet(any=(Assertion("dom.#e@text", "eq", None),)),
    retry_policy_given=True,
    fresh_only=True,
    window_ms=900,
)
IDENTITY = "a" * 64
RECEIPT = Receipt(
    transition_id="t1",
    tool="nova.guarded_submit_form",
    element='e3 "Save"',
    requests=(
        ReceiptRequest(method="POST", url="https://shop.test/save", status=201),
        ReceiptRequest(method="POST", url="x"),
    ),
    appeared=("Saved ✓",),
    verdict="verified_success",
    started_at_ms=1_000,
    completed_at_ms=1_400,
    picture_after="shot1",
)


def new(transition_id, started=1_000, **changes):
    fields = {
        "caller": Caller("local", "agent", ServerId("s1")),
        "call_id": f"c-{transition_id}",
        "tool_name": "nova.click_selector",
        "target_id": "tab_1",
        "origin": "https://shop.test",
        "contract": CONTRACT,
        "element": 'e3 "Save"',
        "identity": IDENTITY,
    }
    return NewTransition(transition_id=transition_id, started_at_ms=started, **(fields | changes))


def ended(state="verified_success", at=2_000, **changes):
    return Settlement(state, completed_at_ms=at, **changes)


def test_a_transition_comes_back_exactly_as_it_was_written(db):
    assert db.write_sync(store.open_transition, new("t1", intent_key="k", goal_id="g", step_no=2))
    found = db.read_sync(store.find_transition, "local", "t1")
    assert (found.contract, found.element, found.intent_key, found.goal_id, found.step_no) == (
        CONTRACT,
        'e3 "Save"',
        "k",
        "g",
        2,
    )
    assert (found.state, found.completed_at_ms, found.lost_request, found.receipt) == ("open", None, False, None)
    assert db.read_sync(store.latest_of, "local", IDENTITY) == found


def test_another_principal_finds_nothing(db):
    db.write_sync(store.open_transition, new("t1"))
    assert db.read_sync(store.find_transition, "stranger", "t1") is None
    assert db.read_sync(store.latest_of, "stranger", IDENTITY) is None
    assert db.write_sync(store.open_transition, new("t2", caller=Caller("stranger", "agent", ServerId("s1"))))


def test_a_second_dispatch_of_an_identity_waits_for_the_first_ones_end(db):
    assert db.write_sync(store.open_transition, new("t1"))
    assert not db.write_sync(store.open_transition, new("t2"))
    assert db.read_sync(store.find_transition, "local", "t2") is None
    assert db.write_sync(store.open_transition, new("t3", identity="b" * 64))
    db.write_sync(store.settle, "t1", ended())
    assert db.write_sync(store.open_transition, new("t4"))


def test_acts_without_an_identity_never_stand_in_each_others_way(db):
    assert db.write_sync(store.open_transition, new("t1", identity=None))
    assert db.write_sync(store.open_transition, new("t2", identity=None))


def test_a_decision_made_before_another_dispatch_came_does_not_send(db):
    assert db.write_sync(store.open_transition, new("t1", follows=None))
    db.write_sync(store.settle, "t1", ended())
    assert not db.write_sync(store.open_transition, new("t2", follows=None))
    assert not db.write_sync(store.open_transition, new("t2", follows="t0"))
    assert db.write_sync(store.open_transition, new("t2", started=3_000, follows="t1"))


def test_what_provably_sent_nothing_is_no_earlier_dispatch(db):
    db.write_sync(store.open_transition, new("t1"))
    db.write_sync(store.settle, "t1", ended("verified_fail"))
    db.write_sync(store.open_transition, new("t2", started=3_000))
    db.write_sync(store.settle, "t2", ended("not_dispatched", reason="action.obstructed"))
    latest = db.read_sync(store.latest_of, "local", IDENTITY)
    assert latest.transition_id == "t1"
    assert latest.as_earlier().state == "verified_fail"
    assert db.read_sync(store.last_dispatched).transition_id == "t1"
    assert db.write_sync(store.open_transition, new("t3", started=4_000, follows="t1"))


def test_the_newest_dispatch_counts_and_one_in_flight_says_so(db):
    db.write_sync(store.open_transition, new("t1"))
    db.write_sync(store.settle, "t1", ended())
    db.write_sync(store.open_transition, new("t2", started=5_000))
    earlier = db.read_sync(store.latest_of, "local", IDENTITY).as_earlier()
    assert (earlier.transition_id, earlier.state, earlier.completed_at_ms) == ("t2", "in_flight", 5_000)


def test_the_first_settlement_stands_and_its_receipt_is_kept(db):
    db.write_sync(store.open_transition, new("t1"))
    assert db.write_sync(store.settle, "t1", ended(lost_request=True, receipt=RECEIPT))
    assert not db.write_sync(store.settle, "t1", ended("verified_fail", at=9_000))
    found = db.read_sync(store.find_transition, None, "t1")
    assert (found.state, found.completed_at_ms, found.lost_request) == ("verified_success", 2_000, True)
    assert found.receipt == found.as_receipt() == RECEIPT


@pytest.mark.parametrize("state", ["verified_success", "verified_fail"])
def test_a_later_look_resolves_only_what_was_undecided(db, state):
    db.write_sync(store.open_transition, new("t1"))
    assert not db.write_sync(store.resolve, "t1", state, "c9")
    db.write_sync(store.settle, "t1", ended("indeterminate", reason="timeout"))
    assert db.write_sync(store.resolve, "t1", state, "c9")
    assert not db.write_sync(store.resolve, "t1", "verified_fail", "c10")
    found = db.read_sync(store.find_transition, "local", "t1")
    assert (found.state, found.resolved_by, found.completed_at_ms) == (state, "c9", 2_000)


def test_a_transition_nobody_wrote_a_receipt_for_still_tells_what_is_known(db):
    db.write_sync(store.open_transition, new("t1"))
    receipt = db.read_sync(store.find_transition, "local", "t1").as_receipt()
    assert (receipt.transition_id, receipt.verdict, receipt.element) == ("t1", "pending", 'e3 "Save"')


def in_flight_with_a_goal(db, build):
    """A dead server's commit in flight, as step 1 of a goal."""
    for server in ("dead", "alive"):
        db.write_sync(ledger.register_server, build.server(server))
    steps = (PlannedStep("pay"), PlannedStep("print"))
    goal = NewGoal("g1", "local", "agent", "Buy it", 1_000, 120_000, target_id="tab_1", steps=steps)
    db.write_sync(goal_store.create_goal, goal)

    def dispatch(conn):
        ledger.append_call(conn, build.call("dead", "i1", kind="intent", effect="commit"))
        goal_steps.prepare_step(conn, "local", "tab_1", Taker("i1", "agent", 60_000), 1_000)
        dead = Caller("local", "agent", ServerId("dead"))
        return store.open_transition(conn, new("i1", caller=dead, goal_id="g1", step_no=1))

    assert db.write_sync(dispatch)


def recover(conn):
    closed = ledger.recover(conn, 5_000, "alive", lambda row: row.server_id != "dead", lambda: "r1")
    for call in closed:
        store.settle_recovered(conn, call.record, call.link)
    return len(closed)


def test_what_a_dead_server_left_in_flight_is_indeterminate_and_its_step_ambiguous(db, build):
    in_flight_with_a_goal(db, build)
    assert db.read_sync(goal_store.find_goal, "local", "g1", 2_000).step.verification_status == "pending"
    assert db.write_sync(recover) == 1
    found = db.read_sync(store.latest_of, "local", IDENTITY)
    assert (found.state, found.reason, found.completed_at_ms) == ("indeterminate", "timeout", 5_000)
    step = db.read_sync(goal_store.find_goal, "local", "g1", 5_000).step
    assert (step.step_no, step.status, step.verification_status) == (1, "ambiguous", "indeterminate")
    assert db.write_sync(store.open_transition, new("t2", started=6_000, follows="i1"))


def test_resolving_it_later_moves_the_goal_on(db, build):
    in_flight_with_a_goal(db, build)
    db.write_sync(recover)
    assert db.write_sync(store.resolve, "i1", "verified_success", "c9")
    goal = db.read_sync(goal_store.find_goal, "local", "g1", 5_000)
    assert [step.status for step in goal.steps] == ["done", "ready"]
    assert goal.current_step == 2


def test_a_recovery_that_closes_no_transition_changes_nothing(db, build):
    for server in ("dead", "alive"):
        db.write_sync(ledger.register_server, build.server(server))
    db.write_sync(ledger.append_call, build.call("dead", "i1", kind="intent", effect="commit"))
    db.write_sync(store.open_transition, new("t1"))
    assert db.write_sync(recover) == 1
    assert db.read_sync(store.find_transition, "local", "t1").state == "open"


def test_old_transitions_go_and_open_ones_stay(db):
    for name, at in (("t1", 2_000), ("t2", 9_000)):
        db.write_sync(store.open_transition, new(name, identity=None))
        db.write_sync(store.settle, name, ended(at=at))
    db.write_sync(store.open_transition, new("t3"))
    assert db.read_sync(retention.due_to_go, 9_000) == 1
    assert db.write_sync(retention.prune_transitions, 9_000) == 1
    left = [name for name in ("t1", "t2", "t3") if db.read_sync(store.find_transition, None, name)]
    assert left == ["t2", "t3"]
    assert db.write_sync(retention.forgetting(1), 9_001 + DAY_MS) == 1


def test_of_four_writers_that_commit_the_same_thing_at_once_one_sends(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    for number in range(12):
        gate = threading.Barrier(4)
        identity = f"{number:064d}"

        def send(writer, gate=gate, identity=identity, number=number):
            gate.wait()
            return bases[writer].write_sync(
                store.open_transition, new(f"t{number}-{writer}", identity=identity, follows=None)
            )

        with ThreadPoolExecutor(4) as threads:
            sent = list(threads.map(send, range(4)))
        assert sum(sent) == 1
        winner = f"t{number}-{sent.index(True)}"
        assert bases[0].read_sync(store.latest_of, "local", identity).transition_id == winner


def test_of_four_writers_that_each_send_and_settle_none_follows_an_outdated_decision(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    gate = threading.Barrier(4)

    def whole(writer):
        gate.wait()
        one = new(f"t{writer}", started=1_000 + writer, follows=None)
        if not bases[writer].write_sync(store.open_transition, one):
            return 0
        bases[writer].write_sync(store.settle, one.transition_id, ended())
        return 1

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(whole, range(4))) == 1


def test_a_transition_that_was_rolled_back_with_its_intent_holds_nothing(db):
    def broken(conn):
        assert store.open_transition(conn, new("t1"))
        raise RuntimeError("the intent could not be written")

    with pytest.raises(RuntimeError):
        db.write_sync(broken)
    assert db.write_sync(store.open_transition, replace(new("t2"), follows=None))
