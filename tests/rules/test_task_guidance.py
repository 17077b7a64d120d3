"""Guidance: what counts as the same, when it is ripe, what stands in its way, and what runs override often."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.tasks.guidance.rules import (
    RIPE_AT,
    GuidanceLog,
    NotNow,
    Override,
    Said,
    completion_percent,
    grown_status,
    guidance_hash,
    occurrence_key,
    override_candidates,
    refusal,
    same_text,
    with_guidance,
)
from nova_mcp.memory.tasks.model import MOST_GUIDANCE, CompletionCondition, EvidencePolicy, Guidance, TaskContent

DAY = 24 * 60 * 60 * 1000
SAID = Said("p", "style", "Keep names as they are.")
LOG = GuidanceLog("l" * 32, "p", "style", "user", "proposed", {"text": "Keep names."}, 3, None, 1, 1)
CONDITION = CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("none"))
CONTENT = TaskContent("type", "name", "goal", CONDITION)


@pytest.mark.parametrize(
    "text",
    [
        "keep names as they are",
        "  Keep  names\nas they are!! ",
        "ＫＥＥＰ names as they are …",
        "Keep names as they are.",
    ],
)
def test_letter_case_spacing_and_the_sign_at_the_end_make_no_difference(text: str) -> None:
    assert guidance_hash(replace(SAID, text=text)) == guidance_hash(SAID)


@pytest.mark.parametrize(
    "other",
    [
        replace(SAID, text="Keep no names"),
        replace(SAID, profile_id="q"),
        replace(SAID, profile_id=None),
        replace(SAID, kind="custom"),
        replace(SAID, applies_to="headings"),
        replace(SAID, url="https://shop.example/"),
    ],
)
def test_anything_else_does(other: Said) -> None:
    assert guidance_hash(other) != guidance_hash(SAID)


@given(st.text())
def test_a_text_that_was_settled_stays_settled(text: str) -> None:
    assert same_text(same_text(text)) == same_text(text)


def test_one_run_counts_once_and_so_does_one_agent_on_one_day() -> None:
    assert occurrence_key("a" * 32, "one", 0) == occurrence_key("a" * 32, "two", 9 * DAY)
    assert occurrence_key(None, "one", 1) == occurrence_key(None, "one", DAY - 1)
    assert occurrence_key(None, "one", 1) != occurrence_key(None, "one", DAY)
    assert occurrence_key(None, "one", 1) != occurrence_key(None, "two", 1)


def test_guidance_is_proposed_at_the_third_time_and_a_decision_is_final() -> None:
    assert [grown_status("logged", n) for n in (1, 2, 3, 4)] == ["logged", "logged", "proposed", "proposed"]
    assert {grown_status("promoted", n) for n in range(9)} == {"promoted"}
    assert {grown_status("rejected", n) for n in range(9)} == {"rejected"}


@pytest.mark.parametrize(
    ("log", "decision", "archived", "reason"),
    [
        (LOG, "promote", False, None),
        (replace(LOG, profile_id=None), "promote", False, None),
        (replace(LOG, status="promoted"), "promote", False, "already_decided"),
        (replace(LOG, status="rejected"), "reject", False, "already_decided"),
        (replace(LOG, profile_id="other"), "promote", False, "profile_mismatch"),
        (replace(LOG, profile_id="other"), "reject", False, "profile_mismatch"),
        (replace(LOG, occurrence_count=RIPE_AT - 1), "promote", False, "not_mature"),
        (replace(LOG, occurrence_count=1), "reject", False, None),
        (LOG, "promote", True, "profile_archived"),
        (LOG, "reject", True, None),
    ],
)
def test_what_stands_in_the_way_of_a_decision(
    log: GuidanceLog, decision: str, archived: bool, reason: str | None
) -> None:
    found = refusal(log, decision, "p", archived=archived)  # type: ignore[arg-type]
    assert found == (None if reason is None else NotNow(reason))  # type: ignore[arg-type]


def test_what_said_the_same_before_gives_way_and_the_content_always_changes() -> None:
    before = replace(CONTENT, stable_guidance=(Guidance("old", "style", "keep names"), Guidance("x", "style", "Other")))
    after = with_guidance(before, LOG)
    assert after is not None
    assert [one.text for one in after.stable_guidance] == ["Other", "Keep names."]
    assert after != before


def test_a_full_profile_has_no_room() -> None:
    full = replace(CONTENT, stable_guidance=tuple(Guidance(f"g{n}", "style", f"t{n}") for n in range(MOST_GUIDANCE)))
    assert with_guidance(full, LOG) is None
    fits = with_guidance(replace(full, stable_guidance=full.stable_guidance[1:]), LOG)
    assert fits is not None
    assert len(fits.stable_guidance) == MOST_GUIDANCE


def test_the_same_override_in_enough_runs_is_a_candidate() -> None:
    runs = [
        {"variables": {"depth": 2}, "tags": {"include": ["a", "a"]}},
        {"variables": {"depth": 2}, "tags": {"include": ["a", "b"]}},
        {"variables": {"depth": 3}},
        {},
    ]
    assert override_candidates(runs, 2) == [Override("tags.include", "a", 2), Override("variables.depth", 2, 2)]
    assert len(override_candidates(runs, 1)) == 4
    assert override_candidates(runs, 3) == []


def test_the_share_of_completed_runs_is_of_those_that_ended() -> None:
    assert [completion_percent(0, 0, 0), completion_percent(2, 1, 0), completion_percent(1, 0, 1)] == [0, 66, 50]
