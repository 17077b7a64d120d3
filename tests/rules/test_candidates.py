"""Candidates: one name per claim, a status that only moves on, and a score made of what happened."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.journal.candidates import (
    Candidate,
    Place,
    Raise,
    after_event,
    after_recovery,
    candidate_key,
    curated_key,
    evidence_score,
    failed_since_verified,
    later,
    newest_unverified,
    normal_claim,
    normal_component,
    raised,
    repeated,
    stable_id,
    strength,
    weighed,
)
from nova_mcp.memory.journal.evidence import PageEvent
from nova_mcp.memory.journal.rules import PROMOTABLE_SCORE, promotable

HERE = Place("local", "ada", "shop.test", "claim_1", "tab_1")
RANK = {"unverified": 0, "verified": 1, "disproven": 2}


def wish(**changes: Any) -> Raise:
    return replace(Raise(HERE, "desk", "Codes are digits.", "unverified", 0.65), **changes)


def event(verdict: Any = "success", at_ms: int = 1_000, session: str = "s1", call_id: str = "") -> PageEvent:
    return PageEvent(call_id or f"call-{at_ms}", "key", verdict, session, at_ms)


def after(found: Candidate, *events: PageEvent) -> Candidate:
    for one in events:
        found = after_event(found, one)
    return found


# -- names


@pytest.mark.parametrize(
    "same",
    [
        "codes are  digits",
        " Codes are digits. ",
        "CODES ARE DIGITS!",
        "Codes\u00a0are digits",
        "Co\u200bdes are\ufeff digits",
    ],
)
def test_spellings_of_one_sentence_are_one_claim(same: str) -> None:
    assert candidate_key("h", " Desk ", same) == candidate_key("h", "desk", "Codes are digits.")
    assert curated_key("h", "Desk", same) == curated_key("h", "desk", "Codes are digits.")


def test_hosts_components_and_claims_are_told_apart() -> None:
    keys = {candidate_key(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("a", "c", "b"))}
    assert len(keys) == 4


@given(st.text(), st.text(), st.text())
def test_names_have_their_form(host: str, component: str, claim: str) -> None:
    key = candidate_key(host, component, claim)
    assert key.startswith("lcj_ck_")
    assert stable_id(host, key).startswith("lcj_")
    assert len(stable_id(host, key)) == 16
    assert normal_component(normal_component(component)) == normal_component(component)
    assert candidate_key(host, component, normal_claim(claim)) == candidate_key(host, component, claim)


# -- raising


def test_a_new_candidate_comes_from_the_call_before_it() -> None:
    found = raised(wish(), event("success", 900), 1_000)
    assert (found.source_event_id, found.source_verdict, found.event_key) == ("call-900", "success", "key")
    assert (found.sessions, found.verified_at_ms, found.resolution_event_id) == (("s1",), None, None)
    assert raised(wish(status="verified"), None, 1_000).verified_at_ms == 1_000


def test_saying_it_again_only_adds() -> None:
    found = raised(wish(confidence=0.7), None, 1_000)
    again = repeated(found, wish(confidence=0.5, status="verified"), event(at_ms=1_500), 2_000)
    assert (again.confidence, again.status, again.verified_at_ms) == (0.7, "verified", 2_000)
    assert (again.source_event_id, again.created_at_ms, again.updated_at_ms) == ("call-1500", 1_000, 2_000)
    other = replace(HERE, agent_id="bob", task_id="claim_2")
    assert repeated(again, wish(place=other), event(at_ms=3_000), 3_000).source_event_id == "call-1500"
    assert repeated(again, wish(place=other), None, 3_000).place.task_id == "claim_2"
    assert repeated(again, wish(place=replace(HERE, task_id=None)), None, 3_000).place.task_id == "claim_1"


def test_a_verification_is_renewed_only_once_the_failure_after_it_was_overcome() -> None:
    found = raised(wish(status="verified"), event(at_ms=900), 1_000)
    failed = after(found, event("failure", 2_000))
    assert repeated(failed, wish(status="verified"), None, 3_000).verified_at_ms == 1_000
    overcome = after(failed, event("success", 3_000))
    assert failed_since_verified(overcome)
    again = repeated(overcome, wish(status="verified"), None, 4_000)
    assert (again.verified_at_ms, failed_since_verified(again)) == (4_000, False)


@given(st.lists(st.sampled_from(["unverified", "verified", "disproven"]), min_size=1))
def test_a_status_never_moves_back(wanted: list[Any]) -> None:
    found = raised(wish(status=wanted[0]), None, 0)
    for number, status in enumerate(wanted[1:]):
        moved = repeated(found, wish(status=status), None, number)
        assert RANK[moved.status] >= RANK[found.status]
        found = moved
    assert found.status == max(wanted, key=RANK.__getitem__)
    assert later("verified", "unverified") == "verified"


# -- evidence


def test_the_next_success_on_the_key_resolves() -> None:
    found = after(raised(wish(), event(at_ms=900), 1_000), event(at_ms=2_000), event(at_ms=3_000))
    assert (found.resolution_event_id, found.recovered) == ("call-2000", False)


def test_the_call_a_candidate_came_from_does_not_confirm_it() -> None:
    found = raised(wish(), event(at_ms=900), 1_000)
    assert after(found, event(at_ms=900)) == found


def test_a_success_after_a_failure_is_a_recovery() -> None:
    assert after(raised(wish(), event("failure", 900), 1_000), event(at_ms=2_000)).recovered
    found = raised(wish(), event(at_ms=900), 1_000)
    assert after(found, event("failure", 1_500), event(at_ms=2_000)).recovered


def test_a_success_after_a_call_that_proved_nothing_is_no_recovery() -> None:
    found = raised(wish(), event("neutral", 900), 1_000)
    well = after(found, event(at_ms=2_000))
    assert (well.recovered, well.resolution_event_id) == (False, "call-2000")


def test_a_claim_made_again_after_an_act_rests_on_the_act_and_not_on_a_look() -> None:
    look = PageEvent("look", "look-key", "neutral", "s1", 900)
    found = raised(wish(), look, 1_000)
    again = repeated(found, wish(), event(at_ms=2_000, session="s2"), 2_100)
    assert (again.source_event_id, again.source_verdict, again.event_key) == ("call-2000", "success", "key")
    assert again.sessions == ("s2",)
    assert repeated(again, wish(), look, 3_000).source_event_id == "call-2000"
    failed = PageEvent("refuted", "other-key", "failure", "s1", 4_000)
    assert repeated(again, wish(), failed, 4_000).event_key == "key"
    assert repeated(found, wish(), replace(look, call_id="later"), 5_000).source_event_id == "look"


def test_saying_that_it_holds_does_not_undo_the_failure_before() -> None:
    found = after(raised(wish(confidence=1.0), event(at_ms=900), 1_000), event(at_ms=2_000), event("failure", 3_000))
    boast = repeated(found, wish(status="verified", confidence=1.0), None, 4_000)
    assert boast.status == "verified"
    assert evidence_score(boast) >= PROMOTABLE_SCORE
    assert not promotable(weighed(boast))
    assert promotable(weighed(after(boast, event("success", 5_000))))


def test_two_failures_in_a_row_disprove_and_a_success_between_them_does_not() -> None:
    found = raised(wish(status="verified"), event(at_ms=900), 1_000)
    split = after(found, event("failure", 2_000), event("neutral", 2_500), event("success", 3_000))
    assert (after(split, event("failure", 4_000)).status, split.failures_in_row) == ("verified", 0)
    gone = after(found, event("failure", 2_000), event("neutral", 2_500), event("failure", 3_000))
    assert gone.status == "disproven"
    assert after(gone, event(at_ms=5_000)) == gone


def test_a_diagnosis_is_confirmed_by_recovery_and_by_nothing_else() -> None:
    found = raised(wish(origin="diagnostic", confidence=0.40), event("failure", 900), 1_000)
    assert after(found, event(), event("failure", 2_000), event("failure", 3_000)) == found
    well = after_recovery(found, event(at_ms=4_000))
    assert (well.status, well.confidence, well.resolution_event_id) == ("verified", 0.75, "call-4000")
    assert after_recovery(well, event(at_ms=5_000)) == well
    semantic = raised(wish(), None, 0)
    assert after_recovery(semantic, event()) == semantic
    assert not promotable(weighed(replace(well, confidence=1.0, high_signal=True)))


def test_the_newest_diagnosis_is_the_one_that_is_confirmed() -> None:
    old = replace(raised(wish(origin="diagnostic"), None, 1_000), candidate_id=1)
    new = replace(raised(wish(origin="diagnostic"), None, 2_000), candidate_id=2)
    semantic = replace(raised(wish(), None, 9_000), candidate_id=3)
    assert newest_unverified([new, old, semantic]) == new
    assert newest_unverified([semantic, replace(old, status="verified")]) is None


def test_a_diagnosis_follows_the_tool_to_the_tab_where_it_failed_last() -> None:
    found = raised(wish(origin="diagnostic", event_key="on-tab-1"), event("failure"), 1_000)
    elsewhere = wish(origin="diagnostic", event_key="on-tab-2", place=replace(HERE, target_id="tab_2"))
    moved = repeated(found, elsewhere, None, 2_000)
    assert (moved.event_key, moved.place.target_id) == ("on-tab-2", "tab_2")


# -- worth

BARE = raised(wish(confidence=0.0), None, 0)


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 0.0),
        ({"confidence": 1.0}, 0.5),
        ({"source_event_id": "c"}, 0.35),
        ({"resolution_event_id": "c"}, 0.35),
        ({"verified_at_ms": 1}, 0.0),
        ({"verified_at_ms": 1, "source_event_id": "c"}, 0.35),
        ({"verified_at_ms": 1, "source_event_id": "c", "source_verdict": "success"}, 0.6),
        ({"verified_at_ms": 1, "source_event_id": "c", "source_verdict": "neutral"}, 0.35),
        ({"verified_at_ms": 1, "source_event_id": "c", "source_verdict": "failure"}, 0.35),
        ({"verified_at_ms": 1, "resolution_event_id": "c"}, 0.6),
        ({"high_signal": True}, 0.3),
        ({"recovered": True}, 0.2),
        ({"sessions": ("a",)}, 0.0),
        ({"sessions": ("a", "b")}, 0.1),
        ({"sessions": ("a", "b", "c")}, 0.2),
    ],
)
def test_every_part_of_the_score_is_something_that_happened(changes: dict[str, Any], score: float) -> None:
    assert evidence_score(replace(BARE, **changes)) == score


@pytest.mark.parametrize(
    ("score", "word"), [(0.0, "weak"), (0.8999, "weak"), (0.9, "medium"), (1.4499, "medium"), (1.45, "strong")]
)
def test_scores_have_names(score: float, word: str) -> None:
    assert strength(score) == word


def test_a_claim_to_be_verified_stays_weak_without_an_event() -> None:
    boast = raised(wish(status="verified", confidence=1.0), None, 1_000)
    assert strength(evidence_score(boast)) == "weak"
    unresolved = raised(wish(status="verified", confidence=0.65), event("failure", 900), 1_000)
    assert strength(evidence_score(unresolved)) == "weak"


EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(["success", "failure", "neutral"]),
        st.integers(1_001, 9_000),
        st.sampled_from(["s1", "s2", "s3", "s4"]),
    ),
    max_size=12,
)


@given(EVENTS, st.sampled_from(["unverified", "verified"]), st.floats(0, 1), st.booleans())
def test_scores_stay_within_bounds_and_neutral_events_change_nothing(
    events: list[PageEvent], status: Any, confidence: float, high: bool
) -> None:
    found = raised(wish(status=status, confidence=confidence, high_signal=high), event(at_ms=900), 1_000)
    end = after(found, *events)
    assert 0.0 <= evidence_score(end) <= 2.15
    assert evidence_score(end) >= evidence_score(found)
    assert len(end.sessions) <= 3
    assert after(found, *[one for one in events if one.verdict != "neutral"]) == end
    if promotable(weighed(end)):
        assert end.status == "verified"
        assert evidence_score(end) >= PROMOTABLE_SCORE
        assert not failed_since_verified(end)


@given(EVENTS)
def test_a_success_more_never_takes_a_candidate_back_and_a_failure_more_never_promotes_one(
    before: list[PageEvent],
) -> None:
    found = after(raised(wish(status="verified", confidence=1.0), event(at_ms=900), 1_000), *before)
    better = after(found, event("success", 9_500, "s9"))
    worse = after(found, event("failure", 9_500))
    assert promotable(weighed(better)) >= promotable(weighed(found))
    assert not promotable(weighed(worse)) or promotable(weighed(found))
