"""Questions that only an agent can answer, through a real client: what raises them, how often, and how they end."""

import json
from typing import Any

import pytest
from loop_kit import Server, Shop
from place_kit import DAY, Place, phenomenon

from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.memory.promotion.prompts import store
from nova_mcp.memory.promotion.prompts.rules import SemanticOpportunity
from nova_mcp.memory.promotion.tables import semantic_opportunity

pytestmark = pytest.mark.browser

BAR = "position:fixed;left:0;right:0;bottom:0;padding:16px;background:#eee"
COVER = "position:fixed;inset:0;background:rgba(0,0,0,.6);z-index:9"
CARD = "position:absolute;left:25%;top:20%;width:50%;padding:24px;background:#fff"
UNDER = "<main><h1>Baking</h1><button id=bake type=button>Bake</button></main>"
BANNER = (
    f"<div id=cookie-banner style='{BAR}'><p>We use cookies to improve this site.</p>"
    "<button id=yes type=button>Accept all</button>"
    "<button id=no type=button onclick='this.parentNode.remove()'>Reject all</button></div>"
)
WALL = (
    f"<div id=wall style='{COVER}'><div style='{CARD}'><h2>Sign in to continue</h2><form action=/in method=post>"
    "<input name=user autocomplete=username aria-label='User name'>"
    "<input type=password name=pass aria-label=Password><button>Sign in</button></form></div></div>"
)
SETTINGS = {"enable_eval": True, "learning": {"passes": True}}
PAGES = {
    "/plain": f"<!doctype html><html lang=en><title>Plain</title>{UNDER}",
    "/consent": f"<!doctype html><html lang=en><title>Consent</title>{UNDER}{BANNER}",
    "/wall": f"<!doctype html><html lang=en><title>Wall</title>{UNDER}{WALL}",
    "/worn": "<!doctype html><html lang=en><title>Worn</title><main><h1>Worn</h1><button id=css-1a2b3c4 type=button "
    "onclick='out.textContent += `x`'>Turn</button><p id=out></p></main>",
}
FIELDS = {
    *("gateId", "status", "opportunityId", "kind", "origin", "fingerprint", "confidence", "reason"),
    *("whyAutoUpsertIsInsufficient", "resolutionTools", "evidenceJson", "skeleton"),
}
PROMPT, SUMMARY = "pksSemanticLearning", "pksSemanticLearningBatchSummary"


async def asked(place: Place, path: str = "/consent") -> dict[str, Any]:
    """The question that a layer raises once an action meets it."""
    await place.go(path)
    prompt: dict[str, Any] = (await place.call("dismiss_blockers"))[PROMPT]
    return prompt


async def resolve(place: Place, opportunity_id: str, verdict: str, **more: Any) -> dict[str, Any]:
    return await place.server.call("learn_resolve_opportunity", opportunityId=opportunity_id, verdict=verdict, **more)


async def last_resolution(place: Place) -> CallRecord:
    found = await place.server.nova._db.read(events, EventFilter(tool="nova.learn_resolve_opportunity", limit=5000))
    record = found.calls[-1].record
    assert record is not None
    return record


async def stored(place: Place, opportunity_id: str) -> SemanticOpportunity | None:
    return await place.server.nova._db.write(store.find, "local", opportunity_id)


# -- what raises a question


