"""The measurement of repairs: its pages are reproducible, its truth is its own, and it counts what it says."""

import random

from bench.repair import bare, guarded, scored, trials_of
from bench.repair_pages import STRENGTHS, made_pair


def test_the_same_seed_makes_the_same_pages():
    one, other = (made_pair(STRENGTHS[1], random.Random(5)) for _ in range(2))
    assert one == other
    assert one != made_pair(STRENGTHS[1], random.Random(6))


def test_every_old_element_became_one_node_or_none():
    for how in STRENGTHS:
        pair = made_pair(how, random.Random(1))
        nodes = [node for node in pair.truth if node is not None]
        assert len(pair.truth) == len(pair.before)
        assert len(nodes) == len(set(nodes)) <= len(pair.after)
        assert [one.node for one in pair.after] == list(range(len(pair.after)))


def test_scores_add_up_and_guards_only_abstain_more():
    trials = trials_of([made_pair(STRENGTHS[2], random.Random(seed)) for seed in (1, 5)])
    careful, careless = scored(trials, guarded(0.0)), scored(trials, bare(0.0))
    assert careful.total == careless.total == len(trials)
    assert careful.wrong <= careless.wrong
    assert careful.proposed <= careless.proposed
    assert careless.wrong > 0
