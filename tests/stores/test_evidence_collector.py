"""What recorded calls prove, in the transaction that records them; on both kinds of store."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select, update

from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.core.page.selectors import selector_hash
from nova_mcp.core.urls import url_hash
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Link, PageState, ServerId, Signals, Touched
from nova_mcp.evidence.page_sights import Channels, PageLife, ScanMeasures, ScanSeen, Sight
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.memory.tasks.coverage import evidence_store, site_urls, visit_store
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.coverage.locators import path_hash
from nova_mcp.memory.tasks.coverage.service import CoverageKeeper
from nova_mcp.memory.tasks.coverage.store import forget as forget_scans
from nova_mcp.memory.tasks.tables import (
    coverage_observation,
    redirect_seen,
    site_url,
    task_instance,
    task_instance_member,
    task_unit,
    touched_selector,
    visit_window,
)
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from task_evidence_kit import ADA, BOB, add_units, grade_of, join, open_run, unit

PAGE, OTHER = "https://shop.example/a", "https://shop.example/b"
JOINED = 100_000
LINK = Link(ServerId("s1"), 1, "c", b"", b"")
GOOD = ScanMeasures(
    url_hash=url_hash(PAGE), hydration="stable", http_status=200, extracted_chars=99, measured_chars=100,
    channels=Channels(visible_text=True, aria_labels=True, inputs=True, alt_text=True),
)  # fmt: skip
SCAN = ScanSeen("nova_full_page_text_v1", "sha256:x", GOOD, "{}", (OTHER, "https://shop.example/c"))


def call(
    tool="nova.perceive", *, url=PAGE, at_ms=JOINED, lasts=100, owner=ADA, outcome="ok", scan=None, **more
) -> CallRecord:
    sight = None if url is None else Sight(url, url_hash(url), path_hash(url), 200)
    traits = {name: more.pop(name) for name in list(more) if name in Sight.__dataclass_fields__}
    selector = more.pop("selector", None)
    if sight is not None:
        sight = replace(sight, **traits)
    return CallRecord(
        call_id=more.pop("call_id", f"call{at_ms}{tool}"),
        caller=Caller(*owner, ServerId("s1")),
        tool_name=tool,
        effect="read",
        started_at_ms=at_ms,
        duration_ms=lasts,
        outcome=CallOutcome(outcome),
        after=PageState("T1", "A", "https://reduced.example/"),
        touched=Touched(selector_hash=None if selector is None else selector_hash(selector)),
        signals=Signals(sight=sight, scan=scan),
        **more,
    )


@pytest.fixture
def write(store_url, open_db):
    return open_db(store_url).write_sync


@pytest.fixture
def collect(write):
    collector = EvidenceCollector()

    def run(*records):
        for record in records:
            write(collector.collect, record, LINK)
        return records[-1].signals

    run.collector = collector
    return run


@pytest.fixture
def key(write):
    def prepared(conn):
        open_run(conn)
        return add_units(conn, PAGE, OTHER)[0]

    return write(prepared)


def counted(table):
    return lambda conn: conn.execute(select(func.count()).select_from(table)).scalar_one()


# -- visits and grades


def test_a_read_and_the_time_after_it_make_a_page_strong(write, collect, key):
    collect(call("nova.navigate", lasts=400))
    assert write(grade_of, key) == ("weak", "no_read")
    collect(call(at_ms=JOINED + 500))
    assert write(grade_of, key) == ("weak", "dwell_too_short")
    collect(call("nova.page_info", at_ms=JOINED + 1_100))
    assert write(grade_of, key) == ("strong", None)
    row = write(unit, key)
    assert (row.observed_count, row.best_reads, row.best_dwell_ms, row.best_ended_at_ms) == (
        3,
        1,
        1_200,
        JOINED + 1_200,
    )


def test_the_stay_counts_once_the_agent_acts_elsewhere(write, collect, key):
    collect(call())
    assert write(grade_of, key)[0] == "weak"
    collect(call("nova.navigate", url=OTHER, at_ms=JOINED + 1_000))
    assert write(grade_of, key)[0] == "strong"


def test_a_page_that_went_away_by_itself_did_not_stay(write, collect, key):
    collect(call())
    left = PageLife(left_at_ms=(JOINED + 300,))
    collect(call("nova.navigate", url=OTHER, at_ms=JOINED + 5_000, life=left))
    assert write(grade_of, key) == ("weak", "dwell_too_short")


def test_the_end_of_the_tab_settles_its_visits(write, collect, key):
    collect(call())
    write(evidence_store.target_ended, "T1", JOINED + 4_000, PageLife(left_at_ms=(JOINED + 200,)))
    assert write(grade_of, key)[0] == "weak"
    collect(call(at_ms=JOINED + 10_000))
    write(evidence_store.target_ended, "T2", JOINED + 14_000, PageLife())
    assert write(grade_of, key)[0] == "weak"
    write(evidence_store.target_ended, "T1", JOINED + 14_000, PageLife())
    assert write(grade_of, key)[0] == "strong"


def test_a_visit_that_goes_on_is_finished_now_where_the_tab_is_known(write, collect, key):
    collect(call())
    write(evidence_store.refresh, "run", JOINED + 4_000, {"T2": PageLife()})
    assert write(grade_of, key)[0] == "weak"
    write(evidence_store.refresh, "run", JOINED + 4_000, {"T1": PageLife(left_at_ms=(JOINED + 500,))})
    assert write(grade_of, key)[0] == "weak"
    write(evidence_store.refresh, "run", JOINED + 4_000, {"T1": PageLife()})
    assert write(grade_of, key)[0] == "strong"
    assert write(lambda conn: conn.execute(select(visit_window.c.settled)).scalars().all()) == [False]


@pytest.mark.parametrize(
    "ignored",
    [
        {"outcome": "failed"},
        {"outcome": "blocked_preflight"},
        {"outcome": "cancelled"},
        {"url": None},
        {"tool": "nova.run_sequence"},
        {"kind": "intent"},
    ],
)
def test_what_was_not_done_on_a_page_proves_nothing(write, collect, key, ignored):
    collect(call(**{"tool": "nova.read_text", **ignored}))
    assert write(grade_of, key)[0] == "none"
    assert write(counted(visit_window)) == 0


@pytest.mark.parametrize(
    ("tool", "more", "reads"),
    [
        ("nova.perceive", {}, 1),
        ("nova.perceive", {"arguments": {"mode": "state"}}, 0),
        ("nova.read_text", {}, 1),
        ("nova.extract_table", {}, 1),
        ("nova.coverage_scan", {}, 1),
        ("nova.search_text", {}, 0),
        ("nova.capture_screenshot", {}, 0),
        ("nova.perceive_snapshot_query", {}, 0),
        ("nova.eval", {}, 0),
        ("nova.navigate", {}, 0),
        ("nova.read_text", {"steady": False}, 0),
    ],
)
def test_which_calls_read(write, collect, tool, more, reads):
    collect(call(tool, **more))
    assert write(lambda conn: conn.execute(select(visit_window.c.reads)).scalar_one()) == reads


@pytest.mark.parametrize(("failed", "reads"), [(True, 0), (False, 1)])
def test_a_scan_that_failed_has_read_nothing(write, collect, failed, reads):
    collect(call("nova.coverage_scan", scan=replace(SCAN, measures=replace(GOOD, failed=failed))))
    assert write(lambda conn: conn.execute(select(visit_window.c.reads)).scalar_one()) == reads


def test_a_search_reads_where_it_finds(write, collect):
    found = call("nova.search_text")
    collect(replace(found, touched=Touched(flags=frozenset({"content_exposed"}))))
    assert write(lambda conn: conn.execute(select(visit_window.c.reads)).scalar_one()) == 1


@pytest.mark.parametrize(
    ("second", "windows"),
    [
        ({"at_ms": JOINED + 2_600}, 1),
        ({"at_ms": JOINED + 2_601}, 2),
        ({"at_ms": JOINED - 50}, 1),
        ({"at_ms": JOINED - 101}, 2),
        ({"at_ms": JOINED + 4_000, "life": PageLife(active_at_ms=(JOINED + 2_000,))}, 1),
        ({"url": OTHER}, 2),
        ({"task_id": "claim2"}, 2),
        ({"agent_scripted": True}, 2),
        ({"error_page": True}, 2),
        ({"owner": BOB}, 2),
    ],
)
def test_what_splits_a_visit(write, collect, second, windows):
    collect(call(), call(**{"at_ms": JOINED + 200, **second}))
    assert write(counted(visit_window)) == windows


def test_a_clock_that_is_set_back_makes_no_visit_longer(write, collect, key):
    collect(call(lasts=10), call(at_ms=JOINED - 20_000, lasts=10))
    assert write(grade_of, key) == ("weak", "dwell_too_short")
    collect(call("nova.page_info", at_ms=JOINED - 19_000, lasts=10))
    assert write(grade_of, key) == ("strong", None)


def test_what_a_member_does_belongs_to_its_run_when_the_clock_is_set_back(write, collect, key):
    scan = call("nova.coverage_scan", scan=SCAN, at_ms=JOINED - 60_000)
    (credit,) = collect(scan).credits
    row = write(unit, key)
    assert (credit.reason_code, row.grade, row.covered_by_observation_id) == ("ok", "weak", scan.call_id)


def test_another_agents_calls_change_no_run(write, collect, key):
    collect(call(owner=BOB), call(owner=("other", "ada"), at_ms=JOINED + 50))
    collect(call("nova.coverage_scan", owner=BOB, scan=SCAN, at_ms=JOINED + 4_000))
    row = write(unit, key)
    assert (row.grade, row.observed_count, row.covered_by_observation_id) == ("none", 0, None)


def test_an_ended_run_never_changes(write, collect, key):
    write(lambda conn: conn.execute(update(task_instance_member).values(ended_at_ms=JOINED)) and None)
    collect(call(), call("nova.coverage_scan", scan=SCAN, at_ms=JOINED + 4_000))
    assert write(grade_of, key)[0] == "none"


def test_selectors_are_matched_and_stay_weak(write, collect):
    def prepared(conn):
        open_run(conn, unit_kind="selector")
        return add_units(conn, "#save", kind="selector")[0]

    key = write(prepared)
    collect(call("nova.click_selector", selector="#other"))
    assert write(grade_of, key)[0] == "none"
    collect(call("nova.click_selector", selector="#save", at_ms=JOINED + 1_000))
    collect(call("nova.read_text", selector="#save", at_ms=JOINED + 3_000))
    assert write(grade_of, key) == ("weak", "locator_weak_only")
    assert write(unit, key).observed_count == 2


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(1, 4_000), st.sampled_from([PAGE, OTHER]), st.sampled_from(["nova.perceive", "nova.navigate"]),
            st.sampled_from([{}, {"error_page": True}, {"agent_scripted": True}]), st.sampled_from([ADA, BOB]),
        ),
        max_size=8,
    ),
    st.integers(0, 7),
)  # fmt: skip
def test_grades_never_fall_and_units_registered_late_end_the_same(sqlite_fast, calls, late):
    """The order of registering and observing is irrelevant, and so is everything that strangers do."""
    early_key, late_key, levels = None, None, []
    collector, clock = EvidenceCollector(), JOINED
    order = {"none": 0, "weak": 1, "strong": 2}

    def begin(conn):
        for table in (task_unit, task_instance_member, task_instance, visit_window, redirect_seen, site_url):
            conn.execute(delete(table))
        open_run(conn, "early")
        open_run(conn, "late")
        return add_units(conn, PAGE, instance_id="early")[0]

    early_key = sqlite_fast.write_sync(begin)

    def register(conn):
        (found,) = add_units(conn, PAGE, instance_id="late")
        evidence_store.fill(conn, "late", [found], clock)
        return found

    for number, (gap, url, tool, traits, owner) in enumerate([*calls, (5_000, OTHER, "nova.page_info", {}, ADA)]):
        if number == late:
            late_key = sqlite_fast.write_sync(register)
        clock += gap
        record = call(tool, url=url, at_ms=clock, owner=owner, call_id=f"c{number}", **traits)
        sqlite_fast.write_sync(collector.collect, record, LINK)
        levels.append(order[sqlite_fast.write_sync(grade_of, early_key, "early")[0]])
    late_key = late_key or sqlite_fast.write_sync(register)
    assert levels == sorted(levels)
    assert sqlite_fast.write_sync(grade_of, early_key, "early") == sqlite_fast.write_sync(grade_of, late_key, "late")


@pytest.fixture(scope="module")
def sqlite_fast(tmp_path_factory):
    with Database.open(f"sqlite:///{tmp_path_factory.mktemp('grades') / 'nova.db'}") as db:
        yield db


# -- redirects


def test_a_redirect_seen_with_the_call_leads_to_the_page_and_to_what_was_seen_of_it_before(write, collect):
    def prepared(conn):
        open_run(conn)
        return add_units(conn, "http://www.shop.example/A")[0]

    key = write(prepared)
    collect(call("nova.coverage_scan", scan=SCAN), call("nova.perceive", at_ms=JOINED + 1_500))
    assert write(grade_of, key)[0] == "none"
    collect(call("nova.navigate", at_ms=JOINED + 9_000, redirected=(key.removeprefix("url:"),)))
    row = write(unit, key)
    assert (row.grade, row.covered_by_scan_id) == ("strong", "nova_full_page_text_v1")
    collect(call("nova.perceive", at_ms=JOINED + 9_200))
    assert write(unit, key).observed_count == 2


# -- coverage


def test_a_scan_covers_once_and_says_what_is_left(write, collect, key):
    told = collect(call("nova.coverage_scan", scan=SCAN, call_id="first"))
    (credit,) = told.credits
    assert (credit.instance_id, credit.unit_key, credit.eligible, credit.reason_code) == ("run", key, True, "ok")
    assert (credit.remaining, credit.next_url) == (1, OTHER)
    collect(call("nova.coverage_scan", scan=SCAN, call_id="second", at_ms=JOINED + 500))
    assert write(unit, key).covered_by_observation_id == "first"
    assert write(counted(coverage_observation)) == 2


def test_scans_made_before_a_unit_was_known_cover_it_at_registration(write, collect, key):
    collect(call("nova.coverage_scan", scan=replace(SCAN, measures=replace(GOOD, hydration="unstable")), call_id="bad"))
    collect(call("nova.coverage_scan", scan=SCAN, call_id="good", at_ms=JOINED + 10))

    def later(conn):
        open_run(conn, "second", joined_ms=JOINED + 20_000)
        (found,) = add_units(conn, PAGE, instance_id="second")
        evidence_store.fill(conn, "second", [found], JOINED + 20_000)
        return unit(conn, found, "second").covered_by_observation_id

    assert write(later) == "good"


@pytest.mark.parametrize(
    ("scan", "reason"),
    [
        (replace(SCAN, measures=replace(GOOD, failed=True)), "untrusted"),
        (replace(SCAN, measures=replace(GOOD, http_status=503)), "error_page"),
        (replace(SCAN, measures=replace(GOOD, extracted_chars=1)), "text_coverage_below_0_85"),
        (replace(SCAN, scan_id="nova_structured_dom_v1"), "scan_not_accepted_for_kind"),
    ],
)
def test_a_scan_that_is_not_good_enough_covers_nothing(write, collect, key, scan, reason):
    (credit,) = collect(call("nova.coverage_scan", scan=scan)).credits
    assert (credit.eligible, credit.reason_code, credit.remaining) == (False, reason, 2)
    assert write(unit, key).covered_by_observation_id is None


def test_a_scripted_document_is_not_covered(write, collect, key):
    (credit,) = collect(call("nova.coverage_scan", scan=SCAN, agent_scripted=True)).credits
    assert credit.reason_code == "agent_scripted"


def test_runs_that_count_no_pages_hear_nothing_of_scans(write, collect):
    write(lambda conn: open_run(conn, unit_kind="item"))
    assert collect(call("nova.coverage_scan", scan=SCAN)).credits == []


def test_a_new_member_brings_its_scans(write, collect, key):
    collect(call("nova.coverage_scan", scan=SCAN, owner=BOB, call_id="bobs"))

    def joins(conn):
        join(conn, "run", BOB, JOINED + 30_000)
        evidence_store.fill_for(conn, "run", BOB, JOINED + 30_000)
        return unit(conn, key).covered_by_observation_id

    assert write(joins) == "bobs"


@pytest.mark.parametrize(("kind", "counts"), [("page", True), ("url", True), ("item", False)])
async def test_whether_an_agent_has_pages_to_cover_is_only_looked_up(db, kind, counts):
    keeper = CoverageKeeper(db)
    assert await keeper.counts_pages(ADA) is False
    await db.write(open_run, unit_kind=kind)
    assert await keeper.counts_pages(ADA) is counts
    assert await keeper.counts_pages(BOB) is False
    await db.write(lambda conn: conn.execute(update(task_instance_member).values(ended_at_ms=JOINED)) and None)
    assert await keeper.counts_pages(ADA) is False


# -- hints


def test_every_read_that_covers_nothing_gives_a_hint_for_its_run(write, collect, key):
    assert collect(call("nova.navigate")).hints == []
    (hint,) = collect(call(at_ms=JOINED + 200)).hints
    assert (hint.instance_id, hint.unit_key, hint.scan_id) == ("run", key, "nova_full_page_text_v1")
    assert collect(call(at_ms=JOINED + 400)).hints == [hint]
    write(join, "run", BOB, JOINED)
    assert len(collect(call(owner=BOB)).hints) == 1


@pytest.mark.parametrize("via", ["run_sequence", "background"])
def test_a_step_whose_answer_is_not_passed_on_gives_no_hint(write, collect, key, via):
    assert collect(call(via=via)).hints == []
    assert len(collect(call(at_ms=JOINED + 200, via="call")).hints) == 1


def test_covered_and_excluded_units_need_no_hint(write, collect, key):
    collect(call("nova.coverage_scan", scan=SCAN))
    assert collect(call(at_ms=JOINED + 200)).hints == []
    write(lambda conn: conn.execute(update(task_unit).values(status="excluded")) and None)
    assert collect(call(url=OTHER, at_ms=JOINED + 400)).hints == []


# -- gaps


def test_a_record_that_was_lost_marks_the_open_runs_of_its_caller(write, collect, key):
    write(lambda conn: open_run(conn, "bobs", owner=BOB))
    collect.collector.missed(call())
    collect(call(owner=BOB, url=None))
    gaps = write(lambda conn: dict(conn.execute(select(task_instance.c.instance_id, task_instance.c.ledger_gap)).all()))
    assert {name: bool(gap) for name, gap in gaps.items()} == {"run": True, "bobs": False}


def test_a_mark_that_was_lost_with_its_own_transaction_is_made_again(write, collect, key):
    collector = collect.collector
    collector.missed(call())

    def broken(conn):
        collector.collect(conn, call(owner=BOB), LINK)
        raise StoreUnavailable("down", "gone")

    with pytest.raises(StoreUnavailable):
        write(broken)
    collector.missed(call(owner=BOB))
    collect(call(owner=BOB, at_ms=JOINED + 9))
    assert bool(write(lambda conn: conn.execute(select(task_instance.c.ledger_gap)).scalar_one()))


async def test_a_call_that_the_store_decides_knows_of_a_gap_before(open_db, store_url):
    db = open_db(store_url)
    clock = SystemClock()
    collector = EvidenceCollector()
    ports, own = Ports(clock, SystemIds(clock)), ServerId("s1")
    recorder = Recorder(db, ports, own, (collector.collect,), collector.missed, collector.mark_gaps)
    await recorder.start(describe_server(own, 0, "test"))
    await db.write(open_run)
    collector.missed(call())
    told = []

    def write(conn, record):
        told.append(bool(conn.execute(select(task_instance.c.ledger_gap)).scalar_one()))

    def fails(conn, record, link):
        raise StoreUnavailable("down", "gone")

    with pytest.raises(StoreUnavailable):
        await recorder.commit(call(url=None, call_id="first"), (fails,), write)
    # What was marked with a record that was lost is marked again.
    await recorder.commit(call(url=None, call_id="second"), (), write)
    await recorder.commit(call(url=None, call_id="third"), (), write)
    assert told == [True, True, True]


async def test_the_recorder_tells_of_what_it_could_not_write(tmp_path, open_db):
    db = open_db(f"sqlite:///{tmp_path / 'nova.db'}")
    clock = SystemClock()
    ports = Ports(clock, SystemIds(clock))
    lost = []

    def fails(conn, record, link):
        raise StoreUnavailable("down", "gone")

    recorder = Recorder(db, ports, ServerId("s1"), also=(fails,), missed=lost.append)
    await recorder.start(describe_server(ServerId("s1"), 0, "test"))
    with pytest.raises(StoreUnavailable):
        await recorder.record(call())
    assert [record.call_id for record in lost] == [call().call_id]


# -- what is remembered and forgotten


def test_visited_pages_and_links_become_known_and_secret_ones_do_not(write, collect):
    collect(
        call("nova.coverage_scan", scan=SCAN),
        call(url="https://shop.example/gone", http_status=404, error_page=True, at_ms=JOINED + 1),
        call(url="https://shop.example/unknown", http_status=None, at_ms=JOINED + 2),
        call(url="https://shop.example/secret", keepable=False, at_ms=JOINED + 3),
        call(url="https://shop.example/in?token=abcd", at_ms=JOINED + 4),
    )
    known = write(lambda conn: dict(conn.execute(select(site_url.c.url, site_url.c.source)).all()))
    assert known == {PAGE: "visited", OTHER: "link", "https://shop.example/c": "link"}


def test_an_untrusted_scan_makes_no_link_known(write, collect):
    collect(call("nova.coverage_scan", scan=replace(SCAN, measures=replace(GOOD, url_changed=True))))
    assert write(lambda conn: conn.execute(select(site_url.c.url)).scalars().all()) == [PAGE]


def test_a_site_keeps_its_newest_addresses(write, monkeypatch):
    monkeypatch.setattr(site_urls, "MOST_PER_SITE", 3)
    monkeypatch.setattr(site_urls, "BEYOND", 2)

    def note(number, **urls):
        write(lambda conn: site_urls.note(conn, "local", number, **urls))

    for number in range(7):
        note(number, links=[f"https://shop.example/{number}"])
    assert write(site_urls.seeds, "local", "shop.example", 9) == [f"https://shop.example/{n}" for n in (4, 3, 2, 1, 0)]
    assert write(site_urls.forget, 10) == 2
    note(8, links=["https://shop.example/8"])
    note(9, visited=["https://shop.example/9", "https://other.example/9"])
    assert write(site_urls.seeds, "local", "shop.example", 2) == ["https://shop.example/9", "https://shop.example/8"]
    assert write(site_urls.forget, 10 + 91 * 86_400_000) == 6


def test_visits_stay_for_open_runs_and_go_without(write, collect, key):
    collect(call(), call(owner=BOB), call("nova.click_selector", selector="#a", owner=BOB, at_ms=JOINED + 1))
    assert write(visit_store.forget, JOINED + 3_600_000) == 0
    assert write(visit_store.forget, JOINED + 3_700_000) == 2
    assert write(lambda conn: conn.execute(select(visit_window.c.agent_id)).scalars().all()) == ["ada"]
    assert write(counted(touched_selector)) == 0
    write(lambda conn: conn.execute(update(task_instance_member).values(ended_at_ms=JOINED)) and None)
    assert write(visit_store.forget, JOINED + 3_700_000) == 1


def test_old_scans_go(write, collect):
    collect(call("nova.coverage_scan", scan=SCAN))
    assert write(forget_scans, JOINED + 180 * 86_400_000) == 0
    assert write(forget_scans, JOINED + 181 * 86_400_000) == 1


# -- nothing without evidence


def test_without_calls_nothing_is_graded_or_covered(write, key):
    write(evidence_store.fill, "run", [key], JOINED)
    write(evidence_store.refresh, "run", JOINED + 9_000, {"T1": PageLife()})
    row = write(unit, key)
    assert (row.grade, row.covered_by_observation_id) == ("none", None)


# -- what a long series of random plans has brought to light


def test_a_page_that_no_server_answered_is_covered_by_no_scan(write, collect, key):
    blank = replace(SCAN, measures=replace(GOOD, http_status=None))
    collect(call("nova.coverage_scan", scan=blank, http_status=None, error_page=True))
    assert write(unit, key).covered_by_observation_id is None

    def registered_later(conn):
        open_run(conn, "later")
        (found,) = add_units(conn, PAGE, instance_id="later")
        evidence_store.fill(conn, "later", [found], JOINED + 200)
        return unit(conn, found, "later").covered_by_observation_id

    assert write(registered_later) is None


def test_another_spelling_leads_to_the_page_that_one_is_already_on(write, collect):
    def prepared(conn):
        open_run(conn)
        return add_units(conn, "http://shop.example/a")[0]

    spelled = write(prepared)
    collect(call("nova.navigate"))
    assert write(grade_of, spelled)[0] == "none"
    led = (spelled.removeprefix("url:"),)
    collect(call("nova.navigate", at_ms=JOINED + 200, steady=False, redirected=led))
    assert write(grade_of, spelled) == ("weak", "no_read")
    collect(call("nova.coverage_scan", at_ms=JOINED + 400, scan=SCAN, redirected=led))
    assert write(unit, spelled).covered_by_observation_id is not None
