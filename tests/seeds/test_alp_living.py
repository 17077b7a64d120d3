"""What becomes of knowledge while agents work: drift that their actions meet, candidates that raise themselves, and
what Nova looks after between calls, through a real client on a real page."""

from dataclasses import replace
from typing import Any

import pytest
from place_kit import HOUR, MINUTE, Place, phenomenon
from sqlalchemy import select

from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, Playbook
from nova_mcp.memory.knowledge.tables import knowledge_scope
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import Mark

pytestmark = pytest.mark.browser

FORM = "<!doctype html><html lang=en><title>Form</title><main>{}<label>Name <input id=name></label></main>"
SETTINGS = {"enable_eval": True, "learning": {"passes": True}}
PAGES = {
    "/plain": "<!doctype html><title>Plain</title><main><h1>Plain</h1></main>",
    "/menu": "<!doctype html><title>Menu</title><main><nav id=menu>Menu</nav>"
    "<button id=order type=button>Order</button></main>",
    "/form": FORM.format("<h1>One</h1>"),
    "/form/long": FORM.format("<h1>Two</h1><nav><a href=/a>A</a><a href=/b>B</a></nav><ul><li>x<li>y</ul>"),
}


# -- drift that actions meet


async def lost(place: Place, selector: str = "#buy") -> dict[str, Any]:
    told = await place.click(selector, timeoutMs=0)
    assert told["reasonCode"] == "selector.not_found", told
    return told


async def drifts(place: Place) -> list[tuple[str, int]]:
    rows = await place.server.rows(
        observation, observation.c.context_host == place.scope, observation.c.kind == "selector_drift"
    )
    return [(row["target_stable_id"], row["severity"]) for row in rows]


async def test_a_learned_selector_that_finds_nothing_where_the_situation_holds_is_hard_drift(place: Place) -> None:
    await place.put(phenomenon("menu", "#menu", selector="#buy"))
    await place.go("/menu")
    await lost(place)
    assert await drifts(place) == [("menu", 2)]
    assert (await place.entry("menu")).level == 1


async def test_it_is_light_where_another_way_to_the_control_is_left(place: Place) -> None:
    entry = phenomenon("menu", "#menu", selector="#buy")
    steps = Playbook("dismiss", (Action("click", "#buy", ("#order",)),))
    await place.put(replace(entry, content=replace(entry.content, playbook=steps)))
    await place.go("/menu")
    await lost(place)
    assert await drifts(place) == [("menu", 1)]
    assert (await place.entry("menu")).level == 2


async def test_a_page_that_is_not_the_one_that_was_learned_proves_nothing(place: Place) -> None:
    await place.put(phenomenon("menu", "#menu", selector="#buy"))
    await lost(place)
    await place.go("/menu")
    await lost(place, "#something-else")
    assert await drifts(place) == []
    assert (await place.entry("menu")).level == 2


@pytest.mark.parametrize("level", [0, 2])
async def test_neither_does_a_selector_that_several_entries_or_only_a_candidate_act_through(
    place: Place, level: int
) -> None:
    await place.put(phenomenon("menu", "#menu", selector="#buy", level=level))
    if level:
        await place.put(phenomenon("other", "#menu", selector="#buy"))
    await place.go("/menu")
    await lost(place)
    assert await drifts(place) == []


async def test_nor_does_a_page_that_an_agents_script_has_changed(place: Place) -> None:
    await place.put(phenomenon("menu", "#menu", selector="#buy"))
    await place.go("/menu")
    await place.call("eval", expression="document.title")
    await lost(place)
    assert await drifts(place) == []


# -- candidates that raise themselves


async def test_the_call_that_raises_a_candidate_says_so_and_no_other_does(place: Place) -> None:
    told = []
    for before, path in (("/plain", "/form"), ("/menu", "/form/long"), ("/plain", "/form"), ("/menu", "/form")):
        await place.go(before)
        await place.go(path)
        await place.perceive()
        told.append(await place.call("type_selector", selector="#name", text="Ada"))
        place.later(MINUTE)
    assert [one["verifyState"] for one in told] == ["verified"] * 4
    assert ["pksAutoLearn" in one for one in told] == [False, False, True, False]
    block = told[2]["pksAutoLearn"]
    assert set(block) == {"scope", "candidateKey", "stableId", "level", "trigger"}
    assert (block["scope"], block["level"]) == (place.scope, 0)
    assert block["trigger"]
    assert (await place.entry(block["stableId"])).level == 0


