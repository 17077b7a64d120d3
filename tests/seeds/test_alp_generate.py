"""What recurs and what is made of it, through a real client: guards, fields and states of suggesting and generating."""

import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from loop_kit import Server
from place_kit import HOUR, MINUTE, Place, failed, phenomenon
from real_kit import text_of
from sqlalchemy import select

from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import DayCount, DomainHint, Health, Phenomenon, Signal
from nova_mcp.memory.knowledge.store import Shelved

pytestmark = pytest.mark.browser

BAR = "position:fixed;left:0;right:0;bottom:0;padding:16px;background:#eee"
COVER = "position:fixed;inset:0;background:#fff"
UNDER = "<main><h1>Desk</h1><p>Text</p></main>"
SETTINGS = {"learning": {"passes": True}}
PAGES = {
    "/plain": f"<!doctype html><html lang=en><title>Plain</title>{UNDER}",
    "/banner": f"""<!doctype html><html lang=en><title>Banner</title>{UNDER}
<div id=cookie-banner style="{BAR}"><p>We use cookies to improve your visit.</p>
<button id=no type=button onclick="this.parentNode.remove()">Reject all</button>
<button id=yes type=button>Accept all</button></div>""",
    "/onetrust": f"""<!doctype html><html lang=en><title>Vendor</title>{UNDER}
<div id=onetrust-banner-sdk style="{COVER}"><p>We use cookies.</p>
<button id=onetrust-reject-all-handler onclick="this.parentNode.remove()">Reject all</button></div>""",
    "/desk": """<!doctype html><html lang=en><title>Desk</title><main><h1>Desk</h1>
<a id=cart href="/cart">Cart</a> <a id=help href="/help">Help</a></main>""",
    "/other": """<!doctype html><html lang=en><title>Other</title><main><h1>Other</h1><h2>More</h2>
<a id=cart href="/cart">Cart</a> <button id=more type=button>More</button></main>""",
    "/cart": "<!doctype html><html lang=en><title>Cart</title><main><h1>Cart</h1><a href=/desk>Back</a></main>",
    "/found": "<!doctype html><html lang=en><title>Found</title><main><h1>Found</h1><ul class=found>"
    + "".join(f"<li class=hit><h3>Thing {n}</h3><p>About it</p><a href=/thing/{n}>Open</a></li>" for n in range(6))
    + "</ul></main>",
}
OPPORTUNITY = {
    *("contextHost", "candidateKey", "dominantKind", "supportCount", "successCount", "failureCount"),
    *("distinctSessions", "score", "suggestion", "scoreBreakdown"),
}
PROPOSAL = {
    *("kind", "contextHost", "candidateKey", "confidence", "reason", "phenomenonType", "targetStableId", "hintKind"),
}


async def text_said(place: Place, tool: str, **arguments: Any) -> str:
    return text_of(await place.server.client.call_tool(f"nova.{tool}", arguments))


async def dismissed(place: Place, times: int = 2, path: str = "/banner", apart: int = MINUTE) -> None:
    for _ in range(times):
        await place.go(path)
        told = await place.call("dismiss_blockers")
        assert told["dismissed"] == 1, told
        place.later(apart)


async def follow(place: Place, path: str, selector: str, ahead: int = HOUR) -> dict[str, Any]:
    """Use a link from a page that was looked at before."""
    await place.go(path)
    await place.perceive()
    told = await place.click(selector)
    assert told["verifyState"] == "verified", told
    place.later(ahead)
    return told


async def entries(place: Place) -> list[Shelved]:
    return await place.server.nova._db.read(store.entries, place.scope)


async def suggest(place: Place, **arguments: Any) -> dict[str, Any]:
    return await place.server.call("learn_suggest", scope=place.scope, **arguments)


async def generate(place: Place, **arguments: Any) -> dict[str, Any]:
    return await place.server.call("learn_generate", scope=place.scope, **arguments)


# -- guards


@pytest.mark.parametrize("tool", ["learn_suggest", "learn_generate"])
@pytest.mark.parametrize(
    "wrong", [{"surprise": 1}, {"limit": 0}, {"limit": 21}, {"limit": "5"}, {"limit": None}, {"scope": 5}]
)
async def test_unknown_arguments_and_limits_out_of_bounds_are_refused(place: Place, tool: str, wrong: Any) -> None:
    failed(await place.server.call(tool, **{"scope": place.scope, **wrong}), -32602, "invalid_params")


