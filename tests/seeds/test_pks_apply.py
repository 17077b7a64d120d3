"""Applying what was learned, row by row, through a real client on real pages."""

from dataclasses import replace
from typing import Any

import pytest
from anyio import create_task_group
from loop_kit import SECRET, Server, Shop
from place_kit import Lesson, Place, failed

from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge.drift import after_sighting
from nova_mcp.memory.knowledge.model import Action, Context, Health, Signal, VerifyStep
from nova_mcp.verification.kill_switches import Switch, SwitchName, clear_switch, set_switch
from nova_mcp.verification.model import Assertion

pytestmark = pytest.mark.browser

_LINKS = "".join(f"<p><a href=/read{number}>Long read {number}</a></p>" for number in range(6))
_STYLE = "<style>.layer{position:fixed;inset:0;z-index:99;background:#fff}</style>"


def _page(body: str, *, head: str = "") -> str:
    return f"<!doctype html><html lang=en><title>Site</title>{head}<main><h1>Site</h1>{_LINKS}</main>{body}"


def _banner(button: str) -> str:
    layer = f"<div id=cmp class=layer role=dialog aria-label=Cookies><p>We use cookies</p>{button}</div>"
    return _page(layer, head=_STYLE + "<script>const gone=()=>document.getElementById('cmp').remove()</script>")


def _wizard(button: str) -> str:
    log = "<script>window.pressed=[];const go=(what)=>{pressed.push(what);document.body.append(Object.assign(document."
    log += "createElement('p'),{id:'done',textContent:what}))}</script>"
    return _page(f"<section id=wizard><h2>Step 1 of 3</h2>{button}</section>", head=log)


SETTINGS = {"enable_eval": True}
PAGES = {
    "/plain": _page(""),
    "/consent": _banner("<button id=no onclick=gone()>Reject all</button>"),
    "/consent-slow": _banner("<button id=no onclick='setTimeout(gone,700)'>Reject all</button>"),
    "/consent-moved": _banner("<button data-testid=refuse onclick=gone()>Reject all</button>"),
    "/consent-swapped": _banner("<button id=no onclick=gone()>Accept all</button>"),
    "/consent-dead": _banner("<button id=no>Reject all</button>"),
    "/consent-back": _banner(
        "<button id=no onclick=\"cmp.style.display='none';setTimeout(()=>cmp.style.display='',300)\">"
        "Reject all</button>"
    ),
    "/wizard": _wizard("<button id=go onclick=\"go('next')\">Next</button>"),
    "/wizard-delete": _wizard("<button id=go onclick=\"go('delete')\">Delete account</button>"),
    "/wizard-gone": _wizard("<button id=further onclick=\"go('next')\">Next</button>"),
    "/wizard-bait": _wizard(
        "<button id=go onmouseover=\"this.textContent='Delete account'\" onclick=\"go('delete')\">Next</button>"
    ),
    "/wizard-twice": _wizard("<button id=go onclick=\"go('one')\">Next</button><button id=go>Next</button>"),
    "/wizard-covered": _wizard("<button id=go onclick=\"go('next')\">Next</button>")
    + "<div style='position:fixed;inset:0;z-index:99;background:#eee'>Wait</div>",
    "/form": _page(
        "<form id=f action=/order method=post><label>Name <input id=name name=name></label>"
        "<label>Code <input id=code name=code type=password></label><button id=send>Send order</button></form>"
    ),
    "/form-swapped": _page(
        "<form id=f action=/order method=post><input id=name type=checkbox><label for=name>Gift wrap</label>"
        "<label>Name <input id=who name=name></label><button id=send>Send order</button></form>"
    ),
    "/steps": _wizard(
        "<button id=go onclick=\"document.getElementById('two').hidden=false\">Next</button>"
        "<button id=two hidden onclick=\"go('finish')\">Finish</button>"
    ),
    "/built": _wizard(
        "<button id=go onclick=\"this.insertAdjacentHTML('afterend', '<button id=finish onclick=go(1)>Finish</button>')"
        '">Next</button>'
    ),
    "/steps-broken": _wizard("<button id=go onclick=\"pressed.push('first')\">Next</button>"),
}

