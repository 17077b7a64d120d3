"""A clock that jumps by hours or days, forwards and back, while work is under way: nothing breaks, nothing is lost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from place_kit import DAY, HOUR, Place

from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.janitor import Janitor, retention_policy
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.memory.retention import chores, holds

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

PAGES = {
    "/work": "<!doctype html><title>Work</title><h1>Work</h1><p id=n>0</p>"
    '<button id=more onclick="n.textContent = Number(n.textContent) + 1">More</button>'
    "<label>Name <input id=name name=name></label>",
}
CLAIM = {"ttlMs": 60_000}
FACT = [{"signalKey": "core.plan.tier", "value": "free", "certainty": "likely"}]


@pytest.fixture
async def shifted(place: Place) -> AsyncIterator[Place]:
    yield place
    place.server.clock.shift_ms = 0
    await place.call("tab_release")


async def records(place: Place) -> list[Any]:
    page = await place.server.nova.database.read(events, EventFilter(limit=100_000))
    return [call.record for call in page.calls]


async def work(place: Place) -> list[dict[str, Any]]:
    """A round of everything that looks at the clock: claims, gates, facts, throttles, sessions, statistics."""
    return [
        await place.call("tab_claim", **CLAIM),
        await place.call("perceive"),
        await place.call("click_selector", selector="#more"),
        await place.call("type_selector", selector="#name", text="Ada"),
        await place.call("ok_observe", claims=FACT),
        await place.call("ok_facts"),
        await place.server.call("memory_stats"),
    ]


@pytest.mark.parametrize("jumps", [(6 * HOUR, -6 * HOUR), (-6 * HOUR, 6 * HOUR), (40 * DAY, 0), (-40 * DAY, 0)])
async def test_a_jump_of_the_clock_breaks_no_call_and_loses_no_record(shifted: Place, jumps: tuple[int, int]) -> None:
    place = shifted
    await place.visit("/work")
    before = len(await records(place))
    rounds = [await work(place)]
    for jump in jumps:
        place.server.clock.shift_ms = jump
        rounds.append(await work(place))
    for answers in rounds:
        reasons = [answer.get("reasonCode") for answer in answers if answer.get("ok") is False]
        assert reasons == [], reasons
    found = await records(place)
    assert len(found) - before == sum(map(len, rounds))
    assert [record.outcome.reason_code for record in found if record.outcome.kind == "crashed"] == []
    assert await place.server.nova.database.read(lambda conn: list(verify(conn))) == []


async def test_a_lease_outlives_no_jump_back_by_more_than_its_term(shifted: Place) -> None:
    place = shifted
    await place.visit("/work")
    assert (await place.call("tab_claim", **CLAIM))["ok"]
    other = {"agentId": "other", "selector": "#more"}
    assert (await place.call("click_selector", **other))["reasonCode"] == "claim.owner_mismatch"
    place.server.clock.shift_ms = -6 * HOUR
    assert (await place.call("click_selector", **other))["reasonCode"] == "claim.owner_mismatch"
    place.server.clock.shift_ms += 3 * 60_000
    assert (await place.call("click_selector", **other)).get("reasonCode") != "claim.owner_mismatch"


async def test_retention_after_a_jump_back_erases_nothing_young_and_its_records_hold(shifted: Place) -> None:
    place, nova = shifted, shifted.server.nova
    await place.visit("/work")
    place.server.clock.shift_ms = -40 * DAY
    by = Eraser(nova._parts.server_id, nova._parts.ports.ids.call_id, "a test")
    settings = nova._parts.settings.retention
    keeper = Janitor(nova.database, place.server.clock, retention_policy(settings), by, keeping=holds)
    bodies = len(await records(place))
    assert await keeper.sweep() == 0
    for chore in chores(settings):
        await nova.database.write(chore, place.server.clock.now_ms())
    assert len(await records(place)) == bodies
    place.server.clock.shift_ms = 0
    assert (await place.call("perceive"))["ok"]
    assert await nova.database.read(lambda conn: list(verify(conn))) == []
