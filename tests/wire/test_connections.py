"""The table of connections: who has to go when there are too many."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.server.http.connection_limits import ConnectionLimits, Connections, connection_limits
from nova_mcp.settings import HttpSettings

LIMITS = ConnectionLimits(total=8, strangers_per_address=4, per_principal=4)


def test_the_oldest_stranger_of_an_address_makes_room_for_the_newest():
    table = Connections[int](LIMITS)
    assert [table.add(number, "a") for number in range(6)] == [[], [], [], [], [0], [1]]
    assert table.add(6, "b") == []


def test_whoever_showed_a_token_keeps_its_place_whatever_strangers_do():
    table = Connections[int](LIMITS)
    table.add(0, "a")
    assert table.admit(0, "ann")
    gone = [known for number in range(1, 100) for known in table.add(number, f"address {number}")]
    assert gone == list(range(1, 93))
    assert table.is_admitted(0)


def test_one_principal_does_not_take_every_place():
    table = Connections[int](LIMITS)
    for number in range(5):
        table.add(number, "a")
    assert [table.admit(number, "ann") for number in range(1, 5)] == [True] * 4
    table.add(9, "a")
    assert not table.admit(9, "ann")
    assert table.admit(9, "bob")
    table.remove(1)
    table.add(10, "a")
    assert table.admit(10, "ann")


def test_a_newcomer_finds_no_room_among_callers_that_are_known():
    table = Connections[int](LIMITS)
    for number in range(8):
        table.add(number, "a")
        table.admit(number, "ann" if number < 4 else "bob")
    assert table.add(8, "a") == [8]
    assert len(table) == 8


@given(st.lists(st.tuples(st.sampled_from(["add", "admit", "remove"]), st.integers(0, 20), st.sampled_from("abc"))))
def test_no_order_of_events_exceeds_a_limit(events: list[tuple[str, int, str]]):
    table, known = Connections[int](LIMITS), set[int]()
    for kind, connection, name in events:
        if kind == "add" and connection not in known:
            known |= {connection}
            known -= set(table.add(connection, name))
        elif kind == "admit" and connection in known:
            table.admit(connection, name)
        elif kind == "remove":
            table.remove(connection)
            known.discard(connection)
        assert len(table) == len(known) <= LIMITS.total


def test_the_limits_leave_files_for_the_browser_and_the_store(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 4096))
    assert connection_limits(HttpSettings()) == ConnectionLimits(128, 64, 64)
    monkeypatch.setattr("resource.getrlimit", lambda _: (65_536, 65_536))
    assert connection_limits(HttpSettings()) == ConnectionLimits(512, 128, 256)
