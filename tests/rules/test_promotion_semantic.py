"""Prompts and candidates of Nova's own: what is noticed, how often an agent is asked, how it ends, and what waits."""

from dataclasses import replace

import pytest

from nova_mcp.memory.promotion.drafts.auto_learning import AutoLearn, Track, Use, auto_learn, tracked
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.memory.promotion.prompts.rules import (
    AlreadyResolved,
    Moment,
    Prompt,
    Resolution,
    SemanticOpportunity,
    StoredAnswer,
    answered,
    detected,
    left,
    resolved,
    resolved_by,
)
from nova_mcp.memory.promotion.prompts.text import prompt_block, prompt_line

NOW = 100 * DAY_MS
SITE = "https://shop.test"
BANNER = Moment(SITE, "fp1", ("consent",), selector="#no")


def asked(*held: SemanticOpportunity, seen: Moment | None = None, now: int = NOW):
    return answered(held, () if seen is None else detected(seen, now), SITE, now)


def status(prompt: Prompt | None) -> str | None:
    return None if prompt is None else prompt.status


@pytest.mark.parametrize(
    ("moment", "kinds"),
    [
        (BANNER, ["consent_cmp"]),
        (replace(BANNER, layers=("login_wall", "consent", "consent")), ["login_wall", "consent_cmp"]),
        (Moment(SITE, "fp", selector=".x1", selector_class="fragile", clicks=3), ["risky_repeat"]),
        (Moment(SITE, "fp", selector=".x1", selector_class="fragile", clicks=2), []),
        (Moment(SITE, "fp", selector=".x1", selector_class="risky", clicks=9), []),
        (Moment(SITE, "fp", ("newsletter",)), []),
    ],
)
def test_what_is_noticed(moment: Moment, kinds: list[str]):
    found = detected(moment, NOW)
    assert [one.kind for one in found] == kinds
    assert all(one.opportunity_id == f"sem:{one.kind}:{SITE}:{moment.fingerprint}" for one in found)


def test_a_prompt_is_made_once_warned_about_once_and_then_left_alone():
    state = asked(seen=BANNER)
    said = [status(state.prompt)]
    for _ in range(12):
        state = asked(*state.opportunities, seen=BANNER)
        said.append(status(state.prompt))
    assert said == ["prompted", None, None, None, None, "warned", *[None] * 7]


def test_an_answer_carries_one_prompt_and_the_other_waits():
    both = replace(BANNER, layers=("login_wall", "consent"))
    first = asked(seen=both)
    second = asked(*first.opportunities, seen=both)
    assert first.prompt is not None
    assert second.prompt is not None
    assert [first.prompt.opportunity.kind, second.prompt.opportunity.kind] == ["consent_cmp", "login_wall"]
    assert [one.ignored for one in second.opportunities if one.kind == "login_wall"] == [0]


def test_leaving_the_site_sums_up_what_is_open_once_and_it_is_asked_again_when_met():
    state = asked(seen=BANNER)
    rested, summary = left(state.opportunities, SITE)
    assert summary is not None
    assert [one.opportunity_id for one in summary.entries] == [f"sem:consent_cmp:{SITE}:fp1"]
    assert left(rested, SITE)[1] is None
    assert asked(*rested).prompt is None
    assert status(asked(*rested, seen=BANNER).prompt) == "prompted"
    assert left(state.opportunities, "https://other.test") == (state.opportunities, None)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        ("upsert", "resolved"),
        ("not_applicable", "dismissed"),
        ("unsafe", "dismissed"),
        ("already_known", "dismissed"),
        ("defer", "deferred"),
    ],
)
def test_each_verdict_ends_a_prompt_in_its_way(verdict: str, state: str):
    one = asked(seen=BANNER).opportunities[0]
    done = resolved(one, verdict, NOW, "because")  # type: ignore[arg-type]
    assert isinstance(done, Resolution)
    assert (done.prior_state, done.opportunity.state, done.opportunity.reason) == ("prompted", state, "because")
    assert done.opportunity.resolved_at_ms == (None if verdict == "defer" else NOW)
    again = resolved(done.opportunity, "upsert", NOW)
    assert isinstance(again, Resolution if verdict == "defer" else AlreadyResolved)
    assert status(asked(done.opportunity, seen=BANNER).prompt) is None


@pytest.mark.parametrize(("after", "said"), [(DAY_MS - 1, None), (DAY_MS, "prompted")])
def test_what_was_put_off_comes_back_after_a_day(after: int, said: str | None):
    done = resolved(asked(seen=BANNER).opportunities[0], "defer", NOW)
    assert isinstance(done, Resolution)
    assert status(asked(done.opportunity, now=NOW + after).prompt) == said


