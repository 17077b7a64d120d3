"""Whether `active` still means one tab when several connections act as one agent."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.targets.active_tab import CONNECTION_LIVES_MS, MOST_CONNECTIONS, Turns, Use, closed, in_turn, used


def history(*uses: tuple[str, str], at_ms: int = 1000) -> Turns:
    turns = Turns()
    for number, (connection, target_id) in enumerate(uses):
        turns = used(turns, Use(connection, target_id, at_ms + number))
    return turns


def test_a_connection_that_comes_back_after_another_worked_elsewhere_must_name_its_tab() -> None:
    turns = history(("one", "tab_1"), ("two", "tab_2"))
    assert set(in_turn(turns, "one", 2000)) == {"tab_1", "tab_2"}


def test_once_two_connections_take_turns_active_is_refused_to_both() -> None:
    turns = history(("one", "tab_1"), ("two", "tab_2"), ("one", "tab_1"))
    assert set(in_turn(turns, "one", 2000)) == set(in_turn(turns, "two", 2000)) == {"tab_1", "tab_2"}


def test_a_client_that_reconnects_keeps_its_active_tab_and_may_open_others() -> None:
    turns = history(("before", "tab_1"), ("after", "tab_1"), ("after", "tab_2"), ("after", "tab_3"))
    assert in_turn(turns, "after", 2000) == ()


def test_connections_that_share_one_tab_may_call_it_active() -> None:
    turns = history(("one", "tab_1"), ("two", "tab_1"), ("one", "tab_1"))
    assert in_turn(turns, "two", 2000) == ()


def test_a_tab_that_is_gone_and_a_connection_that_fell_silent_no_longer_count() -> None:
    turns = history(("one", "tab_1"), ("two", "tab_2"), ("one", "tab_1"))
    assert in_turn(closed(turns, "tab_1"), "two", 2000) == ()
    assert in_turn(turns, "two", 1001 + CONNECTION_LIVES_MS) != ()
    assert in_turn(turns, "two", 1002 + CONNECTION_LIVES_MS) == ()
    assert in_turn(turns, "two", 1000 - 2 * CONNECTION_LIVES_MS) == ()


@given(st.lists(st.tuples(st.just("only"), st.sampled_from(["tab_1", "tab_2", "tab_3"]))))
def test_one_connection_alone_is_never_refused(uses: list[tuple[str, str]]) -> None:
    assert in_turn(history(*uses), "only", 5000) == ()


@given(st.lists(st.tuples(st.text(min_size=1, max_size=3), st.text(min_size=1, max_size=3)), max_size=200))
def test_what_is_remembered_stays_bounded(uses: list[tuple[str, str]]) -> None:
    turns = history(*uses)
    assert len(turns.uses) <= MOST_CONNECTIONS
    assert len({use.connection for use in turns.uses}) == len(turns.uses)
