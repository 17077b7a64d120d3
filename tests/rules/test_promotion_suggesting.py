"""Suggestions: what belongs together, how it is counted as it comes, and scores that can be added up by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.promotion.drafts.clusters import cluster_key, cluster_of, day_of, with_observation
from nova_mcp.memory.promotion.drafts.scoring import TroubledEntry, drift_opportunities, from_cluster, ranked
from nova_mcp.memory.promotion.model import DAY_MS, Cluster, ClusterDay, ClusterKey

NOW = 100 * DAY_MS
KEY = ClusterKey("shop.test", "lcj_1")
PLAIN = Cluster(KEY, "action_success", 4, 0, 0, 0, 1, NOW - 8 * DAY_MS)
SUCCESS = Observation("action_success", 1)
FAILURE = Observation("action_failure", -1)
SIGHTING = Observation("action_success", 0)
DRIFT = Observation("selector_drift", -1, 2)
LOOK = Observation("perceive_signature", 0)


@pytest.mark.parametrize(
    ("seen", "key"),
    [
        (
            Observation("action_success", 1, target_stable_id="lcj_1", candidate_key="lcj_ck_1", selector_norm="#buy"),
            "lcj_ck_1",
        ),
        (Observation("action_success", 1, target_stable_id="lcj_1", selector_norm="#buy"), "lcj_1"),
        (Observation("action_success", 1, selector_norm="#buy", fingerprint_hash="fp"), "#buy"),
        (Observation("action_success", 1, fingerprint_hash="fp"), "nova.click_selector"),
    ],
)
def test_a_cluster_is_named_by_the_first_thing_known(seen: Observation, key: str):
    assert cluster_key(seen, "shop.test", "nova.click_selector") == ClusterKey("shop.test", key)


def test_without_any_name_it_is_unknown():
    assert cluster_key(SUCCESS, "shop.test", "").key == "unknown"


def gathered(*seen: tuple[Observation, str, int]) -> list[ClusterDay]:
    days: dict[int, ClusterDay] = {}
    for one, session, at in seen:
        days[day_of(at)] = with_observation(days.get(day_of(at)), one, session, at)
    return list(days.values())


def test_two_observations_make_a_cluster_and_one_does_not():
    assert cluster_of(KEY, gathered((SUCCESS, "a", NOW)), NOW) is None
    found = cluster_of(KEY, gathered((SUCCESS, "a", NOW), (SIGHTING, "b", NOW - DAY_MS)), NOW)
    assert found is not None
    assert (found.support, found.successes, found.failures, found.distinct_sessions) == (2, 1, 0, 2)
    assert (found.dominant_kind, found.last_at_ms) == ("action_success", NOW)


def test_looking_at_a_page_makes_no_cluster():
    assert cluster_of(KEY, gathered((LOOK, "a", NOW), (LOOK, "b", NOW)), NOW) is None
    assert cluster_of(KEY, gathered((LOOK, "a", NOW), (SUCCESS, "b", NOW)), NOW) is not None


def test_what_is_older_than_a_month_no_longer_counts():
    old = gathered((SUCCESS, "a", NOW - 31 * DAY_MS), (SUCCESS, "b", NOW))
    assert cluster_of(KEY, old, NOW) is None
    assert cluster_of(KEY, old, NOW - DAY_MS) is not None


def test_a_proof_in_place_of_a_sighting_is_no_further_support():
    day = with_observation(None, SIGHTING, "a", NOW)
    day = with_observation(day, SUCCESS, "a", NOW, upgraded=True)
    day = with_observation(day, FAILURE, "a", NOW)
    found = cluster_of(KEY, [day], NOW)
    assert found is not None
    assert (found.support, found.successes, found.failures) == (2, 1, 1)


entries = st.tuples(
    st.sampled_from([SUCCESS, FAILURE, SIGHTING, DRIFT, LOOK]),
    st.sampled_from("abcd"),
    st.integers(NOW - 40 * DAY_MS, NOW),
)


@given(st.lists(entries, max_size=30), st.randoms(use_true_random=False))
def test_counting_as_it_comes_equals_counting_at_the_end_in_any_order(seen: list[tuple[Observation, str, int]], mix):
    found = cluster_of(KEY, gathered(*seen), NOW)
    again = list(seen)
    mix.shuffle(again)
    assert cluster_of(KEY, gathered(*again), NOW) == found
    inside = [one for one in seen if day_of(one[2]) >= day_of(NOW) - 30]
    if found is not None:
        assert found.support == len(inside)
        assert found.successes == sum(one.outcome > 0 for one, _, _ in inside)
        assert found.failures == sum(one.outcome < 0 for one, _, _ in inside)
        assert found.distinct_sessions == len({session for _, session, _ in inside})


# -- scores


@pytest.mark.parametrize(
    ("changes", "known", "parts"),
    [
        ({}, False, (2.0, 0.0, 1.0, 0.0, 0.0)),
        ({"support": 3}, False, (1.58, 0.0, 1.0, 0.0, 0.0)),
        ({"distinct_sessions": 2}, False, (2.0, 2.0, 1.0, 0.0, 0.0)),
        ({"successes": 2, "failures": 1}, False, (2.0, 0.0, 1.33, 0.0, 0.0)),
        ({"successes": 1, "failures": 1}, False, (2.0, 0.0, 1.0, 0.0, 0.0)),
        ({"successes": 1, "failures": 2}, False, (2.0, 0.0, 0.67, -0.5, 0.0)),
        ({"failures": 2, "drifts": 1}, False, (2.0, 0.0, 0.0, -0.5, 0.0)),
        ({"failures": 2, "drifts": 1}, True, (2.0, 0.0, 0.0, 3.0, 0.0)),
        ({"last_at_ms": NOW - DAY_MS}, False, (2.0, 0.0, 1.0, 0.0, 1.0)),
        ({"last_at_ms": NOW - DAY_MS - 1}, False, (2.0, 0.0, 1.0, 0.0, 0.5)),
        ({"last_at_ms": NOW - 7 * DAY_MS}, False, (2.0, 0.0, 1.0, 0.0, 0.5)),
        ({"last_at_ms": NOW - 7 * DAY_MS - 1}, False, (2.0, 0.0, 1.0, 0.0, 0.0)),
    ],
)
def test_every_part_of_a_score(changes: dict[str, int], known: bool, parts: tuple[float, ...]):
    found = from_cluster(replace(PLAIN, **changes), NOW, known=known)  # type: ignore[arg-type]
    assert tuple(value for _, value in found.breakdown) == parts
    assert found.score == pytest.approx(sum(parts))


standings = st.builds(
    TroubledEntry,
    st.just("shop.test"),
    st.just("lcj_1"),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 9),
    st.none() | st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 5),
    st.integers(0, NOW),
)
clusters = st.builds(
    Cluster,
    st.just(KEY),
    st.just("action_success"),
    st.integers(0, 10_000),
    st.integers(0, 5_000),
    st.integers(0, 5_000),
    st.integers(0, 9),
    st.integers(0, 16),
    st.integers(0, NOW),
)


@given(clusters, standings, st.booleans())
def test_the_parts_add_up_to_the_score(found: Cluster, standing: TroubledEntry, known: bool):
    for one in (from_cluster(found, NOW, known=known), *drift_opportunities(standing)):
        assert one.score == pytest.approx(sum(value for _, value in one.breakdown), abs=1e-9)
        assert one.suggestion.endswith(".")


STANDING = TroubledEntry("shop.test", "lcj_1", 5, 2, 3, 2, 0.4, 0.5, 2, NOW)


def test_knowledge_that_went_stale_while_failing_is_an_item():
    stale, failing = drift_opportunities(STANDING)
    assert (stale.dominant_kind, stale.score) == ("silent_verify_drift", 2.0 + 1.0 + 0.5)
    assert (failing.dominant_kind, failing.score) == ("active_failure_drift", 2.0 + 1.0 + 0.6)


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"consecutive_failures": 1}, ["active_failure_drift"]),
        ({"staleness": 0.49}, ["active_failure_drift"]),
        ({"attempts": 4}, ["silent_verify_drift"]),
        ({"success_rate_30d": 0.5}, ["silent_verify_drift"]),
        ({"success_rate_30d": None}, ["silent_verify_drift"]),
    ],
)
def test_drift_items_begin_at_their_numbers(changes: dict[str, float], kinds: list[str]):
    found = drift_opportunities(replace(STANDING, **changes))  # type: ignore[arg-type]
    assert [one.dominant_kind for one in found] == kinds


def test_the_streak_of_failures_counts_up_to_two():
    assert drift_opportunities(replace(STANDING, consecutive_failures=9))[0].score == 2.0 + 2.0 + 0.5


@given(st.lists(clusters, max_size=8), st.randoms(use_true_random=False), st.integers(1, 20))
def test_the_order_of_suggestions_never_depends_on_the_input(found: list[Cluster], mix, limit: int):
    named = [
        from_cluster(replace(one, key=ClusterKey("shop.test", f"k{n}")), NOW, known=False)
        for n, one in enumerate(found)
    ]
    first = ranked(named, limit)
    mix.shuffle(named)
    assert ranked(named, limit) == first
    assert [one.score for one in first] == sorted((one.score for one in named), reverse=True)[:limit]
