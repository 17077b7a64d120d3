"""Gate bars, coverage maps and the strip of a fact: every figure is in the picture and in its words."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.dashboard.charts.coverage_map import CELL, GAP, MOST_NAMED, MapUnit, coverage_map, square_of
from nova_mcp.dashboard.charts.fact_line import HEIGHT, LEFT, RIGHT, WIDTH, fact_line
from nova_mcp.dashboard.charts.gate_bars import gate_bar
from nova_mcp.memory.facts.model import Fact
from nova_mcp.memory.promotion.gates.gates import at_least, at_most, gates_of
from nova_mcp.memory.promotion.model import DAY_MS, Entry, EvidenceCounts

# -- gates


@pytest.mark.parametrize(
    ("gate", "transition", "percent", "told", "sense"),
    [
        (at_least("successes", 3, 0), "l1_to_l2", 0, "0 of 3", "needs"),
        (at_least("successes", 3, 2), "l1_to_l2", 67, "2 of 3", "needs"),
        (at_least("successes", 3, 9), "l1_to_l2", 100, "9 of 3", "needs"),
        (at_least("confidence", 0.7, 0.5), "l0_to_l1", 71, "0.50 of 0.70", "needs"),
        (at_most("failures", 1, 0), "l1_to_l2", 0, "0, at most 1", "allows"),
        (at_most("failures", 1, 1), "l1_to_l2", 50, "1, at most 1", "allows"),
        (at_most("drift_7d", 0, 1), "l1_to_l2", 100, "1, at most 0", "allows"),
        (at_least("consecutive_failures", 2, 1), "demotion", 50, "1 of 2", "threatens"),
    ],
)
def test_a_bar_shows_how_much_of_a_gate_is_there(gate, transition, percent, told, sense):
    bar = gate_bar(gate, transition)
    assert (bar.percent, bar.told, bar.sense, bar.passed) == (percent, told, sense, gate.passed)


def test_every_gate_there_is_has_words_of_its_own():
    counts = EvidenceCounts()
    entry = Entry("a", "b", "modal", unconfirmed_selectors=1)
    for kind in ("l0_to_l1", "l1_to_l2", "demotion", "deprecation", "revive"):
        for gate in gates_of(entry, kind, counts):
            bar = gate_bar(gate, kind)
            assert bar.label != gate.name or gate.name in ("failures", "confidence")


@given(st.floats(0, 50), st.floats(0, 50), st.sampled_from(["successes", "failures"]))
def test_a_bar_is_never_longer_than_its_place(required, observed, name):
    gate = (at_most if name == "failures" else at_least)(name, required, observed)
    bar = gate_bar(gate, "l1_to_l2")
    assert 0 <= bar.percent <= 100
    if name == "successes" and gate.passed:
        assert bar.percent == 100
    if name == "failures":
        assert (bar.percent == 100) is not gate.passed


# -- maps


@pytest.mark.parametrize(
    ("status", "grade", "covered", "square"),
    [
        ("checked", "strong", False, "proven"),
        ("checked", "none", True, "proven"),
        ("checked", "none", False, "claimed"),
        ("checked", "unknown", False, "claimed"),
        ("discovered", "weak", False, "seen"),
        ("discovered", "none", False, "open"),
        ("blocked", "strong", True, "stuck"),
        ("failed", "none", False, "stuck"),
        ("excluded", "strong", True, "excluded"),
    ],
)
def test_a_square_tells_a_claim_from_what_was_seen(status, grade, covered, square):
    assert square_of(MapUnit(status, grade, covered)) == square


UNITS = st.builds(
    MapUnit,
    st.sampled_from(["discovered", "checked", "excluded", "blocked", "failed"]),
    st.sampled_from(["strong", "weak", "none", "unknown"]),
    st.booleans(),
)


@given(st.lists(UNITS, min_size=1, max_size=700))
def test_every_unit_has_a_place_of_its_own_on_the_map(units):
    drawn = coverage_map(units)
    places = [match for one in drawn.layers for match in re.findall(r"M(\d+) (\d+)h", one.path)]
    assert len(places) == len(set(places)) == len(units) == sum(one.count for one in drawn.layers)
    assert all(int(x) + CELL <= drawn.width and int(y) + CELL <= drawn.height for x, y in places)
    assert len(drawn.cells) == (len(units) if len(units) <= MOST_NAMED else 0)
    assert {(str(one.x), str(one.y)) for one in drawn.cells} <= set(places)


def test_a_map_of_few_units_is_as_wide_as_they_are():
    drawn = coverage_map([MapUnit("checked", "strong", False, "home"), MapUnit("discovered", "none", False, "cart")])
    assert drawn.width == 2 * CELL + GAP
    assert [one.told for one in drawn.cells] == ["home: checked, and seen by Nova", "cart: open"]
    assert drawn.told == "1 checked, and seen by Nova, 1 open"


# -- facts

NOW = 100 * DAY_MS
FACT = Fact(
    key="chat.model",
    version=1,
    value='"alpha"',
    state="confirmed",
    confidence=950,
    certainty="certain",
    source="agent",
    support=2,
    contradictions=0,
    corroborated=True,
    contradicting=0,
    call_id="c1",
    url="https://chat.test/",
    url_hash="h",
    first_observed_at_ms=NOW,
    last_observed_at_ms=NOW,
    valid_from_ms=NOW,
)


def test_versions_follow_one_another_without_a_gap():
    old = replace(FACT, valid_to_ms=NOW + DAY_MS, superseded_by=2)
    new = replace(FACT, version=2, value='"beta"', valid_from_ms=NOW + DAY_MS, state="conflicted")
    line = fact_line([new, old], NOW + 2 * DAY_MS)
    assert line is not None
    first, second = line.pieces
    assert first.x == LEFT
    assert first.x + first.width == second.x
    assert second.x + second.width == WIDTH - RIGHT
    assert (first.current, second.current, second.disputed) == (False, True, True)
    assert (first.label, second.label, line.told) == ('"alpha"', '"beta"', '2 versions; now "beta"')
    assert line.height == HEIGHT


def test_a_version_of_a_moment_is_still_seen_and_carries_no_letters():
    moments = [
        replace(FACT, version=1, valid_to_ms=NOW + 1, superseded_by=2),
        replace(FACT, version=2, valid_from_ms=NOW + 1),
    ]
    line = fact_line(moments, NOW + 90 * DAY_MS)
    assert line is not None
    assert (line.pieces[0].width, line.pieces[0].label) == (2.0, "")


def test_without_versions_there_is_no_strip():
    assert fact_line([], NOW) is None