@pytest.mark.parametrize(
    ("written", "source"),
    [
        (StoredAnswer(SITE, "consent_cmp", "fp1"), "fingerprint"),
        (StoredAnswer(SITE, "consent_cmp", None, ("#no",)), "selector"),
        (StoredAnswer(SITE, "consent_cmp", "other", ("#else",)), None),
        (StoredAnswer(SITE, "modal", "fp1"), None),
        (StoredAnswer("https://other.test", "consent_cmp", "fp1"), None),
    ],
)
def test_an_entry_answers_the_prompt_it_is_about(written: StoredAnswer, source: str | None):
    done = resolved_by(asked(seen=BANNER).opportunities, written, NOW)
    assert (None if done is None else done.match_source) == source


def test_one_question_per_kind_of_layer_however_it_looks_from_another_side():
    first = asked(seen=BANNER)
    again = asked(*first.opportunities, seen=replace(BANNER, fingerprint="fp2", layer="#other"))
    assert again.prompt is None
    assert [one.opportunity_id for one in again.opportunities] == [f"sem:consent_cmp:{SITE}:fp1"]
    worn = [Moment(SITE, f"w{n}", selector=f".x{n}", selector_class="fragile", clicks=3) for n in range(2)]
    both = answered((), [one for moment in worn for one in detected(moment, NOW)], SITE, NOW)
    assert len(both.opportunities) == 2


@pytest.mark.parametrize(
    ("seen", "written", "source"),
    [
        ({"layer": "#b"}, StoredAnswer(SITE, "consent_cmp", None, (), ("#b",)), "fingerprint"),
        ({"layer": "#b"}, StoredAnswer(SITE, "consent_cmp", None, ("#b",)), "fingerprint"),
        ({"layer": "#b"}, StoredAnswer(SITE, "consent_cmp", None, (), ("#c",)), None),
        ({"layer": "", "selector": None}, StoredAnswer(SITE, "consent_cmp", None, (), ("#c",)), "fingerprint"),
        ({"layer": "", "selector": None}, StoredAnswer(SITE, "modal", None, (), ("#c",)), None),
    ],
)
def test_a_layer_is_known_by_its_selector_and_by_its_kind_where_it_has_none(seen, written, source):
    done = resolved_by(asked(seen=replace(BANNER, **seen)).opportunities, written, NOW)
    assert (None if done is None else done.match_source) == source


@pytest.mark.parametrize("kind", ["consent_cmp", "login_wall", "risky_repeat"])
def test_a_prompt_leaves_empty_what_only_the_agent_can_say(kind):
    one = SemanticOpportunity(f"sem:{kind}:{SITE}:f", kind, SITE, "f", 0.8, NOW, selector="#no", layer="#b", clicks=3)
    block = prompt_block(Prompt(one, "warned"), lambda name: name.replace(".", "_"))
    assert (block["status"], block["resolutionTools"]) == (
        "warned",
        ["nova_pks_upsert", "nova_learn_resolve_opportunity"],
    )
    wish = block["skeleton"]["phenomenon"]
    assert (block["skeleton"]["scope"], wish["id"]) == ("shop.test", "")
    actions = {
        "consent_cmp": [{"action": "click", "selector": "#no", "declaredPolarity": ""}],
        "login_wall": [],
        "risky_repeat": [{"action": "click", "selector": ""}],
    }
    assert wish["playbook"]["actions"] == actions[kind]
    assert len(prompt_line(Prompt(one, "prompted")).splitlines()) == 1


# -- candidates of Nova's own

EARNED = Track("shop.test", "#buy", "stable", 3, 0, ("a", "b"), ("x", "y"))


@pytest.mark.parametrize(
    ("changes", "waiting"),
    [
        ({"selector_class": "risky"}, "unstable_selector"),
        ({"failures": 1}, "had_failure"),
        ({"successes": 2}, "needs_successes"),
        ({"came_from": ("a",)}, "needs_navigation_contexts"),
        ({"page_states": ("x",)}, "needs_page_states"),
    ],
)
def test_each_condition_of_an_automatic_candidate_holds_alone(changes: dict[str, object], waiting: str):
    assert auto_learn(replace(EARNED, **changes), semantic_open=False) == waiting  # type: ignore[arg-type]


def test_a_control_proven_under_different_circumstances_earns_a_candidate():
    track = Track("shop.test", "#buy", "stable")
    for number, (came_from, state) in enumerate([("a", "x"), ("a", "x"), ("b", "y")]):
        assert not isinstance(auto_learn(track, semantic_open=False), AutoLearn)
        track = tracked(track, Use(f"c{number}", 1, came_from, state))
        assert tracked(track, Use(f"c{number}", 1, came_from, state)) == track
    found = auto_learn(track, semantic_open=False)
    assert isinstance(found, AutoLearn)
    assert found.stable_id.startswith("lcj_")
    assert auto_learn(track, semantic_open=True) == "held_for_semantic_learning"
    assert tracked(track, Use("s", 0, "c", "z")) == track
    assert auto_learn(tracked(track, Use("f", -1)), semantic_open=False) == "had_failure"
