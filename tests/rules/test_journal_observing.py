"""What calls teach: only what really reached a page that nobody tampered with, and the same thing only once."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.targets.page_life import LifeSigns
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.calls.envelope import Envelope
from nova_mcp.core.clock import SystemClock
from nova_mcp.core.connections import AgentConnections
from nova_mcp.evidence.model import (
    Caller,
    CallOutcome,
    CallRecord,
    Effect,
    OutcomeKind,
    PageState,
    ServerId,
    Signals,
    Touched,
)
from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.journal.observations import (
    PAYLOAD_BYTES,
    context_host,
    diagnostic_key_of,
    event_key_of,
    is_evidence,
    observations_of,
    payload_text,
    scope_of,
    tool_event_of,
    verdict_of,
)
from nova_mcp.memory.journal.sessions import session_id_for
from nova_mcp.memory.journal.throttle import PROOF_WINDOW_MS, WINDOW_MS, Held, judge, throttle_key, window_ms
from nova_mcp.tools.context import Evidence

DESK = PageState("tab_1", "A", "https://shop.test:8443/desk", "shop.test:8443/desk", 3)
DONE = PageState("tab_1", "A", "https://other.test/done", "other.test/done", 4)


def call(tool: str = "click_selector", **changes: Any) -> CallRecord:
    fields: dict[str, Any] = {
        "call_id": "c1",
        "caller": Caller("local", "ada", ServerId("s1")),
        "tool_name": f"nova.{tool}",
        "effect": "act",
        "started_at_ms": 1_000,
        "duration_ms": 20,
        "outcome": CallOutcome("ok", action_dispatched=True, verification="verified"),
        "before": DESK,
        "after": DESK,
        "touched": Touched("#go", "hash", "el_1"),
        "signals": Signals(label="success"),
    }
    return CallRecord(**(fields | changes))


def seen(record: CallRecord) -> list[tuple[str, int, int]]:
    return [(one.kind, one.outcome, one.severity) for one in observations_of(record)]


# -- where


@pytest.mark.parametrize(
    ("url", "scope"),
    [
        ("https://shop.test/a", "shop.test"),
        ("http://shop.test:8080/a?b=1", "shop.test:8080"),
        ("https://me@shop.test/", "shop.test"),
        ("http://[::1]:81/", "[::1]:81"),
        ("http://[::1/", None),
        (None, None),
    ],
)
def test_a_scope_is_the_host_with_an_unusual_port(url: str | None, scope: str | None) -> None:
    assert scope_of(url) == scope


def test_input_belongs_to_the_page_it_landed_on_and_a_navigation_to_where_it_led() -> None:
    assert context_host(call(after=DONE)) == "shop.test:8443"
    assert context_host(call("navigate", effect="navigate", after=DONE)) == "other.test"
    assert context_host(call("perceive", effect="read", before=PageState(), after=DONE)) == "other.test"


# -- tool events


def test_every_call_is_an_event_named_like_the_call() -> None:
    event = tool_event_of(call(task_id="claim_1", arguments={"selector": "#go"}))
    assert (event.event_id, event.tool_name, event.success, event.error) == ("c1", "nova.click_selector", True, None)
    assert (event.task_id, event.target_id, event.context_host) == ("claim_1", "tab_1", "shop.test:8443")
    assert (event.duration_ms, event.created_at_ms, event.arguments) == (20, 1_020, '{"selector":"#go"}')


def test_an_event_is_bounded() -> None:
    long = call(
        arguments={"text": "x" * 5_000}, outcome=CallOutcome("failed", reason_code="r" * 900), before=PageState()
    )
    event = tool_event_of(long)
    assert (len(event.arguments), len(event.error or "")) == (400, 220)


def test_what_no_database_can_hold_is_replaced() -> None:
    odd = call(caller=Caller("lo\0cal", "a\ud800", ServerId("s1")), touched=Touched("#\0go"))
    event = tool_event_of(odd)
    assert (event.principal, event.owner_agent_id) == ("lo\ufffdcal", "a?")
    assert observations_of(odd)[0].selector_norm == "#\ufffdgo"


# -- what counts at all


@pytest.mark.parametrize(
    "record",
    [
        call(outcome=CallOutcome("blocked_preflight", gate_id="claim.owner")),
        call(outcome=CallOutcome("invalid")),
        call(outcome=CallOutcome("crashed", action_dispatched=True)),
        call(outcome=CallOutcome("cancelled", action_dispatched=True)),
        call(outcome=CallOutcome("failed"), signals=Signals(refused=True)),
        call(signals=Signals(label="success", scripted=True)),
        call(before=PageState(), after=PageState()),
        call(before=PageState("tab_1"), after=PageState("tab_1")),
        call(kind="intent"),
        call(kind="recovery"),
        call("tab_claim", effect="write", signals=Signals()),
    ],
)
def test_what_was_not_carried_out_on_an_honest_page_is_no_evidence(record: CallRecord) -> None:
    assert not is_evidence(record)
    assert (observations_of(record), event_key_of(record), diagnostic_key_of(record)) == ((), None, None)
    assert verdict_of(record) == "neutral"


def test_a_refusal_after_something_was_sent_does_not_hide_what_was_seen() -> None:
    failed = CallOutcome("failed", reason_code="blockers.repeat_suppressed", action_dispatched=True)
    record = call("dismiss_blockers", outcome=failed, signals=Signals("failure", refused=True, layers=("consent",)))
    assert seen(record) == [("blocker_dismissed", -1, 0)]


# -- actions


def test_only_a_verified_act_is_a_success() -> None:
    assert seen(call()) == [("action_success", 1, 0)]
    for state in ("likely", "uncertain"):
        outcome = CallOutcome("ok", action_dispatched=True, verification=state)
        assert seen(call(outcome=outcome, signals=Signals(label="sighting"))) == [("action_success", 0, 0)]
    partial = CallOutcome("partial", action_dispatched=True, verification="verified")
    assert seen(call(outcome=partial)) == [("action_success", 0, 0)]


def test_only_a_dispatched_act_that_was_refuted_is_a_failure() -> None:
    refuted = CallOutcome("partial", action_dispatched=True, verification="failed")
    assert seen(call(outcome=refuted, signals=Signals(label="failure"))) == [("action_failure", -1, 0)]
    unsent = CallOutcome("failed", action_dispatched=False, verification="failed")
    assert seen(call(outcome=unsent, signals=Signals(label="failure"))) == []


@pytest.mark.parametrize("tool", ["click_selector", "type_selector", "choose_option", "guarded_login", "guarded_x"])
def test_these_tools_teach(tool: str) -> None:
    assert seen(call(tool)) == [("action_success", 1, 0)]


@pytest.mark.parametrize("tool", ["hover", "scroll_smart", "input_key", "run_sequence", "navigate"])
def test_other_acts_teach_nothing(tool: str) -> None:
    assert seen(call(tool)) == []


def test_an_observation_says_what_was_touched_and_how_it_went_and_nothing_the_page_said() -> None:
    (one,) = observations_of(call(signals=Signals("success", effect_observed=True, contract="verified_success")))
    assert (one.selector_norm, one.fingerprint_hash) == ("#go", "el_1")
    assert one.payload == {
        "route": "shop.test:8443/desk",
        "verifyState": "verified",
        "contract": "verified_success",
        "effectObserved": True,
    }


def test_proof_by_use_is_credited_to_a_phenomenon_only() -> None:
    known = call(signals=Signals("success", target_stable_id="ph_1"))
    assert seen(known) == [("action_success", 1, 0), ("tob_verified", 1, 0)]
    refuted = CallOutcome("partial", action_dispatched=True, verification="failed")
    assert seen(replace(known, outcome=refuted, signals=Signals("failure", target_stable_id="ph_1"))) == [
        ("action_failure", -1, 0)
    ]


# -- the other kinds


def test_a_look_shows_how_the_page_is_built() -> None:
    record = call("perceive", effect="read", touched=Touched(), signals=Signals(structure="abc"))
    (one,) = observations_of(record)
    assert (one.kind, one.outcome, one.fingerprint_hash) == ("perceive_signature", 0, "abc")
    assert seen(replace(record, signals=Signals())) == []


@pytest.mark.parametrize(("label", "outcome"), [("success", 1), ("failure", -1), ("sighting", 0)])
def test_a_dismissal_is_judged_by_the_page_afterwards(label: Any, outcome: int) -> None:
    (one,) = observations_of(call("dismiss_blockers", signals=Signals(label, layers=("consent", "modal"))))
    assert (one.kind, one.outcome, one.payload["layers"]) == ("blocker_dismissed", outcome, ["consent", "modal"])
    assert one.candidate_key is not None


def test_where_no_layer_was_there_or_none_was_touched_nothing_is_learned() -> None:
    assert seen(call("dismiss_blockers", signals=Signals("none"))) == []
    unsent = CallOutcome("ok", action_dispatched=False)
    assert seen(call("dismiss_blockers", outcome=unsent, signals=Signals("success", layers=("consent",)))) == []


@pytest.mark.parametrize(("drift", "severity"), [("light", 1), ("hard", 2)])
def test_drift_is_harder_when_nothing_helped(drift: Any, severity: int) -> None:
    record = call("phenomenon_apply", outcome=CallOutcome("failed"), signals=Signals(drift=drift))
    assert seen(record) == [("selector_drift", -1, severity)]


@pytest.mark.parametrize(
    ("told", "kind", "outcome"),
    [
        ("confirmed", "telemetry_confirmed", 1),
        ("claimed", "telemetry_confirmed", 0),
        ("refuted", "selector_drift", -1),
    ],
)
def test_a_report_counts_as_far_as_a_call_backs_it(told: Any, kind: str, outcome: int) -> None:
    record = call("telemetry_report", effect="write", signals=Signals(telemetry=told))
    assert [(one.kind, one.outcome) for one in observations_of(record)] == [(kind, outcome)]


def test_a_payload_is_bounded() -> None:
    big = Observation("action_success", 1, payload={"x": "y" * PAYLOAD_BYTES})
    assert payload_text(big) == '{"omittedBytes":65544}'


# -- what calls say about claims


@pytest.mark.parametrize("effect", ["read", "navigate"])
@pytest.mark.parametrize(("kind", "code"), [("ok", None), ("partial", None), ("failed", -32004), ("failed", -32002)])
def test_looks_and_navigations_prove_nothing(effect: Effect, kind: OutcomeKind, code: int | None) -> None:
    record = call("read_text", effect=effect, outcome=CallOutcome(kind, code), signals=Signals())
    assert is_evidence(record)
    assert verdict_of(record) == "neutral"


@pytest.mark.parametrize(
    ("signals", "verdict"),
    [
        (Signals(high_signal=True), "success"),
        (Signals(telemetry="confirmed"), "success"),
        (Signals(telemetry="refuted"), "failure"),
        (Signals(telemetry="claimed"), "neutral"),
    ],
)
def test_reports_and_knowledge_speak_as_far_as_they_are_backed(signals: Signals, verdict: str) -> None:
    assert verdict_of(call("telemetry_report", effect="write", signals=signals)) == verdict


def test_an_act_speaks_only_once_it_is_proven() -> None:
    assert verdict_of(call()) == "success"
    assert verdict_of(call(signals=Signals(label="sighting"))) == "neutral"
    assert verdict_of(call(signals=Signals(label="failure"))) == "failure"
    assert verdict_of(call(outcome=CallOutcome("failed", action_dispatched=False))) == "neutral"
    assert verdict_of(call("run_sequence", signals=Signals(high_signal=True))) == "success"


def test_event_keys_tell_hosts_tools_and_selectors_apart() -> None:
    records = [call(), call("type_selector"), call(before=DONE), call(touched=Touched("#other"))]
    assert len({event_key_of(record) for record in records}) == 4
    assert event_key_of(call(call_id="c2", caller=Caller("local", "bob", ServerId("s2")))) == event_key_of(call())
    elsewhere = replace(DESK, target_id="tab_2")
    assert event_key_of(call(before=elsewhere, after=elsewhere)) == event_key_of(call())
    assert diagnostic_key_of(call(before=elsewhere, after=elsewhere)) != diagnostic_key_of(call())


# -- throttling

SAMPLES = st.builds(
    lambda outcome, selector, target: (Observation("action_success", outcome, selector_norm=selector), target),
    st.sampled_from([0, 1]),
    st.sampled_from(["#a", "#b"]),
    st.sampled_from(["tab_1", "tab_2"]),
)


def counted(calls: list[tuple[Observation, str]], step_ms: int = 1) -> dict[str, tuple[int, int]]:
    """How many observations each key has after these calls, and how good the best of them is."""
    held: dict[str, Held] = {}
    support: dict[str, tuple[int, int]] = {}
    for number, (one, target) in enumerate(calls):
        key, at_ms = throttle_key(one, "shop.test", target, "nova.click_selector"), number * step_ms
        count, best = support.get(key, (0, 0))
        verdict = judge(held.get(key), one, at_ms)
        if verdict == "count":
            held[key], support[key] = Held(at_ms, number, one.outcome), (count + 1, max(best, one.outcome))
        elif verdict == "upgrade":
            held[key], support[key] = replace(held[key], outcome=1), (count, 1)
    return support


@given(st.lists(SAMPLES, min_size=1, max_size=12), st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_order_and_any_number_of_retries_within_the_window_support_as_much_as_one(
    calls: list[tuple[Observation, str]], random: Any, times: int
) -> None:
    again = calls * times
    random.shuffle(again)
    assert counted(again) == counted(calls)
    assert all(count == 1 for count, _ in counted(calls).values())


def test_a_success_never_hides_a_failure() -> None:
    for kind in ("blocker_dismissed", "action_success"):
        good = throttle_key(Observation(kind, 1, selector_norm="#a"), "h", "t", "x")
        bad = throttle_key(Observation(kind, -1, selector_norm="#a"), "h", "t", "x")
        assert good != bad


def test_what_an_observation_is_about_is_the_first_that_is_known() -> None:
    full = Observation("action_success", 1, 0, "ph", "ck", "fp", "#a")
    keys = [full]
    for name in ("target_stable_id", "candidate_key", "selector_norm", "fingerprint_hash"):
        keys.append(replace(keys[-1], **{name: None}))
    assert len({throttle_key(one, "h", "t", "x") for one in keys}) == 5
    assert throttle_key(full, "h", "t", "x") == throttle_key(replace(full, selector_norm="#b"), "h", "t", "x")


@pytest.mark.parametrize("at_ms", [WINDOW_MS, -WINDOW_MS])
def test_a_key_is_free_again_after_the_window_whichever_way_the_clock_went(at_ms: int) -> None:
    one = Observation("action_success", 1, selector_norm="#a")
    assert judge(Held(0, 1, 1), one, at_ms) == "count"
    assert judge(Held(0, 1, 1), one, at_ms - (1 if at_ms > 0 else -1)) == "drop"


def test_proof_by_use_counts_once_a_minute_per_phenomenon() -> None:
    one = Observation("tob_verified", 1, target_stable_id="ph")
    assert window_ms(one) == PROOF_WINDOW_MS == 2 * WINDOW_MS
    assert throttle_key(one, "h", "tab_1", "x") == throttle_key(one, "h", "tab_2", "y")


# -- sessions


@given(st.text())
def test_a_session_is_named_by_sixteen_hex_digits(call_id: str) -> None:
    assert len(session_id_for(call_id)) == 16
    assert int(session_id_for(call_id), 16) >= 0


@pytest.mark.parametrize(
    ("first", "scripted", "last", "tampered"),
    [
        (3, None, 3, False),
        (3, 3, 3, True),
        (3, 3, 5, True),
        (3, 5, 5, True),
        (3, 4, 5, True),
        (3, 2, 5, False),
        (None, 4, 4, True),
        (None, 3, 4, False),
    ],
)
def test_a_call_is_scripted_when_any_document_it_passed_was(
    first: int | None, scripted: int | None, last: int, tampered: bool
) -> None:
    """A sequence may script a document that it comes to and leaves again."""
    tab = SimpleNamespace(
        target_id="tab_1",
        sandbox_id="A",
        url="https://shop.test/",
        page_epoch=last,
        scripted_epoch=scripted,
        http_status=200,
        redirects=(),
        signs=LifeSigns(SystemClock()),
    )
    envelope = Envelope(
        call_id="c1",
        caller=Caller("local", "ada", ServerId("s1")),
        tool_name="nova.run_sequence",
        arguments={},
        connection=AgentConnections(SystemClock()).of(("local", "ada")),
        started_at_ms=0,
        started_mono_ms=0.0,
        evidence=Evidence(tab=cast(Tab, tab), signals=Signals(high_signal=True)),
        before=PageState("tab_1", page_epoch=first),
    )
    record = envelope.close(CallOutcome("ok", action_dispatched=True), 5.0, keep_raw_urls=False)
    assert record.signals.scripted is tampered


# -- what generating candidates goes by


def test_an_action_tells_what_it_showed_of_its_page():
    signals = Signals(
        label="success",
        came_from="shop.test/list",
        page_state="s1",
        layer="consent",
        polarity="reject",
        seen_signals=(("vendor", "onetrust", None), ("dom", "#cmp", None)),
        failed_selector="#old",
        items=("ul.found > li", 12),
    )
    (one,) = observations_of(call(after=DONE, signals=signals))
    assert one.payload == {
        "route": "shop.test:8443/desk",
        "verifyState": "verified",
        "cameFrom": "shop.test/list",
        "pageState": "s1",
        "ledTo": "other.test/done",
        "layer": "consent",
        "polarity": "reject",
        "failedSelector": "#old",
        "signals": [["vendor", "onetrust", None], ["dom", "#cmp", None]],
        "items": ["ul.found > li", 12],
    }


def test_an_action_that_stayed_on_its_route_led_nowhere():
    (one,) = observations_of(call())
    assert "ledTo" not in one.payload


def test_whatever_a_page_makes_of_itself_stays_within_bounds():
    long = "#" + "x" * 100_000
    signals = Signals(
        label="success",
        came_from=long,
        page_state=long,
        failed_selector=long,
        items=(long, 3),
        seen_signals=tuple(("dom", f"{long}{number}", None) for number in range(1_000)),
    )
    (one,) = observations_of(call(signals=signals))
    assert len(payload_text(one)) < 5_000
    assert "omittedBytes" not in one.payload