@pytest.mark.parametrize("scope", ["", "*", "  ", "com", "*.example.com", "a b", "ftp://x.example"])
async def test_generating_needs_one_site(place: Place, scope: str) -> None:
    failed(await place.server.call("learn_generate", scope=scope), -32602, "invalid_params")


async def test_generating_without_a_scope_is_refused(server: Server) -> None:
    failed(await server.call("learn_generate"), -32602, "invalid_params")


@pytest.mark.parametrize("scope", ["com", "*.example.com", ""])
async def test_suggesting_takes_all_sites_or_one(server: Server, scope: str) -> None:
    failed(await server.call("learn_suggest", scope=scope), -32602, "invalid_params")


async def test_a_site_that_is_not_open_gets_no_candidates(place: Place) -> None:
    await dismissed(place)
    left = place.scope
    await place.server.call("navigate", targetId=place.tab, url="about:blank")
    body = await place.server.call("learn_generate", scope=left)
    failed(body, -32003, "pks.scope_not_open")
    assert body["fix"]["args"] == {"url": f"https://{left}/"} or body["fix"]["tool"]
    assert await entries(place) == []


# -- No opportunity


async def test_without_anything_repeated_there_is_nothing_to_suggest_or_generate(place: Place) -> None:
    await dismissed(place, times=1)
    assert await suggest(place) == {"ok": True, "scope": place.scope, "count": 0, "opportunities": []}
    body = await generate(place)
    assert (body["generated"], body["proposed"], body["proposals"], body["skipped"]) == (0, 0, [], [])
    assert "work on" in await text_said(place, "learn_suggest", scope=place.scope)
    assert "nothing to generate" in await text_said(place, "learn_generate", scope=place.scope)
    assert await entries(place) == []


async def test_looking_alone_is_no_opportunity(place: Place) -> None:
    for _ in range(3):
        await place.perceive()
        place.later(MINUTE)
    assert (await suggest(place))["count"] == 0


# -- Suggested


async def test_a_pattern_is_suggested_with_what_it_rests_on_and_nothing_is_written(place: Place) -> None:
    await dismissed(place, times=3)
    body = await suggest(place)
    (one,) = body["opportunities"]
    assert body["count"] == 1
    assert set(one) == OPPORTUNITY
    assert (one["contextHost"], one["dominantKind"]) == (place.scope, "blocker_dismissed")
    assert one["candidateKey"].startswith("lcj_ck_")
    assert [one[name] for name in ("supportCount", "successCount", "failureCount", "distinctSessions")] == [3, 3, 0, 1]
    assert one["scoreBreakdown"] == {
        "supportScore": 1.58, "sessionBonus": 0.0, "successRateFactor": 2.0, "driftSignal": 0.0, "recencyBonus": 1.0,
    }  # fmt: skip
    assert one["score"] == 4.58
    assert "." in one["suggestion"]
    assert await entries(place) == []
    told = await text_said(place, "learn_suggest", scope=place.scope)
    assert "4.58" in told
    assert "nova.learn_generate" in told


async def test_all_sites_are_ranked_together_and_the_limit_holds(place: Place) -> None:
    await dismissed(place, times=4)
    body = await place.server.call("learn_suggest")
    assert (body["scope"], body["count"]) == ("*", len(body["opportunities"]))
    assert body["count"] <= 5
    scores = [one["score"] for one in body["opportunities"]]
    assert scores == sorted(scores, reverse=True)
    assert place.scope in {one["contextHost"] for one in body["opportunities"]}
    assert (await place.server.call("learn_suggest", limit=1))["count"] == 1


async def test_entries_that_drift_are_suggested(place: Place) -> None:
    day = (place.server.clock.now_ms()) // (24 * HOUR)
    health = Health(attempts=6, successes=1, failures=5, recent=(DayCount(day, 0, 1, 5),))
    await place.put(phenomenon("failing", "#x", selector="#x", health=health))
    (one,) = (await suggest(place))["opportunities"]
    assert (one["candidateKey"], one["dominantKind"], one["supportCount"]) == ("failing", "active_failure_drift", 6)
    assert sum(one["scoreBreakdown"].values()) == pytest.approx(one["score"])


# -- L0 Candidate