# What a redesign may make of the control that was learned as <button id=go>Next</button>.
OTHERS = (
    "<button id=go onclick=\"go('x')\">Delete account</button>",
    "<button id=go onclick=\"go('x')\">Buy now</button>",
    "<button id=go onclick=\"go('x')\">Previous</button>",
    "<button id=go onclick=\"go('x')\">Nextcloud login</button>",
    "<button id=go onclick=\"go('x')\" aria-label='Delete account'>Next</button>",
    "<button id=go onclick=\"go('x')\"></button>",
    "<button id=go onclick=\"go('x')\"><img alt='Remove' width=20 height=20></button>",
    "<a id=go href='#' onclick=\"go('x')\">Sign out</a>",
    "<label id=go onclick=\"go('x')\">I agree <input type=checkbox></label>",
    "<input id=go type=button value='Cancel order' onclick=\"go('x')\">",
    "<div id=go role=button tabindex=0 onclick=\"go('x')\">Unsubscribe</div>",
)
# And what leaves it what it was.
SAME = (
    "<button id=go class='css-1x2y3z primary' onclick=\"go('next')\">Next</button>",
    "<div><div><span><button id=go onclick=\"go('next')\">Next</button></span></div></div>",
    "<p>New text</p><button id=help>Help</button><button id=go onclick=\"go('next')\">Next</button>",
    "<button id=go title='Go to step 2' onclick=\"go('next')\"><span>Next</span></button>",
)

CONSENT = Lesson(
    type="consent_cmp",
    policy="reject_preferred",
    signals=(Signal("dom", "#cmp"), Signal("text", "We use cookies")),
    actions=(Action("click", "#no", ("[data-testid=refuse]",), polarity="reject"),),
    verify=(VerifyStep("absent", "#cmp"), VerifyStep("topmost_clickability_restored")),
)
WIZARD = Lesson(
    type="custom",
    policy="custom",
    signals=(Signal("dom", "#wizard"),),
    actions=(Action("click", "#go"),),
    verify=(VerifyStep("present", "#done"),),
)
FORM = Lesson(
    type="custom",
    policy="custom",
    signals=(Signal("dom", "#f"),),
    actions=(Action("type", "#name", value_source="agent_supplied", value_name="name"), Action("click", "#send")),
    verify=(VerifyStep("fact", assertion=Assertion("page.urlMatches@%2Fdone", "eq", expected=True)),),
)


def refused(body: dict[str, Any], reason: str) -> dict[str, Any]:
    """A refusal is a normal answer that says no."""
    assert (body["ok"], body["reasonCode"], body["actionDispatched"]) == (False, reason, False), body
    assert "errorCode" not in body
    return body


async def learned(place: Place, lesson: Lesson, path: str, **more: Any) -> None:
    await place.visit(path)
    await place.learn(lesson, **more)


async def untouched(place: Place) -> None:
    assert await place.asked("window.pressed ?? []") == []


# -- applied


async def test_a_playbook_runs_and_its_result_is_proven(place: Place) -> None:
    await learned(place, CONSENT, "/consent")
    told = await place.apply()
    assert (told["ok"], told["status"], told["verifyState"]) == (True, "ok", "verified"), told
    assert (told["actionDispatched"], told["dispatchProof"]) == (True, "event")
    assert (told["phenomenonId"], told["phenomenonType"], told["policy"]) == (
        "entry",
        "consent_cmp",
        "reject_preferred",
    )
    assert (told["stepsExecuted"], told["failedStepIndex"]) == (1, None)
    (step,) = told["stepResults"]
    assert (step["index"], step["action"], step["selector"], step["usedFallback"], step["ok"]) == (
        *(0, "click", "#no"),
        *(False, True),
    )
    assert [(one["type"], one["passed"]) for one in told["verifyResults"]] == [
        ("absent", True),
        ("topmost_clickability_restored", True),
    ]
    assert told["driftGate"] == {"debt": 0.0, "decision": "pass"}
    assert told["telemetryReported"] is True
    assert await place.asked("document.getElementById('cmp')") is None


