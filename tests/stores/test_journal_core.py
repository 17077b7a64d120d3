"""The journal's core on both databases: what a call leaves, once, in its own transaction, whoever else writes."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from nova_mcp.evidence import store
from nova_mcp.evidence.model import CallOutcome, PageState, Signals, Touched
from nova_mcp.memory.claims.rules import Claim
from nova_mcp.memory.claims.store import Taking, claim_taken, claims_expired
from nova_mcp.memory.journal import candidate_store, service
from nova_mcp.memory.journal import store as journal
from nova_mcp.memory.journal.candidate_store import candidate, curated_entry
from nova_mcp.memory.journal.candidates import Place, Raise, evidence_score, strength
from nova_mcp.memory.journal.finalize_store import conclusion_of, summary_of, write_conclusion
from nova_mcp.memory.journal.model import FinalizeOrder, WorkContext
from nova_mcp.memory.journal.rules import conclude, promotable_ids
from nova_mcp.memory.journal.sessions import SESSION_GAP_MS

T0 = 1_800_000_000_000
CONTEXT = WorkContext("claim_1", "tab_s1", "A", "local", "agent", T0)
FAILED = {"outcome": CallOutcome("partial", action_dispatched=True), "signals": Signals(label="failure")}
SIGHTED = {"outcome": CallOutcome("ok", action_dispatched=True, verification="likely"), "signals": Signals("sighting")}
BROKEN = {"outcome": CallOutcome("failed", -32003, "action.disabled"), "signals": Signals()}


class Desk:
    """One server at work on one page."""

    def __init__(self, db, build, server_id="s1"):
        self.db, self.build, self.server_id, self.made = db, build, server_id, 0
        db.write_sync(store.register_server, build.server(server_id))

    def call(self, at_ms=T0, **changes):
        self.made += 1
        record = self.build.page_call(self.server_id, f"{self.server_id}-{self.made}", at_ms, **changes)
        self.db.write_sync(self.build.record_page_call, record)
        return record.call_id

    def note(self, at_ms=T0, context=CONTEXT, **changes):
        claimed = service.Claimed("desk", "Codes are digits.", "unverified", 0.65, "shop.test")
        return self.db.write_sync(service.add_candidate, context, replace(claimed, **changes), at_ms)

    def rows(self, table):
        (*_, last) = table.primary_key.columns.values()
        return self.db.read_sync(lambda conn: conn.execute(select(table).order_by(last)).all())

    def candidate(self, candidate_id):
        return self.db.read_sync(candidate_store.find_candidate, candidate_id)


@pytest.fixture
def desk(db, build):
    return Desk(db, build)


# -- events and observations


def test_a_call_leaves_an_event_an_observation_and_a_session(desk):
    desk.call(task_id="claim_1", arguments={"selector": "#go"})
    (row,) = desk.rows(journal.tool_event)
    assert (row.event_id, row.tool_name, row.success, row.context_host) == (
        "s1-1",
        "nova.click_selector",
        1,
        "shop.test",
    )
    assert (row.task_id, row.target_id, row.arguments) == ("claim_1", "tab_s1", '{"selector":"#go"}')
    (seen,) = desk.rows(journal.observation)
    assert (seen.kind, seen.outcome, seen.severity, seen.selector_norm) == ("action_success", 1, 0, "#go")
    assert (seen.call_id, seen.server_id, seen.server_seq) == ("s1-1", "s1", 1)
    assert seen.activity_session_id == row.activity_session_id
    assert json.loads(seen.payload)["route"] == "shop.test/desk"


def test_a_call_without_a_page_leaves_an_event_only(desk):
    desk.call(tool_name="nova.tabs", effect="read", before=PageState(), after=PageState(), touched=Touched())
    (row,) = desk.rows(journal.tool_event)
    assert (row.context_host, row.activity_session_id, row.event_key) == (None, None, None)
    assert desk.rows(journal.observation) == desk.rows(journal.activity_session) == []


def test_an_intent_leaves_nothing(desk):
    desk.call(kind="intent")
    assert desk.rows(journal.tool_event) == []


def test_what_is_derived_goes_with_the_record_or_not_at_all(desk, build):
    def fail(conn):
        build.record_page_call(conn, build.page_call("s1", "lost", T0))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        desk.db.write_sync(fail)
    for table in (journal.tool_event, journal.observation, journal.activity_session, journal.observation_throttle):
        assert desk.rows(table) == []


def test_the_same_counts_once_in_half_a_minute_and_failures_apart(desk):
    for at_ms in (0, 10_000, 29_999):
        desk.call(T0 + at_ms)
        desk.call(T0 + at_ms, **FAILED)
    assert [(row.kind, row.outcome) for row in desk.rows(journal.observation)] == [
        ("action_success", 1),
        ("action_failure", -1),
    ]
    desk.call(T0 + 30_000)
    assert len(desk.rows(journal.observation)) == 3


def test_a_proof_takes_the_place_of_the_sighting_it_follows(desk):
    desk.call(T0, **SIGHTED)
    desk.call(T0 + 5_000)
    desk.call(T0 + 6_000, **SIGHTED)
    (row,) = desk.rows(journal.observation)
    assert (row.outcome, row.call_id, row.server_seq) == (1, "s1-2", 2)


OUTCOMES = st.lists(st.sampled_from(["proven", "sighted", "refuted"]), min_size=1, max_size=6)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_any_order_of_retries_leaves_the_same_support(desk, calls, random):
    """As one call, whatever the calls came to; each example works on a control of its own."""
    kinds = {"proven": {}, "sighted": SIGHTED, "refuted": FAILED}

    def support(order):
        selector = f"#c{desk.made}"
        for number, name in enumerate(order):
            desk.call(T0 + number, touched=Touched(selector), **kinds[name])
        rows = [row for row in desk.rows(journal.observation) if row.selector_norm == selector]
        return sorted((row.kind, row.outcome) for row in rows)

    shuffled = calls * 2
    random.shuffle(shuffled)
    expected = [("action_failure", -1)] * ("refuted" in calls)
    if set(calls) - {"refuted"}:
        expected.append(("action_success", int("proven" in calls)))
    assert support(calls) == support(shuffled) == sorted(expected)


def test_a_session_ends_with_more_than_half_an_hour_of_silence(desk):
    def session():
        (row,) = desk.rows(journal.activity_session)
        return row.session_id

    desk.call(T0)
    first = session()
    desk.call(T0 + SESSION_GAP_MS)
    assert session() == first
    desk.call(T0 + 1)
    desk.call(T0 + 2 * SESSION_GAP_MS)
    assert session() == first
    desk.call(T0 + 3 * SESSION_GAP_MS + 1)
    assert session() != first
    assert len(session()) == 16


def test_text_that_no_database_holds_is_kept_as_far_as_it_can_be(desk):
    desk.call(task_id="c\0laim", touched=Touched("#\ud800\0"), arguments={"x": "\ud800\0"})
    (row,) = desk.rows(journal.observation)
    assert row.selector_norm == "#?\ufffd"


# -- candidates


def test_a_manual_candidate_comes_from_the_newest_page_call_of_its_context(desk):
    desk.call(T0, task_id="claim_1")
    newest = desk.call(T0 + 1_000, task_id="claim_1")
    desk.call(T0 + 2_000, task_id="claim_2")
    desk.call(T0 + 3_000, task_id="claim_1", effect="write", tool_name="nova.tab_claim", signals=Signals())
    elsewhere = PageState("tab_s1", "A", "https://other.test/", "other.test/", 1)
    desk.call(T0 + 4_000, task_id="claim_1", before=elsewhere, after=elsewhere)
    kept = desk.note(T0 + 5_000)
    assert (kept.created, kept.candidate.source_event_id, kept.candidate.source_verdict) == (True, newest, "success")


def test_a_source_is_at_most_ten_minutes_old(desk):
    desk.call(T0, task_id="claim_1")
    assert desk.note(T0 + 600_001).candidate.source_event_id is None
    assert desk.note(T0 + 600_000, claim="Another.").candidate.source_event_id == "s1-1"


def test_calls_on_its_key_move_a_candidate(desk):
    desk.call(T0, task_id="claim_1")
    number = desk.note(T0 + 1, status="verified").candidate.candidate_id
    assert evidence_score(desk.candidate(number)) == 0.925
    desk.call(T0 + 2, touched=Touched("#elsewhere"))
    assert desk.candidate(number).resolution_event_id is None
    desk.call(T0 + SESSION_GAP_MS + 3)
    found = desk.candidate(number)
    assert (found.resolution_event_id, len(found.sessions)) == ("s1-3", 2)
    assert evidence_score(found) == 1.375
    desk.call(T0 + SESSION_GAP_MS + 4, **FAILED)
    desk.call(T0 + SESSION_GAP_MS + 5, **FAILED)
    assert desk.candidate(number).status == "disproven"


@pytest.mark.parametrize(("tool", "effect"), [("perceive", "read"), ("read_text", "read"), ("navigate", "navigate")])
def test_an_agent_that_only_looks_cannot_prove_its_own_claim(desk, tool, effect):
    """However often, in however many sessions, with a broken look in between and a claim of certainty."""
    look = {"tool_name": f"nova.{tool}", "effect": effect, "touched": Touched(), "signals": Signals(structure="abc")}
    seen = look | {"outcome": CallOutcome("ok")}
    broken = look | {"outcome": CallOutcome("failed", -32004, "text.not_found")}
    for number in range(5):
        at_ms = T0 + number * 2 * SESSION_GAP_MS
        desk.call(at_ms, task_id="claim_1", **seen)
        kept = desk.note(at_ms + 1, status="verified", confidence=1.0)
        desk.call(at_ms + 2, task_id="claim_1", **broken)
        desk.call(at_ms + 3, task_id="claim_1", **broken)
        desk.call(at_ms + 4, task_id="claim_1", **seen)
        found = desk.candidate(kept.candidate.candidate_id)
        assert (found.status, found.resolution_event_id, found.recovered) == ("verified", None, False)
        assert strength(evidence_score(found)) == "weak"
    assert promotable_ids(desk.db.write_sync(summary_of, "claim_1")) == []


def test_another_principals_calls_move_nothing(desk, build):
    desk.call(T0, task_id="claim_1")
    number = desk.note(T0 + 1).candidate.candidate_id
    caller = replace(build.call("s1", "x").caller, principal="somebody")
    desk.call(T0 + 2, caller=caller)
    assert desk.candidate(number).resolution_event_id is None


def test_a_failure_is_diagnosed_and_the_next_success_on_that_tab_confirms_it(desk):
    desk.call(T0, **BROKEN)
    desk.call(T0 + 1, **BROKEN)
    (row,) = desk.rows(candidate)
    assert (row.origin, row.status, row.confidence) == ("diagnostic", "unverified", 0.40)
    other = PageState("tab_9", "A", "https://shop.test/desk", "shop.test/desk", 1)
    desk.call(T0 + 2, before=other, after=other)
    assert desk.rows(candidate)[0].status == "unverified"
    desk.call(T0 + 3)
    (row,) = desk.rows(candidate)
    assert (row.status, row.confidence, row.resolution_event_id) == ("verified", 0.75, "s1-4")


def test_only_one_open_row_per_claim_and_a_new_one_after_it_was_disproven(desk):
    first = desk.note()
    again = desk.note(claim="codes are digits")
    assert (first.created, again.created) == (True, False)
    dead = desk.note(status="disproven")
    assert dead.candidate.candidate_id == first.candidate.candidate_id
    new = desk.note(status="verified")
    assert (new.created, new.candidate.status) == (True, "verified")
    with pytest.raises(Exception, match=r"(?i)unique"):
        desk.db.write_sync(lambda conn: conn.execute(text("UPDATE candidate SET status = 'unverified'")))


def test_two_principals_have_candidates_of_their_own(desk):
    theirs = desk.note(context=replace(CONTEXT, principal="somebody"))
    assert desk.note().created
    assert theirs.candidate.stable_id == desk.note().candidate.stable_id


# -- finalize


def promoted(desk, task="claim_1", at_ms=T0, claim="Codes are digits."):
    context = replace(CONTEXT, task_id=task)
    desk.call(at_ms, task_id=task)
    kept = desk.note(at_ms + 1, context, status="verified", confidence=1.0, claim=claim)
    desk.call(at_ms + 2, task_id=task)
    return context, kept.candidate.candidate_id


def release(desk, context, order=None, at_ms=T0 + 10):
    def close(conn):
        asked = order or FinalizeOrder()
        conclusion = conclude(context, asked, summary_of(conn, context.task_id), f"job_{context.task_id}")
        write_conclusion(conn, context, asked, conclusion, at_ms)
        return conclusion

    return desk.db.write_sync(close)


def test_a_commit_writes_what_is_ready_and_its_job_at_once(desk):
    context, number = promoted(desk)
    desk.note(T0 + 5, claim="Something weak.", status="verified")
    conclusion = release(desk, context)
    assert (conclusion.decision.kind, conclusion.stats.candidates_total) == ("commit", 2)
    assert (conclusion.stats.candidates_promotable, conclusion.stats.curated_upserts) == (1, 1)
    (row,) = desk.rows(curated_entry)
    assert (row.candidate_id, row.merge_count, row.first_promoted_at_ms) == (number, 0, T0 + 10)
    assert desk.db.read_sync(conclusion_of, "claim_1").job.payload["candidateIds"] == [number]


def test_a_claim_that_is_promoted_again_is_merged(desk):
    for round_number in range(3):
        context, _ = promoted(desk, f"claim_{round_number}", T0 + round_number * 1_000)
        release(desk, context, at_ms=T0 + 100 + round_number * 1_000)
    (row,) = desk.rows(curated_entry)
    assert (row.merge_count, row.first_promoted_at_ms, row.last_promoted_at_ms) == (2, T0 + 100, T0 + 2_100)


def test_a_skip_and_a_callers_commit_write_nothing_that_is_not_ready(desk):
    context, _ = promoted(desk)
    release(desk, context, FinalizeOrder(decision="skip"))
    other = replace(CONTEXT, task_id="claim_2")
    desk.note(T0, other, claim="Something weak.", status="verified", confidence=1.0)
    forced = release(desk, other, FinalizeOrder(decision="commit"))
    assert (forced.decision.source, forced.stats.curated_upserts) == ("caller", 0)
    assert desk.rows(curated_entry) == []


# -- several writers


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def test_four_processes_that_learn_the_same_agree_on_one_of_everything(store_url, open_db, spawn):
    workers = [spawn("learn", store_url, f"s{number}", 45, T0) for number in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        go(worker)
    told = [line.split() for worker in workers for line in worker.communicate(timeout=120)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert len(told) == 180
    assert len({number for number, _ in told}) == 1
    assert [created for _, created in told].count("True") == 1
    db = open_db(store_url)

    def count(conn):
        claims = conn.execute(select(candidate.c.claim).order_by(candidate.c.claim)).scalars().all()
        sessions = conn.execute(select(journal.tool_event.c.activity_session_id).distinct()).scalars().all()
        seen = conn.execute(select(func.count()).select_from(journal.observation)).scalar_one()
        return claims, sessions, seen

    claims, sessions, seen = db.read_sync(count)
    assert claims == [
        "Codes are digits.",
        "click_selector fails with action.disabled.",
        "guarded_submit_form reaches its verified outcome through el_1.",
    ]
    assert len(sessions) == 1
    # One for each server's tab: what counts is the control, not which tool pressed it.
    assert seen == 4


@pytest.mark.postgres
def test_of_two_who_raise_a_claim_at_once_the_second_adds_to_the_firsts(postgres_url, open_db):
    first, second = open_db(postgres_url), open_db(postgres_url)
    wish = Raise(Place("local", "ada", "shop.test", "claim_1", "tab_1"), "desk", "Codes.", "unverified", 0.5)

    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            mine = candidate_store.put(conn, wish, None, T0)
            better = replace(wish, confidence=0.9)
            other = thread.submit(second.write_sync, candidate_store.put, better, None, T0 + 1)
            waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not other.done() and not conn.execute(waits).scalar():
                pass
            return mine, other

        mine, other = first.write_sync(overlap)
        theirs = other.result(30)
    assert (mine.before, theirs.before) == (None, mine.after)
    assert (theirs.after.candidate_id, theirs.after.confidence) == (mine.after.candidate_id, 0.9)


@pytest.mark.postgres
def test_claims_that_run_out_together_wait_for_no_candidate(postgres_url, open_db, build):
    """A call locks candidates by their number, the end of several claims would meet them by claim."""
    first, second = open_db(postgres_url), open_db(postgres_url)
    claims = [Claim(f"claim_{n}", f"tab_{n}", "A", ("local", "ada"), "hash", T0, T0 + 1) for n in (1, 2)]
    for one in claims:
        first.write_sync(claim_taken, Taking(one, "s1"), T0)
        Desk(first, build, f"s{one.task_id}").note(context=replace(CONTEXT, task_id=one.task_id), claim=one.task_id)

    def end(conn):
        conn.execute(text("SET LOCAL lock_timeout = '2s'"))
        claims_expired(conn, claims)

    def overlap(conn):
        assert len(candidate_store.candidates_of(conn, "claim_1")) == 1
        second.write_sync(end)

    first.write_sync(overlap)
    ended = first.read_sync(lambda conn: conn.execute(text("SELECT stats FROM finalize_decision")).scalars().all())
    assert [json.loads(row)["candidatesTotal"] for row in ended] == [1, 1]


# -- cost


def test_no_write_reads_history(sqlite_url, open_db, build):
    """However much there is, a call looks at its own rows by their keys: every plan is a search, none is a scan."""
    desk = Desk(open_db(sqlite_url), build)
    desk.call(T0, task_id="claim_1")
    desk.note(T0 + 1)
    statements = []

    def plan(conn):
        raw = conn.connection.dbapi_connection
        raw.set_trace_callback(statements.append)
        build.record_page_call(conn, build.page_call("s1", "planned", T0 + 2, task_id="claim_1"))
        build.record_page_call(conn, build.page_call("s1", "planned too", T0 + 3, **BROKEN))
        service.add_candidate(conn, CONTEXT, service.Claimed("a", "b", "unverified", 0.5, "shop.test"), T0 + 4)
        summary_of(conn, "claim_1")
        raw.set_trace_callback(None)
        told = []
        for statement in statements:
            told += [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()]
        return told

    plans = desk.db.write_sync(plan)
    assert len(statements) > 10
    assert [line for line in plans if line.startswith("SCAN") and "CONSTANT" not in line] == []


def test_the_figures_of_an_observation_and_a_candidate_are_counted_with_them(desk):
    desk.call(T0)
    desk.call(T0 + 1)
    desk.note(T0 + 2)
    totals = desk.db.read_sync(
        lambda conn: dict(
            conn.execute(text("SELECT name, sum(count) FROM statistic_total WHERE label = '' GROUP BY name")).all()
        )
    )
    assert (totals["observation"], totals["candidate"], totals["candidate.unverified"]) == (1, 1, 1)
    assert promotable_ids(desk.db.write_sync(summary_of, "claim_1")) == []
