"""Bounds of measured shares: known values, and what must hold for every sample."""

import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.bounds import exact_upper, wilson

SAMPLES = st.integers(0, 400).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


def test_no_failure_in_three_hundred_trials_stays_below_one_percent() -> None:
    assert exact_upper(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300), rel=1e-9)
    assert exact_upper(0, 300) < 0.01


def test_exact_bound_agrees_with_published_values() -> None:
    assert exact_upper(1, 10) == pytest.approx(0.3941633, rel=1e-5)
    assert exact_upper(5, 100, 0.975) == pytest.approx(0.1128349, rel=1e-5)


def test_wilson_interval_agrees_with_published_values() -> None:
    low, high = wilson(10, 100)
    assert (round(low, 4), round(high, 4)) == (0.0552, 0.1744)


def test_an_empty_sample_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert exact_upper(0, 0) == 1.0


@pytest.mark.parametrize(("hits", "trials"), [(-1, 5), (6, 5)])
def test_more_hits_than_trials_are_refused(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(hits, trials)
    with pytest.raises(ValueError, match="no share"):
        exact_upper(hits, trials)


@given(SAMPLES)
def test_bounds_enclose_what_was_seen(sample: tuple[int, int]) -> None:
    hits, trials = sample
    low, high = wilson(hits, trials)
    seen = hits / trials if trials else 0.5
    assert 0.0 <= low <= seen <= high <= 1.0
    assert seen <= exact_upper(hits, trials) + 1e-12 or math.isclose(seen, 0.5)


@given(st.integers(0, 40), st.integers(1, 200))
def test_one_more_hit_never_lowers_the_bound_and_one_more_clean_trial_never_raises_it(hits: int, more: int) -> None:
    trials = hits + more
    assert exact_upper(hits + 1, trials) >= exact_upper(hits, trials) >= exact_upper(hits, trials + 1)
