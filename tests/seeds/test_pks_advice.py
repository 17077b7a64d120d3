"""What knowledge says beside a look, through a real client on a real page: bounded, once, and never more than it is."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from learning_kit import DAY, MINUTE, Page, Server, fresh_page, phenomenon, serving
from loop_kit import Shop, shop

from nova_mcp.knowledge import store
from nova_mcp.knowledge.health import HealthEvent, after_event
from nova_mcp.knowledge.model import DomainHint, Health, HintId
from nova_mcp.tokens import estimate_tokens

pytestmark = pytest.mark.browser

PAGES = {
    "/plain": "<!doctype html><title>Plain</title><main><h1>Plain</h1></main>",
    "/offer": "<!doctype html><title>Offer</title><main data-reactroot><h1>Offer</h1><div id=offer>Ten per cent</div>"
    "<p id=small>More</p><label>Name <input id=name></label><button id=go type=button>Go</button></main>",
    "/less": "<!doctype html><title>Less</title><main><h1>Less</h1><div id=offer>Ten per cent</div></main>",
    "/scripted": "<!doctype html><title>S</title><main><div id=offer>Ten</div></main>",
}


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
    async with serving(tmp_path_factory.mktemp("advice"), site, enable_eval=True) as running:
        yield running


@pytest.fixture(scope="module")
async def tab(server: Server) -> str:
    return str((await server.call("tab_new"))["targetId"])


@pytest.fixture
async def page(server: Server, tab: str) -> Page:
    return await fresh_page(server, tab)


BLOCKS = {"pks", "pksAdvice", "pksHealthWarnings", "frameworkHints"}


def called(fix: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool a fix leads to, through the door or directly."""
    inner = fix["args"] if fix["tool"] == "nova.call" else fix
    return inner["tool"], inner["args"]


def blocks(told: dict[str, Any]) -> set[str]:
    return BLOCKS & set(told)


async def test_nothing_is_said_about_a_site_that_nothing_is_known_of(page: Page) -> None:
    await page.go("/offer")
    assert blocks(await page.perceive()) == set()


async def test_entries_that_hold_are_named_with_level_and_health_and_only_an_active_one_may_guide(page: Page) -> None:
    await page.put(
        phenomenon("active-offer", "#offer", selector="#go"),
        phenomenon("shadow-offer", "#offer", level=1),
        phenomenon("candidate-offer", "#offer", level=0),
        phenomenon("retired-offer", "#offer", deprecated_reason="old"),
        phenomenon("elsewhere", "#not-here"),
    )
    await page.go("/offer")
    told = await page.perceive()
    assert told["pks"] == [
        {"phenomenonId": "active-offer", "type": "modal", "level": 2, "health": "healthy"},
        {
            "phenomenonId": "shadow-offer",
            "type": "modal",
            "level": 1,
            "health": "healthy",
            "note": told["pks"][1]["note"],
        },
    ]
    assert told["pks"][1]["note"].startswith("seen here before")
    (advice,) = told["pksAdvice"]
    assert (advice["kind"], advice["phenomenonId"]) == ("reuse", "active-offer")
    assert called(advice["fix"]) == ("nova.phenomenon_apply", {"phenomenonId": "active-offer"})
    assert len(advice["text"]) <= 160


async def test_each_caller_hears_a_thing_once_until_it_changes(page: Page) -> None:
    (kept,) = await page.put(phenomenon("once", "#offer"))
    await page.go("/offer")
    assert "pks" in await page.perceive()
    assert blocks(await page.perceive()) == set()
    await page.go("/offer")
    assert blocks(await page.perceive()) == set()
    assert "pks" in await page.perceive(agentId="another")
    await change(page, kept.entry_id, level=1)
    assert (await page.perceive())["pks"][0]["level"] == 1
    assert blocks(await page.perceive()) == set()


async def change(page: Page, entry_id: int, **changes: Any) -> None:
    def write(conn: Any) -> None:
        (one,) = store.by_ids(conn, [entry_id])
        store.save(conn, replace(one, kept=replace(one.kept, **changes)), visible=True)

    await page.server.nova._db.write(write)


async def test_what_came_to_be_while_the_page_was_open_was_not_seen_here_before(page: Page) -> None:
    await page.go("/offer")
    await page.perceive()
    now = page.server.clock.now_ms()
    await page.put(phenomenon("new", "#offer", level=1, created_at_ms=now, updated_at_ms=now))
    assert blocks(await page.perceive()) == set()
    page.later(1)
    await page.go("/offer")
    assert [one["phenomenonId"] for one in (await page.perceive())["pks"]] == ["new"]