# -- between calls


async def settled(place: Place) -> None:
    await place.server.nova._pipeline.passes.settled()


async def proven(place: Place, entry_id: int) -> None:
    """Marks as three verified uses in two sessions leave them."""
    now = place.server.clock.now_ms()
    marks = [
        Mark(0, now - (3 - number) * HOUR, "action_success", 1, f"{entry_id}-{number}", f"s{number % 2}")
        for number in range(3)
    ]

    def write(conn: Any) -> None:
        (kept,) = store.by_ids(conn, [entry_id])
        steps_store.born(conn, kept)
        witnessed(conn, kept, marks)

    await place.server.nova._db.write(write)


async def background(place: Place) -> list[CallRecord]:
    found = await place.server.nova._db.read(events, EventFilter(agent="background", limit=5000))
    records = [call.record for call in found.calls if call.record is not None]
    return [one for one in records if place.scope in (one.after.url or "")]


async def turns(place: Place) -> tuple[int | None, int | None]:
    (row,) = await place.server.nova._db.read(
        lambda conn: conn.execute(select(knowledge_scope).where(knowledge_scope.c.scope == place.scope)).all()
    )
    return row.reviewed_at_ms, row.revalidated_at_ms


async def test_gates_are_looked_at_between_calls_at_most_every_half_hour(place: Place) -> None:
    await settled(place)
    (kept,) = await place.put(phenomenon("menu", "#menu", level=1, selector="#order"))
    place.later(6 * MINUTE)
    await place.go("/menu")
    await settled(place)
    first, _ = await turns(place)
    assert first is not None
    await proven(place, kept.entry_id)
    place.later(20 * MINUTE)
    await place.perceive()
    await settled(place)
    assert (await turns(place))[0] == first
    assert (await place.entry("menu")).level == 1
    place.later(11 * MINUTE)
    await place.perceive()
    await settled(place)
    assert (await place.entry("menu")).level == 2


async def test_entries_are_looked_for_on_the_page_at_most_every_six_hours(place: Place) -> None:
    await settled(place)
    await place.put(phenomenon("menu", "#menu", selector="#order"), phenomenon("gone", "#nowhere", type="custom"))
    place.later(6 * MINUTE)
    await place.go("/menu")
    await settled(place)
    (record,) = await background(place)
    assert (record.tool_name, record.caller.principal, record.via) == ("nova.revalidate", "local", "background")
    assert (record.effect, record.outcome.kind) == ("read", "ok")
    assert (await place.entry("menu")).health.last_confirmed_at_ms is not None
    assert await drifts(place) == [("gone", 2)]
    place.later(5 * HOUR)
    await place.perceive()
    await settled(place)
    assert len(await background(place)) == 1
    place.later(HOUR)
    await place.perceive()
    await settled(place)
    assert len(await background(place)) == 2


async def test_a_tab_that_somebody_works_in_is_left_alone_and_the_turn_stays_free(place: Place) -> None:
    await settled(place)
    await place.put(phenomenon("menu", "#menu", selector="#order"))
    await place.go("/menu")
    await settled(place)
    taken = await turns(place)
    place.later(7 * HOUR)
    tab = place.server.nova._parts.browser.targets._tabs[place.tab]
    async with tab.lock.exclusive():
        place.server.nova._pipeline.passes.notice(tab)
        await settled(place)
    assert (await turns(place))[1] == taken[1]
    await place.perceive()
    await settled(place)
    assert (await turns(place))[1] != taken[1]


async def test_nothing_is_done_for_a_site_that_nothing_is_known_of(place: Place) -> None:
    await place.perceive()
    await settled(place)
    assert await background(place) == []
    assert await place.server.rows(knowledge_scope, knowledge_scope.c.scope == place.scope) == []