async def test_a_request_for_consent_raises_a_question_with_a_ready_entry(place: Place) -> None:
    prompt = await asked(place)
    assert set(prompt) == FIELDS
    assert (prompt["gateId"], prompt["status"], prompt["kind"]) == ("pks.semantic_learning", "prompted", "consent_cmp")
    assert prompt["origin"] == place.origin
    assert prompt["opportunityId"] == f"sem:consent_cmp:{place.origin}:{prompt['fingerprint']}"
    assert 0 < prompt["confidence"] <= 1
    assert prompt["resolutionTools"] == ["nova.pks_upsert", "nova.learn_resolve_opportunity"]
    assert prompt["reason"]
    assert prompt["whyAutoUpsertIsInsufficient"]
    seen = json.loads(prompt["evidenceJson"])
    assert (seen["selector"], seen["layer"]) == ("#no", "#cookie-banner")
    entry = prompt["skeleton"]["phenomenon"]
    assert prompt["skeleton"]["scope"] == place.scope
    assert (entry["id"], entry["type"]) == ("", "consent_cmp")
    assert entry["fingerprint"]["signals"] == [{"kind": "dom", "match": "#cookie-banner"}]
    (action,) = entry["playbook"]["actions"]
    assert (action["selector"], action["declaredPolarity"]) == ("#no", "")


async def test_looking_raises_none_and_acting_beside_a_banner_does(place: Place) -> None:
    await place.go("/consent")
    assert PROMPT not in await place.perceive()
    assert (await place.click("#bake"))[PROMPT]["kind"] == "consent_cmp"


async def test_a_press_inside_the_banner_raises_the_same_question(place: Place) -> None:
    await place.go("/consent")
    await place.perceive()
    prompt = (await place.click("#no"))[PROMPT]
    await place.go("/consent")
    assert PROMPT not in await place.call("dismiss_blockers")
    rows = await place.server.rows(semantic_opportunity, semantic_opportunity.c.origin == place.scope)
    assert [row["opportunity_id"] for row in rows] == [prompt["opportunityId"]]


async def test_a_log_in_wall_that_keeps_an_action_from_the_page_raises_one_on_the_refusal(place: Place) -> None:
    await place.go("/wall")
    await place.perceive()
    told = await place.click("#bake", timeoutMs=200)
    assert (told["ok"], told["reasonCode"]) == (False, "action.obstructed")
    prompt = told[PROMPT]
    assert (prompt["kind"], prompt["skeleton"]["phenomenon"]["type"]) == ("login_wall", "login_wall")
    assert prompt["skeleton"]["phenomenon"]["playbook"]["actions"] == []


async def test_the_third_click_on_a_selector_that_will_not_last_raises_one(place: Place) -> None:
    await place.go("/worn")
    await place.perceive()
    told = [await place.click("#css-1a2b3c4") for _ in range(4)]
    assert [PROMPT in one for one in told] == [False, False, True, False]
    prompt = told[2][PROMPT]
    assert prompt["kind"] == "risky_repeat"
    assert json.loads(prompt["evidenceJson"]) == {
        "selector": "#css-1a2b3c4",
        "clicks": 3,
        "tool": "nova.click_selector",
    }
    assert prompt["skeleton"]["phenomenon"]["playbook"]["actions"][0]["selector"] == ""


async def test_none_where_an_entry_covers_it_already(place: Place) -> None:
    await place.put(phenomenon("banner", "#cookie-banner", level=1, type="consent_cmp"))
    await place.go("/consent")
    assert PROMPT not in await place.call("dismiss_blockers")
    assert await place.server.rows(semantic_opportunity, semantic_opportunity.c.origin == place.scope) == []


async def test_none_on_a_page_that_an_agents_script_has_changed(place: Place) -> None:
    await place.go("/consent")
    await place.call("eval", expression="document.title = 'mine'")
    assert PROMPT not in await place.call("dismiss_blockers")


async def test_a_sequence_hands_on_the_question_of_its_steps(place: Place) -> None:
    await place.go("/consent")
    told = await place.call("run_sequence", steps=[{"tool": "nova.dismiss_blockers", "args": {}}])
    assert told[PROMPT]["kind"] == "consent_cmp"


# -- how often


