"""Candidates from what was seen: the right heuristic, nothing invented, and a reason wherever nothing comes of it."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.knowledge.model import MAX_PHENOMENA, Action, Content, Signal, StableId
from nova_mcp.memory.promotion.drafts.fingerprint_similarity import jaccard, likeness, simhash, similarity
from nova_mcp.memory.promotion.drafts.model import Glimpse, Hint, Neighbour, Proposal, Skipped, Trace
from nova_mcp.memory.promotion.drafts.rules import Surroundings, generate, propose

NOWHERE = Surroundings()
BANNER = (Signal("dom", "#cmp"), Signal("vendor", "usable-consent"), Signal("text", "We value your privacy", "en"))


def glimpse(number: int = 0, **changes: object) -> Glimpse:
    plain = Glimpse("action_success", 1, number, f"c{number}", f"s{number}", "#go")
    return replace(plain, **changes)  # type: ignore[arg-type]


def trace(*glimpses: Glimpse, **changes: object) -> Trace:
    return replace(Trace("shop.test", "#go", glimpses), **changes)  # type: ignore[arg-type]


def several(count: int = 2, **changes: object) -> list[Glimpse]:
    return [glimpse(number, **changes) for number in range(count)]


def proposed(found: Proposal | Skipped) -> Proposal:
    assert isinstance(found, Proposal), found
    return found


def skipped(found: Proposal | Skipped) -> str:
    assert isinstance(found, Skipped), found
    return found.reason


def content(found: Proposal) -> Content:
    assert isinstance(found.body, Content)
    return found.body


def test_a_dismissed_consent_banner_becomes_a_candidate():
    found = proposed(
        propose(
            trace(*several(kind="blocker_dismissed", layers=("consent",), selector="#reject", signals=BANNER)), NOWHERE
        )
    )
    assert (found.kind, found.phenomenon_type, found.target_stable_id) == (
        "new_phenomenon",
        "consent_cmp",
        found.stable_id,
    )
    assert found.confidence == 0.75
    body = content(found)
    assert body.playbook is not None
    assert (body.playbook.policy, body.playbook.actions[0].selector) == ("reject_preferred", "#reject")
    assert set(body.fingerprint.signals) == set(BANNER)


def test_agreeing_to_a_banner_is_never_proposed():
    agreed = several(layers=("consent",), selector="#yes", signals=BANNER, polarity="accept")
    assert skipped(propose(trace(*agreed), NOWHERE)) == "accept_refused"
    by_vendor = several(selector="#no", signals=BANNER, polarity="reject")
    assert proposed(propose(trace(*by_vendor), NOWHERE)).phenomenon_type == "consent_cmp"


def test_a_click_on_a_banner_whose_label_is_unknown_is_no_refusal():
    assert skipped(propose(trace(*several(layers=("consent",), selector="#x")), NOWHERE)) == "no_pattern"


def test_a_closed_layer_becomes_a_modal_and_a_wall_for_people_does_not():
    closed = proposed(propose(trace(*several(kind="blocker_dismissed", layers=("newsletter",))), NOWHERE))
    assert closed.phenomenon_type == "modal"
    assert skipped(propose(trace(*several(kind="blocker_dismissed", layers=("login_wall",))), NOWHERE)) == "no_pattern"


def test_a_selector_that_took_the_place_of_another_patches_its_entry():
    owner = Neighbour(StableId("lcj_owner"), "modal", (Signal("dom", "#other"),), (Action("click", "#old"),))
    seen = trace(*several(failed_selector="#old", selector="#new"), target_stable_id="lcj_owner")
    found = proposed(propose(seen, Surroundings((owner,))))
    assert (found.kind, found.target_stable_id, found.phenomenon_type) == ("patch", "lcj_owner", "modal")
    assert content(found).playbook.actions[0].selector == "#new"  # type: ignore[union-attr]
    done = replace(owner, actions=(Action("click", "#new"),))
    assert skipped(propose(seen, Surroundings((done,)))) == "already_covered"
    assert proposed(propose(seen, NOWHERE)).kind == "new_phenomenon"


@pytest.mark.parametrize(("count", "items", "hint"), [(3, 2, True), (2, 2, False), (3, 1, False)])
def test_a_list_that_was_used_three_times_becomes_a_hint(count: int, items: int, hint: bool):
    found = propose(trace(*several(count, items=items, selector=".card")), NOWHERE)
    if hint:
        assert proposed(found).body == Hint("result_item", (".card",))
        assert (proposed(found).kind, proposed(found).hint_kind) == ("domain_hint", "result_item")
    else:
        assert skipped(found) == "no_pattern"


def test_a_control_that_leads_to_one_place_becomes_a_link_and_one_that_does_not_is_none():
    found = proposed(propose(trace(*several(route="feed", led_to="cart")), NOWHERE))
    assert (found.phenomenon_type, content(found).context.routes) == ("nav_link", ("feed",))
    assert content(found).playbook.verify == ()  # type: ignore[union-attr]
    wandering = trace(glimpse(0, led_to="cart"), glimpse(1, led_to="help"))
    assert skipped(propose(wandering, NOWHERE)) == "no_pattern"


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (trace(glimpse()), "insufficient_support"),
        (trace(*several(outcome=0)), "no_success"),
        (trace(*several(), origin="diagnostic"), "diagnostic_candidate"),
        (trace(*several(), status="disproven"), "disproven"),
        (trace(*several()), "no_pattern"),
        (trace(*several(selector=None)), "no_selector"),
    ],
)
def test_what_gives_no_candidate_says_why(seen: Trace, reason: str):
    assert skipped(propose(seen, NOWHERE)) == reason


def test_a_mere_selector_waits_while_a_richer_prompt_is_open():
    link = trace(*several(led_to="cart"))
    assert skipped(propose(link, Surroundings(semantic_open=True))) == "held_for_semantic_learning"
    layer = trace(*several(kind="blocker_dismissed", layers=("newsletter",)))
    assert isinstance(propose(layer, Surroundings(semantic_open=True)), Proposal)


def test_a_full_scope_takes_patches_only():
    full = tuple(Neighbour(StableId(f"k{n}"), "custom", (Signal("dom", f"#k{n}"),)) for n in range(MAX_PHENOMENA))
    assert skipped(propose(trace(*several(led_to="cart")), Surroundings(full))) == "scope_full"


def test_what_is_covered_is_dropped_and_what_is_close_becomes_a_patch():
    seen = trace(*several(kind="blocker_dismissed", layers=("consent",), selector="#reject", signals=BANNER))
    same = Neighbour(StableId("lcj_same"), "consent_cmp", BANNER)
    assert skipped(propose(seen, Surroundings((same,)))) == "already_covered"
    many = tuple(Signal("dom", f"#part{n}") for n in range(9))
    close = Neighbour(StableId("lcj_close"), "consent_cmp", (*many, Signal("layout", "fixed")))
    wide = trace(*several(kind="blocker_dismissed", layers=("consent",), selector="#reject", signals=many[:9]))
    assert 0.92 <= jaccard(many, close.signals) < 0.95
    assert skipped(propose(wide, Surroundings((close,)))) == "already_covered"
    nearer = replace(close, signals=(*many, Signal("dom", "#more")))
    assert 0.88 <= jaccard(many, nearer.signals) < 0.92
    assert proposed(propose(wide, Surroundings((nearer,)))).kind == "patch"
    far = replace(close, signals=(*many, Signal("dom", "#more"), Signal("dom", "#most")))
    assert jaccard(many, far.signals) < 0.88
    assert proposed(propose(wide, Surroundings((far,)))).kind == "new_phenomenon"


def test_the_id_is_made_of_scope_and_candidate_key():
    found = proposed(propose(trace(*several(led_to="cart"), candidate_key="lcj_ck_1"), NOWHERE))
    text = json.dumps(("shop.test", "lcj_ck_1"), separators=(",", ":"))
    assert found.stable_id == "lcj_" + hashlib.sha256(text.encode()).hexdigest()[:12]
    assert found.candidate_key == "lcj_ck_1"


def test_the_surest_come_first_and_the_rest_is_named():
    sure = trace(*several(4, led_to="cart", selector="#a"), key="a")
    less = trace(*several(2, led_to="help", selector="#b"), key="b")
    proposals, rest = generate([less, sure], NOWHERE, limit=1)
    assert [one.confidence for one in proposals] == [0.8333]
    assert [one.reason for one in rest] == ["limit_reached"]
    twins, none = generate([sure, replace(sure, key="again")], NOWHERE)
    assert (len(twins), [one.reason for one in none]) == (1, ["already_covered"])


selectors = st.sampled_from(["#a", "#b", ".c", None])
glimpses = st.builds(
    Glimpse,
    st.sampled_from(["action_success", "blocker_dismissed", "action_failure"]),
    st.sampled_from([-1, 0, 1]),
    st.integers(0, 9),
    st.sampled_from([f"c{n}" for n in range(8)]),
    st.sampled_from(["s0", "s1"]),
    selectors,
    selectors,
    st.sampled_from(["feed", None]),
    st.sampled_from(["cart", "help", None]),
    st.sampled_from([(), ("consent",), ("newsletter",), ("login_wall",)]),
    st.sampled_from([None, "accept", "reject"]),
    st.integers(0, 4),
    st.lists(st.sampled_from(BANNER), max_size=3).map(tuple),
)


@given(st.lists(glimpses, max_size=10))
def test_no_selector_or_signal_is_invented(seen: list[Glimpse]):
    found = propose(trace(*seen), NOWHERE)
    if isinstance(found, Skipped):
        return
    proven = {one.selector for one in seen if one.outcome > 0}
    if isinstance(found.body, Hint):
        assert set(found.body.selectors) <= proven
        return
    action = content(found).playbook.actions[0]  # type: ignore[union-attr]
    assert {action.selector, *action.fallbacks} <= proven
    assert action.polarity != "accept" or found.phenomenon_type != "consent_cmp"
    held = {signal for one in seen for signal in one.signals} | {Signal("dom", name) for name in proven if name}
    assert set(content(found).fingerprint.signals) <= held


# -- likeness

signals = st.lists(
    st.builds(Signal, st.sampled_from(["dom", "vendor", "text", "layout"]), st.sampled_from(["a b c", "b", "c d"])),
    max_size=6,
)


@given(signals, signals)
def test_likeness_is_mutual_and_between_nothing_and_everything(one: list[Signal], other: list[Signal]):
    assert similarity(one, other) == pytest.approx(similarity(other, one))
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, one) == pytest.approx(1.0 if one else 0.0)


def test_signals_weigh_by_their_kind_and_texts_by_how_they_read():
    left = [Signal("dom", "#a"), Signal("layout", "fixed")]
    assert jaccard(left, left[:1]) == pytest.approx(100 / 155)
    assert similarity(left, left[:1]) == jaccard(left, left[:1])
    texts = [Signal("text", "we use cookies on this site"), Signal("text", "we use cookies on this page")]
    near = likeness(simhash(texts[0].match), simhash(texts[1].match))
    far = likeness(simhash(texts[0].match), simhash("twelve boxes of oranges"))
    assert far < near < 1
    mixed = similarity([left[0], texts[0]], [left[0], texts[1]])
    assert mixed == pytest.approx(0.7 * (100 / 240) + 0.3 * near)


def test_a_control_that_commits_is_no_link_and_no_layer_to_close():
    assert skipped(propose(trace(*several(led_to="sent", commits=True)), NOWHERE)) == "commit_control"
    assert skipped(propose(trace(*several(layers=("newsletter",), commits=True)), NOWHERE)) == "commit_control"
    once = (glimpse(0, led_to="sent"), glimpse(1, led_to="sent", commits=True))
    assert skipped(propose(trace(*once), NOWHERE)) == "commit_control"
    refusing = several(layers=("consent",), signals=BANNER, polarity="reject", commits=True)
    assert proposed(propose(trace(*refusing), NOWHERE)).phenomenon_type == "consent_cmp"
