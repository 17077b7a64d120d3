"""What knowledge says beside a look, through a real client on a real page: bounded, once, and never more than it is."""

from dataclasses import replace
from typing import Any

import pytest
from place_kit import DAY, MINUTE, Place, phenomenon

from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.health import HealthEvent, after_event
from nova_mcp.memory.knowledge.model import DomainHint, Health, HintId

pytestmark = pytest.mark.browser

SETTINGS = {"enable_eval": True, "learning": {"passes": True}}
PAGES = {
    "/plain": "<!doctype html><title>Plain</title><main><h1>Plain</h1></main>",
    "/offer": "<!doctype html><title>Offer</title><main data-reactroot><h1>Offer</h1><div id=offer>Ten per cent</div>"
    "<p id=small>More</p><label>Name <input id=name></label><button id=go type=button>Go</button></main>",
    "/less": "<!doctype html><title>Less</title><main><h1>Less</h1><div id=offer>Ten per cent</div></main>",
    "/scripted": "<!doctype html><title>S</title><main><div id=offer>Ten</div></main>",
}


BLOCKS = {"pks", "pksAdvice", "pksHealthWarnings", "frameworkHints"}


def called(fix: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool a fix leads to, through the door or directly."""
    inner = fix["args"] if fix["tool"] == "nova.call" else fix
    return inner["tool"], inner["args"]


def blocks(told: dict[str, Any]) -> set[str]:
    return BLOCKS & set(told)


async def test_nothing_is_said_about_a_site_that_nothing_is_known_of(place: Place) -> None:
    await place.go("/offer")
    assert blocks(await place.perceive()) == set()


async def test_entries_that_hold_are_named_with_level_and_health_and_only_an_active_one_may_guide(place: Place) -> None:
    await place.put(
        phenomenon("active-offer", "#offer", selector="#go"),
        phenomenon("shadow-offer", "#offer", level=1),
        phenomenon("candidate-offer", "#offer", level=0),
        phenomenon("retired-offer", "#offer", deprecated_reason="old"),
        phenomenon("elsewhere", "#not-here"),
    )
    await place.go("/offer")
    told = await place.perceive()
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


async def test_each_caller_hears_a_thing_once_until_it_changes(place: Place) -> None:
    (kept,) = await place.put(phenomenon("once", "#offer"))
    await place.go("/offer")
    assert "pks" in await place.perceive()
    assert blocks(await place.perceive()) == set()
    await place.go("/offer")
    assert blocks(await place.perceive()) == set()
    assert "pks" in await place.perceive(agentId="another")
    await change(place, kept.entry_id, level=1)
    assert (await place.perceive())["pks"][0]["level"] == 1
    assert blocks(await place.perceive()) == set()


async def change(place: Place, entry_id: int, **changes: Any) -> None:
    def write(conn: Any) -> None:
        (one,) = store.by_ids(conn, [entry_id])
        store.save(conn, replace(one, kept=replace(one.kept, **changes)), visible=True)

    await place.server.nova._db.write(write)


async def test_what_came_to_be_while_the_page_was_open_was_not_seen_here_before(place: Place) -> None:
    await place.go("/offer")
    await place.perceive()
    now = place.server.clock.now_ms()
    await place.put(phenomenon("new", "#offer", level=1, created_at_ms=now, updated_at_ms=now))
    assert blocks(await place.perceive()) == set()
    place.later(1)
    await place.go("/offer")
    assert [one["phenomenonId"] for one in (await place.perceive())["pks"]] == ["new"]


async def test_eight_entries_three_pieces_of_advice_and_three_warnings_are_the_most(place: Place) -> None:
    sick = after_event(Health(), HealthEvent("misfire", place.server.clock.now_ms()))
    fine = [phenomenon(f"fine{n}", "#offer", selector="#go") for n in range(6)]
    ill = [phenomenon(f"ill{n}", "#offer", selector="#go", health=sick) for n in range(6)]
    await place.put(*fine, *ill)
    await place.go("/offer")
    told = await place.perceive(maxTokens=4000)
    assert [len(told[name]) for name in ("pks", "pksAdvice", "pksHealthWarnings")] == [8, 3, 3]
    assert {one["state"] for one in told["pksHealthWarnings"]} == {"quarantined"}
    assert set(told["pksHealthWarnings"][0]) == {"scope", "phenomenonId", "state", "reason"}
    assert told["pksHealthWarnings"][0]["scope"] == place.scope
    assert all(one["phenomenonId"].startswith("fine") for one in told["pksAdvice"])


async def test_a_verified_action_on_a_lasting_selector_is_worth_keeping_until_it_is_kept(place: Place) -> None:
    await place.go("/offer")
    await place.perceive()
    typed = await place.call("type_selector", selector="#name", text="Ada")
    assert typed["verifyState"] == "verified"
    (advice,) = (await place.perceive())["pksAdvice"]
    assert (advice["kind"], advice["phenomenonId"]) == ("gap", None)
    assert "#name" in advice["text"]
    tool, wish = called(advice["fix"])
    assert tool == "nova.pks_upsert"
    assert "pksAdvice" not in await place.perceive()
    assert (await place.server.call("pks_upsert", **wish))["action"] == "created"
    await place.put(phenomenon("kept", "#offer", selector="#name"))
    await place.call("type_selector", selector="#name", text="Eve", agentId="third")
    told = await place.perceive(agentId="third")
    assert [one["kind"] for one in told["pksAdvice"]] == ["reuse"]


@pytest.mark.parametrize("tokens", [200, 400, 1200])
async def test_advice_stays_inside_the_budget_of_the_look(place: Place, tokens: int) -> None:
    await place.put(*(phenomenon(f"a-rather-long-name-{n}", "#offer", selector="#go") for n in range(8)))
    await place.go("/offer")
    answer = await place.server.client.call_tool("nova.perceive", {"targetId": place.tab, "maxTokens": tokens})
    text = "".join(getattr(part, "text", "") for part in answer.content)
    assert estimate_tokens(text) <= tokens
    assert answer.structured_content is not None
    assert "#go" in text


async def test_reading_hints_bring_what_is_known_of_the_framework_and_none_without_them(place: Place) -> None:
    await place.go("/offer")
    assert "frameworkHints" not in await place.perceive()
    hint = DomainHint(HintId("rows"), "result_item", ("#offer",), 1, 1, level=2)
    await place.put(hint)
    (told,) = (await place.perceive())["frameworkHints"]
    assert (told["framework"], told["appliesTo"]) == ("react", "result_item")
    assert 0 < len(told["advice"]) <= 160
    assert "frameworkHints" not in await place.perceive()


async def test_a_site_that_has_moved_runs_up_debt_at_most_twice_a_minute(place: Place) -> None:
    await place.put(phenomenon("offer", "#offer", "#small"), phenomenon("other", "#offer"))
    await place.go("/offer")
    await place.perceive()
    assert (await place.entry("offer")).drift_debt == 0.0
    place.later(MINUTE)
    await place.go("/less")
    await place.perceive()
    # Half of the baseline is left, which is below what the entry asks for: that is no sighting of it.
    assert (await place.entry("offer")).drift_debt == 0.0
    await change(place, await number(place, "offer"), content=lower(await place.entry("offer")))
    await place.perceive()
    assert (await place.entry("offer")).drift_debt == pytest.approx(0.15)
    # The clock runs on by itself: half a minute must not pass before the next look, however busy the machine is.
    place.later(1)
    await place.perceive()
    assert (await place.entry("offer")).drift_debt == pytest.approx(0.15)
    place.later(MINUTE // 2)
    await place.perceive()
    assert (await place.entry("offer")).drift_debt == pytest.approx(0.255)


def lower(entry: Any) -> Any:
    return replace(entry.content, fingerprint=replace(entry.content.fingerprint, min_confidence=0.5))


async def number(place: Place, stable_id: str) -> int:
    (found,) = await place.server.nova._db.read(store.find, place.scope, stable_id)
    return found.entry_id


async def test_an_entry_nobody_confirmed_for_a_month_is_doubted(place: Place) -> None:
    await place.put(
        phenomenon("old", "#offer", health=Health(last_confirmed_at_ms=place.server.clock.now_ms() - 31 * DAY))
    )
    await place.go("/offer")
    (told,) = (await place.perceive())["pksHealthWarnings"]
    assert (told["phenomenonId"], told["state"]) == ("old", "stale")
