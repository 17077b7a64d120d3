"""Checking what was learned against a page, row by row, through a real client on real pages."""

from dataclasses import replace
from typing import Any

import pytest
from loop_kit import Server
from place_kit import Lesson, Place, failed
from sqlalchemy import delete

from nova_mcp.browser.read.knowledge_check import elements
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.drift import after_sighting
from nova_mcp.memory.knowledge.matching.page_facts import print_of
from nova_mcp.memory.knowledge.model import Action, Context, Health, Signal, VerifyStep
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.tables import revalidation_check

pytestmark = pytest.mark.browser

HOUR = 60 * 60_000
_LINKS = "".join(f"<p><a href=/read{number}>Long read {number}</a></p>" for number in range(6))


def _page(section: str) -> str:
    return f"<!doctype html><html lang=en><title>Site</title><main><h1>Site</h1>{_LINKS}{section}</main>"


def _wizard(button: str, title: str = "Step 1 of 3") -> str:
    script = "<script>window.pressed=[];document.addEventListener('click',()=>pressed.push(1),true)</script>"
    return _page(f"{script}<section id=wizard class=guide><h2>{title}</h2>{button}<a href=/help>Help</a></section>")


SETTINGS = {"enable_eval": True}
PAGES = {
    "/plain": _page(""),
    "/wizard": _wizard("<button id=go name=next class=primary>Next</button>"),
    "/wizard-renamed": _wizard("<button id=forward name=next class=primary>Next</button>"),
    "/wizard-delete": _wizard("<button id=go class=danger>Delete account</button>"),
    "/wizard-doubtful": _wizard("<button class=primary>Next</button><button class=primary>Next</button>"),
    "/wizard-unlabelled": _wizard("<button id=go></button><button id=stop>Stop</button>"),
    "/wizard-unlabelled-renamed": _wizard("<button id=forward></button><button id=stop>Stop</button>"),
    "/wizard-half": _page("<section class=guide><h2>Another step</h2></section>"),
    "/choice": _wizard("<input type=checkbox id=agree aria-label=Agree><button id=go name=next>Next</button>"),
    "/choice-renamed": _wizard("<input type=checkbox id=agree aria-label=Agree><button id=on name=next>Next</button>"),
    "/choice-changed": _wizard("<input type=checkbox id=agree aria-label=Agree><button id=go>Delete account</button>"),
    "/choice-first": _wizard("<input type=checkbox id=agree aria-label=Agree>"),
    "/form": _page("<form id=f><input id=name name=name><button id=send type=button>Send</button></form>"),
}
WIZARD = Lesson(
    type="custom",
    policy="custom",
    signals=(Signal("dom", "#wizard"), Signal("text", "Step 1 of 3")),
    actions=(Action("click", "#go"),),
    verify=(VerifyStep("present", "#done"),),
)
ROW = {
    *("scope", "stableId", "verdict", "selectorExists", "fingerprintMatchRatio", "signalsChecked", "signalsMatched"),
    *("error", "repairCandidate", "telemetryOutcome", "telemetryRecorded", "telemetrySkippedReason", "telemetryError"),
}


@pytest.fixture
async def place(server: Server, place: Place) -> Place:
    """Nobody has looked at anything in the last hour."""
    await server.nova._db.write(lambda conn: conn.execute(delete(revalidation_check)))
    return place


async def learned(place: Place, lesson: Lesson, path: str, **more: Any) -> None:
    await place.visit(path)
    await place.learn(lesson, **more)


def only(told: dict[str, Any], *more: str) -> dict[str, Any]:
    (row,) = told["results"]
    assert set(row) == ROW | {*more}
    return dict(row)


async def nothing_pressed(place: Place) -> None:
    assert await place.asked("window.pressed ?? []") == []


# -- verdicts