async def test_a_proven_playbook_is_evidence_for_its_entry(place: Place) -> None:
    await learned(place, CONSENT, "/consent")
    await place.apply()
    rows = await place.observed("action_success", "blocker_dismissed", "tob_verified", "selector_drift")
    assert sorted((row["kind"], row["outcome"]) for row in rows) == [("blocker_dismissed", 1), ("tob_verified", 1)]
    health = (await place.entry()).health
    assert (health.attempts, health.successes) == (1, 1)
    assert {row["target_stable_id"] for row in rows} == {"entry"}
    assert {row["selector_norm"] for row in rows} == {"#no"}


async def test_the_same_again_within_half_a_minute_is_no_new_evidence(place: Place) -> None:
    await learned(place, CONSENT, "/consent")
    assert (await place.apply())["telemetryReported"] is True
    await place.visit("/consent")
    again = await place.apply()
    assert (again["verifyState"], again["telemetryReported"]) == ("verified", False)


async def test_a_page_that_a_script_of_the_agent_has_changed_is_no_evidence(place: Place) -> None:
    await learned(place, CONSENT, "/consent-dead", drift_debt=0.1)
    await place.server.call("eval", targetId=place.tab, expression="document.title = 'x'")
    assert (await place.apply())["telemetryReported"] is False
    assert await place.observed("action_failure", "blocker_dismissed") == []
    assert (await place.entry()).drift_debt == 0.1


async def test_a_result_that_takes_its_time_is_waited_for(place: Place) -> None:
    await learned(place, CONSENT, "/consent-slow")
    assert (await place.apply())["verifyState"] == "verified"


async def test_a_layer_that_comes_back_was_never_gone(place: Place) -> None:
    await learned(place, CONSENT, "/consent-back")
    assert (await place.apply())["verifyState"] == "failed"


async def test_a_playbook_that_does_nothing_is_a_failure_of_its_entry(place: Place) -> None:
    await learned(place, CONSENT, "/consent-dead")
    told = failed(await place.apply(), -32003, "guarded_commit.postcondition_failed")
    assert (told["verifyState"], told["actionDispatched"]) == ("failed", True)
    assert told["retryAdvice"] == "check_postcondition_first"
    assert {one["passed"] for one in told["verifyResults"]} == {False}
    rows = await place.observed("action_success", "action_failure", "blocker_dismissed")
    assert sorted((row["kind"], row["outcome"]) for row in rows) == [("blocker_dismissed", -1)]


async def test_a_result_that_stood_before_proves_nothing(place: Place) -> None:
    lesson = replace(WIZARD, verify=(VerifyStep("present", "#wizard"),))
    await learned(place, lesson, "/wizard")
    told = await place.apply()
    assert told["actionDispatched"] is True
    assert told["verifyState"] != "verified"
    assert [(row["kind"], row["outcome"]) for row in await place.observed("action_success")] == [("action_success", 0)]


async def test_a_fallback_that_worked_is_told_and_counts_as_light_drift(place: Place) -> None:
    await learned(place, CONSENT, "/consent")
    await place.visit("/consent-moved")
    told = await place.apply()
    assert (told["verifyState"], told["stepResults"][0]["usedFallback"]) == ("verified", True)
    assert told["stepResults"][0]["selector"] == "[data-testid=refuse]"
    assert [(row["outcome"], row["severity"]) for row in await place.observed("selector_drift")] == [(-1, 1)]


async def test_several_steps_run_in_order_and_wait_for_what_the_first_brings(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("click", "#go"), Action("wait", "#two"), Action("click", "#two")))
    await learned(place, lesson, "/steps")
    told = await place.apply()
    assert (told["verifyState"], told["stepsExecuted"]) == ("verified", 3)
    assert [one["action"] for one in told["stepResults"]] == ["click", "wait", "click"]


async def test_values_are_typed_and_stay_out_of_the_ledger(place: Place, server: Server) -> None:
    lesson = replace(FORM, actions=FORM.actions[:1], verify=(VerifyStep("fact", assertion=_value("#name", "Ada L.")),))
    await learned(place, lesson, "/form")
    told = await place.apply(values={"name": "Ada L."})
    assert told["verifyState"] == "verified", told
    page = await server.nova._db.read(events, EventFilter(limit=5000))
    records = [one.record for one in page.calls if one.record and one.record.tool_name == "nova.phenomenon_apply"]
    assert any("values" in str(record.arguments) for record in records)
    assert [r.arguments for r in records if "Ada L." in str(r.arguments)] == []