async def test_five_ignored_calls_bring_one_warning_and_then_silence(place: Place) -> None:
    prompt = await asked(place)
    said = [(await place.perceive()).get(PROMPT, {}).get("status") for _ in range(12)]
    assert said == [None, None, None, None, "warned", *[None] * 7]
    kept = await stored(place, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "warned"


async def test_an_answer_carries_one_question_at_most(place: Place, pages: Shop) -> None:
    pages.pages["/both"] = f"<!doctype html><html lang=en><title>Both</title>{UNDER}{BANNER}{WALL}"
    await place.go("/both")
    await place.perceive()
    kinds = [(await place.call("dismiss_blockers")).get(PROMPT, {}).get("kind") for _ in range(2)]
    assert kinds == ["consent_cmp", "login_wall"]


async def test_leaving_the_site_sums_up_what_is_open_once(place: Place, pages: Shop) -> None:
    prompt = await asked(place)
    other = await place.server.call("navigate", targetId=place.tab, url=pages.url("/plain"))
    assert other[SUMMARY] == {
        "status": "batch_summary",
        "origin": place.origin,
        "reason": "left_domain",
        "entries": [
            {
                "opportunityId": prompt["opportunityId"],
                "kind": "consent_cmp",
                "state": "prompted",
                "confidence": prompt["confidence"],
            }
        ],
    }
    assert PROMPT not in other
    await place.go("/plain")
    assert SUMMARY not in await place.server.call("navigate", targetId=place.tab, url=pages.url("/plain"))
    assert (await asked(place))["opportunityId"] == prompt["opportunityId"]


async def test_a_site_that_is_still_open_in_another_tab_is_not_left(place: Place, pages: Shop) -> None:
    await asked(place)
    opened = await place.server.call("tab_new", url=f"{place.origin}/plain")
    other = await place.server.call("navigate", targetId=place.tab, url=pages.url("/plain"))
    assert SUMMARY not in other
    await place.server.call("tab_close", targetId=opened["targetId"])


# -- how it ends


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        ("upsert", "resolved"),
        ("not_applicable", "dismissed"),
        ("unsafe", "dismissed"),
        ("already_known", "dismissed"),
    ],
)
async def test_each_verdict_closes_it_and_it_is_not_asked_again(place: Place, verdict: str, state: str) -> None:
    prompt = await asked(place)
    assert await place.server.nova._db.read(store.has_open, "local", place.scope)
    if verdict == "upsert":
        await place.put(phenomenon("banner", "#cookie-banner", level=1, type="consent_cmp"))
    told = await resolve(place, prompt["opportunityId"], verdict, reason="seen to it")
    assert told == {
        "ok": True,
        "opportunityId": prompt["opportunityId"],
        "verdict": verdict,
        "reason": "seen to it",
        "priorState": "prompted",
        "resolvedState": state,
        "resolvedAtUtc": told["resolvedAtUtc"],
        "fr1CandidatesSuperseded": 0,
    }
    assert told["resolvedAtUtc"].endswith("Z")
    assert not await place.server.nova._db.read(store.has_open, "local", place.scope)
    await place.go("/consent")
    assert PROMPT not in await place.call("dismiss_blockers")
    again = await resolve(place, prompt["opportunityId"], "defer")
    assert (again["ok"], again["reasonCode"], again["resolvedState"]) == (False, "already_resolved", state)


async def test_what_was_put_off_comes_back_after_a_day(place: Place) -> None:
    prompt = await asked(place)
    told = await resolve(place, prompt["opportunityId"], "defer")
    assert (told["resolvedState"], told["resolvedAtUtc"]) == ("deferred", None)
    place.later(DAY - 60_000)
    assert PROMPT not in await place.perceive()
    place.later(60_000)
    assert (await place.perceive())[PROMPT]["opportunityId"] == prompt["opportunityId"]


async def test_storing_it_oneself_retires_what_nova_had_raised_by_itself(place: Place) -> None:
    await place.put(phenomenon("auto1", "#bake", level=0), phenomenon("auto2", "#no", level=0), origin="auto")
    await place.put(phenomenon("theirs", "#yes", level=0), origin="generated")
    await place.put(phenomenon("grown", "#out", level=1), origin="auto")
    prompt = await asked(place)
    await place.put(phenomenon("banner", "#cookie-banner", level=1, type="consent_cmp"))
    told = await resolve(place, prompt["opportunityId"], "upsert")
    assert told["fr1CandidatesSuperseded"] == 2
    names = ("auto1", "auto2", "theirs", "grown")
    assert [(await place.entry(name)).deprecated for name in names] == [True, True, False, False]


