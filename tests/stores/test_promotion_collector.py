"""What calls do to entries: bound by their control alone, counted once, and lowered at once when they fail."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select

from nova_mcp.evidence.model import CallOutcome, Checked, Signals
from nova_mcp.memory.journal.statistics.tables import statistic_hour
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, Playbook, ScopeName
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion import event_store, promoter, steps_store
from nova_mcp.memory.promotion.gates import counting
from nova_mcp.memory.promotion.gates.counting import counts_for
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS
from nova_mcp.memory.promotion.promoter import Wish
from promotion_kit import FAILED, HERE, NOW, SIGHTED, WORKED, Site, added, hint, phenomenon, replayed


@pytest.fixture
def site(db, build):
    return Site(db, build)


# -- which entry


def test_a_verified_action_on_an_entrys_control_counts_for_it(site):
    put = added(site.db, phenomenon())
    call_id = site.call(NOW)
    after = site.entry()
    assert [(mark.kind, mark.outcome, mark.call_id) for mark in site.marks(put)] == [
        ("action_success", 1, call_id),
        ("tob_verified", 1, call_id),
    ]
    assert (after.kept.health.attempts, after.kept.health.successes, after.kept.level) == (1, 1, 1)
    assert {row["target_stable_id"] for row in site.observations()} == {"banner"}
    assert replayed(site.db, put.entry_id) == entry_of(after)


def test_fallbacks_lead_to_their_entry_too(site):
    put = added(site.db, phenomenon())
    site.call(NOW, selector="#fallback")
    assert len(site.marks(put)) == 2


def test_an_action_on_another_control_or_site_is_about_no_entry(site):
    put = added(site.db, phenomenon())
    elsewhere = added(site.db, phenomenon(selector="#other"), scope=ScopeName("b.test"))
    before = site.db.read_sync(store.state_rev, HERE)
    site.call(NOW, selector="#other")
    assert site.marks(put) == site.marks(elsewhere) == ()
    (row,) = site.observations()
    assert (row["target_stable_id"], "attribution" in json.loads(row["payload"])) == (None, False)
    assert site.db.read_sync(store.state_rev, HERE) == before


def test_a_call_on_a_site_that_nothing_is_known_of_leaves_no_scope_behind(site):
    site.call(NOW)
    assert site.db.read_sync(store.scope_row, HERE) is None


def test_where_two_entries_act_through_a_control_neither_is_meant_and_the_observation_says_so(site):
    both = added(site.db, phenomenon("a")), added(site.db, phenomenon("b"))
    site.call(NOW)
    assert [site.marks(one) for one in both] == [(), ()]
    (row,) = site.observations()
    assert row["target_stable_id"] is None
    assert json.loads(row["payload"])["attribution"] == "telemetry_ambiguous_selector"


def test_routes_tell_entries_with_one_control_apart(site):
    desk = added(site.db, phenomenon("a", routes=("desk",)))
    other = added(site.db, phenomenon("b", routes=("cart/*",)))
    site.call(NOW)
    site.call(NOW, path="/cart/3")
    site.call(NOW, path="/elsewhere", target="tab_2")
    assert [len(site.marks(one)) for one in (desk, other)] == [2, 2]
    assert [row["target_stable_id"] for row in site.observations() if row["kind"] == "action_success"] == [
        "a",
        "b",
        None,
    ]


def test_a_retired_entry_is_meant_only_where_no_other_one_is(site):
    gone = added(site.db, phenomenon("a", level=0, deprecated_reason="gone"))
    site.call(NOW)
    assert len(site.marks(gone)) == 2
    alive = added(site.db, phenomenon("b"))
    site.call(NOW + HOUR_MS)
    assert [len(site.marks(one)) for one in (gone, alive)] == [2, 2]
    added(site.db, phenomenon("c", level=0, deprecated_reason="gone"))
    site.call(NOW + 2 * HOUR_MS)
    assert [len(site.marks(one)) for one in (gone, alive)] == [2, 4]


def test_two_retired_entries_are_as_ambiguous_as_two_others(site):
    for name in ("a", "b"):
        added(site.db, phenomenon(name, level=0, deprecated_reason="gone"))
    site.call(NOW)
    (row,) = site.observations()
    assert json.loads(row["payload"])["attribution"] == "telemetry_ambiguous_selector"


def test_both_revisions_that_act_through_a_control_are_meant_and_a_new_control_speaks_only_of_the_new(site):
    old = added(site.db, phenomenon(level=2))
    new = added(site.db, phenomenon(selector="#new", revision=2), Birth(slot="pending"))
    site.call(NOW, selector="#new")
    assert [len(site.marks(one)) for one in (old, new)] == [0, 2]
    site.call(NOW + HOUR_MS, selector="#fallback")
    assert [len(site.marks(one)) for one in (old, new)] == [2, 4]
    site.call(NOW + 2 * HOUR_MS)
    assert [len(site.marks(one)) for one in (old, new)] == [4, 4]


def test_a_step_added_to_what_everybody_does_is_not_proven_by_everybody(site):
    """Neither by what was seen before it came, nor by what came later."""
    for number in range(3):
        site.call(NOW + number * HOUR_MS)
    one = phenomenon()
    rider = Playbook("custom", (Action("click", "#go"), Action("click", "#discard")))
    ridden = replace(one, content=replace(one.content, playbook=rider), created_at_ms=NOW + 3 * HOUR_MS)
    alone = added(site.db, replace(ridden, stable_id="banner"), Birth("generated"))
    for number in range(3, 6):
        site.call(NOW + number * HOUR_MS)
    marks = site.marks(alone)
    assert {mark.outcome for mark in marks} == {0}
    assert len({mark.call_id for mark in marks}) == 6
    assert site.entry().kept.health.successes == 0


def test_a_newer_revision_with_a_step_more_does_not_live_on_the_old_ones_success(site):
    one = added(site.db, phenomenon(level=2))
    rider = Playbook("custom", (Action("click", "#go"), Action("click", "#discard")))
    ridden = replace(one.kept, content=replace(one.kept.content, playbook=rider), level=1, revision=2)
    newer = added(site.db, ridden, Birth(slot="pending"))
    site.call(NOW)
    assert [{mark.outcome for mark in site.marks(which)} for which in (one, newer)] == [{1}, {0}]


def test_what_proves_all_steps_counts_right_after_a_single_one(site):
    steps = (Action("type", "#user", value_source="agent_supplied", value_name="user"), Action("click", "#go"))
    one = phenomenon(type="login_wall")
    put = added(site.db, replace(one, content=replace(one.content, playbook=Playbook("custom", steps))))
    site.call(NOW, selector="#user", tool_name="nova.type_selector")
    site.call(NOW + 5_000, tool_name="nova.guarded_login")
    assert [mark.outcome for mark in site.marks(put) if mark.kind == "action_success"] == [0, 1]
    assert site.entry().kept.health.successes == 1


def test_reading_through_a_control_binds_nothing(site):
    put = added(site.db, phenomenon())
    site.call(NOW, effect="read", tool_name="nova.get_text")
    assert site.marks(put) == ()


# -- how much it counts


def test_retries_within_half_a_minute_count_once_whatever_their_order(site):
    put = added(site.db, phenomenon(level=0))
    for number, signals in enumerate((SIGHTED, WORKED, SIGHTED, WORKED)):
        site.call(NOW + number * 5000, signals)
    (sighting, proof, used) = site.marks(put)
    assert (sighting.outcome, proof.outcome, proof.replaced) == (0, 1, sighting.call_id)
    assert used.kind == "tob_verified"
    assert site.entry().kept.health.attempts == 1


def test_an_entry_whose_action_always_fails_falls_within_two_uses_whatever_is_seen_in_between(site):
    put = added(site.db, phenomenon(level=2))
    site.call(NOW, FAILED)
    for number in range(1, 6):
        site.look(NOW + number * 31_000, Checked("banner", "seen"))
        site.call(NOW + number * 31_000, SIGHTED)
    assert site.entry().kept.level == 2
    site.call(NOW + HOUR_MS, FAILED)
    fallen = site.entry()
    assert (fallen.kept.level, fallen.kept.deprecated) == (1, False)
    assert fallen.kept.standing.unsettled_at_ms == fallen.kept.updated_at_ms == NOW + HOUR_MS
    (told,) = site.db.read_sync(event_store.events, HERE, 0, 9)
    assert (told.reason_kind, told.from_level, told.to_level) == ("demotion", 2, 1)
    assert (told.counts.failures, told.counts.consecutive_failures) == (2, 2)
    assert replayed(site.db, put.entry_id) == entry_of(fallen)


def test_a_shadow_that_keeps_failing_retires_and_readers_can_tell(site):
    put = added(site.db, phenomenon())
    before = site.db.read_sync(store.scope_row, HERE).content_rev
    for number in range(3):
        assert site.db.read_sync(store.scope_row, HERE).content_rev == before
        site.call(NOW + number * HOUR_MS, FAILED)
    gone = site.entry()
    assert (gone.kept.level, gone.kept.deprecated_reason) == (0, "3 failures in a row")
    assert site.db.read_sync(store.scope_row, HERE).content_rev == before + 1
    assert replayed(site.db, put.entry_id) == entry_of(gone)


def test_hard_drift_takes_effect_at_once_and_light_drift_does_not(site):
    added(site.db, phenomenon(level=2))
    site.call(NOW, replace(WORKED, drift="light"))
    assert site.entry().kept.level == 2
    site.look(NOW + HOUR_MS, Checked("banner", "hard_drift"), tool="nova.revalidate")
    fallen = site.entry()
    assert (fallen.kept.level, fallen.kept.standing.last_hard_drift_at_ms) == (1, NOW + HOUR_MS)
    assert fallen.kept.health.silent_verify_fails == 1
    (told,) = site.db.read_sync(event_store.events, HERE, 0, 9)
    assert (told.reason_kind, told.counts.recent_hard_drifts, told.counts.recent_drifts) == ("demotion", 1, 2)


def test_one_look_may_speak_of_several_entries_hints_included(site):
    kept = [phenomenon("a"), phenomenon("b", selector="#b"), hint()]
    every = [added(site.db, one) for one in kept]
    names = {"a": "seen", "b": "light_drift", "ads": "seen", "unknown": "seen"}
    site.look(NOW, *(Checked(name, verdict) for name, verdict in names.items()))
    shown = [[(one.kind, one.outcome, one.severity, one.source) for one in site.marks(put)] for put in every]
    seen = ("perceive_signature", 0, 0, "check")
    assert shown == [[seen], [("selector_drift", -1, 1, "check")], [seen]]
    assert site.entry("a").kept.health.last_confirmed_at_ms == NOW


def test_calls_that_teach_nothing_leave_entries_alone(site):
    put = added(site.db, phenomenon())
    site.call(NOW, replace(WORKED, scripted=True))
    site.call(NOW, replace(WORKED, refused=True), outcome=CallOutcome("blocked_preflight", action_dispatched=False))
    site.call(NOW, Signals(telemetry="claimed", target_stable_id="banner"), None, effect="write")
    (claim,) = site.marks(put)
    assert (claim.kind, claim.outcome) == ("telemetry_confirmed", 0)
    assert site.entry().kept.health.attempts == 0


def test_servers_that_learn_of_one_entry_at_once_lose_nothing(store_url, open_db, build):
    sites = [Site(open_db(store_url), build, name) for name in ("s1", "s2", "s3")]
    put = added(sites[0].db, phenomenon())
    rounds = 8

    def work(site):
        for number in range(rounds):
            site.call(NOW + number * 61_000, target=site.server)

    with ThreadPoolExecutor(len(sites)) as threads:
        list(threads.map(work, sites))
    after = sites[0].entry()
    assert after.kept.health.successes == rounds * len(sites)
    assert sum(mark.kind == "action_success" for mark in sites[0].marks(put)) == rounds * len(sites)
    assert replayed(sites[0].db, put.entry_id) == entry_of(after)


def test_a_report_is_evidence_and_changes_no_level_itself(site):
    put = added(site.db, phenomenon(level=2))
    site.call(NOW, Signals(telemetry="refuted", target_stable_id="banner"), tool_name="nova.telemetry_report")
    assert site.entry().kept.level == 2
    assert replayed(site.db, put.entry_id).level == 2
    site.db.write_sync(promoter.promote, Wish(HERE), NOW + 1000)
    assert site.entry().kept.level == 1
    assert replayed(site.db, put.entry_id).level == 1


def test_however_much_an_entry_is_used_a_drift_of_the_week_stays_in_sight(site, monkeypatch):
    for place in (counting, steps_store):
        monkeypatch.setattr(place, "MARKS_KEPT", 8)
    put = added(site.db, phenomenon(level=1))
    site.call(NOW, replace(WORKED, drift="light"))
    for number in range(1, 8):
        site.call(NOW + number * HOUR_MS)
        site.db.write_sync(promoter.promote, Wish(HERE), NOW + number * HOUR_MS)
    found = counts_for(entry_of(put), "l1_to_l2", site.marks(put, NOW + 8 * HOUR_MS), NOW + 8 * HOUR_MS)
    assert (found.recent_drifts, site.entry().kept.level) == (1, 1)
    assert replayed(site.db, put.entry_id).level == 1
    site.db.write_sync(promoter.promote, Wish(HERE), NOW + 8 * DAY_MS)
    assert replayed(site.db, put.entry_id).level == site.entry().kept.level


# -- successes that are refuted later

MISFIRE = Signals(label="failure", contract="verified_fail")
REFUTED = Signals(telemetry="refuted", target_stable_id="banner")


def contradictions(site):
    wanted = (statistic_hour.c.name == "tool.contradicted", statistic_hour.c.label == "")
    return site.db.read_sync(lambda conn: sum(conn.execute(select(statistic_hour.c.count).where(*wanted)).scalars()))


def acted(site, *signals):
    """One act a minute, so that none is taken for a repetition."""
    for minute, one in enumerate(signals):
        tool = "nova.telemetry_report" if one is REFUTED else "nova.click_selector"
        site.call(NOW + minute * 60_000, one, tool_name=tool)


@pytest.mark.parametrize(
    ("signals", "counted"),
    [
        ((WORKED, MISFIRE), 1),
        ((WORKED, REFUTED), 1),
        ((MISFIRE,), 0),
        ((REFUTED,), 0),
        ((SIGHTED, MISFIRE), 0),
        # The same success is refuted once, whoever says so and however often.
        ((WORKED, WORKED, MISFIRE, REFUTED, MISFIRE), 1),
        ((WORKED, FAILED, REFUTED), 1),
        ((WORKED, MISFIRE, WORKED, MISFIRE), 2),
        # A failure that nobody proved or reported speaks for itself alone.
        ((WORKED, FAILED, FAILED), 0),
    ],
)
def test_a_proven_success_that_is_refuted_later_is_counted_once(site, signals, counted):
    added(site.db, phenomenon())
    acted(site, *signals)
    assert contradictions(site) == counted


def test_a_revision_in_review_does_not_count_a_refuted_success_twice(site):
    added(site.db, phenomenon(level=2))
    added(site.db, phenomenon(revision=2), Birth(slot="pending"))
    acted(site, WORKED, MISFIRE)
    assert contradictions(site) == 1