def _value(css: str, value: str) -> Assertion:
    return Assertion(f"dom.{css}@value", "eq", expected=value)


async def test_a_secret_is_typed_by_name_and_shown_to_nobody(place: Place) -> None:
    action = Action("type", "#code", value_source="secret", value_name="shop")
    await learned(place, replace(FORM, actions=(action,), verify=()), "/form")
    told = await place.apply()
    assert told["stepsExecuted"] == 1, told
    assert await place.asked("document.getElementById('code').value") == SECRET
    assert SECRET not in str(told)


async def test_max_steps_ends_the_playbook_early_without_blame(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("click", "#go"), Action("click", "#two")))
    await learned(place, lesson, "/steps")
    told = await place.apply(maxSteps=1)
    assert (told["ok"], told["stepsExecuted"], told["status"]) == (False, 1, "partial")
    assert await place.observed("action_failure") == []


# -- refusals


async def test_what_is_not_there_is_no_failure(place: Place) -> None:
    await learned(place, CONSENT, "/consent")
    await place.visit("/plain")
    told = refused(await place.apply(), "pks.not_present")
    assert (told["status"], told["telemetryReported"]) == ("partial", False)
    assert "nova.perceive" in told["hint"]
    assert await place.observed("action_failure", "selector_drift", "blocker_dismissed", "action_success") == []
    assert (await place.entry()).drift_debt == 0.0


async def test_another_route_is_another_situation(place: Place) -> None:
    await learned(place, replace(WIZARD, context=Context(routes=("checkout",))), "/wizard")
    told = refused(await place.apply(), "pks.not_present")
    assert "nova.revalidate" in told["hint"]
    await untouched(place)


@pytest.mark.parametrize("trial", [False, True])
async def test_a_candidate_is_not_applied(place: Place, trial: bool) -> None:
    await learned(place, WIZARD, "/wizard", level=0)
    refused(await place.apply(trial=trial), "pks.not_active")
    await untouched(place)


async def test_a_shadow_is_applied_only_as_a_trial_and_counts(place: Place) -> None:
    await learned(place, WIZARD, "/wizard", level=1)
    refused(await place.apply(), "pks.not_active")
    await untouched(place)
    told = await place.apply(trial=True)
    assert (told["verifyState"], told["trial"]) == ("verified", True)
    assert [row["outcome"] for row in await place.observed("action_success")] == [1]


async def test_a_deprecated_entry_is_not_applied(place: Place) -> None:
    await learned(place, WIZARD, "/wizard", level=1, deprecated_reason="gone")
    refused(await place.apply(trial=True), "pks.not_active")


async def test_a_trial_takes_the_revision_in_review_and_other_calls_the_active_one(place: Place) -> None:
    await learned(place, WIZARD, "/wizard-delete")
    await place.visit("/wizard")
    await place.learn(WIZARD, level=1, slot="pending", revision=2)
    failed(await place.apply(), -32003, "pks.element_changed")
    assert (await place.apply(trial=True))["verifyState"] == "verified"


async def test_a_quarantined_entry_is_not_applied(place: Place, server: Server) -> None:
    health = Health(attempts=1, failures=1, severe_misfires=1, quarantined_at_ms=server.clock.now_ms())
    await learned(place, WIZARD, "/wizard", health=health)
    refused(await place.apply(), "pks.quarantined")
    await untouched(place)


async def test_consent_is_never_given_by_a_playbook_that_says_so(place: Place) -> None:
    press = Action("click", "#no", polarity="accept")
    await learned(place, replace(CONSENT, actions=(press,)), "/consent-swapped")
    refused(await place.apply(), "pks.accept_refused")


async def test_consent_is_never_given_by_a_control_that_says_so(place: Place) -> None:
    await learned(place, CONSENT, "/consent-swapped")
    told = refused(await place.apply(), "pks.accept_refused")
    assert told["failedStepIndex"] == 0
    assert await place.asked("document.getElementById('cmp') !== null")


