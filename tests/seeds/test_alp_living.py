"""What becomes of knowledge while agents work: drift that their actions meet, candidates that raise themselves, and
what Nova looks after between calls, through a real client on a real page."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from learning_kit import HOUR, MINUTE, Page, Server, fresh_page, phenomenon, serving
from loop_kit import Shop, shop
from sqlalchemy import select

from nova_mcp.journal.store import observation
from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import Action, Playbook
from nova_mcp.knowledge.tables import knowledge_scope
from nova_mcp.observation.model import CallRecord
from nova_mcp.observation.reader import EventFilter, events
from nova_mcp.promotion import steps_store
from nova_mcp.promotion.collector import witnessed
from nova_mcp.promotion.model import Mark

pytestmark = pytest.mark.browser

FORM = "<!doctype html><html lang=en><title>Form</title><main>{}<label>Name <input id=name></label></main>"
PAGES = {
    "/plain": "<!doctype html><title>Plain</title><main><h1>Plain</h1></main>",
    "/menu": "<!doctype html><title>Menu</title><main><nav id=menu>Menu</nav>"
    "<button id=order type=button>Order</button></main>",
    "/form": FORM.format("<h1>One</h1>"),
    "/form/long": FORM.format("<h1>Two</h1><nav><a href=/a>A</a><a href=/b>B</a></nav><ul><li>x<li>y</ul>"),
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
    async with serving(tmp_path_factory.mktemp("living"), site, enable_eval=True) as running:
        yield running


@pytest.fixture(scope="module")
async def tab(server: Server) -> str:
    return str((await server.call("tab_new"))["targetId"])


@pytest.fixture
async def page(server: Server, tab: str) -> Page:
    return await fresh_page(server, tab)


# -- drift that actions meet


async def lost(page: Page, selector: str = "#buy") -> dict[str, Any]:
    told = await page.click(selector, timeoutMs=0)
    assert told["reasonCode"] == "selector.not_found", told
    return told


async def drifts(page: Page) -> list[tuple[str, int]]:
    rows = await page.server.rows(
        observation, observation.c.context_host == page.scope, observation.c.kind == "selector_drift"
    )
    return [(row["target_stable_id"], row["severity"]) for row in rows]


async def test_a_learned_selector_that_finds_nothing_where_the_situation_holds_is_hard_drift(page: Page) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#buy"))
    await page.go("/menu")
    await lost(page)
    assert await drifts(page) == [("menu", 2)]
    assert (await page.entry("menu")).level == 1


async def test_it_is_light_where_another_way_to_the_control_is_left(page: Page) -> None:
    entry = phenomenon("menu", "#menu", selector="#buy")
    steps = Playbook("dismiss", (Action("click", "#buy", ("#order",)),))
    await page.put(replace(entry, content=replace(entry.content, playbook=steps)))
    await page.go("/menu")
    await lost(page)
    assert await drifts(page) == [("menu", 1)]
    assert (await page.entry("menu")).level == 2


async def test_a_page_that_is_not_the_one_that_was_learned_proves_nothing(page: Page) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#buy"))
    await lost(page)
    await page.go("/menu")
    await lost(page, "#something-else")
    assert await drifts(page) == []
    assert (await page.entry("menu")).level == 2


@pytest.mark.parametrize("level", [0, 2])
async def test_neither_does_a_selector_that_several_entries_or_only_a_candidate_act_through(
    page: Page, level: int
) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#buy", level=level))
    if level:
        await page.put(phenomenon("other", "#menu", selector="#buy"))
    await page.go("/menu")
    await lost(page)
    assert await drifts(page) == []


async def test_nor_does_a_page_that_an_agents_script_has_changed(page: Page) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#buy"))
    await page.go("/menu")
    await page.call("eval", expression="document.title")
    await lost(page)
    assert await drifts(page) == []


# -- candidates that raise themselves


async def test_the_call_that_raises_a_candidate_says_so_and_no_other_does(page: Page) -> None:
    told = []
    for before, path in (("/plain", "/form"), ("/menu", "/form/long"), ("/plain", "/form"), ("/menu", "/form")):
        await page.go(before)
        await page.go(path)
        await page.perceive()
        told.append(await page.call("type_selector", selector="#name", text="Ada"))
        page.later(MINUTE)
    assert [one["verifyState"] for one in told] == ["verified"] * 4
    assert ["pksAutoLearn" in one for one in told] == [False, False, True, False]
    block = told[2]["pksAutoLearn"]
    assert set(block) == {"scope", "candidateKey", "stableId", "level", "trigger"}
    assert (block["scope"], block["level"]) == (page.scope, 0)
    assert block["trigger"]
    assert (await page.entry(block["stableId"])).level == 0


# -- between calls


async def settled(page: Page) -> None:
    await page.server.nova._pipeline.passes.settled()


async def proven(page: Page, entry_id: int) -> None:
    """Marks as three verified uses in two sessions leave them."""
    now = page.server.clock.now_ms()
    marks = [
        Mark(0, now - (3 - number) * HOUR, "action_success", 1, f"{entry_id}-{number}", f"s{number % 2}")
        for number in range(3)
    ]

    def write(conn: Any) -> None:
        (kept,) = store.by_ids(conn, [entry_id])
        steps_store.born(conn, kept)
        witnessed(conn, kept, marks)

    await page.server.nova._db.write(write)


async def background(page: Page) -> list[CallRecord]:
    found = await page.server.nova._db.read(events, EventFilter(agent="background", limit=5000))
    records = [call.record for call in found.calls if call.record is not None]
    return [one for one in records if page.scope in (one.after.url or "")]


async def turns(page: Page) -> tuple[int | None, int | None]:
    (row,) = await page.server.nova._db.read(
        lambda conn: conn.execute(select(knowledge_scope).where(knowledge_scope.c.scope == page.scope)).all()
    )
    return row.reviewed_at_ms, row.revalidated_at_ms


async def test_gates_are_looked_at_between_calls_at_most_every_half_hour(page: Page) -> None:
    await settled(page)
    (kept,) = await page.put(phenomenon("menu", "#menu", level=1, selector="#order"))
    page.later(6 * MINUTE)
    await page.go("/menu")
    await settled(page)
    first, _ = await turns(page)
    assert first is not None
    await proven(page, kept.entry_id)
    page.later(20 * MINUTE)
    await page.perceive()
    await settled(page)
    assert (await turns(page))[0] == first
    assert (await page.entry("menu")).level == 1
    page.later(11 * MINUTE)
    await page.perceive()
    await settled(page)
    assert (await page.entry("menu")).level == 2


async def test_entries_are_looked_for_on_the_page_at_most_every_six_hours(page: Page) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#order"), phenomenon("gone", "#nowhere", type="custom"))
    page.later(6 * MINUTE)
    await page.go("/menu")
    await settled(page)
    (record,) = await background(page)
    assert (record.tool_name, record.caller.principal, record.via) == ("nova.revalidate", "local", "background")
    assert (record.effect, record.outcome.kind) == ("read", "ok")
    assert (await page.entry("menu")).health.last_confirmed_at_ms is not None
    assert await drifts(page) == [("gone", 2)]
    page.later(5 * HOUR)
    await page.perceive()
    await settled(page)
    assert len(await background(page)) == 1
    page.later(HOUR)
    await page.perceive()
    await settled(page)
    assert len(await background(page)) == 2


async def test_a_tab_that_somebody_works_in_is_left_alone_and_the_turn_stays_free(page: Page) -> None:
    await page.put(phenomenon("menu", "#menu", selector="#order"))
    await page.go("/menu")
    await settled(page)
    taken = await turns(page)
    page.later(7 * HOUR)
    tab = page.server.nova._parts.browser.targets._tabs[page.tab]
    async with tab.lock.exclusive():
        page.server.nova._pipeline.passes.notice(tab)
        await settled(page)
    assert (await turns(page))[1] == taken[1]
    await page.perceive()
    await settled(page)
    assert (await turns(page))[1] != taken[1]


async def test_nothing_is_done_for_a_site_that_nothing_is_known_of(page: Page) -> None:
    await page.perceive()
    await settled(page)
    assert await background(page) == []
    assert await page.server.rows(knowledge_scope, knowledge_scope.c.scope == page.scope) == []