async def test_storing_the_entry_that_was_asked_for_answers_the_question(place: Place) -> None:
    prompt = await asked(place)
    await place.go("/consent")
    wish = prompt["skeleton"]
    wish["phenomenon"]["id"] = "cookie-banner"
    wish["phenomenon"]["playbook"]["actions"][0]["declaredPolarity"] = "reject"
    told = await place.server.call("pks_upsert", **wish)
    assert (told["ok"], told["action"], told["unconfirmedSelectors"]) == (True, "created", []), told
    resolution = told["pksSemanticLearningResolution"]
    assert set(resolution) == {"status", "opportunityId", "verdict", "reason", "matchSource"}
    assert resolution["opportunityId"] == prompt["opportunityId"]
    assert (resolution["verdict"], resolution["matchSource"]) == ("upsert", "fingerprint")
    kept = await stored(place, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "resolved"
    assert PROMPT not in await place.call("dismiss_blockers")


async def test_another_entry_answers_nothing(place: Place) -> None:
    prompt = await asked(place)
    await place.go("/plain")
    entry = {"type": "custom", "fingerprint": {"signals": [{"kind": "dom", "match": "#bake"}]}}
    told = await place.server.call("pks_upsert", scope=place.scope, phenomenon=entry)
    assert told["ok"], told
    assert "pksSemanticLearningResolution" not in told
    kept = await stored(place, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "prompted"


async def test_what_another_was_asked_is_unknown(place: Place) -> None:
    prompt = await asked(place)
    mine = await stored(place, prompt["opportunityId"])
    assert mine is not None
    theirs = SemanticOpportunity("sem:login_wall:x:y", "login_wall", place.origin, "y", 0.8, 1)
    await place.server.nova._db.write(store.save, "somebody", theirs, 1)
    for unknown in ("sem:login_wall:x:y", "sem:consent_cmp:nowhere:0", "x"):
        told = await resolve(place, unknown, "unsafe")
        assert (told["ok"], told["errorCode"], told["reasonCode"]) == (False, -32004, "learn.opportunity_not_found")
    (row,) = await place.server.rows(semantic_opportunity, semantic_opportunity.c.principal == "somebody")
    assert row["state"] == "prompted"
    last = await last_resolution(place)
    assert (last.outcome.kind, last.outcome.reason_code) == ("failed", "learn.opportunity_not_found")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"opportunityId": "x"},
        {"verdict": "upsert"},
        {"opportunityId": "", "verdict": "upsert"},
        {"opportunityId": "x", "verdict": "later"},
        {"opportunityId": "x", "verdict": None},
        {"opportunityId": 5, "verdict": "upsert"},
        {"opportunityId": "x", "verdict": "upsert", "reason": "r" * 501},
        {"opportunityId": "x", "verdict": "upsert", "reason": 5},
    ],
)
async def test_an_invalid_resolution_is_refused(server: Server, arguments: dict[str, Any]) -> None:
    told = await server.call("learn_resolve_opportunity", **arguments)
    assert (told["ok"], told["errorCode"], told["reasonCode"]) == (False, -32602, "invalid_params")


async def test_unrelated_extras_are_tolerated_and_kept_nowhere(place: Place) -> None:
    prompt = await asked(place)
    extras = {"scope": "x.test", "note": "a passing remark nobody keeps", "nested": {"a": [1]}}
    told = await resolve(place, prompt["opportunityId"], "unsafe", reason="r" * 500, **extras)
    assert (told["ok"], told["resolvedState"]) == (True, "dismissed")
    last = await last_resolution(place)
    assert "passing remark" not in json.dumps(last.arguments)