async def test_calling_it_something_else_does_not_make_consent_less_of_one(place: Place) -> None:
    press = replace(CONSENT.actions[0], polarity=None)
    await learned(place, replace(CONSENT, type="modal", actions=(press,)), "/consent-swapped")
    refused(await place.apply(), "pks.accept_refused")
    assert await place.asked("document.getElementById('cmp') !== null")


@pytest.mark.parametrize("kind", ["consent_cmp", "login_wall"])
async def test_consent_and_sign_in_are_never_tried_out(place: Place, kind: Any) -> None:
    await learned(place, replace(CONSENT, type=kind), "/consent", level=1)
    refused(await place.apply(trial=True), "pks.trial_not_allowed")
    assert await place.asked("document.getElementById('cmp') !== null")


@pytest.mark.parametrize("source", ["agent_supplied", "user_prompt"])
async def test_a_value_that_is_missing_is_asked_for(place: Place, source: Any) -> None:
    action = replace(FORM.actions[0], value_source=source)
    await learned(place, replace(FORM, actions=(action,)), "/form")
    told = refused(await place.apply(values={"other": "x"}), "pks.value_required")
    assert '"name"' in told["message"]


async def test_a_field_that_has_become_something_else_is_told_as_that_and_costs_no_level(
    place: Place,
) -> None:
    await learned(place, replace(FORM, actions=FORM.actions[:1], verify=()), "/form")
    await place.go("/form-swapped")
    told = failed(await place.apply(values={"name": "Ada"}), -32003, "pks.element_changed")
    assert told["actionDispatched"] is False
    assert [row["severity"] for row in await place.observed("selector_drift")] == [1]
    assert (await place.entry()).level == 2


@pytest.mark.parametrize("policy", ["ignore", "warn", "dismiss"])
async def test_an_entry_without_anything_to_do_says_so(place: Place, policy: Any) -> None:
    actions = () if policy == "dismiss" else WIZARD.actions
    await learned(place, replace(WIZARD, policy=policy, actions=actions), "/wizard")
    refused(await place.apply(), "pks.empty_playbook")
    await untouched(place)


# -- errors


async def test_a_debt_of_drift_holds_the_playbook_back_and_shrinks_when_the_page_is_as_learned(place: Place) -> None:
    await learned(place, WIZARD, "/wizard", drift_debt=0.6)
    told = failed(await place.apply(), -32003, "pks.drift_blocked")
    assert told["driftGate"] == {"debt": 0.42, "decision": "refuse"}
    await untouched(place)
    assert (await place.entry()).drift_debt == 0.42
    assert (await place.apply())["driftGate"] == {"debt": 0.294, "decision": "pass"}


async def test_signs_that_are_gone_raise_the_debt(place: Place) -> None:
    lesson = replace(WIZARD, signals=(Signal("dom", "#wizard"), Signal("dom", "#go")), min_confidence=0.4)
    await learned(place, lesson, "/wizard")
    await place.visit("/wizard-gone")
    before = (await place.entry()).drift_debt
    failed(await place.apply(), -32003, "pks.element_changed")
    assert (await place.entry()).drift_debt == after_sighting(before, 0.5)


