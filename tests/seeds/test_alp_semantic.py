"""Questions that only an agent can answer, through a real client: what raises them, how often, and how they end."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from learning_kit import DAY, Page, Server, fresh_page, phenomenon, serving
from loop_kit import Shop, shop

from nova_mcp.observation.model import CallRecord
from nova_mcp.observation.reader import EventFilter, events
from nova_mcp.promotion import opportunity_store
from nova_mcp.promotion.prompter import open_on
from nova_mcp.promotion.semantic import SemanticOpportunity
from nova_mcp.promotion.tables import semantic_opportunity

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


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def site() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update(PAGES)
        yield running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, site: Shop, anyio_backend: str) -> AsyncIterator[Server]:
    async with serving(tmp_path_factory.mktemp("semantic"), site, enable_eval=True) as running:
        yield running


@pytest.fixture(scope="module")
async def tab(server: Server) -> str:
    return str((await server.call("tab_new"))["targetId"])


@pytest.fixture
async def page(server: Server, tab: str) -> Page:
    return await fresh_page(server, tab)


async def asked(page: Page, path: str = "/consent") -> dict[str, Any]:
    """The question that a layer raises once an action meets it."""
    await page.go(path)
    prompt: dict[str, Any] = (await page.call("dismiss_blockers"))[PROMPT]
    return prompt


async def resolve(page: Page, opportunity_id: str, verdict: str, **more: Any) -> dict[str, Any]:
    return await page.server.call("learn_resolve_opportunity", opportunityId=opportunity_id, verdict=verdict, **more)


async def last_resolution(page: Page) -> CallRecord:
    found = await page.server.nova._db.read(events, EventFilter(tool="nova.learn_resolve_opportunity", limit=5000))
    record = found.calls[-1].record
    assert record is not None
    return record


async def stored(page: Page, opportunity_id: str) -> SemanticOpportunity | None:
    return await page.server.nova._db.write(opportunity_store.find, "local", opportunity_id)


# -- what raises a question


async def test_a_request_for_consent_raises_a_question_with_a_ready_entry(page: Page) -> None:
    prompt = await asked(page)
    assert set(prompt) == FIELDS
    assert (prompt["gateId"], prompt["status"], prompt["kind"]) == ("pks.semantic_learning", "prompted", "consent_cmp")
    assert prompt["origin"] == page.origin
    assert prompt["opportunityId"] == f"sem:consent_cmp:{page.origin}:{prompt['fingerprint']}"
    assert 0 < prompt["confidence"] <= 1
    assert prompt["resolutionTools"] == ["nova.pks_upsert", "nova.learn_resolve_opportunity"]
    assert prompt["reason"]
    assert prompt["whyAutoUpsertIsInsufficient"]
    seen = json.loads(prompt["evidenceJson"])
    assert (seen["selector"], seen["layer"]) == ("#no", "#cookie-banner")
    entry = prompt["skeleton"]["phenomenon"]
    assert prompt["skeleton"]["scope"] == page.scope
    assert (entry["id"], entry["type"]) == ("", "consent_cmp")
    assert entry["fingerprint"]["signals"] == [{"kind": "dom", "match": "#cookie-banner"}]
    (action,) = entry["playbook"]["actions"]
    assert (action["selector"], action["declaredPolarity"]) == ("#no", "")


async def test_looking_raises_none_and_acting_beside_a_banner_does(page: Page) -> None:
    await page.go("/consent")
    assert PROMPT not in await page.perceive()
    assert (await page.click("#bake"))[PROMPT]["kind"] == "consent_cmp"


async def test_a_press_inside_the_banner_raises_the_same_question(page: Page) -> None:
    await page.go("/consent")
    await page.perceive()
    prompt = (await page.click("#no"))[PROMPT]
    await page.go("/consent")
    assert PROMPT not in await page.call("dismiss_blockers")
    rows = await page.server.rows(semantic_opportunity, semantic_opportunity.c.origin == page.scope)
    assert [row["opportunity_id"] for row in rows] == [prompt["opportunityId"]]


async def test_a_log_in_wall_that_keeps_an_action_from_the_page_raises_one_on_the_refusal(page: Page) -> None:
    await page.go("/wall")
    await page.perceive()
    told = await page.click("#bake", timeoutMs=200)
    assert (told["ok"], told["reasonCode"]) == (False, "action.obstructed")
    prompt = told[PROMPT]
    assert (prompt["kind"], prompt["skeleton"]["phenomenon"]["type"]) == ("login_wall", "login_wall")
    assert prompt["skeleton"]["phenomenon"]["playbook"]["actions"] == []


async def test_the_third_click_on_a_selector_that_will_not_last_raises_one(page: Page) -> None:
    await page.go("/worn")
    await page.perceive()
    told = [await page.click("#css-1a2b3c4") for _ in range(4)]
    assert [PROMPT in one for one in told] == [False, False, True, False]
    prompt = told[2][PROMPT]
    assert prompt["kind"] == "risky_repeat"
    assert json.loads(prompt["evidenceJson"]) == {
        "selector": "#css-1a2b3c4",
        "clicks": 3,
        "tool": "nova.click_selector",
    }
    assert prompt["skeleton"]["phenomenon"]["playbook"]["actions"][0]["selector"] == ""


async def test_none_where_an_entry_covers_it_already(page: Page) -> None:
    await page.put(phenomenon("banner", "#cookie-banner", level=1, type="consent_cmp"))
    await page.go("/consent")
    assert PROMPT not in await page.call("dismiss_blockers")
    assert await page.server.rows(semantic_opportunity, semantic_opportunity.c.origin == page.scope) == []


async def test_none_on_a_page_that_an_agents_script_has_changed(page: Page) -> None:
    await page.go("/consent")
    await page.call("eval", expression="document.title = 'mine'")
    assert PROMPT not in await page.call("dismiss_blockers")


async def test_a_sequence_hands_on_the_question_of_its_steps(page: Page) -> None:
    await page.go("/consent")
    told = await page.call("run_sequence", steps=[{"tool": "nova.dismiss_blockers", "args": {}}])
    assert told[PROMPT]["kind"] == "consent_cmp"


# -- how often


async def test_five_ignored_calls_bring_one_warning_and_then_silence(page: Page) -> None:
    prompt = await asked(page)
    said = [(await page.perceive()).get(PROMPT, {}).get("status") for _ in range(12)]
    assert said == [None, None, None, None, "warned", *[None] * 7]
    kept = await stored(page, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "warned"


async def test_an_answer_carries_one_question_at_most(page: Page) -> None:
    page.server.site.pages["/both"] = f"<!doctype html><html lang=en><title>Both</title>{UNDER}{BANNER}{WALL}"
    await page.go("/both")
    await page.perceive()
    kinds = [(await page.call("dismiss_blockers")).get(PROMPT, {}).get("kind") for _ in range(2)]
    assert kinds == ["consent_cmp", "login_wall"]


async def test_leaving_the_site_sums_up_what_is_open_once(page: Page) -> None:
    prompt = await asked(page)
    other = await page.server.call("navigate", targetId=page.tab, url=page.server.site.url("/plain"))
    assert other[SUMMARY] == {
        "status": "batch_summary",
        "origin": page.origin,
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
    await page.go("/plain")
    assert SUMMARY not in await page.server.call("navigate", targetId=page.tab, url=page.server.site.url("/plain"))
    assert (await asked(page))["opportunityId"] == prompt["opportunityId"]


async def test_a_site_that_is_still_open_in_another_tab_is_not_left(page: Page) -> None:
    await asked(page)
    opened = await page.server.call("tab_new", url=f"{page.origin}/plain")
    other = await page.server.call("navigate", targetId=page.tab, url=page.server.site.url("/plain"))
    assert SUMMARY not in other
    await page.server.call("tab_close", targetId=opened["targetId"])


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
async def test_each_verdict_closes_it_and_it_is_not_asked_again(page: Page, verdict: str, state: str) -> None:
    prompt = await asked(page)
    assert await page.server.nova._db.read(open_on, "local", page.origin)
    told = await resolve(page, prompt["opportunityId"], verdict, reason="seen to it")
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
    assert not await page.server.nova._db.read(open_on, "local", page.origin)
    await page.go("/consent")
    assert PROMPT not in await page.call("dismiss_blockers")
    again = await resolve(page, prompt["opportunityId"], "defer")
    assert (again["ok"], again["reasonCode"], again["resolvedState"]) == (False, "already_resolved", state)


async def test_what_was_put_off_comes_back_after_a_day(page: Page) -> None:
    prompt = await asked(page)
    told = await resolve(page, prompt["opportunityId"], "defer")
    assert (told["resolvedState"], told["resolvedAtUtc"]) == ("deferred", None)
    page.later(DAY - 60_000)
    assert PROMPT not in await page.perceive()
    page.later(60_000)
    assert (await page.perceive())[PROMPT]["opportunityId"] == prompt["opportunityId"]


async def test_storing_it_oneself_retires_what_nova_had_raised_by_itself(page: Page) -> None:
    await page.put(phenomenon("auto1", "#bake", level=0), phenomenon("auto2", "#no", level=0), origin="auto")
    await page.put(phenomenon("theirs", "#yes", level=0), origin="generated")
    await page.put(phenomenon("grown", "#out", level=1), origin="auto")
    prompt = await asked(page)
    told = await resolve(page, prompt["opportunityId"], "upsert")
    assert told["fr1CandidatesSuperseded"] == 2
    names = ("auto1", "auto2", "theirs", "grown")
    assert [(await page.entry(name)).deprecated for name in names] == [True, True, False, False]


async def test_storing_the_entry_that_was_asked_for_answers_the_question(page: Page) -> None:
    prompt = await asked(page)
    await page.go("/consent")
    wish = prompt["skeleton"]
    wish["phenomenon"]["id"] = "cookie-banner"
    wish["phenomenon"]["playbook"]["actions"][0]["declaredPolarity"] = "reject"
    told = await page.server.call("pks_upsert", **wish)
    assert (told["ok"], told["action"], told["unconfirmedSelectors"]) == (True, "created", []), told
    resolution = told["pksSemanticLearningResolution"]
    assert set(resolution) == {"status", "opportunityId", "verdict", "reason", "matchSource"}
    assert resolution["opportunityId"] == prompt["opportunityId"]
    assert (resolution["verdict"], resolution["matchSource"]) == ("upsert", "fingerprint")
    kept = await stored(page, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "resolved"
    assert PROMPT not in await page.call("dismiss_blockers")


async def test_another_entry_answers_nothing(page: Page) -> None:
    prompt = await asked(page)
    await page.go("/plain")
    entry = {"type": "custom", "fingerprint": {"signals": [{"kind": "dom", "match": "#bake"}]}}
    told = await page.server.call("pks_upsert", scope=page.scope, phenomenon=entry)
    assert told["ok"], told
    assert "pksSemanticLearningResolution" not in told
    kept = await stored(page, prompt["opportunityId"])
    assert kept is not None
    assert kept.state == "prompted"


async def test_what_another_was_asked_is_unknown(page: Page) -> None:
    prompt = await asked(page)
    mine = await stored(page, prompt["opportunityId"])
    assert mine is not None
    theirs = SemanticOpportunity("sem:login_wall:x:y", "login_wall", page.origin, "y", 0.8, 1)
    await page.server.nova._db.write(opportunity_store.save, "somebody", theirs, 1)
    for unknown in ("sem:login_wall:x:y", "sem:consent_cmp:nowhere:0", "x"):
        told = await resolve(page, unknown, "unsafe")
        assert (told["ok"], told["errorCode"], told["reasonCode"]) == (False, -32004, "learn.opportunity_not_found")
    (row,) = await page.server.rows(semantic_opportunity, semantic_opportunity.c.principal == "somebody")
    assert row["state"] == "prompted"
    last = await last_resolution(page)
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


async def test_unrelated_extras_are_tolerated_and_kept_nowhere(page: Page) -> None:
    prompt = await asked(page)
    extras = {"scope": "x.test", "note": "a passing remark nobody keeps", "nested": {"a": [1]}}
    told = await resolve(page, prompt["opportunityId"], "unsafe", reason="r" * 500, **extras)
    assert (told["ok"], told["resolvedState"]) == (True, "dismissed")
    last = await last_resolution(page)
    assert "passing remark" not in json.dumps(last.arguments)
