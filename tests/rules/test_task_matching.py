"""Recognising a task: words, likeness, scores, what is accepted, and how far a profile can be relied on."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nova_mcp.memory.tasks.model import Check, CompletionCondition, EvidencePolicy, Guidance, TaskContent
from nova_mcp.memory.tasks.profiles.confidence import DAY_MS, Standing, effective_confidence, recency_factor
from nova_mcp.memory.tasks.profiles.filler_words import LIGHT_WORDS, STOPWORDS
from nova_mcp.memory.tasks.profiles.matching import (
    Candidate,
    Match,
    Query,
    best_of,
    credits_of,
    match_profiles,
    query_of,
    shown_of,
)
from nova_mcp.memory.tasks.profiles.rules import (
    AWARENESS_CHARS,
    Change,
    awareness_profile,
    created_profile,
    generated_id,
)
from nova_mcp.memory.tasks.profiles.terms import index_terms, likeness, tokens, trigrams

CONDITION = CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("none"))
CONTENT = TaskContent("proofreading", "Spelling audit", "Correct typing mistakes in articles", CONDITION)
words = st.text(st.sampled_from("abcdeüß"), min_size=1, max_size=8)
texts = st.lists(words, max_size=8).map(" ".join)


def candidate(profile_id: str = "p", content: TaskContent = CONTENT, **more: object) -> Candidate:
    where = {"domain": content.domain, "site": content.domain, "platform": content.platform}
    return Candidate(profile_id, credits_of(content), **{**where, **more})  # type: ignore[arg-type]


def judged(text: str, one: Candidate, **where: str) -> Match:
    (found,) = match_profiles(query_of(text, **where), [one])  # type: ignore[arg-type]
    return found


# -- words


def test_words_are_folded_and_said_once() -> None:
    assert tokens("Größe GROESSE große ﬁnale Finale") == ("grösse", "groesse", "grosse", "finale")


def test_letters_alone_and_words_that_say_nothing_are_left_out() -> None:
    assert tokens("Please check the spelling of a page and x, y") == ("check", "spelling", "page")
    assert tokens("Bitte die Rechtschreibung auf der Seite prüfen") == ("rechtschreibung", "seite", "prüfen")


def test_the_words_of_the_host_a_query_is_about_are_left_out() -> None:
    assert tokens("Spelling of shop.example articles", "shop.example") == ("spelling", "articles")


def test_a_word_is_found_by_itself_and_by_its_beginning() -> None:
    assert index_terms(["audit", "page", "seo"]) == {"audit", "audi", "page", "seo"}


def test_no_word_is_both_empty_of_meaning_and_light() -> None:
    assert {word for word in LIGHT_WORDS if len(word) > 1} & STOPWORDS == {"do"} & STOPWORDS


def test_likeness_is_the_share_of_trigrams_and_nothing_below_half() -> None:
    assert trigrams("seo") == {" se", "seo", "eo "}
    assert likeness("upload", "uploads") == pytest.approx(10 / 13)
    assert likeness("invoice", "voice") == pytest.approx(8 / 12)
    assert likeness("upload", "download") == 0
    assert likeness("spelling", "weather") == 0


@given(words, words)
def test_likeness_is_the_same_both_ways_and_one_only_for_one_word(one: str, other: str) -> None:
    found = likeness(one, other)
    assert found == likeness(other, one)
    assert found == 0 or 0.5 <= found <= 1
    assert likeness(one, one) == 1


# -- scores


def test_a_word_counts_as_much_as_in_the_field_where_it_counts_most() -> None:
    content = replace(
        CONTENT,
        display_name="alpha",
        goal="alpha beta",
        task_type="alpha beta gamma",
        stable_guidance=(Guidance("g", "style", "alpha beta gamma delta"),),
    )
    assert credits_of(content) == {"alpha": 1.0, "beta": 0.9, "gamma": 0.8, "delta": 0.6}


def test_text_is_the_weighed_share_of_the_query() -> None:
    found = judged("check spelling weather", candidate())
    # A light word that is missing weighs 0.3, a full one that is there 1, one that is missing 1.
    assert found.parts.text == pytest.approx(1 / 2.3, abs=1e-6)
    assert found.parts == replace(found.parts, domain=None, platform=None)
    assert found.score == found.parts.text


def test_parts_that_do_not_apply_are_not_weighed() -> None:
    of_shop = candidate(content=replace(CONTENT, domain="shop.example", platform="shopware"))
    assert judged("spelling audit", of_shop).score == 1
    same = judged("spelling audit", of_shop, domain="shop.example", site="shop.example")
    assert (same.score, same.parts.domain) == (1, 1)
    sister = judged("spelling audit", of_shop, domain="blog.shop.example", site="shop.example")
    assert (sister.parts.domain, sister.score) == (0.8, pytest.approx((0.7 + 0.2 * 0.8) / 0.9, abs=1e-6))
    both = judged("spelling audit", of_shop, domain="shop.example", site="shop.example", platform="Shopware")
    assert (both.score, both.parts.platform) == (1, 1)


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("spelling audit", {"domain": "other.example", "site": "other.example"}, "domain_mismatch"),
        ("spelling audit", {"domain": "other.example", "site": "other.example", "platform": "x"}, "domain_mismatch"),
        ("spelling audit", {"platform": "typo3"}, "platform_mismatch"),
        ("spelling weather forecast", {}, "weak_text"),
        ("spelling weather forecast", {"domain": "shop.example", "site": "shop.example"}, "weak_text"),
        ("spelling weather", {}, "below_threshold"),
        ("spelling audit weather", {}, None),
        ("spelling weather", {"domain": "shop.example", "site": "shop.example"}, None),
    ],
)
def test_what_is_not_accepted_says_why(text: str, where: dict[str, str], reason: str | None) -> None:
    found = judged(text, candidate(content=replace(CONTENT, domain="shop.example", platform="shopware")), **where)
    assert found.rejected_because == reason
    assert found.accepted is (reason is None)


def test_light_words_alone_are_never_enough() -> None:
    found = judged("check page", candidate(content=replace(CONTENT, display_name="check page")))
    assert (found.score, found.rejected_because) == (1, "weak_text")


def test_a_query_without_words_finds_nothing() -> None:
    assert match_profiles(query_of("is it the a"), [candidate()]) == []


def test_better_scores_come_first_then_confidence_use_and_id() -> None:
    same = [
        candidate("d"),
        candidate("c"),
        candidate("b", usage=3),
        candidate("a", confidence=0.4, usage=9),
        candidate("e", content=replace(CONTENT, display_name="Spelling")),
    ]
    found = match_profiles(query_of("spelling audit"), same)
    assert [one.candidate.profile_id for one in found] == ["b", "c", "d", "a", "e"]


def test_the_accepted_one_is_told_even_when_others_score_higher() -> None:
    others = [candidate(f"m{n}", content=replace(CONTENT, domain="other.example")) for n in range(4)]
    # Everything but the place fits the others; the one without a place fits a little less.
    own = candidate("own", content=replace(CONTENT, display_name="Proofs", goal="Spelling for an audit"))
    query = query_of("spelling audit proofreading of articles", domain="here.example", site="here.example")
    found = match_profiles(query, [*others, own])
    assert best_of(found) is not None
    assert [one.candidate.profile_id for one in shown_of(found)][-1:] == ["own"] or found[
        0
    ].candidate.profile_id == "own"
    assert len(shown_of(found)) == 3


contents = st.builds(
    TaskContent,
    task_type=texts,
    display_name=texts,
    goal=texts,
    completion_condition=st.just(CONDITION),
    domain=st.sampled_from([None, "a.example", "b.example"]),
    platform=st.sampled_from([None, "x", "y"]),
    stable_guidance=st.lists(st.builds(Guidance, words, words, texts), max_size=2).map(tuple),
)
queries = st.builds(
    lambda text, domain, platform: query_of(text, domain=domain, site=domain, platform=platform),
    texts,
    st.sampled_from([None, "a.example", "b.example"]),
    st.sampled_from([None, "x", "y"]),
)


@given(queries, st.lists(contents, max_size=5))
def test_scores_stay_within_bounds_and_a_wrong_place_is_never_accepted(query: Query, held: list[TaskContent]) -> None:
    candidates = [candidate(f"p{n}", one) for n, one in enumerate(held)]
    found = match_profiles(query, candidates)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert 0 <= one.score <= 1
        assert 0 < one.parts.text <= 1
        if one.accepted:
            assert 0 not in (one.parts.domain, one.parts.platform)
            assert one.score >= 0.6
            assert one.parts.text >= 0.45
    assert match_profiles(query, reversed(candidates)) == found


def by_the_book(query: Query, content: TaskContent) -> float:
    """The text part as it is defined: every word of the query against every word of every field."""
    fields = [(1.0, content.display_name), (0.9, content.goal), (0.8, content.task_type)]
    fields += [(0.6, one.text) for one in content.stable_guidance]
    weights = [0.3 if token in LIGHT_WORDS else 1.0 for token in query.tokens]
    credit = [
        max((much * likeness(token, word) for much, text in fields for word in tokens(text)), default=0.0)
        for token in query.tokens
    ]
    gained = sum(weight * much for weight, much in zip(weights, credit, strict=True))
    return gained / sum(weights) if weights else 0.0


@given(queries, st.lists(contents, max_size=5))
def test_every_word_of_the_query_counts_as_much_as_its_best_likeness(query: Query, held: list[TaskContent]) -> None:
    found = {one.candidate.profile_id: one.parts.text for one in match_profiles(query, _numbered(held))}
    for number, content in enumerate(held):
        assert found.get(f"p{number}", 0.0) == pytest.approx(by_the_book(query, content), abs=1e-6)


def _numbered(held: list[TaskContent]) -> list[Candidate]:
    return [candidate(f"p{number}", one) for number, one in enumerate(held)]


# -- confidence


@pytest.mark.parametrize(
    ("standing", "days", "expected"),
    [
        (Standing(0.5, 0, 0, 0), 0, 0.5),
        (Standing(0.5, 4, 0, 0), 0, 0.75),
        (Standing(0.5, 0, 4, 0), 0, 0.25),
        (Standing(0.99, 1000, 0, 0), 0, 0.99),
        (Standing(0.10, 0, 1000, 0), 0, 0.10),
        (Standing(0.5, 0, 0, 0), 30, 0.5),
        (Standing(0.5, 0, 0, 0), 365, 0.35),
        (Standing(0.5, 0, 0, 0), 3650, 0.35),
    ],
)
def test_confidence_follows_runs_and_fades(standing: Standing, days: int, expected: float) -> None:
    assert effective_confidence(standing, days * DAY_MS).effective == pytest.approx(expected)


def test_idle_time_runs_from_the_last_end_else_from_the_last_change() -> None:
    assert effective_confidence(Standing(0.5, 0, 0, DAY_MS), 3 * DAY_MS).idle_days == 2
    assert effective_confidence(Standing(0.5, 1, 0, 2 * DAY_MS, DAY_MS), 3 * DAY_MS).idle_days == 2
    assert effective_confidence(Standing(0.5, 1, 0, DAY_MS, DAY_MS), 0).idle_days == 0


@given(
    st.floats(0.10, 0.99), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**13), st.integers(0, 10**13)
)
@example(0.99, 10**6, 0, 0, 0)
def test_confidence_stays_within_its_bounds(base: float, done: int, failed: int, updated: int, now: int) -> None:
    tuning = effective_confidence(Standing(base, done, failed, updated), now)
    assert 0.10 <= tuning.effective <= 0.99
    assert 0.7 <= tuning.recency_factor <= 1
    assert recency_factor(tuning.idle_days) == tuning.recency_factor


# -- telling it


def test_an_agent_is_told_what_the_task_asks_for() -> None:
    content = replace(
        CONTENT,
        goal="g" * 400,
        stable_guidance=tuple(Guidance(f"g{n}", "style", "t" * 200) for n in range(7)),
        mandatory_checks=(Check("must", "Do it"), Check("may", "Or not", required=False)),
        known_exceptions=("one", "two"),
    )
    block = awareness_profile(created_profile("p", content, Change(), 1), 0.87654321, 0.5)
    assert [len(block["goal"]), len(block["guidanceSummary"])] == [300, 5]  # type: ignore[arg-type]
    assert {len(one) for one in block["guidanceSummary"]} == {120}  # type: ignore[union-attr, arg-type]
    assert block["requiredChecks"] == [{"checkId": "must", "description": "Do it"}]
    assert (block["finalScore"], block["confidence"], block["knownExceptionsCount"]) == (0.8765, 0.5, 2)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(400, AWARENESS_CHARS), st.sampled_from('aä"\n'))
def test_the_block_never_outgrows_its_room(checks: int, guidance: int, most: int, letter: str) -> None:
    content = replace(
        CONTENT,
        goal=letter * 2000,
        display_name="n" * 30,
        stable_guidance=tuple(Guidance(f"g{n}", "style", letter * 500) for n in range(guidance)),
        mandatory_checks=tuple(Check(f"c{n}" * 5, letter * 500) for n in range(checks)),
    )
    block = awareness_profile(created_profile("p", content, Change(), 1), 1, 1, max(most, 900))
    assert len(json.dumps(block, ensure_ascii=False, separators=(",", ":"))) <= max(most, 900)


@given(st.text(max_size=120))
def test_every_name_gives_an_id_there_may_be(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{2,63}", generated_id(name, "0a1b2c3d"))
