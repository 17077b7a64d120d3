"""Connections: what is said once is said once to each of them, and which request belongs to which."""

from dataclasses import dataclass

import pytest

from nova_mcp.core import connections as subject
from nova_mcp.core.connections import IDLE_MS, AgentConnections

ADA, BOB = ("local", "ada"), ("local", "bob")


@dataclass
class Clock:
    now: int = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return 0.0


def test_a_new_connection_has_been_told_nothing() -> None:
    connections = AgentConnections(Clock())
    first = connections.of(ADA, "session-1")
    first.deliver("topic", 5)
    assert connections.of(ADA, "session-1").delivered("topic", 0) == 5
    for other in (connections.of(ADA, "session-2"), connections.of(BOB, "session-1"), connections.of(ADA)):
        assert other.delivered("topic", 0) == 0
    first.forget("topic")
    assert first.delivered("topic", 0) == 0


def test_a_process_and_a_session_stay_one_connection_however_long_they_are_silent() -> None:
    clock = Clock()
    connections = AgentConnections(clock)
    before = [connections.of(ADA), connections.of(ADA, "session")]
    clock.now += 10 * IDLE_MS
    assert [connections.of(ADA), connections.of(ADA, "session")] == before


def test_a_client_without_a_session_is_a_connection_until_it_was_silent_for_half_an_hour() -> None:
    clock = Clock()
    connections = AgentConnections(clock)
    first = connections.of(ADA, client="one")
    assert connections.of(ADA, client="two") != first
    assert connections.of(BOB, client="one") != first
    for _ in range(3):
        clock.now += IDLE_MS
        assert connections.of(ADA, client="one") == first
    clock.now += IDLE_MS + 1
    assert connections.of(ADA, client="one") != first


@pytest.mark.parametrize("jump", [-100 * IDLE_MS, 100 * IDLE_MS])
def test_a_clock_that_jumps_costs_at_most_one_repetition(jump: int) -> None:
    clock = Clock()
    connections = AgentConnections(clock)
    connections.of(ADA, client="one")
    clock.now += jump
    after = connections.of(ADA, client="one")
    assert connections.of(ADA, client="one") == after


def test_only_connections_of_late_share_their_owner() -> None:
    clock = Clock()
    connections = AgentConnections(clock)
    process, one = connections.of(ADA), connections.of(ADA, "one")
    connections.of(BOB, "two")
    assert not connections.shares_owner(process)
    assert not connections.shares_owner(one)
    other = connections.of(ADA, "two")
    assert connections.shares_owner(one)
    assert connections.shares_owner(other)
    clock.now += IDLE_MS + 1
    assert not connections.shares_owner(connections.of(ADA, "one"))


def test_connections_and_deliveries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(subject, "MOST_DELIVERIES", 4)
    connections = AgentConnections(Clock())
    first = connections.of(ADA)
    for number in range(5):
        first.deliver(number)
    assert [first.delivered(number, otherwise=False) for number in range(5)] == [False, True, True, True, True]
    for number in range(3):
        connections.of(ADA, f"session-{number}")
    assert connections.of(ADA) != first
