"""Which profiles are judged: those that the terms promise most for, and no more than the answer needs."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.tasks.profiles.matching import query_of
from nova_mcp.memory.tasks.profiles.shortlist import (
    LEAST_JUDGED,
    MOST_JUDGED,
    PROFILES_FOUND,
    PROFILES_PER_TERM,
    Hit,
    room_for,
    shortlist,
)
from nova_mcp.memory.tasks.profiles.terms import term_credits

QUERY = query_of("seo audit for invoices")
HERE = query_of("seo audit", domain="here.example", site="here.example")


def hit(term: str, *ids: str, credit: int = 10, site: str | None = None) -> Hit:
    return Hit(term, len(ids), [(one, credit, site, 1) for one in ids])


def many(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def test_a_term_is_worth_what_the_best_word_under_it_is() -> None:
    assert term_credits({"audit": 0.6, "auditor": 1.0, "seo": 0.9}) == {"audit": 6, "auditor": 10, "audi": 10, "seo": 9}


def test_those_come_first_that_more_of_the_query_is_in() -> None:
    crowd = many("c", LEAST_JUDGED)
    found = shortlist(QUERY, [hit("seo", *crowd, "both"), hit("audit", "both")])
    assert found[0] == "both"
    assert len(found) > LEAST_JUDGED  # the crowd promises as much as the third that will be told


def test_a_word_in_a_name_promises_more_than_one_in_the_guidance() -> None:
    hits = [hit("seo", *many("g", 400), credit=6), hit("audit", "named")]
    assert shortlist(QUERY, hits)[0] == "named"
    better = [hit("seo", *many("n", 3)), hit("audit", *many("g", 400), credit=6)]
    assert shortlist(QUERY, better) == [*many("n", 3), *many("g", LEAST_JUDGED - 3)]


def test_the_beginning_of_a_word_promises_less_than_the_word_and_nothing_beside_it() -> None:
    crowd = many("c", LEAST_JUDGED)
    hits = [hit("invo", *crowd, "word"), hit("invoices", "word"), hit("seo", "other")]
    assert set(shortlist(QUERY, hits)[:2]) == {"word", "other"}


def test_what_promises_as_much_as_the_last_that_is_told_is_judged_as_well() -> None:
    assert shortlist(QUERY, [hit("seo", *many("c", 400))]) == many("c", 400)
    assert shortlist(QUERY, [hit("seo", *many("c", 900))]) == many("c", MOST_JUDGED)


def test_what_can_be_accepted_is_judged_however_many_of_other_sites_promise_more() -> None:
    there = hit("audit", *many("t", 300), site="there.example")
    hits = [hit("seo", *many("t", 300), site="there.example"), Hit("audit", 301, [*there.found, ("own", 6, None, 1)])]
    assert "own" in shortlist(HERE, hits)


def test_an_older_profile_is_not_taken_to_lack_what_was_not_looked_up() -> None:
    new = [(one, 9, None, 100 + number) for number, one in enumerate(many("n", 400))]
    rare = Hit("seo", 2, [("old", 9, None, 5), new[0]])
    assert shortlist(QUERY, [rare, Hit("audit", 9000, new, since=100)])[:2] == ["old", "n0"]
    assert "old" not in shortlist(QUERY, [Hit("audit", 401, [*new, ("old", 6, None, 5)]), hit("seo", *many("n", 40))])


def test_the_more_will_be_told_the_more_are_judged() -> None:
    hits = [Hit("seo", 200, [(one, 10 - number // 40, None, 1) for number, one in enumerate(many("c", 200))])]
    assert len(shortlist(QUERY, hits, told=50)) >= 100 > len(shortlist(QUERY, hits, told=3)) >= LEAST_JUDGED


@given(st.lists(st.integers(1, 10**6), max_size=8).map(sorted))
def test_rooms_stay_within_their_bounds_and_rare_terms_are_looked_up_whole(profiles: list[int]) -> None:
    rooms = room_for(profiles)
    assert len(rooms) == len(profiles)
    assert sum(rooms) <= PROFILES_FOUND
    assert rooms[:2] == [min(number, PROFILES_PER_TERM) for number in profiles[:2]]
    assert all(room <= min(number, PROFILES_PER_TERM) for room, number in zip(rooms, profiles, strict=True))


@given(
    st.lists(st.lists(st.integers(0, 60), max_size=60, unique=True), min_size=1, max_size=3),
    st.sampled_from([QUERY, HERE]),
)
def test_few_are_all_judged_each_once(lists: list[list[int]], query) -> None:  # type: ignore[no-untyped-def]
    sites = (None, "here.example", "there.example")
    hits = [
        Hit(term, len(ids), [(f"p{one}", 10, sites[one % 3], 1) for one in ids])
        for term, ids in zip(("seo", "audit", "audi"), lists, strict=False)
    ]
    found = shortlist(query, hits)
    every = {f"p{one}" for ids in lists for one in ids}
    assert len(found) == len(set(found))
    assert set(found) <= every
    if len(every) <= LEAST_JUDGED:
        assert set(found) == every
