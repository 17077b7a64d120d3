"""Goals and steps go only the ways they may, whatever comes in whatever order."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.goals.rules import (
    FINISHED,
    IN_FLIGHT,
    REVIVAL_MS,
    STARTABLE,
    Continues,
    Ended,
    Lease,
    Ownership,
    Refuse,
    Start,
    StepHold,
    StepOutcome,
    StepStatus,
    TerminalState,
    after_close,
    annotated,
    closable,
    current_step,
    goal_state,
    may_move,
    start_step,
)

STATUSES = get_args(StepStatus)
statuses = st.sampled_from(STATUSES)
stored_states = st.sampled_from(["active", "completed", "failed", "aborted"])
times = st.integers(0, 10**13)
leases = st.builds(Lease, st.integers(1_000, 600_000), times)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("planned", "ready"),
        ("ready", "dispatched"),
        ("dispatched", "verifying"),
        ("verifying", "done"),
        ("verifying", "ambiguous"),
        ("verifying", "failed"),
        ("ready", "blocked"),
        ("blocked", "ready"),
        ("ambiguous", "ready"),
        ("failed", "ready"),
        ("ambiguous", "done"),
        ("ambiguous", "failed"),
    ],
)
def test_the_ways_of_a_step(before: StepStatus, after: StepStatus) -> None:
    assert may_move(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("planned", "dispatched"),
        ("planned", "done"),
        ("ready", "done"),
        ("blocked", "dispatched"),
        ("done", "ready"),
        ("done", "failed"),
        ("failed", "done"),
        ("aborted", "ready"),
        ("verifying", "ready"),
    ],
)
def test_what_a_step_never_does(before: StepStatus, after: StepStatus) -> None:
    assert not may_move(before, after)


@given(statuses)
def test_everything_unfinished_may_be_aborted_and_nothing_moves_to_itself(status: StepStatus) -> None:
    assert may_move(status, "aborted") == (status not in FINISHED)
    assert not may_move(status, status)


@given(st.lists(statuses, max_size=40))
def test_no_walk_leaves_done_or_aborted(walk: list[StepStatus]) -> None:
    at: StepStatus = "planned"
    for wanted in walk:
        if may_move(at, wanted):
            assert at not in ("done", "aborted")
            at = wanted


@given(statuses)
def test_only_a_step_in_flight_or_undecided_can_become_done(status: StepStatus) -> None:
    assert may_move(status, "done") == (status in {*IN_FLIGHT, "ambiguous"})


@given(stored_states, times, times)
def test_only_an_active_goal_is_orphaned_and_only_after_its_lease(stored: str, expires: int, now: int) -> None:
    seen = goal_state(stored, expires, now)  # type: ignore[arg-type]
    assert seen == ("orphaned" if stored == "active" and now >= expires else stored)


@given(stored_states, leases, times)
def test_an_annotation_keeps_alive_what_is_not_ended(stored: str, lease: Lease, now: int) -> None:
    verdict = annotated(stored, lease, now)  # type: ignore[arg-type]
    if stored != "active":
        assert verdict == Ended(stored)  # type: ignore[arg-type]
    elif now < lease.expires_at_ms:
        assert verdict == Continues(now + lease.lease_ms)
    elif now < lease.expires_at_ms + REVIVAL_MS:
        assert verdict == Continues(now + lease.lease_ms, revived=True)
    else:
        assert verdict == Ended("orphaned")


def test_a_day_to_the_millisecond_is_too_late_to_revive() -> None:
    lease = Lease(1_000, 5_000)
    assert isinstance(annotated("active", lease, 5_000 + REVIVAL_MS - 1), Continues)
    assert annotated("active", lease, 5_000 + REVIVAL_MS) == Ended("orphaned")


def test_what_may_be_closed() -> None:
    assert [state for state in ("active", "orphaned", "completed", "failed", "aborted") if closable(state)] == [
        "active",
        "orphaned",
    ]


@given(statuses, st.sampled_from(get_args(TerminalState)))
def test_giving_up_aborts_what_is_open_and_never_rewrites_what_is_finished(
    status: StepStatus, state: TerminalState
) -> None:
    after = after_close(status, state)
    assert after == (status if state == "completed" or status in FINISHED else "aborted")
    assert after == status or may_move(status, after)


@given(st.lists(statuses, max_size=50))
def test_the_current_step_is_the_first_that_is_not_done(steps: list[StepStatus]) -> None:
    number = current_step(steps)
    if not steps:
        assert number == 0
        return
    assert all(status == "done" for status in steps[: number - 1])
    assert steps[number - 1] != "done" or number == len(steps)


@given(statuses, st.none() | times, times)
def test_a_step_in_live_hands_is_never_started_a_second_time(status: StepStatus, expires: int | None, now: int) -> None:
    verdict = start_step(StepHold(status, expires), now)
    held = status in IN_FLIGHT
    if held and expires is not None and now < expires:
        assert verdict == Refuse("in_flight")
    elif held or status in STARTABLE:
        assert verdict == Start(retry=held or status in ("ambiguous", "failed"))
    else:
        assert verdict == Refuse("not_current")


@given(statuses, st.sampled_from(get_args(StepOutcome)))
def test_a_started_step_can_end_in_every_way(status: StepStatus, outcome: StepOutcome) -> None:
    if isinstance(start_step(StepHold(status), 0), Start):
        assert may_move("dispatched", outcome)


@pytest.mark.parametrize(
    ("owner", "agent", "session", "admitted"),
    [
        (Ownership(), "a", None, True),
        (Ownership("a"), "a", None, True),
        (Ownership("a"), "b", None, False),
        (Ownership("a", "s"), "a", None, False),
        (Ownership("a", "s"), "a", "s", True),
        (Ownership(None, "s"), "b", "s", True),
        (Ownership(None, "s"), "b", "t", False),
    ],
)
def test_a_bound_goal_admits_its_owner_only(owner: Ownership, agent: str, session: str | None, admitted: bool) -> None:
    assert owner.admits(agent, session) is admitted
