"""What a new entry begins with: the evidence of its controls, once, for one entry, and not enough to guide at once."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from former_store import migrate
from sqlalchemy import Integer, create_engine, insert

from nova_mcp.evidence.model import Signals
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion import promoter, retention, steps_store
from nova_mcp.memory.promotion.gates.counting import counts_for
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.replay import replay_levels
from promotion_kit import FAILED, HERE, NOW, SIGHTED, WORKED, Site, added, phenomenon

DRAFT = Birth("generated")


@pytest.fixture
def site(db, build):
    return Site(db, build)


def born(site, now_ms, stable_id="banner", birth=DRAFT, **changes):
    return added(site.db, phenomenon(stable_id, created_at_ms=now_ms, updated_at_ms=now_ms, **changes), birth)


def evidence(site, put, now_ms, kind="l1_to_l2"):
    return counts_for(entry_of(put), kind, site.marks(put, now_ms), now_ms)


def test_a_new_entry_begins_with_what_was_seen_of_its_controls(site):
    for day in range(3):
        site.call(NOW + day * DAY_MS)
    site.call(NOW + 3 * DAY_MS, FAILED)
    site.call(NOW + 3 * DAY_MS, WORKED, "#other")
    now = NOW + 4 * DAY_MS
    found = evidence(site, born(site, now), now)
    assert (found.successes, found.success_sessions, found.failures) == (3, 3, 1)
    assert replay_after_review(site, now).differences == ()


def replay_after_review(site, now_ms):
    site.db.write_sync(promoter.promote, Wish(HERE), now_ms)
    return site.db.read_sync(replay_levels)


def test_what_is_too_old_at_birth_or_grows_too_old_later_does_not_count(site):
    site.call(NOW)
    site.call(NOW + 25 * DAY_MS)
    put = born(site, NOW + 31 * DAY_MS)
    assert evidence(site, put, NOW + 31 * DAY_MS).successes == 1
    assert evidence(site, put, NOW + 56 * DAY_MS).successes == 0


@pytest.mark.parametrize("retired", [None, "it no longer holds"])
def test_evidence_speaks_for_one_entry_and_no_other_name_takes_it_over(site, retired):
    for day in range(3):
        site.call(NOW + day * DAY_MS)
    now = NOW + 3 * DAY_MS
    first = born(site, now, deprecated_reason=retired, level=0 if retired else 1)
    second = born(site, now, "again")
    assert (evidence(site, first, now).successes, evidence(site, second, now).successes) == (3, 0)


def test_what_could_have_meant_several_entries_speaks_for_none_that_comes_later(site):
    for name in ("one", "two"):
        born(site, NOW, name)
    site.call(NOW + HOUR_MS)
    put = born(site, NOW + 2 * HOUR_MS, "three", routes=("desk",))
    assert site.marks(put) == ()


def test_a_call_without_a_control_is_about_no_entry_whatever_its_selector_is_called(site):
    site.call(NOW, WORKED, None)
    put = born(site, NOW + HOUR_MS, selector="nova.click_selector")
    assert site.marks(put) == ()


@pytest.mark.parametrize("order", sorted(set(itertools.permutations("SWWB"))), ids="".join)
def test_retries_around_the_birth_of_an_entry_come_to_one_proof(site, order):
    now, put = NOW, None
    for what in order:
        now += 5_000
        if what == "B":
            put = born(site, now)
        else:
            site.call(now, SIGHTED if what == "S" else WORKED)
    found = evidence(site, put, now)
    assert (found.support, found.successes) == (1, 1)
    assert site.db.read_sync(replay_levels).differences == ()


def test_a_failure_right_after_the_birth_is_not_hidden(site):
    site.call(NOW)
    put = born(site, NOW + 1_000)
    site.call(NOW + 2_000, FAILED)
    assert evidence(site, put, NOW + 2_000).failures == 1


def test_folding_keeps_what_an_entry_began_with_as_long_as_a_gate_may_look_at_it(site):
    for day in range(0, 20, 4):
        site.call(NOW + day * DAY_MS)
    put = born(site, NOW + 20 * DAY_MS)
    site.call(NOW + 21 * DAY_MS, SIGHTED)
    for later in range(22, 60, 3):
        now = NOW + later * DAY_MS
        before = evidence(site, put, now)
        site.db.write_sync(retention.forgetting(0), now)
        assert evidence(site, put, now) == before
        assert site.db.read_sync(replay_levels).differences == ()


@pytest.mark.parametrize("origin", ["manual", "imported", "platform"])
def test_what_somebody_claims_in_one_visit_does_not_guide_in_that_visit(site, origin):
    for day in range(4):
        site.call(NOW + day * DAY_MS)
    now = NOW + 4 * DAY_MS
    site.call(now)
    born(site, now + 60_000, birth=Birth(origin))
    site.call(now + 120_000)
    site.db.write_sync(promoter.promote, Wish(HERE), now + 180_000)
    assert site.entry().kept.level == 1
    site.call(now + DAY_MS)
    site.db.write_sync(promoter.promote, Wish(HERE), now + DAY_MS)
    assert site.entry().kept.level == 2


def test_the_visit_in_which_an_entry_is_written_counts_as_a_proof(site):
    site.call(NOW)
    put = born(site, NOW + 60_000, birth=Birth("manual"))
    assert evidence(site, put, NOW + 60_000).successes == 1


def test_entries_that_are_born_while_their_controls_are_in_use_count_every_call_once(store_url, open_db, build):
    """A deadlock would be told as a store that is locked."""
    sites = [Site(open_db(store_url), build, f"s{number}") for number in range(4)]
    controls, rounds = ("#a", "#b", "#c"), 12
    start = Barrier(len(sites))

    def act(site):
        start.wait(30)
        for turn in range(rounds):
            for control in controls:
                site.call(NOW + turn * 61_000, WORKED, control, target=f"tab_{site.server}")

    def write(site):
        start.wait(30)
        for turn, control in enumerate(controls):
            born(site, NOW + (turn + 3) * 61_000, f"e{turn}", selector=control)

    with ThreadPoolExecutor(len(sites)) as threads:
        running = [threads.submit(act, one) for one in sites[1:]] + [threads.submit(write, sites[0])]
        for one in running:
            one.result(120)
    for turn in range(len(controls)):
        entry = sites[0].entry(f"e{turn}")
        calls = [mark.call_id for mark in sites[0].marks(entry) if mark.kind == "action_success"]
        assert len(calls) == len(set(calls)) <= 3 * rounds
    assert sites[0].db.read_sync(replay_levels).differences == ()


def test_another_site_gives_nothing(site):
    site.call(NOW)
    put = added(site.db, phenomenon(created_at_ms=NOW + 1), DRAFT, ScopeName("other.test"))
    assert site.marks(put) == ()
    assert site.db.read_sync(steps_store.snapshot, put.entry_id)[1].marks == ()


def test_a_drift_before_the_birth_keeps_it_from_rising(site):
    for day in range(3):
        site.call(NOW + day * DAY_MS)
    site.call(NOW + 3 * DAY_MS, Signals(label="success", drift="light"))
    now = NOW + 3 * DAY_MS + HOUR_MS
    put = born(site, now)
    assert evidence(site, put, now).recent_drifts == 1


def test_a_store_from_before_knowledge_is_taken_over_with_everything_in_it(empty_url, open_db, build):
    """Observations from then belong to no cluster: they are kept, and speak for nobody."""
    engine = create_engine(empty_url)
    with engine.begin() as conn:
        migrate(conn, "0005")
        names = [name for name in observation.c.keys() if name not in ("observation_id", "cluster_key")]  # noqa: SIM118
        held = {name: 1 if isinstance(observation.c[name].type, Integer) else name for name in names}
        held |= {"context_host": HERE, "selector_norm": "#go", "target_stable_id": None, "created_at_ms": NOW}
        held |= {"kind": "action_success", "payload": "{}", "candidate_key": None}
        conn.execute(insert(observation).values(**held))
        migrate(conn)
    engine.dispose()
    site = Site(open_db(empty_url), build)
    assert site.marks(born(site, NOW + HOUR_MS)) == ()
    site.call(NOW + 2 * HOUR_MS)
    assert [row["cluster_key"] for row in site.observations()][:2] == [None, "banner"]
