"""Figures over time add up, whatever the window; charts say the same as their tables."""

import re

import pytest
from dashboard_kit import HOSTILE, NOW, Stand
from filled import fill, some_calls
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.dashboard.charts.charts import Series, lines, nice_top, stacked
from nova_mcp.dashboard.data.figures import HOUR_MS, WINDOWS, counted, slowness, totals, window_of
from nova_mcp.dashboard.formatting import ago, brief, clock, lasting, moment, plain
from nova_mcp.memory.journal.statistics import counting as names


@pytest.mark.parametrize("key", [one[0] for one in WINDOWS])
def test_a_window_counts_the_calls_that_lie_in_it(desk: Stand, key: str):
    fill(desk, 300)
    window = window_of(key, NOW)
    found = desk.db.read_sync(counted, (names.EVENT,), window)[names.EVENT]
    start = window.first * HOUR_MS
    expected = [one for one in some_calls(300) if one.started_at_ms >= start]
    # The commit that `fill` adds is one more.
    assert totals(found)[0] == len(expected) + 1
    assert totals(found)[1] == sum(one.outcome.kind == "ok" for one in expected) + 1
    assert len(found) == len(window.names()) == window.columns


def test_columns_hold_the_hours_they_name(desk: Stand):
    window = window_of("7d", NOW)
    hours = range(window.first - 3, window.first + window.hours + 3)
    places = [window.column_of(hour) for hour in hours]
    assert places[:3] == [None] * 3
    assert places[-3:] == [None] * 3
    assert places[3:-3] == [at for at in range(window.columns) for _ in range(window.step)]
    assert window.column_of(NOW // HOUR_MS) == window.columns - 1


def test_a_time_without_calls_breaks_the_line_of_durations(desk: Stand):
    fill(desk, 40)
    found = desk.db.read_sync(slowness, ("tool.scrollSmart", "tool.nothing"), window_of("24h", NOW), 0.95)
    assert set(found["tool.nothing"]) == {-1.0}
    assert any(value > 0 for value in found["tool.scrollSmart"])


@pytest.mark.parametrize("window", ["24h", "7d", "30d", "nonsense", HOSTILE])
async def test_every_window_has_a_page(desk: Stand, window: str):
    fill(desk, 50)
    async with desk.operator() as visitor:
        page = await visitor.get("/statistics", params={"window": window})
    assert page.status_code == 200
    assert "How pages take it" in page.text
    assert "alert(1)" not in page.text


figures = st.lists(st.floats(0, 1e7), min_size=1, max_size=40)


@given(figures, st.text(max_size=30))
def test_a_chart_never_leaves_its_box_and_escapes_what_it_is_told(values: list[float], name: str):
    series = (Series(name + HOSTILE, "s1", tuple(values)), Series("b", "s2", tuple(reversed(values))))
    columns = [f"{at} {HOSTILE}" for at in range(len(values))]
    for chart in (stacked(HOSTILE, columns, series, ["a"]), lines(HOSTILE, columns, series, ["a"])):
        drawn = str(chart.plot)
        assert "<script" not in drawn
        assert "<img" not in drawn
        assert drawn.count("<svg") == 1
        for y, height in re.findall(r'class="s\d"[^>]* y="([\d.]+)"[^>]* height="([\d.]+)"', drawn):
            assert -0.1 <= float(y) <= 100
            assert float(y) + float(height) <= 101.7


@given(figures)
def test_the_table_of_a_chart_says_what_the_picture_shows(values: list[float]):
    chart = stacked("Calls", [str(at) for at in range(len(values))], (Series("all", "s1", tuple(values)),), [])
    assert [column for column, _ in chart.rows()] == [str(at) for at, value in enumerate(values) if value]
    assert chart.empty == (not any(values))


def test_where_nothing_was_measured_the_table_says_so_instead_of_zero():
    scrolled, clicked = Series("scrolling", "s1", (-1.0, 120.0, -1.0)), Series("clicks", "s2", (-1.0, -1.0, -1.0))
    chart = lines("95 % of calls took at most", ["1", "2", "3"], (scrolled, clicked), [])
    assert chart.rows() == [("2", ("120", "–"))]
    assert lines("95 % of calls took at most", ["1", "2", "3"], (clicked,), []).empty


@given(st.floats(0, 1e12))
def test_a_scale_ends_at_a_round_number_above_the_figures(value: float):
    top = nice_top(value)
    assert top >= value
    assert top <= max(2.0, value * 3)
    assert (top / 2).is_integer()


@pytest.mark.parametrize(
    ("apart_ms", "words"),
    [
        (0, "just now"),
        (1_999, "just now"),
        (5_000, "5 s ago"),
        (125_000, "2 min ago"),
        (7_300_000, "2 h ago"),
        (10**9, "11 d ago"),
        (-65_000, "in 1 min"),
    ],
)
def test_moments_are_told_in_words(apart_ms: int, words: str):
    assert ago(NOW - apart_ms, NOW) == words


@given(st.integers(-(10**18), 10**18))
def test_no_moment_breaks_a_page(at_ms: int):
    assert moment(at_ms)
    assert clock(at_ms, NOW)
    assert lasting(at_ms)
    assert ago(at_ms, NOW)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (999, "999"), (1234, "1\u202f234"), (12_345, "12k"), (1_500_000, "1.5M"), (2.5, "2.5")],
)
def test_figures_are_short(value: float, said: str):
    assert brief(value) == said


def test_characters_that_hide_or_turn_text_can_be_seen():
    assert plain("a\u202eb\x00c") == "a\\u202eb\\u0000c"