async def test_a_dismissed_banner_becomes_a_candidate_that_guides_nobody(place: Place) -> None:
    await dismissed(place, times=3)
    await place.go("/banner")
    body = await generate(place)
    assert (body["generated"], body["proposed"], body["skipped"]) == (1, 1, [])
    (one,) = body["proposals"]
    assert set(one) == PROPOSAL
    assert (one["kind"], one["phenomenonType"], one["hintKind"]) == ("new_phenomenon", "consent_cmp", None)
    assert (one["contextHost"], one["confidence"]) == (place.scope, 0.8)
    (entry,) = await entries(place)
    kept = entry.kept
    assert isinstance(kept, Phenomenon)
    assert (entry.stable_id, entry.candidate_key) == (one["targetStableId"], one["candidateKey"])
    assert entry.stable_id.startswith("lcj_")
    assert (kept.level, kept.unconfirmed, kept.content.fingerprint.signals) == (
        0,
        (),
        (Signal("dom", "#cookie-banner"),),
    )
    assert kept.content.playbook is not None
    (action,) = kept.content.playbook.actions
    assert (action.selector, action.polarity) == ("#no", "reject")
    assert action.element is not None
    assert (action.element.tag, action.element.text) == ("button", "Reject all")
    around = await place.server.nova._db.read(store.surroundings, entry.entry_id)
    assert around is not None
    assert action.element in around
    # Neither matched nor applied: only its own gates may change that.
    assert not (await place.call("pks_match"))["matched"]
    applied = await place.call("phenomenon_apply", phenomenonId=entry.stable_id)
    assert applied["reasonCode"] == "pks.not_active"
    explained = await place.server.call("explain", scope=place.scope, stableId=entry.stable_id)
    assert explained["phenomenon"]["level"] == 0
    (event,) = (await place.server.call("learn_feedback", scope=place.scope))["events"]
    assert (event["reasonKind"], event["fromLevel"], event["toLevel"]) == ("learn_generate", 0, 0)


async def test_a_banner_of_a_known_platform_is_covered_by_the_draft_that_meeting_it_left(place: Place) -> None:
    await dismissed(place, times=3, path="/onetrust")
    (entry,) = await entries(place)
    assert (entry.origin, entry.kept.level, entry.stable_id) == ("platform", 0, "cmp_onetrust")
    body = await generate(place)
    assert (body["generated"], [one["reasonCode"] for one in body["skipped"]]) == (0, ["already_covered"])
    assert [one.entry_id for one in await entries(place)] == [entry.entry_id]


async def test_a_link_that_leads_to_one_place_becomes_a_candidate(place: Place) -> None:
    for _ in range(2):
        await follow(place, "/desk", "#cart")
    body = await generate(place)
    assert [(one["phenomenonType"], one["kind"]) for one in body["proposals"]] == [("nav_link", "new_phenomenon")]


async def test_entries_of_a_list_become_a_hint_for_reading(place: Place) -> None:
    for number in range(3):
        await follow(place, "/found", f'a[href="/thing/{number}"]')
    body = await generate(place)
    (hint,) = (one for one in body["proposals"] if one["kind"] == "domain_hint")
    assert (hint["hintKind"], hint["phenomenonType"]) == ("result_item", None)
    kept = [one.kept for one in await entries(place) if isinstance(one.kept, DomainHint)]
    assert [(one.level, one.selectors) for one in kept] == [(0, ("li.hit",))]


async def test_what_an_entry_already_does_is_covered(place: Place) -> None:
    await place.put(phenomenon("cart", "#cart", selector="#cart", type="nav_link"))
    for _ in range(2):
        await follow(place, "/desk", "#cart")
    # The page that the link leads to has to be there before anything is asked of it.
    assert (await place.call("wait_for_selector", selector="html"))["ok"] is True
    body = await generate(place)
    assert body.get("generated") == 0, body
    assert [one["reasonCode"] for one in body["skipped"]] == ["already_covered"]


# -- what a call leaves


async def test_an_action_leaves_the_way_in_and_the_state_of_the_page(place: Place) -> None:
    await place.go("/other")
    await follow(place, "/desk", "#cart")
    host = observation.c.context_host == place.scope
    rows = await place.server.rows(observation, host, observation.c.kind == "action_success")
    told = json.loads(rows[-1]["payload"])
    assert (told["cameFrom"], told["ledTo"]) == (f"{place.scope}/other", f"{place.scope}/cart")
    assert len(told["pageState"]) > 8


async def test_a_control_proven_under_different_circumstances_becomes_a_candidate_by_itself(place: Place) -> None:
    told: dict[str, Any] = {}
    for path in ("/desk", "/other", "/desk"):
        assert "pksAutoLearn" not in told
        assert await entries(place) == []
        told = await follow(place, path, "#cart")
    (entry,) = await entries(place)
    assert (entry.origin, entry.kept.level) == ("auto", 0)
    block = told["pksAutoLearn"]
    assert (block["scope"], block["stableId"], block["level"]) == (place.scope, entry.stable_id, 0)
    assert (block["candidateKey"], set(block)) == (
        entry.candidate_key, {"scope", "candidateKey", "stableId", "level", "trigger"},
    )  # fmt: skip