async def test_eight_entries_three_pieces_of_advice_and_three_warnings_are_the_most(page: Page) -> None:
    sick = after_event(Health(), HealthEvent("misfire", page.server.clock.now_ms()))
    fine = [phenomenon(f"fine{n}", "#offer", selector="#go") for n in range(6)]
    ill = [phenomenon(f"ill{n}", "#offer", selector="#go", health=sick) for n in range(6)]
    await page.put(*fine, *ill)
    await page.go("/offer")
    told = await page.perceive(maxTokens=4000)
    assert [len(told[name]) for name in ("pks", "pksAdvice", "pksHealthWarnings")] == [8, 3, 3]
    assert {one["state"] for one in told["pksHealthWarnings"]} == {"quarantined"}
    assert set(told["pksHealthWarnings"][0]) == {"scope", "phenomenonId", "state", "reason"}
    assert told["pksHealthWarnings"][0]["scope"] == page.scope
    assert all(one["phenomenonId"].startswith("fine") for one in told["pksAdvice"])


async def test_a_verified_action_on_a_lasting_selector_is_worth_keeping_until_it_is_kept(page: Page) -> None:
    await page.go("/offer")
    await page.perceive()
    typed = await page.call("type_selector", selector="#name", text="Ada")
    assert typed["verifyState"] == "verified"
    (advice,) = (await page.perceive())["pksAdvice"]
    assert (advice["kind"], advice["phenomenonId"]) == ("gap", None)
    assert "#name" in advice["text"]
    tool, wish = called(advice["fix"])
    assert tool == "nova.pks_upsert"
    assert "pksAdvice" not in await page.perceive()
    assert (await page.server.call("pks_upsert", **wish))["action"] == "created"
    await page.put(phenomenon("kept", "#offer", selector="#name"))
    await page.call("type_selector", selector="#name", text="Eve", agentId="third")
    told = await page.perceive(agentId="third")
    assert [one["kind"] for one in told["pksAdvice"]] == ["reuse"]


@pytest.mark.parametrize("tokens", [200, 400, 1200])
async def test_advice_stays_inside_the_budget_of_the_look(page: Page, tokens: int) -> None:
    await page.put(*(phenomenon(f"a-rather-long-name-{n}", "#offer", selector="#go") for n in range(8)))
    await page.go("/offer")
    answer = await page.server.client.call_tool("nova.perceive", {"targetId": page.tab, "maxTokens": tokens})
    text = "".join(getattr(part, "text", "") for part in answer.content)
    assert estimate_tokens(text) <= tokens
    assert answer.structured_content is not None
    assert "#go" in text


async def test_reading_hints_bring_what_is_known_of_the_framework_and_none_without_them(page: Page) -> None:
    await page.go("/offer")
    assert "frameworkHints" not in await page.perceive()
    hint = DomainHint(HintId("rows"), "result_item", ("#offer",), 1, 1, level=2)
    await page.put(hint)
    (told,) = (await page.perceive())["frameworkHints"]
    assert (told["framework"], told["appliesTo"]) == ("react", "result_item")
    assert 0 < len(told["advice"]) <= 160
    assert "frameworkHints" not in await page.perceive()


async def test_a_site_that_has_moved_runs_up_debt_at_most_twice_a_minute(page: Page) -> None:
    await page.put(phenomenon("offer", "#offer", "#small"), phenomenon("other", "#offer"))
    await page.go("/offer")
    await page.perceive()
    assert (await page.entry("offer")).drift_debt == 0.0
    page.later(MINUTE)
    await page.go("/less")
    await page.perceive()
    # Half of the baseline is left, which is below what the entry asks for: that is no sighting of it.
    assert (await page.entry("offer")).drift_debt == 0.0
    await change(page, await number(page, "offer"), content=lower(await page.entry("offer")))
    await page.perceive()
    assert (await page.entry("offer")).drift_debt == pytest.approx(0.15)
    page.later(MINUTE // 3)
    await page.perceive()
    assert (await page.entry("offer")).drift_debt == pytest.approx(0.15)
    page.later(MINUTE // 2)
    await page.perceive()
    assert (await page.entry("offer")).drift_debt == pytest.approx(0.255)


def lower(entry: Any) -> Any:
    return replace(entry.content, fingerprint=replace(entry.content.fingerprint, min_confidence=0.5))


async def number(page: Page, stable_id: str) -> int:
    (found,) = await page.server.nova._db.read(store.find, page.scope, stable_id)
    return found.entry_id


async def test_an_entry_nobody_confirmed_for_a_month_is_doubted(page: Page) -> None:
    await page.put(
        phenomenon("old", "#offer", health=Health(last_confirmed_at_ms=page.server.clock.now_ms() - 31 * DAY))
    )
    await page.go("/offer")
    (told,) = (await page.perceive())["pksHealthWarnings"]
    assert (told["phenomenonId"], told["state"]) == ("old", "stale")