async def test_a_selector_that_now_means_another_control_is_never_pressed(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-delete")
    told = failed(await place.apply(), -32003, "pks.element_changed")
    assert (told["actionDispatched"], told["failedStepIndex"], told["stepsExecuted"]) == (False, 0, 0)
    await untouched(place)
    drifts = await place.observed("selector_drift")
    assert [(row["outcome"], row["severity"], row["target_stable_id"]) for row in drifts] == [(-1, 1, "entry")]


async def test_a_control_that_turns_into_another_under_the_pointer_is_never_pressed(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-bait")
    told = failed(await place.apply(), -32003, "pks.element_changed")
    assert told["actionDispatched"] is False
    await untouched(place)


async def test_of_many_redesigns_none_leads_to_a_wrong_press(place: Place, pages: Shop) -> None:
    await learned(place, WIZARD, "/wizard")
    for button in OTHERS:
        pages.pages["/redesigned"] = _wizard(button)
        await place.visit("/redesigned")
        told = await place.apply(trial=True)
        assert (told["reasonCode"], told["actionDispatched"]) == ("pks.element_changed", False), button
        await untouched(place)


@pytest.mark.parametrize("button", SAME)
async def test_a_page_that_changed_around_the_control_is_no_obstacle(place: Place, pages: Shop, button: str) -> None:
    await learned(place, WIZARD, "/wizard")
    pages.pages["/redesigned"] = _wizard(button)
    await place.visit("/redesigned")
    assert (await place.apply())["verifyState"] == "verified"


@pytest.mark.parametrize("path", ["/wizard-gone", "/wizard-twice"])
async def test_a_selector_that_names_no_single_element_is_light_drift_without_a_press(place: Place, path: str) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit(path)
    told = failed(await place.apply(), -32003, "pks.element_changed")
    assert told["actionDispatched"] is False
    await untouched(place)
    assert [row["severity"] for row in await place.observed("selector_drift")] == [1]
    assert await place.observed("action_failure", "action_success") == []


async def test_an_element_nobody_has_described_is_not_pressed(place: Place) -> None:
    await place.visit("/plain")
    await place.learn(WIZARD)
    await place.visit("/wizard")
    failed(await place.apply(), -32003, "pks.element_changed")
    await untouched(place)


async def test_a_trial_may_meet_an_element_for_the_first_time_and_then_knows_it(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("click", "#go"), Action("click", "#finish")))
    await learned(place, lesson, "/built", level=1, unconfirmed=("#finish",))
    assert (await place.entry()).content.playbook.actions[1].element is None  # type: ignore[union-attr]
    told = await place.apply(trial=True)
    assert told["verifyState"] == "verified", told
    entry = await place.entry()
    assert entry.unconfirmed == ()
    learned_print = entry.content.playbook.actions[1].element  # type: ignore[union-attr]
    assert learned_print is not None
    assert learned_print.text == "Finish"


async def test_what_nobody_has_seen_is_still_no_way_to_consent_or_commit(place: Place) -> None:
    await place.visit("/plain")
    form = replace(FORM, actions=(Action("click", "#send"),))
    await place.learn(form, name="form", level=1, unconfirmed=("#send",))
    banner = replace(CONSENT, type="modal", actions=(Action("click", "#no"),))
    await place.learn(banner, name="banner", level=1, unconfirmed=("#no",))
    await place.visit("/form")
    failed(await place.apply("form", trial=True), -32001, "guarded_commit.missing_contract")
    await place.visit("/consent-swapped")
    refused(await place.apply("banner", trial=True), "pks.accept_refused")


async def test_a_playbook_that_breaks_off_after_it_began_has_failed(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("click", "#go"), Action("click", "#two")))
    await learned(place, lesson, "/steps")
    await place.visit("/steps-broken")
    told = failed(await place.apply(), -32003, "pks.element_changed")
    assert (told["actionDispatched"], told["stepsExecuted"], told["failedStepIndex"]) == (True, 1, 1)
    assert [row["outcome"] for row in await place.observed("action_failure")] == [-1]
    assert await place.observed("selector_drift") == []


async def test_what_lies_in_the_way_is_told_and_not_held_against_the_entry(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-covered")
    told = failed(await place.apply(), -32003, "action.obstructed")
    assert (told["actionDispatched"], told["failedStepIndex"]) == (False, 0)
    assert await place.observed("action_failure", "selector_drift", "action_success") == []


async def test_a_playbook_that_runs_out_of_time_says_so(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("wait", wait_ms=60_000), Action("click", "#go")))
    await learned(place, lesson, "/wizard")
    told = failed(await place.apply(timeoutMs=1000), -32003, "pks.playbook_timeout")
    assert (told["actionDispatched"], told["stepsExecuted"]) == (False, 1)
    await untouched(place)


@pytest.mark.parametrize("everywhere", [True, False])
async def test_the_operators_switch_stops_it(place: Place, server: Server, everywhere: bool) -> None:
    await learned(place, WIZARD, "/wizard")
    name = SwitchName("apply", None if everywhere else place.scope.partition(":")[0])
    await server.nova._db.write(set_switch, Switch(name, server.clock.now_ms(), "me", ""))
    told = failed(await place.apply(), -32035, "pks.kill_switch")
    assert told["gateId"] == "safety.kill_switch"
    await untouched(place)
    await server.nova._db.write(clear_switch, name)
    assert (await place.apply())["ok"]


