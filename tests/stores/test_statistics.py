"""The journal's figures in both kinds of store: added where they belong, read per window, capped, forgotten in time."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, insert, select, text, update

from nova_mcp.evidence import store
from nova_mcp.evidence.model import CallOutcome, PageState, Touched
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.evidence.tails import LINKS, tail_broken
from nova_mcp.memory.claims.retention import claim_holds
from nova_mcp.memory.claims.store import claim_journal
from nova_mcp.memory.journal.candidate_store import candidate
from nova_mcp.memory.journal.collector import derive
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job, summary_of, write_conclusion
from nova_mcp.memory.journal.model import Decision, FinalizeOrder, WorkContext
from nova_mcp.memory.journal.retention import STEP, JournalRetention, forget, forgettable
from nova_mcp.memory.journal.rules import conclude
from nova_mcp.memory.journal.service import Claimed, add_candidate
from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.counters import (
    KEPT_HOURS,
    LABELS_PER_HOUR,
    Counters,
    bump,
    forget_hours,
    shard_of,
)
from nova_mcp.memory.journal.statistics.counting import (
    HOUR_MS,
    OTHER,
    CandidateStand,
    Tally,
    of_call,
    of_candidate,
    of_curated,
    of_decision,
    of_observations,
)
from nova_mcp.memory.journal.statistics.reader import read
from nova_mcp.memory.journal.statistics.report import StatisticsQuery
from nova_mcp.memory.journal.statistics.tables import SHARDS, statistic_hour, statistic_latency, statistic_total
from nova_mcp.memory.journal.store import activity_session, observation, observation_throttle, tool_event
from nova_mcp.memory.retention import chores, holds
from nova_mcp.settings import RetentionSettings

NOW = 480_000 * HOUR_MS + 30 * 60_000
HOUR = NOW // HOUR_MS


def reading(db, **query):
    return db.read_sync(read, StatisticsQuery(**query), NOW, chain_broken=False)


def put(db, *tallies, origin="s", principal=""):
    db.write_sync(lambda conn: [bump(conn, origin, tally, principal=principal) for tally in tallies])


def put_from_many(db, count, tally):
    db.write_sync(lambda conn: [bump(conn, f"server-{number}", tally) for number in range(count)])


def rows(db, table):
    return db.read_sync(lambda conn: conn.execute(select(table)).all())


# -- adding and reading ----------------------------------------------------------------------------------------------


def test_what_several_servers_count_is_read_as_one_figure(db):
    put_from_many(db, 20, of_observations(NOW))
    assert reading(db).window[names.OBSERVATION] == (20, 0)
    assert reading(db).totals[names.OBSERVATION] == 20


def test_however_many_servers_ever_counted_a_figure_has_few_rows(db):
    put_from_many(db, 200, of_observations(NOW))
    assert len(rows(db, statistic_total)) <= SHARDS
    assert {shard_of(f"server-{number}") for number in range(200)} == set(range(SHARDS))


@pytest.mark.parametrize(("hours_ago", "counted"), [(0, True), (23, True), (24, True), (25, False), (719, False)])
def test_a_window_reaches_back_to_the_hour_it_begins_in(db, hours_ago, counted):
    put(db, of_observations(NOW - hours_ago * HOUR_MS))
    assert reading(db).window[names.OBSERVATION][0] == int(counted)
    assert reading(db, window_hours=720).window[names.OBSERVATION][0] == 1


@pytest.mark.parametrize("now_hour", [0, 1, 12, 23])
def test_hours_and_days_together_count_each_moment_of_a_window_once(db, now_hour):
    now = (HOUR - HOUR % 24 + now_hour) * HOUR_MS
    put(db, *(of_observations(now - age * HOUR_MS) for age in range(80)))
    for hours in (1, 23, 24, 25, 47, 72):
        found = db.read_sync(read, StatisticsQuery(window_hours=hours), now, chain_broken=False)
        assert found.window[names.OBSERVATION][0] == hours + 1


def test_a_server_whose_clock_is_ahead_is_counted(db):
    put(db, of_observations(NOW + 2 * HOUR_MS))
    assert reading(db, window_hours=1).window[names.OBSERVATION][0] == 1


def test_a_rolled_back_transaction_counts_nothing(db):
    def broken(conn):
        bump(conn, "s", of_observations(NOW))
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        db.write_sync(broken)
    assert reading(db).totals[names.OBSERVATION] == 0


def test_calls_are_counted_in_the_transaction_that_records_them(db, build):
    db.write_sync(store.register_server, build.server("a"))
    counters = Counters()

    def record(conn, call):
        counters.count(conn, call, store.append_call(conn, call))

    for number in range(5):
        kind = "ok" if number else "failed"
        call = build.call(
            "a", f"c{number}", started_at_ms=NOW, outcome=CallOutcome(kind), tool_name="nova.scroll_smart"
        )
        db.write_sync(record, call)
    found = reading(db)
    assert (found.window[names.EVENT], found.window["tool.scrollSmart"]) == ((5, 4), (5, 4))
    assert sum(found.runtime["scrollSmart"].latencies.values()) == 5


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 40), st.sampled_from(["a/x", "a/y", "b/x"]), st.booleans(), st.sampled_from(["s1", "s2"])
        ),
        max_size=20,
    )
)
def test_lists_equal_a_recount_of_the_calls(db, build, calls):
    def count_anew(conn):
        for table in (statistic_hour, statistic_latency):
            conn.execute(delete(table))
        for age, route, ok, server in calls:
            call = build.call(
                server,
                "c",
                tool_name="nova.capture_screenshot",
                started_at_ms=NOW - age * HOUR_MS,
                outcome=CallOutcome("ok" if ok else "failed"),
                before=PageState(route_key=route),
            )
            bump(conn, server, of_call(call))

    db.write_sync(count_anew)
    inside = [(route, ok) for age, route, ok, _ in calls if age <= 24]
    expected = {
        route: (sum(r == route for r, _ in inside), sum(ok for r, ok in inside if r == route)) for route, _ in inside
    }
    found = reading(db).runtime["screenshotCapture"]
    assert {one.label: (one.count, one.good) for one in found.routes} == expected
    counts = [one.count for one in found.routes]
    assert counts == sorted(counts, reverse=True)


def shot(build, selector):
    return of_call(
        build.call("s", "c", tool_name="nova.scroll_smart", started_at_ms=NOW, touched=Touched(selector=selector))
    )


@pytest.mark.parametrize("hint", [None, set()])
def test_a_hostile_page_cannot_grow_the_figures(db, build, hint):
    db.write_sync(
        lambda conn: [
            bump(conn, f"s{number}", shot(build, f"#made-up-{number}"), hint) for number in range(LABELS_PER_HOUR + 40)
        ]
    )
    put(db, shot(build, "#made-up-0"))
    kept = [row for row in rows(db, statistic_hour) if row.name == "tool.scrollSmart.selector"]
    assert len({row.label for row in kept}) == LABELS_PER_HOUR + 1
    counts = {}
    for row in kept:
        counts[row.label] = counts.get(row.label, 0) + row.count
    assert (counts[OTHER], counts["#made-up-0"]) == (40, 2)
    assert sum(counts.values()) == reading(db).window["tool.scrollSmart"][0]


def test_lists_are_cut_to_what_was_asked_for_and_ties_go_by_name(db):
    put(db, *(of_candidate(None, CandidateStand(label, "unverified"), NOW) for label in ("b", "a", "c", "c")))
    assert [one.label for one in reading(db, top_components=2).components] == ["c", "a"]


def test_a_component_is_read_without_looking_at_the_others(db):
    every = (CandidateStand(f"c{number}", "verified") for number in range(LABELS_PER_HOUR + 10))
    put(db, *(of_candidate(None, stand, NOW) for stand in every))
    last = f"c{LABELS_PER_HOUR + 9}"
    found = reading(db, component=last)
    assert (found.window[names.CANDIDATE], found.chosen["candidate.verified"]) == ((1, 0), 1)
    assert found.totals["candidate.verified"] == LABELS_PER_HOUR + 10
    assert [(one.label, one.count) for one in found.components] == [(last, 1)]


def listed(found):
    """Every label that a reading names."""
    runtime = found.runtime["scrollSmart"]
    lists = (found.components, found.skip_reasons, runtime.routes, runtime.hosts, runtime.selectors, runtime.reasons)
    return {one.label for entries in lists for one in entries}


def everything_of(build, name):
    """A tally with a label in every list, each of them telling whose it is."""
    page = PageState(route_key=f"{name}.test/inbox")
    failed = CallOutcome("failed", reason_code=f"{name}.reason")
    call = build.call(
        *("s", "c"),
        tool_name="nova.scroll_smart",
        started_at_ms=NOW,
        before=page,
        outcome=failed,
        touched=Touched(f"#{name}"),
    )
    return (
        of_call(call)
        + of_candidate(None, CandidateStand(f"{name}-desk", "verified"), NOW)
        + of_curated(f"{name}-desk", NOW)
        + of_decision(Decision("skip", "caller", f"{name} said so"), NOW)
    )


def test_sites_controls_and_words_are_shown_to_whoever_they_came_from(db, build):
    for name in ("ada", "bob"):
        put(db, everything_of(build, name), principal=name)
    both = [listed(reading(db, principal=name)) for name in ("ada", "bob")]
    assert [len(labels) for labels in both] == [6, 6]
    assert all("bob" not in label for label in both[0])
    assert all("ada" not in label for label in both[1])
    assert listed(reading(db)) == both[0] | both[1]
    # Counts are everybody's, whoever asks.
    assert reading(db, principal="ada").window[names.CANDIDATE] == reading(db).window[names.CANDIDATE] == (2, 0)
    assert reading(db, principal="ada").totals == reading(db).totals


def test_a_component_filter_does_not_reach_anothers_candidates(db, build):
    put(db, everything_of(build, "bob"), principal="bob")
    mine = reading(db, principal="ada", component="bob-desk")
    assert (mine.window[names.CANDIDATE], mine.window[names.CURATED], mine.components) == ((0, 0), (0, 0), ())
    assert set(mine.chosen.values()) == {0}
    for found in (reading(db, principal="bob", component="bob-desk"), reading(db, component="bob-desk")):
        assert (found.window[names.CANDIDATE], found.window[names.CURATED]) == ((1, 0), (1, 0))
        assert (found.chosen[names.CANDIDATE], found.chosen[names.CURATED]) == (1, 1)


@pytest.mark.parametrize("hint", [None, set()])
def test_nobodys_labels_crowd_out_anothers(db, build, hint):
    def crowd(conn):
        for number in range(LABELS_PER_HOUR + 5):
            bump(conn, "s", shot(build, f"#made-up-{number}"), hint, principal="bob")
        bump(conn, "s", shot(build, "#mine"), hint, principal="ada")

    db.write_sync(crowd)
    assert [one.label for one in reading(db, principal="ada").runtime["scrollSmart"].selectors] == ["#mine"]


def test_calls_candidates_and_decisions_are_counted_for_the_one_who_made_them(db, build):
    db.write_sync(store.register_server, build.server("a"))
    counters = Counters()

    def work(conn):
        record = build.page_call("a", "c1", NOW, tool_name="nova.scroll_smart", task_id="t1")
        record = replace(record, caller=replace(record.caller, principal="ada"))
        link = store.append_call(conn, record)
        derive(conn, record, link)
        counters.count(conn, record, link)
        context = WorkContext("t1", "tab_1", "A", "ada", "agent", NOW)
        add_candidate(conn, context, Claimed("desk", "Codes are digits.", "unverified", 0.5, "shop.test"), NOW)
        conclusion = conclude(context, FinalizeOrder(), summary_of(conn, "t1"), "job")
        write_conclusion(conn, context, FinalizeOrder(), conclusion, NOW)

    db.write_sync(work)
    # Why Nova learned nothing is said in its own words, and counted for everybody.
    assert listed(reading(db, principal="bob")) == {"no_verified_candidates"}
    assert listed(reading(db, principal="ada")) == listed(reading(db)) != set()
    assert {"desk", "no_verified_candidates", "shop.test", "#go"} <= listed(reading(db, principal="ada"))


def test_four_processes_count_on_the_same_figures_without_losses_or_deadlocks(store_url, open_db, spawn):
    workers = [spawn("count", store_url, f"s{number}", 60) for number in range(4)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=120)
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    db = open_db(store_url)
    totals = dict.fromkeys(("tool", "observation"), 0)
    for row in rows(db, statistic_total):
        totals[row.name] += row.count
    assert totals == {"tool": 240, "observation": 240}
    assert sum(row.count for row in rows(db, statistic_hour) if row.name == "tool.scrollSmart.host") == 240
    timed = [row for row in rows(db, statistic_latency) if row.name == "tool.scrollSmart"]
    assert sum(row.count for row in timed) == 240


# -- broken chains ---------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(db, build):
    """A chain long enough that its tail does not reach its beginning."""
    db.write_sync(store.register_server, build.server("a"))
    db.write_sync(lambda conn: [store.append_call(conn, build.call("a", f"c{n}")) for n in range(LINKS + 5)])
    return db


def broken(db):
    return db.read_sync(tail_broken)


def test_whole_chains_are_whole_however_short(db, build):
    assert broken(db) is False
    db.write_sync(store.register_server, build.server("a"))
    assert broken(db) is False
    for number in range(LINKS + 3):
        db.write_sync(store.append_call, build.call("a", f"c{number}"))
        assert broken(db) is False


def test_an_erased_body_is_no_break(chain):
    chain.write_sync(
        lambda conn: (
            conn.execute(delete(store.ledger_body).where(store.ledger_body.c.server_seq == LINKS)),
            conn.execute(
                update(store.ledger_link).where(store.ledger_link.c.server_seq == LINKS).values(erased_at_ms=1)
            ),
        )
    )
    assert broken(chain) is False


@pytest.mark.parametrize(
    "damage",
    [
        update(store.ledger_link).where(store.ledger_link.c.server_seq == LINKS).values(hash=b"\x01" * 32),
        update(store.ledger_link).where(store.ledger_link.c.server_seq == LINKS).values(body_hash=b"short"),
        update(store.ledger_body).where(store.ledger_body.c.server_seq == LINKS).values(body=b"{}"),
        delete(store.ledger_body).where(store.ledger_body.c.server_seq == LINKS),
        update(store.ledger_server).values(head_hash=b"\x02" * 32),
        update(store.ledger_server).values(head_seq=LINKS + 4),
        update(store.ledger_server).values(head_seq=LINKS + 6),
    ],
    ids=["hash", "body-hash", "body", "body-gone", "head", "head-behind", "head-ahead"],
)
def test_a_break_in_the_tail_is_seen(chain, damage):
    chain.write_sync(lambda conn: conn.execute(damage))
    assert broken(chain) is True


# -- forgetting ------------------------------------------------------------------------------------------------------


def test_hours_beyond_the_longest_window_go_and_totals_stay(db):
    ages = (0, 719, KEPT_HOURS, KEPT_HOURS + 1, 5_000)
    put(db, *(of_observations(NOW - age * HOUR_MS) for age in ages))
    gone = db.write_sync(forget_hours, NOW)
    # The two hours and the days they lie in.
    assert gone.hours == 4
    assert reading(db, window_hours=720).window[names.OBSERVATION][0] == 2
    assert reading(db).totals[names.OBSERVATION] == 5


TEXT = "x"


def filled(table, number, **changes):
    """A row that the table takes, whatever its columns are."""
    row = {}
    for column in table.c:
        if column.nullable or (
            column.primary_key and column.name.endswith("_id") and "INT" in str(column.type).upper()
        ):
            continue
        row[column.name] = f"{TEXT}{number}" if "TEXT" in str(column.type).upper() else 0
    return row | changes


def old_and_young(db, table, at, days, number=3, **changes):
    def fill(conn):
        for index in range(number):
            conn.execute(insert(table), filled(table, index, **{at: NOW - days * DAY_MS - 1}, **changes))
        conn.execute(insert(table), filled(table, "young", **{at: NOW - days * DAY_MS + 1}, **changes))

    db.write_sync(fill)


KEPT = JournalRetention(journal_days=90, event_days=30)


@pytest.mark.parametrize(
    ("table", "at", "days", "changes"),
    [
        (tool_event, "created_at_ms", 30, {}),
        (observation, "created_at_ms", 90, {}),
        (observation_throttle, "at_ms", 1, {}),
        (activity_session, "last_at_ms", 90, {}),
        (finalize_decision, "decided_at_ms", 90, {}),
        (outbox_job, "settled_at_ms", 30, {"state": "done"}),
        (outbox_job, "settled_at_ms", 90, {"state": "failed"}),
    ],
    ids=["events", "observations", "throttles", "sessions", "decisions", "done-jobs", "failed-jobs"],
)
def test_rows_go_when_their_time_is_over_and_not_before(db, table, at, days, changes):
    old_and_young(db, table, at, days, **changes)
    assert db.read_sync(forgettable, NOW, KEPT) == 3
    assert db.write_sync(forget, NOW, KEPT) == 3
    assert len(rows(db, table)) == 1
    assert db.write_sync(forget, NOW, KEPT) == 0


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("table", "at", "days"),
    [(observation_throttle, "at_ms", 1), (activity_session, "last_at_ms", 90)],
    ids=["throttle", "session"],
)
def test_what_a_call_makes_young_meanwhile_is_not_forgotten(postgres_url, open_db, table, at, days):
    first, second = open_db(postgres_url), open_db(postgres_url)
    first.write_sync(lambda conn: conn.execute(insert(table), filled(table, 1, **{at: NOW - days * DAY_MS - 1})))
    with ThreadPoolExecutor(1) as thread:

        def renew(conn):
            conn.execute(update(table).values({at: NOW}))
            other = thread.submit(second.write_sync, forget, NOW, KEPT)
            waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not other.done() and not conn.execute(waits).scalar():
                pass
            return other

        assert first.write_sync(renew).result(30) == 0
    assert len(rows(first, table)) == 1


def test_a_step_is_small_and_the_next_one_goes_on(db):
    old_and_young(db, observation, "created_at_ms", 90, number=STEP + 7)
    assert [db.write_sync(forget, NOW, KEPT) for _ in range(3)] == [STEP, 7, 0]


def test_candidates_and_jobs_that_are_not_done_stay_however_old(db):
    db.write_sync(
        lambda conn: (
            conn.execute(insert(candidate), filled(candidate, 1, status="unverified")),
            conn.execute(insert(outbox_job), filled(outbox_job, 1, state="pending")),
            conn.execute(insert(outbox_job), filled(outbox_job, 2, state="leased")),
        )
    )
    kept = RetentionSettings(ended_days=0, gap_days=0, other_days=0, transition_days=0, journal_days=0)
    for chore in chores(kept):
        assert db.write_sync(chore, NOW) == 0
    assert (len(rows(db, candidate)), len(rows(db, outbox_job))) == (1, 2)


def test_claims_are_forgotten_some_time_after_they_ended(db):
    ends = {"open": None, "young": NOW - 30 * DAY_MS, "old": NOW - 32 * DAY_MS}
    db.write_sync(
        lambda conn: [
            conn.execute(insert(claim_journal), filled(claim_journal, 1, task_id=name, ended_at_ms=end))
            for name, end in ends.items()
        ]
    )
    gone = sum(db.write_sync(chore, NOW) for chore in chores(RetentionSettings()))
    assert gone == 1
    states = db.read_sync(claim_holds)
    assert (states.open, states.ended) == ({"open"}, {"young"})


def test_the_ledger_keeps_what_an_open_candidate_rests_on(db):
    db.write_sync(
        lambda conn: (
            conn.execute(
                insert(candidate),
                filled(candidate, 1, status="verified", source_event_id="c1", resolution_event_id="c2"),
            ),
            conn.execute(insert(candidate), filled(candidate, 2, status="disproven", source_event_id="c3")),
            conn.execute(insert(claim_journal), filled(claim_journal, 1, task_id="t")),
        )
    )
    held = db.read_sync(holds)
    assert (held.referenced, held.open, held.ended) == ({"c1", "c2"}, {"t"}, frozenset())


def test_reading_looks_at_the_same_number_of_rows_however_long_the_history_is(db):
    """Everything a reading touches is bounded by hours, names and labels, none of them by events."""
    put(db, *(of_observations(NOW, 10) for _ in range(3)))
    before = db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(statistic_hour)).scalar_one())
    put(db, *(of_observations(NOW, 1_000_000) for _ in range(50)))
    after = db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(statistic_hour)).scalar_one())
    assert before == after
    assert reading(db).totals[names.OBSERVATION] == 50_000_030


def test_tallies_of_one_transaction_add_up(db):
    both = of_observations(NOW) + replace(Tally(), totals={(names.OBSERVATION, ""): 2})
    put(db, both)
    assert reading(db).totals[names.OBSERVATION] == 3
