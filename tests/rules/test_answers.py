"""Text answers stay within their budgets and on one line, whatever a page says."""

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.tools.browse.act_support import GUARDED_TOKENS, TEXT_TOKENS, ElementResult
from nova_mcp.tools.results import DialogSeen, EffectSeen, RequestSeen

ANY = st.text(max_size=300)


@given(
    element=ANY,
    url=ANY,
    texts=st.lists(ANY, max_size=3),
    paths=st.lists(ANY, max_size=3),
    dialogs=st.integers(0, 3),
    moved=st.booleans(),
    reason=st.sampled_from([None, "action.no_effect_observed", "dialog.confirm_dismissed"]),
)
def test_a_click_is_told_in_sixty_tokens_with_its_verdict(element, url, texts, paths, dialogs, moved, reason):
    told = ElementResult(
        target_id="tab_1",
        url=url,
        reason_code=reason,
        action_dispatched=True,
        dispatch_proof="event",
        effect=EffectSeen(
            observed=True,
            channels=["navigation"] if moved else [],
            new_text=texts,
            requests=[RequestSeen(method="POST", path=path, status=201) for path in paths],
        ),
        verify_state="likely",
        rev=1,
        dialogs=[DialogSeen(type="confirm", message="sure?", answer="dismissed")] * dialogs,
        element="".join(c for c in element if c.isprintable()),
        verb="clicked",
    ).text()
    assert estimate_tokens(told) <= TEXT_TOKENS
    assert told.startswith("clicked")
    assert len(told.splitlines()) == 1
    assert told.endswith("likely" if reason is None else f"likely: {reason}")


@given(
    element=ANY,
    texts=st.lists(ANY, max_size=3),
    paths=st.lists(ANY, max_size=3),
    reason=st.sampled_from(["guarded_commit.postcondition_failed", "guarded_commit.no_signal_yet"]),
    advice=st.sampled_from(["do_not_retry", "check_postcondition_first", "safe_to_retry"]),
)
def test_a_guarded_answer_keeps_to_ninety_tokens_and_says_what_to_do_next(element, texts, paths, reason, advice):
    told = ElementResult(
        target_id="tab_1",
        url="http://127.0.0.1/",
        status="partial",
        ok=False,
        reason_code=reason,
        retry_advice=advice,
        action_dispatched=True,
        dispatch_proof="event",
        effect=EffectSeen(
            observed=True,
            channels=[],
            new_text=texts,
            requests=[RequestSeen(method="POST", path=path, status=201) for path in paths],
        ),
        verify_state="uncertain",
        rev=1,
        element="".join(c for c in element if c.isprintable()),
        verb="submitted",
        guarded_commit={"transitionId": "tr_0123456789abcdef0123"},
        hint="Look at the page with nova.perceive before doing it again.",
    ).text()
    assert estimate_tokens(told) <= GUARDED_TOKENS
    assert len(told.splitlines()) == 1
    assert reason in told
    assert f"{advice} tr_0123456789abcdef0123" in told


def _told(**changes: object) -> ElementResult:
    values: dict[str, object] = {
        "target_id": "tab_1",
        "url": "http://127.0.0.1/",
        "action_dispatched": True,
        "dispatch_proof": "event",
        "effect": EffectSeen(
            observed=True,
            channels=["dom_mutation", "request_started"],
            new_text=["one", "two", "three"],
            requests=[RequestSeen(method="POST", path=f"/api/{n}", status=200 + n) for n in range(5)],
            window_ms=212,
        ),
        "verify_state": "likely",
        "rev": 1,
        "element": 'e1 button "Save"',
        "verb": "clicked",
    }
    return ElementResult.model_validate(values | changes)


@given(element=ANY, dialogs=st.integers(0, 9), beside=st.integers(0, 25), guarded=st.booleans())
def test_an_answer_leaves_room_for_what_gates_say_and_never_for_less_than_its_dialogs(
    element, dialogs, beside, guarded
):
    commit = {"guarded_commit": {"transitionId": "tr_0123456789abcdef0123"}} if guarded else {}
    told = _told(
        element="".join(c for c in element if c.isprintable()),
        dialogs=[DialogSeen(type="confirm", message="sure?", answer="dismissed")] * dialogs,
        beside=beside,
        **commit,
    ).text()
    assert estimate_tokens(told) <= (GUARDED_TOKENS if guarded else TEXT_TOKENS) - beside
    assert "likely" in told
    assert ("confirm dismissed" in told) is (dialogs > 0)
    assert (f"{dialogs} dialogs" in told) is (dialogs > 2)


def test_full_detail_shows_everything_that_was_seen_below_the_line():
    dialogs = [DialogSeen(type="alert", message="a\nb", answer="accepted")]
    brief, whole = _told(dialogs=dialogs), _told(dialogs=dialogs, full=True)
    first, *rest = whole.text().split("\n")
    assert first == brief.text()
    assert rest[0] == "proof event · effect dom_mutation, request_started · 212 ms"
    assert all(any(f"/api/{n}" in line for line in rest) for n in range(5))
    assert [line for line in rest if line.startswith("text")] == ['text "one"', 'text "two"', 'text "three"']
    assert any("alert accepted" in line for line in rest)
    assert len(rest) == 1 + 5 + 3 + 1


def test_neither_the_room_for_gates_nor_the_detail_is_part_of_the_typed_answer():
    assert {"beside", "full", "verb"}.isdisjoint(_told(beside=9, full=True).structured())
