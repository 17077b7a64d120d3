"""The third failure of the very same call on the same page is a loop, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.calls.stages.loop_detection import (
    FORGOTTEN_MS,
    HELD_BACK_MS,
    KEPT_PER_OWNER,
    Attempt,
    Failure,
    Loops,
    Streak,
    failure_of,
    held_back,
    is_loop,
    loop_error,
    prolonged,
)
from nova_mcp.errors import CommitRefused, Internal, InvalidParams, NotFound, NovaError, Precondition, Unavailable
from nova_mcp.tools.context import Evidence

UNTOUCHED = Failure("action.obstructed", "Something covers it.", "Deal with it.", "actionability")
TOUCHED = Failure("guarded_commit.postcondition_failed", "It did not work.", "", "verify", touched=True)
ATTEMPT = Attempt(("local", "ada"), "nova.click_selector", "tab_1", "h", 3, 7)


class Clock:
    now = 1_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return float(self.now)


def obstructed() -> Precondition:
    return Precondition("action.obstructed", "Something covers it.", "Deal with it.", details={"obstructedBy": "x"})


def test_the_third_failure_in_a_row_is_told_as_a_loop_with_what_was_found_before() -> None:
    loops = Loops(Clock())
    assert loops.failed(ATTEMPT, obstructed(), Evidence()) is None
    assert loops.failed(ATTEMPT, obstructed(), Evidence()) is None
    looping = loops.failed(ATTEMPT, obstructed(), Evidence())
    assert looping is not None
    assert (looping.error_code, looping.reason_code) == (-32003, "loop.same_action")
    assert looping.details == {"obstructedBy": "x", "lastReasonCode": "action.obstructed", "failures": 3}
    assert "Deal with it." in looping.hint
    assert looping.fix is not None
    assert looping.fix.args == {"agentId": "ada", "targetId": "tab_1"}


@pytest.mark.parametrize(
    "change",
    [{"owner": ("local", "bob")}, {"tool": "nova.hover"}, {"arguments_hash": "i"}, {"page_epoch": 4}, {"rev": 8}],
)
def test_anything_that_differs_begins_a_row_of_its_own(change: dict[str, object]) -> None:
    loops = Loops(Clock())
    values = {name: getattr(ATTEMPT, name) for name in Attempt.__dataclass_fields__}
    other = Attempt(**(values | change))
    told = [loops.failed(one, obstructed(), Evidence()) for one in (ATTEMPT, other) * 2]
    assert told == [None] * 4


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (obstructed(), True),
        (NotFound("selector.not_found", "m"), True),
        (Unavailable("tab.busy", "m", retry_after_ms=500), False),
        (InvalidParams("selector.invalid", "m"), False),
        (CommitRefused("guarded_commit.missing_contract", "m"), False),
        (Internal("internal", "m"), False),
    ],
)
def test_what_says_come_back_later_or_was_refused_is_no_failure_of_the_action(error: NovaError, counts: bool) -> None:
    assert (failure_of(error, Evidence()) is not None) is counts


def test_a_third_attempt_that_would_touch_the_page_again_is_not_made_for_a_while() -> None:
    streak = Streak(2, TOUCHED, 1_000)
    assert held_back(streak, 1_000 + HELD_BACK_MS)
    assert not held_back(streak, 1_001 + HELD_BACK_MS)
    assert not held_back(Streak(1, TOUCHED, 1_000), 1_000)
    assert not held_back(Streak(9, UNTOUCHED, 1_000), 1_000)
    assert not held_back(None, 1_000)


@given(st.integers(0, 3 * FORGOTTEN_MS), st.integers(1, 9))
def test_failures_long_ago_are_forgotten(pause: int, count: int) -> None:
    after = prolonged(Streak(count, UNTOUCHED, 0), UNTOUCHED, pause)
    assert after.count == (count + 1 if pause <= FORGOTTEN_MS else 1)
    assert is_loop(after) is (after.count >= 3)


def test_the_memory_stays_small_and_an_error_of_the_loop_is_one_line() -> None:
    loops = Loops(Clock())
    for number in range(5 * KEPT_PER_OWNER):
        values = {name: getattr(ATTEMPT, name) for name in Attempt.__dataclass_fields__}
        loops.failed(Attempt(**(values | {"arguments_hash": str(number)})), obstructed(), Evidence())
    assert len(loops._owners[ATTEMPT.owner]) == KEPT_PER_OWNER
    assert "\n" not in loop_error(ATTEMPT, Streak(3, UNTOUCHED, 0)).message
