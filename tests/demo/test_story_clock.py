"""The story's clock: days pass when it is told so, and the last of them is today."""

import pytest

from nova_mcp.core.clock import SystemClock
from nova_mcp.demo.story import DAYS, moments
from nova_mcp.demo.story_clock import DAY_MS, HOUR_MS, StoryClock
from nova_mcp.demo.wiki_chapters import WikiTale


def behind(clock: StoryClock) -> int:
    return round((SystemClock().now_ms() - clock.now_ms()) / HOUR_MS) * HOUR_MS


def test_it_begins_in_the_past_and_ends_today():
    clock = StoryClock(5)
    assert behind(clock) == 4 * DAY_MS
    clock.move_to(2, hours=8)
    assert behind(clock) == 3 * DAY_MS - 8 * HOUR_MS
    clock.move_to(5)
    assert behind(clock) == 0


@pytest.mark.parametrize(("day", "hours"), [(1, 0), (2, 7), (5, 1), (6, 0)])
def test_it_goes_neither_back_nor_past_the_real_one(day: int, hours: int):
    clock = StoryClock(5)
    clock.move_to(2, hours=8)
    with pytest.raises(ValueError, match="not ahead"):
        clock.move_to(day, hours)


def test_the_days_of_the_story_are_in_order_and_the_last_is_today():
    clock = StoryClock(DAYS)
    for moment in moments(WikiTale()):
        clock.move_to(moment.day, moment.hours)
    assert behind(clock) == 0
