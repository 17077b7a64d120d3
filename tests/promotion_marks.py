"""Marks for the tests of promotion, by what they mean."""

from hypothesis import strategies as st

from nova_mcp.journal.evidence import Observation, Occasion, Seen, ToolEvent
from nova_mcp.observation.model import Link, ServerId
from nova_mcp.promotion.model import DAY_MS, Mark

NOW = 100 * DAY_MS
LINK = Link(ServerId("s"), 1, "c", b"", b"")


def written(one: Observation, call_id: str, at_ms: int, tool: str = "nova.click_selector") -> Seen:
    """An observation as the journal hands it on."""
    event = ToolEvent(call_id, "me", "me", None, "t1", tool, True, 0, None, "shop.test", "{}", at_ms)
    return Seen(7, one, Occasion(event, "shop.test", "t1", "s0", LINK))


def success(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_success", 1, call_id, session_id)


def good(count: int, at_ms: int) -> list[Mark]:
    return [success(f"g{number}", at_ms) for number in range(count)]


def failure(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_failure", -1, call_id, session_id)


def seen(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "action_success", 0, call_id, session_id)


def drift(call_id: str, at_ms: int, severity: int = 2, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "selector_drift", -1, call_id, session_id, 2 if severity == 2 else 1)


def claim(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "telemetry_confirmed", 0, call_id, session_id, source="report")


def reported(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "telemetry_confirmed", 1, call_id, session_id, source="report")


def checked(call_id: str, at_ms: int, session_id: str = "s0") -> Mark:
    return Mark(0, at_ms, "selector_drift", -1, call_id, session_id, 2, source="check")


MARKS = st.builds(
    lambda make, call, days, session: make(f"c{call}", NOW - days * DAY_MS, session_id=f"s{session}"),
    st.sampled_from([success, success, success, failure, seen, drift, claim, reported, checked]),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 3),
)