# -- releases


async def claimed(place: Place) -> dict[str, Any]:
    return await place.call("tab_claim")


SITUATION = {
    "id": "cookies",
    "type": "consent_cmp",
    "fingerprint": {"signals": [{"kind": "dom", "match": "#cookie-banner"}]},
    "playbook": {
        "policy": "reject_preferred",
        "actions": [{"action": "click", "selector": "#no", "declaredPolarity": "reject"}],
    },
}


async def saved(place: Place, claim: dict[str, Any], situation: Any, **changes: Any) -> dict[str, Any]:
    payload = {"scope": place.scope, "data": {"phenomenon": situation}} | changes
    return await place.call(
        "tab_release",
        finalizationToken=claim["finalizationToken"],
        finalizeDecision="commit",
        finalizeOutboxJobType="pks.domain.save",
        finalizeOutboxPayload=payload,
    )


async def worked_off(place: Place, task_id: str) -> dict[str, Any]:
    """The job once a worker is through with it."""
    wanted = select(outbox_job).where(outbox_job.c.task_id == task_id)
    with anyio.fail_after(30):
        while True:
            row = await place.server.nova._db.read(lambda conn: conn.execute(wanted).one()._asdict())
            if row["state"] not in ("pending", "leased"):
                return dict(row)
            await anyio.lowlevel.checkpoint()


async def test_an_entry_goes_with_a_release_and_is_stored_in_review(place: Place) -> None:
    claim = await claimed(place)
    await place.go("/banner")
    body = await saved(place, claim, SITUATION)
    assert body["released"], body
    assert (await worked_off(place, claim["taskId"]))["state"] == "done"
    kept = await place.entry("cookies")
    assert (kept.level, kept.unconfirmed) == (1, ())


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"data": {"phenomenon": {**SITUATION, "surprise": 1}}}, -32602, "invalid_params"),
        ({"data": {}}, -32602, "invalid_params"),
        ({"data": {"scope": "other.example", "phenomenon": SITUATION}}, -32602, "invalid_params"),
        ({"scope": "elsewhere.example"}, -32003, "pks.scope_not_open"),
        ({"scope": "*"}, -32602, "invalid_params"),
    ],
)
async def test_an_entry_that_could_not_be_stored_leaves_the_claim_as_it_was(
    place: Place, changes: Any, code: int, reason: str
) -> None:
    claim = await claimed(place)
    await place.go("/banner")
    failed(await saved(place, claim, SITUATION, **changes), code, reason)
    again = await claimed(place)
    assert (again["renewed"], again["taskId"]) == (True, claim["taskId"])


@pytest.mark.parametrize(
    ("selector", "polarity", "reason"),
    [("button", "reject", "pks.selector_too_broad"), ("#yes", "reject", "pks.polarity_mismatch")],
)
async def test_a_release_is_checked_against_the_page_like_any_write(
    place: Place, selector: str, polarity: str, reason: str
) -> None:
    claim = await claimed(place)
    await place.go("/banner")
    action = {"action": "click", "selector": selector, "declaredPolarity": polarity}
    wrong = {**SITUATION, "playbook": {"policy": "reject_preferred", "actions": [action]}}
    failed(await saved(place, claim, wrong), -32602, reason)
    assert (await claimed(place))["renewed"]


async def test_a_promotable_candidate_of_a_release_becomes_a_draft(place: Place) -> None:
    claim = await claimed(place)
    for _ in range(2):
        await follow(place, "/desk", "#cart", ahead=MINUTE)
    noted = await place.call(
        "memory_add_candidate",
        component="cart",
        claim="The cart is behind this link.",
        status="verified",
        confidence=1.0,
    )
    assert noted["ok"], noted
    await follow(place, "/desk", "#cart", ahead=MINUTE)
    body = await place.call("tab_release")
    assert (body["finalizeDecision"], body["outbox"]["jobType"]) == ("commit", "finalize.memory.promote"), body
    assert (await worked_off(place, claim["taskId"]))["state"] == "done"
    (entry,) = (one for one in await entries(place) if one.origin == "generated")
    assert isinstance(entry.kept, Phenomenon)
    assert (entry.kept.level, entry.kept.content.type) == (0, "nav_link")