async def test_unknown_sites_and_entries_are_not_found(place: Place) -> None:
    failed(await place.apply(), -32004, "pks.scope_not_found")
    await learned(place, WIZARD, "/wizard")
    failed(await place.apply("other"), -32004, "pks.phenomenon_not_found")


async def test_the_scope_is_the_tabs_own(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    failed(await place.apply(scope="shop.example.com"), -32602, "pks.scope_mismatch")
    failed(await place.apply(scope="*"), -32602, "invalid_params")
    assert (await place.apply(scope=f"http://{place.scope}/anything"))["ok"]


@pytest.mark.parametrize(
    "wrong",
    [{"maxSteps": 0}, {"maxSteps": 21}, {"timeoutMs": 999}, {"timeoutMs": 60_001}, {"values": {"a": 1}}, {"x": 1}],
)
async def test_arguments_out_of_bounds_are_refused(place: Place, wrong: dict[str, Any]) -> None:
    failed(await place.apply(**wrong), -32602, "invalid_params")


async def test_what_an_agent_stores_can_be_tried_at_once_and_is_left_alone_once_the_page_is_another(
    place: Place,
) -> None:
    await place.visit("/wizard")
    phenomenon = {
        "id": "next-step",
        "type": "custom",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#wizard"}]},
        "playbook": {
            "policy": "custom",
            "actions": [{"action": "click", "selector": "#go"}],
            "verify": [{"type": "present", "selector": "#done"}],
        },
    }
    stored = await place.server.call("pks_upsert", scope=place.scope, phenomenon=phenomenon)
    assert (stored["ok"], stored["level"], stored["unconfirmedSelectors"]) == (True, 1, []), stored
    assert (await place.apply("next-step", trial=True))["verifyState"] == "verified"
    health = (await place.entry("next-step")).health
    assert (health.attempts, health.successes) == (1, 1)
    await place.visit("/wizard-delete")
    failed(await place.apply("next-step", trial=True), -32003, "pks.element_changed")
    await untouched(place)


# -- commits


async def test_a_step_that_commits_needs_a_contract(place: Place, pages: Shop) -> None:
    await learned(place, FORM, "/form")
    before = pages.posted["/order"]
    told = failed(await place.apply(values={"name": "Ada"}), -32001, "guarded_commit.missing_contract")
    assert (told["failedStepIndex"], told["stepsExecuted"]) == (1, 1)
    assert pages.posted["/order"] == before


async def test_with_a_contract_the_commit_is_sent_once_and_proven(place: Place, pages: Shop) -> None:
    await learned(place, FORM, "/form")
    before = pages.posted["/order"]
    told = await place.apply(values={"name": "Ada"}, expect=["url:/done"])
    assert (told["ok"], told["verifyState"]) == (True, "verified"), told
    assert told["guardedCommit"]["verificationStatus"] == "verified_success"
    assert pages.posted["/order"] == before + 1


async def test_an_action_proven_wrong_is_a_severe_misfire(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    told = await place.apply(expect=["!visible:#done"])
    assert (told["ok"], told["verifyState"]) == (False, "failed"), told
    (row,) = await place.observed("action_failure")
    assert '"contract":"verified_fail"' in row["payload"]


async def test_others_have_to_wait_while_a_playbook_is_under_way(place: Place, server: Server) -> None:
    """The whole playbook holds its target, from the first step to the proof."""
    lesson = replace(WIZARD, actions=(Action("wait", wait_ms=1500), Action("click", "#go")))
    await learned(place, lesson, "/wizard")
    answers: list[dict[str, Any]] = []

    async def again() -> None:
        answers.append(await place.apply())

    async with create_task_group() as group:
        group.start_soon(again)
        group.start_soon(again)
    assert sorted(one["ok"] for one in answers) == [False, True]
    assert next(one for one in answers if not one["ok"])["reasonCode"] == "guarded_commit.coordinator_busy"
    assert await place.asked("window.pressed") == ["next"]


async def test_every_observation_names_only_its_own_site(server: Server) -> None:
    rows = await server.rows(observation, observation.c.target_stable_id == "entry")
    assert rows
    assert all(row["context_host"].startswith("k") for row in rows)