async def test_an_entry_that_still_fits_is_healthy_and_noted(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    told = await place.revalidate()
    assert (told["ok"], told["scope"], told["scopeDerivedFromTarget"], told["checked"]) == (True, place.scope, True, 1)
    assert (told["telemetryRecorded"], told["telemetryFailed"], told["denied"], told["retryAfterMs"]) == (
        1,
        0,
        [],
        None,
    )
    row = only(told)
    assert (row["stableId"], row["verdict"], row["selectorExists"]) == ("entry", "healthy", True)
    assert (row["fingerprintMatchRatio"], row["signalsChecked"], row["signalsMatched"]) == (1.0, 2, 2)
    assert (row["telemetryOutcome"], row["telemetryRecorded"]) == ("silent_verify_ok", True)
    assert (row["error"], row["repairCandidate"], row["telemetrySkippedReason"], row["telemetryError"]) == (None,) * 4
    await nothing_pressed(place)


async def test_what_is_healthy_confirms_the_entry_and_counts_as_no_success(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.revalidate()
    health = (await place.entry()).health
    assert (health.attempts, health.last_confirmed_at_ms is not None) == (0, True)
    assert [row["outcome"] for row in await place.observed() if row["target_stable_id"] == "entry"] == [0]


async def test_a_selector_that_is_gone_is_drift_and_one_repair_is_proposed(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-renamed")
    row = only(await place.revalidate())
    assert (row["verdict"], row["selectorExists"], row["telemetryOutcome"]) == ("drift", False, "silent_verify_drift")
    found = row["repairCandidate"]
    assert found["lostSelector"] == "#go"
    assert found["autoRepairSafe"] is False
    assert found["abstained"] is None
    assert (found["label"], 0.5 <= found["confidence"] <= 1.0) == ("Next", True)
    assert await place.asked(f"document.querySelectorAll({found['selector']!r})[0].id") == "forward"
    await nothing_pressed(place)


async def test_a_drift_demotes_an_active_entry_at_once(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-renamed")
    await place.revalidate()
    assert [(one["outcome"], one["severity"]) for one in await place.observed("selector_drift")] == [(-1, 2)]
    entry = await place.entry()
    assert (entry.level, entry.health.silent_verify_fails) == (1, 1)


async def test_a_selector_that_now_means_another_control_is_drift_without_a_wrong_repair(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-delete")
    row = only(await place.revalidate())
    assert (row["verdict"], row["selectorExists"]) == ("drift", False)
    assert row["repairCandidate"]["selector"] is None
    assert row["repairCandidate"]["abstained"] is not None
    await nothing_pressed(place)


async def test_in_doubt_no_repair_is_proposed(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-doubtful")
    found = only(await place.revalidate())["repairCandidate"]
    assert (found["selector"], found["confidence"], found["label"]) == (None, None, None)
    assert found["abstained"]


async def test_what_stood_around_the_element_helps_to_find_it_again(place: Place, server: Server) -> None:
    await place.visit("/wizard")
    shelved = await place.learn(WIZARD)
    around = [print_of(one.seen) for one in await elements(server.tab(place.tab))]
    await server.nova._db.write(store.keep_surroundings, shelved.entry_id, around, server.clock.now_ms())
    await place.visit("/wizard-renamed")
    alone = only(await place.revalidate())["repairCandidate"]
    assert alone["selector"] is not None


async def test_a_control_that_says_nothing_is_known_by_its_place_between_others(place: Place, server: Server) -> None:
    await place.visit("/wizard-unlabelled")
    shelved = await place.learn(WIZARD)
    around = [print_of(one.seen) for one in await elements(server.tab(place.tab))]
    await server.nova._db.write(store.keep_surroundings, shelved.entry_id, around, server.clock.now_ms())
    await place.visit("/wizard-unlabelled-renamed")
    found = only(await place.revalidate())["repairCandidate"]
    assert (found["selector"], found["abstained"]) == ("#forward", None)


async def test_half_a_fingerprint_is_drift(place: Place) -> None:
    lesson = replace(WIZARD, signals=(Signal("dom", "#wizard"), Signal("dom", ".guide")), min_confidence=0.9)
    await learned(place, lesson, "/wizard")
    await place.visit("/wizard-half")
    row = only(await place.revalidate())
    assert (row["verdict"], row["fingerprintMatchRatio"], row["signalsMatched"]) == ("drift", 0.5, 1)


@pytest.mark.parametrize("kind", ["nav_link", "spa_route", "custom"])
async def test_what_should_always_be_there_is_gone(place: Place, kind: Any) -> None:
    await learned(place, replace(WIZARD, type=kind), "/wizard")
    await place.visit("/plain")
    row = only(await place.revalidate())
    assert (row["verdict"], row["telemetryOutcome"]) == ("gone", "silent_verify_drift")
    assert (row["repairCandidate"]["selector"], row["repairCandidate"]["abstained"]) == (None, "nothing_telling")


@pytest.mark.parametrize("kind", ["consent_cmp", "modal", "login_wall"])
async def test_what_is_merely_not_shown_proves_nothing(place: Place, kind: Any) -> None:
    await learned(place, replace(WIZARD, type=kind), "/wizard")
    await place.visit("/plain")
    row = only(await place.revalidate())
    assert (row["verdict"], row["telemetryOutcome"], row["telemetryRecorded"]) == ("unknown", None, False)
    assert row["telemetrySkippedReason"] == "nothing_proven"
    assert await place.observed("selector_drift") == []
    assert (await place.entry()).drift_debt == 0.0


async def test_a_selector_nobody_can_read_is_an_error_and_no_evidence(place: Place) -> None:
    await learned(place, replace(WIZARD, actions=(Action("click", "#go[["),)), "/wizard")
    row = only(await place.revalidate())
    assert (row["verdict"], row["error"], row["telemetryOutcome"]) == ("error", "selector_invalid", None)
    assert await place.observed("selector_drift") == []


async def test_what_a_later_step_needs_is_not_missed_before_its_time(place: Place) -> None:
    lesson = replace(WIZARD, actions=(Action("click", "#go"), Action("click", "#second-page")))
    await learned(place, lesson, "/wizard")
    told = await place.revalidate()
    row = only(told, "notOnPage")
    assert (row["verdict"], row["notOnPage"]) == ("healthy", ["#second-page"])


CHOICE = replace(WIZARD, actions=(Action("click", "#agree"), Action("click", "#go")))


async def test_a_later_step_whose_control_is_there_under_another_selector_is_drift(
    place: Place, server: Server
) -> None:
    await place.visit("/choice")
    shelved = await place.learn(CHOICE)
    around = [print_of(one.seen) for one in await elements(server.tab(place.tab))]
    await server.nova._db.write(store.keep_surroundings, shelved.entry_id, around, server.clock.now_ms())
    assert only(await place.revalidate())["verdict"] == "healthy"
    await place.visit("/choice-renamed")
    row = only(await place.revalidate())
    assert (row["verdict"], row["selectorExists"]) == ("drift", False)
    assert (row["repairCandidate"]["lostSelector"], row["repairCandidate"]["selector"]) == ("#go", "#on")
    await nothing_pressed(place)


async def test_a_later_step_that_would_meet_another_control_is_drift_and_one_that_is_not_shown_is_told(
    place: Place,
) -> None:
    await learned(place, CHOICE, "/choice")
    await place.visit("/choice-first")
    row = only(await place.revalidate(), "notOnPage")
    assert (row["verdict"], row["notOnPage"]) == ("healthy", ["#go"])
    await place.visit("/choice-changed")
    row = only(await place.revalidate())
    assert (row["verdict"], row["repairCandidate"]["lostSelector"]) == ("drift", "#go")


async def test_fields_and_the_button_behind_them_belong_together(place: Place) -> None:
    field = Action("type", "#name", value_source="agent_supplied", value_name="name")
    lesson = replace(WIZARD, signals=(Signal("dom", "#f"),), actions=(field, Action("click", "#gone")))
    await learned(place, lesson, "/form")
    assert only(await place.revalidate())["verdict"] == "drift"


# -- which, and how many


async def test_failing_entries_come_first_then_the_stalest(place: Place, server: Server) -> None:
    now = server.clock.now_ms()
    fresh = Health(last_confirmed_at_ms=now - 1000)
    await learned(place, WIZARD, "/wizard", name="fresh", health=fresh)
    await learned(place, WIZARD, "/wizard", name="stale", health=Health(last_confirmed_at_ms=now - 90 * HOUR))
    failing = Health(attempts=1, failures=1, consecutive_failures=1, last_confirmed_at_ms=now)
    await learned(place, WIZARD, "/wizard", name="failing", health=failing, level=1)
    told = await place.revalidate(limit=2)
    assert [row["stableId"] for row in told["results"]] == ["failing", "stale"]


async def test_an_entry_of_another_part_of_the_site_is_not_missed_on_this_page(place: Place) -> None:
    await place.visit("/wizard")
    await place.learn(replace(WIZARD, type="nav_link", context=Context(routes=("wizard",))), name="there")
    await place.learn(replace(WIZARD, type="nav_link", context=Context(routes=("plain", "wizard"))), name="here")
    await place.visit("/plain")
    told = await place.revalidate()
    assert [(one["stableId"], one["verdict"]) for one in told["results"]] == [("here", "gone")]
    assert ((await place.entry("there")).level, (await place.entry("here")).level) == (2, 1)


async def test_candidates_and_retired_entries_are_left_alone(place: Place) -> None:
    await learned(place, WIZARD, "/wizard", name="candidate", level=0)
    await learned(place, WIZARD, "/wizard", name="retired", level=1, deprecated_reason="gone")
    told = await place.revalidate()
    assert (told["ok"], told["checked"], told["results"]) == (True, 0, [])


async def test_an_unknown_site_has_nothing_to_check(place: Place) -> None:
    assert (await place.revalidate())["checked"] == 0


async def test_an_entry_without_a_selector_is_denied_by_name(place: Place) -> None:
    await learned(place, replace(WIZARD, signals=(Signal("text", "Step 1 of 3"),)), "/wizard")
    told = await place.revalidate()
    assert (told["ok"], told["reasonCode"], told["denied"]) == (False, "no_selector", ["no_selector:entry"])
    assert told["checked"] == 0


# -- budgets


async def test_a_target_is_checked_six_times_an_hour(place: Place, server: Server) -> None:
    for number in range(7):
        await learned(place, WIZARD, "/wizard", name=f"entry{number}")
    first = await place.revalidate(limit=5)
    assert (first["ok"], first["checked"], first["budgetRemaining"]) == (True, 5, 1)
    second = await place.revalidate(limit=5)
    assert (second["ok"], second["reasonCode"], second["checked"]) == (False, "budget_target", 1)
    assert (second["denied"], second["budgetRemaining"]) == (["budget_target"], 0)
    assert 0 < second["retryAfterMs"] <= HOUR
    third = await place.revalidate()
    assert (third["ok"], third["checked"]) == (False, 0)
    server.clock.shift_ms += HOUR
    assert (await place.revalidate())["ok"]


async def test_a_site_is_checked_twelve_times_an_hour_and_all_sites_sixty(place: Place, server: Server) -> None:
    for number in range(3):
        await learned(place, WIZARD, "/wizard", name=f"entry{number}")
    spent = {"at_ms": server.clock.now_ms(), "target_id": "tab_900"}
    await _spent(server, [spent | {"scope": place.scope}] * 10)
    told = await place.revalidate()
    assert (told["checked"], told["denied"], told["budgetRemaining"]) == (2, ["budget_scope"], 0)
    await server.nova._db.write(lambda conn: conn.execute(delete(revalidation_check)))
    await _spent(server, [spent | {"scope": f"s{number}.example"} for number in range(59)])
    told = await place.revalidate()
    assert (told["checked"], told["denied"]) == (1, ["budget_total"])


async def _spent(server: Server, rows: list[dict[str, Any]]) -> None:
    await server.nova._db.write(lambda conn: conn.execute(revalidation_check.insert(), rows))


# -- what it leaves


async def test_the_same_check_within_half_a_minute_counts_once(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.revalidate()
    row = only(await place.revalidate())
    assert (row["telemetryRecorded"], row["telemetrySkippedReason"]) == (False, "throttled")


async def test_a_page_that_a_script_of_the_agent_has_changed_is_no_evidence(place: Place) -> None:
    await learned(place, WIZARD, "/wizard")
    await place.visit("/wizard-renamed")
    await place.server.call("eval", targetId=place.tab, expression="document.title = 'x'")
    row = only(await place.revalidate())
    assert (row["verdict"], row["telemetrySkippedReason"]) == ("drift", "page_scripted")
    entry = await place.entry()
    assert (entry.level, entry.drift_debt) == (2, 0.0)


async def test_a_page_that_has_moved_away_runs_up_a_debt(place: Place) -> None:
    lesson = replace(WIZARD, signals=(*WIZARD.signals, Signal("dom", "#go")), min_confidence=0.5)
    await learned(place, lesson, "/wizard")
    await place.visit("/wizard-renamed")
    before = (await place.entry()).drift_debt
    await place.revalidate()
    far = 1 - 2 / 3
    assert (await place.entry()).drift_debt == after_sighting(before, far)


async def test_a_selector_that_nobody_had_seen_is_confirmed_and_described(place: Place) -> None:
    await place.visit("/plain")
    shelved = await place.learn(WIZARD, level=1, unconfirmed=("#go", "#done"))
    assert (await place.entry()).content.playbook.actions[0].element is None  # type: ignore[union-attr]
    await place.visit("/wizard")
    assert only(await place.revalidate())["verdict"] == "healthy"
    entry = await place.entry()
    assert entry.unconfirmed == ("#done",)
    print_ = entry.content.playbook.actions[0].element  # type: ignore[union-attr]
    assert print_ is not None
    assert (print_.tag, print_.text) == ("button", "Next")
    steps = await place.server.nova._db.read(lambda conn: list(steps_store.steps(conn, shelved.entry_id)))
    assert "Confirmed" in {type(step).__name__ for _, _, step in steps}


async def test_three_clean_checks_on_three_occasions_leave_quarantine(place: Place, server: Server) -> None:
    ill = Health(attempts=1, failures=1, severe_misfires=1, quarantined_at_ms=server.clock.now_ms())
    await learned(place, WIZARD, "/wizard", health=ill, level=1)
    for _ in range(3):
        assert (await place.entry()).health.quarantined_at_ms is not None
        assert only(await place.revalidate())["verdict"] == "healthy"
        server.clock.shift_ms += 60_000
    assert (await place.entry()).health.quarantined_at_ms is None


# -- arguments


async def test_the_target_has_to_be_named(server: Server) -> None:
    failed(await server.call("revalidate"), -32602, "invalid_params")
    failed(await server.call("revalidate", targetId="tab_999"), -32602, "tab.unknown")


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 6}, {"limit": "3"}, {"stableIds": []}, {"scope": "*"}])
async def test_wrong_arguments_are_refused(place: Place, wrong: dict[str, Any]) -> None:
    failed(await place.revalidate(**wrong), -32602, "invalid_params")


async def test_the_scope_of_another_site_is_refused_and_its_own_is_welcome(place: Place) -> None:
    failed(await place.revalidate(scope="shop.example.com"), -32602, "pks.scope_mismatch")
    told = await place.revalidate(scope=f"http://{place.scope}/x")
    assert (told["ok"], told["scopeDerivedFromTarget"]) == (True, False)


async def test_a_tab_without_a_site_has_nothing_to_check_against(server: Server) -> None:
    blank = str((await server.call("tab_new", activate=False))["targetId"])
    failed(await server.call("revalidate", targetId=blank), -32003, "pks.scope_not_open")
