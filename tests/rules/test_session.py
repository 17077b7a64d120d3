"""What a session may use up: each cap holds back only what would use it, and a pause begins anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.calls.admission.session_budget import (
    SESSION_GAP_MS,
    Caps,
    Demand,
    Session,
    asked,
    charged,
    exhausted,
    pictured,
    session_at,
)

NOW = 10_000_000
PLAIN, GOING, PICTURE = Demand(), Demand(navigates=True), Demand(pictures=True)


def used(**changes: int) -> Session:
    return Session(**({"began_at_ms": NOW, "last_at_ms": NOW} | changes))


@pytest.mark.parametrize(
    ("session", "demand", "caps", "counter"),
    [
        (used(calls=4), PLAIN, Caps(calls=5), None),
        (used(calls=5), PLAIN, Caps(calls=5), "calls"),
        (used(navigations=2), GOING, Caps(navigations=2), "navigations"),
        (used(navigations=2), PLAIN, Caps(navigations=2), None),
        (used(began_at_ms=NOW - 599_999), PLAIN, Caps(minutes=10), None),
        (used(began_at_ms=NOW - 600_000), PLAIN, Caps(minutes=10), "minutes"),
        (used(image_bytes=99), PICTURE, Caps(image_bytes=100), None),
        (used(image_bytes=100), PICTURE, Caps(image_bytes=100), "imageBytes"),
        (used(image_bytes=100), GOING, Caps(image_bytes=100), None),
        (used(calls=9, image_bytes=9), PICTURE, Caps(calls=1, image_bytes=1), "calls"),
        (used(calls=10**6, navigations=10**6, image_bytes=10**12), PICTURE, Caps(), None),
    ],
)
def test_a_cap_that_is_spent_is_named(session: Session, demand: Demand, caps: Caps, counter: str | None) -> None:
    spent = exhausted(session, demand, caps, NOW)
    assert (None if spent is None else spent.counter) == counter
    if spent is not None:
        assert spent.retry_after_ms > SESSION_GAP_MS


@given(st.integers(0, 3 * SESSION_GAP_MS))
def test_only_a_pause_of_more_than_half_an_hour_begins_a_new_session(pause: int) -> None:
    session = used(calls=3)
    later = session_at(session, NOW + pause)
    assert (later == session) is (pause <= SESSION_GAP_MS)
    if later != session:
        assert (later.calls, later.began_at_ms) == (0, NOW + pause)


@given(st.lists(st.sampled_from([PLAIN, GOING, PICTURE]), max_size=20), st.integers(1, 5))
def test_no_more_calls_are_let_in_than_the_cap_allows(demands: list[Demand], cap: int) -> None:
    session, let_in = used(), 0
    for number, demand in enumerate(demands):
        now = NOW + number
        session = asked(session_at(session, now), now)
        if exhausted(session, demand, Caps(calls=cap), now) is None:
            session = charged(session, demand)
            let_in += 1
    assert let_in == min(cap, len(demands))


def test_refused_calls_keep_the_session_going() -> None:
    session = used(calls=1)
    for minute in range(0, 120, 20):
        now = NOW + minute * 60_000
        session = asked(session_at(session, now), now)
        assert exhausted(session, PLAIN, Caps(calls=1), now) is not None


def test_pictures_weigh_what_they_weigh() -> None:
    assert pictured(pictured(used(), 30), 12).image_bytes == 42
