"""Runs on both stores: one winner per revision, the same state from the events, an end that stays."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, func, select, update

from nova_mcp.errors import NovaError
from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.pruner import PruneRequest, prune
from nova_mcp.evidence.rules import DAY_MS, RetentionPolicy
from nova_mcp.memory.retention import holds
from nova_mcp.memory.tasks.answers import Aborted, Completed, Progressed
from nova_mcp.memory.tasks.coverage import evidence_store
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs import retention
from nova_mcp.memory.tasks.runs.create import Created, RunWish
from nova_mcp.memory.tasks.runs.read import Wanted, look
from nova_mcp.memory.tasks.runs.replay import rebuilt, stored_state
from nova_mcp.memory.tasks.runs.rules import Report
from nova_mcp.memory.tasks.runs.store import members, run_of
from nova_mcp.memory.tasks.runs.transactions import NotDone, Occasion, Runs
from nova_mcp.memory.tasks.tables import (
    task_finding,
    task_instance,
    task_instance_event,
    task_instance_member,
    task_unit,
)
from run_kit import (
    ADA,
    BOB,
    CREATOR,
    EVE,
    NOW,
    RUNS,
    Story,
    begin,
    change,
    findings,
    found,
    items,
    moved,
    moved_pages,
    new_id,
    pages,
    passed,
    tried,
)

STATUSES = ("discovered", "checked", "excluded", "blocked", "failed")
REPORTS = st.fixed_dictionaries(
    {},
    optional={
        "discovered": st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(lambda keys: found(*keys)),
        "updates": st.tuples(st.sampled_from(STATUSES), st.sampled_from("abcd")).map(lambda one: moved(*one)),
        "findings": st.lists(st.sampled_from("xyz"), max_size=2).map(lambda keys: findings(*keys)),
        "checks": st.sampled_from(["c1", "c2", "c3"]).map(passed),
        "resume": st.dictionaries(st.sampled_from(["cursor", "lastAction"]), st.none() | st.text(max_size=5)),
        "discovery": st.sampled_from(["unknown", "partial", "frozen"]),
        "note": st.text(max_size=5),
    },
)


@pytest.fixture(scope="module")
def one_store(tmp_path_factory):
    from nova_mcp.storage.engine import Database

    with Database.open(f"sqlite:///{tmp_path_factory.mktemp('runs') / 'nova.db'}") as db:
        yield db


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(REPORTS, max_size=8), st.sampled_from(["", "complete", "abort"]))
def test_events_rebuild_the_run_and_refusals_change_nothing(one_store, reports, ending):
    def work(conn):
        story, applied = Story(conn, begin(conn)), 0
        for report in reports:
            before = stored_state(conn, story.now)
            outcome = tried(lambda report=report: story.tell(**report))
            if isinstance(outcome, Progressed):
                applied += 1
                assert outcome.instance_rev == applied
            else:
                assert stored_state(conn, story.now) == before
        if ending:
            applied += isinstance(getattr(story, ending)(), Completed | Aborted)
        run = story.now
        assert run.state.rev == applied
        assert rebuilt(conn, run) == stored_state(conn, run)
        events = conn.execute(
            select(func.count())
            .select_from(task_instance_event)
            .where(task_instance_event.c.instance_id == run.instance_id)
        ).scalar()
        assert events == applied

    one_store.write_sync(work)


def test_resending_any_event_changes_nothing(db):
    def work(conn):
        story = Story(conn, begin(conn))
        first = story.tell("e1", discovered=found("a"), checks=passed("c1", "c2"))
        second = story.tell("e2", updates=moved("checked", "a"), discovery="frozen")
        third = story.complete("e3")
        state = stored_state(conn, story.now)
        again = [story.tell("e1", rev=0), story.tell("e2", rev=99), story.complete("e3")]
        assert [one.duplicate for one in again] == [True, True, True]
        assert [one.instance_rev for one in again] == [first.instance_rev, second.instance_rev, third.instance_rev]
        assert stored_state(conn, story.now) == state
        another = change(story.run, 3, "e1", payload="another")
        with pytest.raises(NovaError) as reused:
            RUNS.progress(conn, Occasion(ADA, NOW), another, Report(note="x"))
        assert reused.value.reason_code == "event_id_reused"
        with pytest.raises(NovaError):
            RUNS.abort(conn, Occasion(ADA, NOW), change(story.run, 3, "e1", "abort"), "aborted", "why")

    db.write_sync(work)


def test_a_refused_call_may_be_sent_again_under_its_id(db):
    def work(conn):
        story = Story(conn, begin(conn))
        assert story.tell("e1", rev=5, note="x") == Refused("rev_conflict", {"instanceRev": 0, "status": "pending"})
        with pytest.raises(NovaError):
            story.tell("e1", updates=moved("checked", "zz"))
        assert isinstance(story.tell("e1", note="x"), Progressed)

    db.write_sync(work)


@pytest.mark.parametrize("ending", ["aborted", "failed"])
def test_an_ended_run_never_changes(db, ending):
    def work(conn):
        story = Story(conn, begin(conn))
        story.tell(discovered=found("a"))
        assert story.abort(ending) == Aborted(2, ending, "active")
        state, row = stored_state(conn, story.now), story.now
        for outcome in (story.tell(note="x"), story.complete(), story.abort()):
            assert outcome == Refused("terminal_status", {"instanceRev": 2, "status": ending})
        assert (stored_state(conn, story.now), story.now) == (state, row)

    db.write_sync(work)


def test_the_checks_come_in_their_order(db):
    """Unknown run, repeated id, ended run, revision, then content."""

    def work(conn):
        story = Story(conn, begin(conn))
        assert story.tell("e1", note="x").instance_rev == 1
        conflict = story.tell("e2", rev=0, updates=moved("checked", "zz"))
        assert conflict == Refused("rev_conflict", {"instanceRev": 1, "status": "active"})
        assert story.abort().status == "aborted"
        assert story.tell("e1", rev=7, note="x").duplicate
        assert story.tell("e3", rev=7).reason_code == "terminal_status"

    db.write_sync(work)


def test_pending_runs_may_end_at_once_and_complete_once_all_holds(db):
    def work(conn):
        assert Story(conn, begin(conn)).abort() == Aborted(1, "aborted", "pending")
        quick = Story(conn, begin(conn, items(mode="threshold")))
        refused = quick.complete()
        assert isinstance(refused, NotDone)
        assert refused.reason_code == "threshold_not_met"
        assert quick.now.state.rev == 0
        quick.tell(discovered=found("a"), updates=moved("checked", "a"))
        assert isinstance(quick.complete(), Completed)
        assert quick.now.state.status == "completed"

    db.write_sync(work)


def test_agents_join_by_reporting_and_another_principal_sees_nothing(db):
    def work(conn):
        run = begin(conn)
        Story(conn, run, BOB, NOW + 5).tell(note="helping")
        Story(conn, run, BOB, NOW + 9).tell(note="still")
        refused = Story(conn, run, ("local", "cid")).tell(rev=9, note="x")
        assert isinstance(refused, Refused)
        assert [(one.agent_id, one.joined_at_ms) for one in members(conn, run.instance_id)] == [
            ("ada", NOW),
            ("bob", NOW + 5),
        ]
        for call in (
            lambda: RUNS.progress(conn, Occasion(EVE, NOW), change(run, 2), Report(note="x")),
            lambda: RUNS.abort(conn, Occasion(EVE, NOW), change(run, 2, None, "abort"), "aborted", "why"),
            lambda: look(conn, RUNS, Occasion(EVE, NOW), run.instance_id, Wanted()),
        ):
            with pytest.raises(NovaError) as missing:
                call()
            assert missing.value.reason_code == "task.instance_not_found"

    db.write_sync(work)


def test_registering_many_pages_asks_the_store_a_few_times(db):
    """Lookups go by the hundred, so that the work grows with what was seen and not with what is registered."""

    def work(conn):
        seen = Runs("block", evidence_store)
        story = Story(conn, begin(conn, items(kind="page"), target_url="https://shop.example/"), runs=seen)
        asked = []
        event.listen(conn, "before_cursor_execute", lambda *statement: asked.append(statement[2]))
        story.tell(discovered=pages(*(f"/{number}" for number in range(400))))
        return len(asked)

    assert db.write_sync(work) < 60


# -- racing


def race(url, open_db, number, work):
    """The same work at the same time through connections of their own; what each got."""
    start = threading.Barrier(number)
    stores = [open_db(url) for _ in range(number)]

    def one(place):
        start.wait(30)
        return stores[place].write_sync(work, place)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(one, range(number)))


def test_of_calls_with_one_revision_exactly_one_applies(store_url, open_db):
    db = open_db(store_url)
    run = db.write_sync(begin)

    def work(conn, place):
        return RUNS.progress(
            conn, Occasion(ADA, NOW), change(run, 0, f"e{place}"), Report(discovered=found(f"u{place}"))
        )

    for _ in range(3):
        outcomes = race(store_url, open_db, 4, work)
        kinds = sorted(type(one).__name__ for one in outcomes)
        assert kinds == ["Progressed", "Refused", "Refused", "Refused"]
        assert {one.reason_code for one in outcomes if isinstance(one, Refused)} == {"rev_conflict"}
        run = db.write_sync(begin)


def test_one_event_sent_at_once_by_many_is_applied_once(store_url, open_db):
    db = open_db(store_url)
    run = db.write_sync(begin)

    def work(conn, place):
        return RUNS.progress(conn, Occasion(ADA, NOW), change(run, 0, "e"), Report(discovered=found("a")))

    outcomes = race(store_url, open_db, 4, work)
    assert sorted(one.duplicate for one in outcomes) == [False, True, True, True]
    assert {(one.instance_rev, one.tally.total) for one in outcomes} == {(1, 1)}


def test_one_creation_sent_at_once_by_many_makes_one_run(store_url, open_db):
    wish = RunWish(content=items(), event_id="start", payload_hash="h")

    def work(conn, place):
        return CREATOR.create(conn, Occasion(ADA, NOW), wish, new_id())

    outcomes = race(store_url, open_db, 4, work)
    assert all(isinstance(one, Created) for one in outcomes)
    assert sorted(one.duplicate for one in outcomes) == [False, True, True, True]
    assert len({one.run.instance_id for one in outcomes}) == 1


def test_the_same_creation_is_the_same_run_for_a_day(db):
    def create(conn, at_ms, payload="h", owner=ADA):
        wish = RunWish(content=items(), event_id="start", payload_hash=payload)
        return CREATOR.create(conn, Occasion(owner, at_ms), wish, new_id())

    def work(conn):
        first = create(conn, NOW)
        assert create(conn, NOW + DAY_MS) == Created(first.run, duplicate=True)
        with pytest.raises(NovaError) as reused:
            create(conn, NOW, "other")
        assert reused.value.reason_code == "event_id_reused"
        assert not create(conn, NOW, owner=BOB).duplicate
        later = create(conn, NOW + DAY_MS + 1)
        assert not later.duplicate
        assert create(conn, NOW + DAY_MS + 2).run.instance_id == later.run.instance_id

    db.write_sync(work)


def test_a_refused_creation_leaves_the_event_id_of_an_old_run_alone(db):
    def work(conn):
        first = begin(conn, items(), event_id="start", payload_hash="h")
        wish = RunWish(profile_id="unknown", event_id="start", payload_hash="h")
        with pytest.raises(NovaError):
            CREATOR.create(conn, Occasion(ADA, NOW + DAY_MS + 1), wish, new_id())
        assert run_of(conn, ADA[0], first.instance_id) == first

    db.write_sync(work)


def test_a_process_killed_while_it_reports_loses_nothing_it_was_told(store_url, open_db, spawn):
    db = open_db(store_url)
    run = db.write_sync(begin, items())
    worker = spawn("report", store_url, run.instance_id)
    assert worker.stdout.readline() == "ready\n"
    worker.stdin.write("go\n")
    worker.stdin.flush()
    told = [worker.stdout.readline().strip() for _ in range(20)]
    worker.kill()
    told += [line.strip() for line in worker.stdout if line.endswith("\n")]
    worker.wait()

    def work(conn):
        now = run_of(conn, ADA[0], run.instance_id)
        assert now.state.rev >= len(told)
        assert rebuilt(conn, now) == stored_state(conn, now)
        # Whatever was answered is answered again; the next report goes on where the dead one stopped.
        story = Story(conn, run)
        assert [story.tell(event_id, rev=0).duplicate for event_id in told] == [True] * len(told)
        assert story.tell(note="on").instance_rev == now.state.rev + 1

    db.write_sync(work)


# -- time


def rows(conn, table, run):
    return conn.execute(select(func.count()).select_from(table).where(table.c.instance_id == run.instance_id)).scalar()


def test_a_run_that_is_idle_for_90_days_ends(db):
    def work(conn):
        story = Story(conn, begin(conn))
        story.tell(discovered=found("a"), checks=passed("c1"))
        due = NOW + 90 * DAY_MS
        assert retention.expire(conn, due) == 0
        assert retention.due_to_go(conn, due + 1) == 1
        assert retention.expire(conn, due + 1) == 1
        run = story.now
        assert (run.state.status, run.state.ended_reason, run.state.rev) == ("aborted", "idle_expired", 2)
        assert run.ended_at_ms == due + 1
        assert rebuilt(conn, run) == stored_state(conn, run)
        view = look(conn, RUNS, Occasion(ADA, due + 2), run.instance_id, Wanted(event_limit=1))
        assert (view.reason_code, view.events[0].kind) == ("idle_expired", "expire")
        assert retention.expire(conn, due + 2) == 0
        assert (
            conn.execute(
                select(func.count())
                .select_from(task_instance_member)
                .where(task_instance_member.c.ended_at_ms.is_(None))
            ).scalar()
            == 0
        )

    db.write_sync(work)


def test_details_go_180_days_after_the_end_and_the_proof_stays(db):
    def work(conn):
        story = Story(conn, begin(conn, items(mode="threshold")))
        story.tell(discovered=found("a", "b"), updates=moved("checked", "a"), findings=findings("f"))
        assert isinstance(story.complete(), Completed)
        before = look(conn, RUNS, Occasion(ADA, NOW), story.run.instance_id, Wanted())
        due = NOW + 180 * DAY_MS
        assert retention.forget(conn, due) == 0
        assert retention.forget(conn, due + 1) == 1
        assert [rows(conn, table, story.run) for table in (task_unit, task_finding, task_instance_event)] == [0, 0, 0]
        after = look(conn, RUNS, Occasion(ADA, due + 2), story.run.instance_id, Wanted())
        assert after.proof == before.proof
        assert after.proof.tally.total == 2
        assert after.completion_allowed
        assert retention.forgetting(conn, due + 2) == 0

    db.write_sync(work)


def test_open_runs_keep_the_calls_of_their_members(db, build):
    old = NOW + 60 * DAY_MS

    def work(conn):
        ledger.register_server(conn, build.server("s1"))
        run = begin(conn)
        caller = {"caller": ledger.Caller("local", "ada", "s1")}
        for call_id, at_ms in (("before", NOW - 30_001), ("inside", NOW - 30_000)):
            ledger.append_call(conn, build.call("s1", call_id, started_at_ms=at_ms, **caller))
        ledger.append_call(conn, build.call("s1", "stranger", started_at_ms=NOW))
        request = PruneRequest(None, RetentionPolicy(), holds(conn), dry_run=True)
        assert prune(conn, old, request).kept == {"open_run": 1}
        Story(conn, run).abort()
        assert prune(conn, old, PruneRequest(None, RetentionPolicy(), holds(conn), dry_run=True)).kept == {}

    db.write_sync(work)


def test_a_gap_in_the_ledger_turns_none_into_unknown(db):
    def work(conn):
        story = Story(conn, begin(conn, items("require_observed", kind="page"), target_url="https://shop.example/"))
        story.tell(discovered=(*pages("/a"),), updates=moved_pages("checked", "/a"), discovery="frozen")
        before = RUNS.standing(conn, story.now, Occasion(ADA, NOW)).evidence
        conn.execute(update(task_instance).values(ledger_gap=True))
        after = RUNS.standing(conn, story.now, Occasion(ADA, NOW)).evidence
        assert (before.none, before.unknown, before.ingestion_complete) == (1, 0, True)
        assert (after.none, after.unknown, after.ingestion_complete) == (0, 1, False)
        assert after.top_exceptions[0].grade.reason_code == "ingestion_incomplete"

    db.write_sync(work)
