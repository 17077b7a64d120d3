"""Goals survive context and server; their steps move one way, by one act at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nova_mcp.evidence.model import Caller, CallOutcome, PageState, ServerId
from nova_mcp.verification.goals import steps as goal_steps
from nova_mcp.verification.goals import store
from nova_mcp.verification.goals.model import Annotated, Closed, NewGoal, Note, PlannedStep, Unknown
from nova_mcp.verification.goals.rules import REVIVAL_MS, Ended, Ownership
from nova_mcp.verification.goals.steps import Prepared, Rejected, StepEnd, Taker

LEASE = 120_000


def goal(goal_id="g1", at=1_000, steps=2, **changes):
    fields = {
        "principal": "local",
        "created_by": "agent",
        "summary": "Buy a lamp",
        "lease_ms": LEASE,
        "target_id": "tab_1",
        "steps": tuple(PlannedStep(f"step {number}", '{"actionKind":"submit_form"}') for number in range(1, steps + 1)),
    }
    return NewGoal(goal_id=goal_id, created_at_ms=at, **(fields | changes))


@pytest.fixture
def registered(db):
    db.write_sync(store.create_goal, goal())
    return db


def find(db, now=1_500, goal_id="g1", principal="local"):
    return db.read_sync(store.find_goal, principal, goal_id, now)


def statuses(db, now=1_500):
    return [step.status for step in find(db, now).steps]


def taker(token="t1", agent="agent", until=60_000, **more):
    return Taker(token, agent, until, **more)


def prepare(db, who, now=2_000):
    return db.write_sync(goal_steps.prepare_step, "local", "tab_1", who, now)


def settle(db, outcome, token="t1", at=3_000, step_no=1):
    proof = "verified_success" if outcome == "done" else None
    return db.write_sync(goal_steps.settle_step, "g1", step_no, token, StepEnd(outcome, at, proof))


def test_a_goal_comes_back_as_it_was_registered(registered):
    found = find(registered)
    assert (found.summary, found.state, found.target_id, found.created_at_ms) == (
        "Buy a lamp",
        "active",
        "tab_1",
        1_000,
    )
    assert found.lease.expires_at_ms == 1_000 + LEASE
    assert [(step.action_desc, step.status) for step in found.steps] == [("step 1", "ready"), ("step 2", "planned")]
    assert (found.current_step, found.open_step.contract) == (1, '{"actionKind":"submit_form"}')
    assert [event.kind for event in registered.read_sync(store.goal_events, "g1", 50)] == ["created"]


def test_a_goal_without_steps_has_no_current_one(db):
    db.write_sync(store.create_goal, goal(steps=0))
    assert (find(db).current_step, find(db).step) == (0, None)
    assert prepare(db, taker()) == Prepared("g1", None)


def test_another_principal_knows_nothing_of_it(registered):
    assert find(registered, principal="stranger") is None
    assert registered.read_sync(store.list_goals, "stranger", None, 1_500) == []
    assert registered.read_sync(store.active_goal, "stranger", "tab_1", 1_500) is None
    assert registered.write_sync(store.close_goal, "stranger", "g1", "failed", 1_500) == Unknown()
    assert registered.write_sync(store.annotate_goal, "stranger", "g1", Note("x", "agent"), 1_500) == Unknown()


def test_the_list_is_newest_first_and_ends_at_fifty(db):
    for number in range(53):
        target = "tab_2" if number % 2 else "tab_1"
        db.write_sync(store.create_goal, goal(f"g{number:02d}", at=1_000 + number, target_id=target, steps=1))
    listed = db.read_sync(store.list_goals, "local", None, 1_500)
    assert [one.goal_id for one in listed] == [f"g{number:02d}" for number in range(52, 2, -1)]
    assert all(len(one.steps) == 1 for one in listed)
    only = db.read_sync(store.list_goals, "local", "tab_2", 1_500)
    assert [one.goal_id for one in only] == [f"g{number:02d}" for number in range(51, 0, -2)]


def test_of_several_active_goals_on_a_target_the_newest_counts(registered):
    registered.write_sync(store.create_goal, goal("g2", at=1_100))
    registered.write_sync(store.create_goal, goal("g3", at=1_200, target_id="tab_2"))
    assert registered.read_sync(store.active_goal, "local", "tab_1", 1_500).goal_id == "g2"
    registered.write_sync(store.close_goal, "local", "g2", "completed", 1_300)
    assert registered.read_sync(store.active_goal, "local", "tab_1", 1_500).goal_id == "g1"


# -- ending, annotating, leases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["completed", "failed", "aborted"])
def test_a_goal_ends_once_and_then_takes_nothing_more(registered, state):
    assert registered.write_sync(store.close_goal, "local", "g1", state, 2_000) == Closed("active")
    assert find(registered).state == state
    assert registered.write_sync(store.close_goal, "local", "g1", "aborted", 2_001) == Ended(state)
    assert registered.write_sync(store.annotate_goal, "local", "g1", Note("x", "a"), 2_001) == Ended(state)
    assert registered.read_sync(store.active_goal, "local", "tab_1", 2_001) is None
    assert prepare(registered, taker()) is None


def test_giving_up_aborts_the_open_steps_and_completing_leaves_them_as_they_are(registered):
    prepare(registered, taker())
    settle(registered, "done")
    registered.write_sync(store.close_goal, "local", "g1", "aborted", 4_000)
    assert statuses(registered) == ["done", "aborted"]
    registered.write_sync(store.create_goal, goal("g2"))
    registered.write_sync(store.close_goal, "local", "g2", "completed", 4_000)
    assert [step.status for step in find(registered, goal_id="g2").steps] == ["ready", "planned"]


def test_a_lease_that_runs_out_orphans_and_an_annotation_revives_within_a_day(registered):
    over = 1_000 + LEASE
    assert find(registered, over - 1).state == "active"
    assert find(registered, over).state == "orphaned"
    assert registered.read_sync(store.active_goal, "local", "tab_1", over) is None
    assert not registered.write_sync(store.renew_lease, "g1", over)
    late = over + REVIVAL_MS - 1
    assert registered.write_sync(store.annotate_goal, "local", "g1", Note("still on it", "agent"), late) == (
        Annotated("g1.3")
    )
    assert find(registered, late).state == "active"
    events = registered.read_sync(store.goal_events, "g1", 2)
    assert [(event.event_id, event.kind) for event in events] == [("g1.2", "revived"), ("g1.3", "annotation")]


def test_after_a_day_an_orphan_takes_no_annotation_but_can_be_put_away(registered):
    late = 1_000 + LEASE + REVIVAL_MS
    assert registered.write_sync(store.annotate_goal, "local", "g1", Note("x", "a"), late) == Ended("orphaned")
    assert registered.write_sync(store.close_goal, "local", "g1", "aborted", late) == Closed("orphaned")


def test_acts_and_annotations_renew_the_lease(registered):
    registered.write_sync(store.annotate_goal, "local", "g1", Note("x", "a"), 50_000)
    assert find(registered).lease.expires_at_ms == 50_000 + LEASE
    prepare(registered, taker(until=200_000), now=90_000)
    assert find(registered).lease.expires_at_ms == 90_000 + LEASE


def test_a_goal_is_not_given_up_while_its_own_step_runs(registered):
    until = 1_000 + 3 * LEASE
    prepare(registered, taker(until=until))
    assert find(registered, until - 1).state == "active"
    assert settle(registered, "done", at=until - 1)
    assert find(registered, until + LEASE - 2).state == "active"
    assert find(registered, until + LEASE - 1).state == "orphaned"


@pytest.mark.parametrize(
    ("changes", "renewed"),
    [
        ({}, True),
        ({"effect": "navigate"}, True),
        ({"effect": "read"}, False),
        ({"kind": "intent"}, False),
        ({"outcome": CallOutcome("failed", action_dispatched=False)}, False),
        ({"before": PageState(target_id="tab_2")}, False),
        ({"before": PageState()}, False),
        ({"caller": Caller("local", "other", ServerId("s1"))}, False),
        ({"caller": Caller("stranger", "agent", ServerId("s1"))}, False),
        ({"started_at_ms": 1_000 + LEASE}, False),
    ],
)
def test_what_its_owner_does_on_the_target_renews_a_goal(db, build, changes, renewed):
    db.write_sync(store.create_goal, goal(owner=Ownership("agent")))
    given = {
        "started_at_ms": 50_000,
        "before": PageState(target_id="tab_1"),
        "outcome": CallOutcome("ok", action_dispatched=True),
    }
    record = build.call("s1", "c1", **(given | changes))
    db.write_sync(store.renew_after_act, record, None)
    assert find(db).lease.expires_at_ms == (50_005 if renewed else 1_000) + LEASE


# -- steps -----------------------------------------------------------------------------------------------------------


def test_an_act_takes_the_current_step_and_success_moves_the_goal_on(registered):
    assert prepare(registered, taker()) == Prepared("g1", 1)
    assert statuses(registered) == ["dispatched", "planned"]
    assert registered.write_sync(goal_steps.verifying_step, "g1", 1, "t1", 2_100)
    assert find(registered).step.verification_status == "pending"
    assert settle(registered, "done")
    assert statuses(registered) == ["done", "ready"]
    assert prepare(registered, taker("t2", goal_id="g1", step_no=2), now=4_000) == Prepared("g1", 2)
    assert settle(registered, "done", "t2", 5_000, step_no=2)
    assert (find(registered).current_step, find(registered).open_step) == (2, None)


def test_a_step_in_somebodys_hands_is_not_dispatched_again_until_its_lease_is_over(registered):
    prepare(registered, taker("t1", until=60_000))
    assert prepare(registered, taker("t2"), now=59_999) == Rejected("g1", 1, "in_flight")
    assert prepare(registered, taker("t2", until=90_000), now=60_000) == Prepared("g1", 1, retry=True)
    assert not settle(registered, "done", "t1", at=61_000)
    assert settle(registered, "done", "t2", at=61_000)


@pytest.mark.parametrize(
    ("outcome", "retry"), [("ambiguous", True), ("failed", True), ("ready", False), ("blocked", False)]
)
def test_a_step_that_did_not_succeed_is_tried_again_by_the_next_act(registered, outcome, retry):
    prepare(registered, taker())
    assert settle(registered, outcome)
    assert find(registered).current_step == 1
    assert prepare(registered, taker("t2"), now=4_000) == Prepared("g1", 1, retry=retry)


def test_an_end_is_written_once_and_only_by_the_holder(registered):
    prepare(registered, taker())
    assert not settle(registered, "done", "somebody")
    assert settle(registered, "done")
    assert not settle(registered, "failed")
    assert statuses(registered) == ["done", "ready"]


def test_a_step_of_a_goal_that_was_given_up_stays_aborted(registered):
    prepare(registered, taker())
    registered.write_sync(store.close_goal, "local", "g1", "aborted", 2_500)
    assert not settle(registered, "done")
    assert statuses(registered) == ["aborted", "aborted"]


@pytest.mark.parametrize(
    ("owner", "who"),
    [
        (Ownership("other"), taker()),
        (Ownership("agent", "session-1"), taker()),
        (Ownership(None, "session-1"), taker(session_id="session-2")),
    ],
)
def test_a_bound_goals_step_is_not_for_others(db, owner, who):
    db.write_sync(store.create_goal, goal(owner=owner))
    assert prepare(db, who) == Rejected("g1", 1, "other_owner")
    assert statuses(db) == ["ready", "planned"]


def test_a_claim_on_a_step_that_has_passed_is_refused(registered):
    prepare(registered, taker())
    settle(registered, "done")
    assert prepare(registered, taker("t2", goal_id="g1", step_no=1), now=4_000) == Rejected("g1", 2, "not_current")


def test_a_page_that_is_not_ready_blocks_the_step_and_the_next_act_takes_it(registered):
    assert registered.write_sync(goal_steps.block_step, "g1", 1, 2_000)
    assert statuses(registered) == ["blocked", "planned"]
    assert prepare(registered, taker()) == Prepared("g1", 1)


def test_old_goals_go_with_their_steps_and_events(registered):
    registered.write_sync(store.close_goal, "local", "g1", "completed", 2_000)
    registered.write_sync(store.create_goal, goal("g2", at=3_000))
    assert registered.write_sync(store.prune_goals, 2_500) == 1
    assert (find(registered), find(registered, goal_id="g2").state) == (None, "active")
    assert registered.read_sync(store.goal_events, "g1", 50) == []
    assert registered.write_sync(store.prune_goals, 3_001 + LEASE) == 0
    assert registered.write_sync(store.prune_goals, 3_001 + LEASE + REVIVAL_MS) == 1


# -- races -----------------------------------------------------------------------------------------------------------


def at_once(count, act):
    gate = threading.Barrier(count)

    def one(number):
        gate.wait()
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))


def test_of_four_acts_that_come_together_one_gets_the_step(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    for number in range(8):
        bases[0].write_sync(store.create_goal, goal(f"g{number}", at=1_000 + number))
        answers = at_once(4, lambda writer, n=number: prepare(bases[writer], taker(f"t{n}-{writer}")))
        assert sorted(type(answer).__name__ for answer in answers) == ["Prepared", *["Rejected"] * 3]
        assert {answer.why for answer in answers if isinstance(answer, Rejected)} == {"in_flight"}


def test_four_writers_annotate_at_once_and_every_note_is_kept(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    bases[0].write_sync(store.create_goal, goal())

    def annotate(writer):
        note = Note(f"note {writer}", "agent")
        return [bases[writer].write_sync(store.annotate_goal, "local", "g1", note, 2_000) for _ in range(10)]

    ids = [answer.event_id for answers in at_once(4, annotate) for answer in answers]
    assert len(set(ids)) == 40
    assert len(bases[0].read_sync(store.goal_events, "g1", 200)) == 41


def test_of_four_that_close_a_goal_at_once_one_did(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]
    bases[0].write_sync(store.create_goal, goal())
    answers = at_once(4, lambda writer: bases[writer].write_sync(store.close_goal, "local", "g1", "completed", 2_000))
    assert sorted(type(answer).__name__ for answer in answers) == ["Closed", *["Ended"] * 3]
