"""Every row of the contract about memory statistics, through a real client."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_kit import Server, Shop, serving, shop
from real_kit import text_of
from sqlalchemy import Connection, insert, update

from nova_mcp.evidence.store import ledger_link
from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.journal.model import Decision
from nova_mcp.memory.journal.statistics.counters import LABELS_PER_DAY, bump
from nova_mcp.memory.journal.statistics.counting import (
    HOUR_MS,
    CandidateStand,
    Tally,
    of_candidate,
    of_contradiction,
    of_curated,
    of_decision,
    of_job_done,
    of_observations,
)
from nova_mcp.storage.engine import Database

SIGNAL = {
    *("attempts", "successes", "successRate", "p50Ms", "p95Ms"),
    *("topRoutes", "topHosts", "topSelectors", "topReasonCodes"),
}
BLOCKS = {
    "ok": None,
    "windowHours": None,
    "generatedAtUtc": None,
    "componentFilter": None,
    "kpis": {
        *("commitRate", "verificationRate", "disprovenRate", "curationRate", "outboxHealth", "toolSuccessRate"),
        *("verifiedActionRate", "falseSuccessCaught", "runtimeReadiness"),
    },
    "lcj": {
        *("toolEventsTotal", "toolEventsWindow", "observationsTotal", "observationsWindow", "candidatesTotal"),
        *("candidatesWindow", "candidatesUnverified", "candidatesVerified", "candidatesDisproven"),
        *("candidatesPromotable", "curatedTotal", "curatedWindow", "topComponentsWindow"),
    },
    "finalize": {
        *("decisionsTotal", "decisionsWindow", "commitsWindow", "skipsWindow", "outboxPending", "outboxLeased"),
        *("outboxDone", "outboxFailed", "oldestPendingAgeMs", "skipReasonsWindow"),
    },
    "rolloutDecision": {"ready", "blockers", "sampleSize"},
    "scrollSmart": SIGNAL,
    "clickNavigation": SIGNAL,
    "dismissBlockers": SIGNAL,
    "screenshotCapture": SIGNAL,
}
LIMITS = ("topComponents", "maxSkipReasons", "topRoutes", "topHosts", "topSelectors")
RUNTIME = ("scrollSmart", "clickNavigation", "dismissBlockers", "screenshotCapture")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    """A server for tests that only ask."""
    async with serving(tmp_path_factory.mktemp("asked")) as running:
        yield running


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "nova.db"
    Database.open(f"sqlite:///{path}").close_sync()
    return path


@pytest.fixture
async def fresh(tmp_path: Path, empty_store: Path) -> AsyncIterator[Server]:
    """A server in whose store nothing has happened."""
    shutil.copy(empty_store, tmp_path)
    async with serving(tmp_path) as running:
        yield running


async def stats(agent: Server, **arguments: Any) -> dict[str, Any]:
    return await agent.call("memory_stats", **arguments)


def in_store(agent: Server, change: Callable[[Connection], object]) -> None:
    with Database.open(f"sqlite:///{agent.data_dir / 'nova.db'}") as db:
        db.write_sync(change)


def put(agent: Server, *tallies: Tally, principal: str = "local") -> None:
    in_store(agent, lambda conn: bump(conn, "somebody", sum(tallies, Tally()), principal=principal))


def queue(agent: Server, state: str, *, number: int, age_ms: int = 0) -> None:
    now = agent.clock.now_ms()
    row = {
        **dict.fromkeys(("task_id", "target_id", "principal", "agent_id"), "x"),
        "job_id": f"{state}{number}",
        "job_key": f"{state}{number}",
        "job_type": "pks.domain.save",
        "payload": "{}",
        "state": state,
        "attempts": 0,
        "due_at_ms": now,
        "created_at_ms": now - age_ms,
        "lease_until_ms": now + HOUR_MS,
    }
    in_store(agent, lambda conn: conn.execute(insert(outbox_job), row))


def candidate(component: str, status: str = "unverified", *, at: int, promotable: bool = False) -> Tally:
    return of_candidate(None, CandidateStand(component, status, promotable=promotable), at)  # type: ignore[arg-type]


def refused(body: dict[str, Any], argument: str) -> None:
    assert (body["ok"], body["errorCode"], body["reasonCode"]) == (False, -32602, "invalid_params"), body
    assert argument in body["message"] + str(body.get("details", "")), body


# -- arguments


async def test_without_arguments_it_tells_about_a_day(shared: Server) -> None:
    body = await stats(shared)
    assert (body["ok"], body["windowHours"], body["componentFilter"]) == (True, 24, None)


@pytest.mark.parametrize("hours", [1, 2, 719, 720])
async def test_window_hours_reach_from_one_to_thirty_days(shared: Server, hours: int) -> None:
    assert (await stats(shared, windowHours=hours))["windowHours"] == hours


@pytest.mark.parametrize("hours", [0, -1, 721, 10**9])
async def test_window_hours_outside_their_bounds_are_refused(shared: Server, hours: int) -> None:
    refused(await stats(shared, windowHours=hours), "windowHours")


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("limit", [1, 20])
async def test_lists_may_be_as_long_as_one_to_twenty(shared: Server, name: str, limit: int) -> None:
    assert (await stats(shared, **{name: limit}))["ok"] is True


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("limit", [0, 21, -1])
async def test_lists_outside_their_bounds_are_refused(shared: Server, name: str, limit: int) -> None:
    refused(await stats(shared, **{name: limit}), name)


@pytest.mark.parametrize("name", ["windowHours", *LIMITS])
@pytest.mark.parametrize("value", ["8", 8.0, 8.5, True, None, [8], {"value": 8}])
async def test_limits_are_json_integers_and_nothing_else(shared: Server, name: str, value: Any) -> None:
    refused(await stats(shared, **{name: value}), name)


@pytest.mark.parametrize("value", [1, 1.5, True, ["consent"], {"name": "consent"}])
async def test_a_component_filter_is_a_string_or_null(shared: Server, value: Any) -> None:
    refused(await stats(shared, componentFilter=value), "componentFilter")


async def test_a_component_filter_may_be_null(shared: Server) -> None:
    assert (await stats(shared, componentFilter=None))["componentFilter"] is None


async def test_a_component_filter_is_normalised_like_a_component(shared: Server) -> None:
    assert (await stats(shared, componentFilter="  Consent-Dialog "))["componentFilter"] == "consent-dialog"


async def test_a_blank_component_filter_filters_nothing(shared: Server) -> None:
    assert (await stats(shared, componentFilter="  "))["componentFilter"] is None


@pytest.mark.parametrize("name", ["window", "window_hours", "WindowHours", "targetId", "limit"])
async def test_unknown_arguments_are_refused(shared: Server, name: str) -> None:
    refused(await stats(shared, **{name: 1}), name)


# -- the shape of the answer


async def test_every_block_has_exactly_its_fields(fresh: Server) -> None:
    body = await stats(fresh)
    assert set(body) == set(BLOCKS)
    for block, fields in BLOCKS.items():
        if fields is not None:
            assert set(body[block]) == fields, block


async def test_a_store_without_history_has_counts_of_nothing_and_no_rates(fresh: Server) -> None:
    body = await stats(fresh)
    kpis, lcj, finalize = body["kpis"], body["lcj"], body["finalize"]
    assert {name for name, value in kpis.items() if value is None} == {
        *("commitRate", "verificationRate", "disprovenRate", "curationRate", "outboxHealth", "toolSuccessRate"),
        "verifiedActionRate",
    }
    assert kpis["falseSuccessCaught"] == 0
    assert lcj.pop("topComponentsWindow") == []
    assert set(lcj.values()) == {0}
    assert (finalize.pop("skipReasonsWindow"), finalize.pop("oldestPendingAgeMs")) == ([], None)
    assert set(finalize.values()) == {0}
    for name in RUNTIME:
        assert (body[name]["attempts"], body[name]["successRate"], body[name]["p50Ms"]) == (0, None, None)
        assert body[name]["topRoutes"] == body[name]["topHosts"] == body[name]["topSelectors"] == []


async def test_the_time_of_the_answer_is_the_servers(fresh: Server) -> None:
    fresh.clock.shift_ms = 400 * 24 * HOUR_MS
    body = await stats(fresh)
    assert body["generatedAtUtc"].endswith("Z")
    assert body["generatedAtUtc"] > "2027"


async def test_the_text_says_what_matters_in_a_few_lines(fresh: Server) -> None:
    put(fresh, candidate("consent", "verified", at=fresh.clock.now_ms()))
    answer = await fresh.client.call_tool("nova.memory_stats", {"windowHours": 48})
    text = text_of(answer)
    assert "last 48 h" in text
    assert "1 verified" in text
    assert "too_few_verified_actions" in text
    assert len(text) < 500


# -- lcj


async def test_calls_are_counted_once_recorded_and_an_answer_does_not_count_itself(fresh: Server) -> None:
    first = await stats(fresh)
    assert first["lcj"]["toolEventsTotal"] == 0
    await fresh.call("tabs")
    await stats(fresh, windowHours=0)
    lcj = (await stats(fresh))["lcj"]
    assert (lcj["toolEventsTotal"], lcj["toolEventsWindow"]) == (3, 3)


async def test_what_was_refused_is_an_event_but_neither_success_nor_failure(fresh: Server) -> None:
    await stats(fresh)
    await stats(fresh, windowHours=0)
    body = await stats(fresh)
    assert (body["lcj"]["toolEventsWindow"], body["kpis"]["toolSuccessRate"]) == (2, 1.0)


async def test_events_leave_the_window_and_stay_in_the_total(fresh: Server) -> None:
    await fresh.call("tabs")
    fresh.clock.shift_ms = 2 * HOUR_MS
    assert (await stats(fresh, windowHours=1))["lcj"]["toolEventsWindow"] == 0
    lcj = (await stats(fresh, windowHours=3))["lcj"]
    assert lcj["toolEventsWindow"] == lcj["toolEventsTotal"] == 2


async def test_everything_that_happened_within_the_window_is_in_it(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(fresh, of_observations(now - 24 * HOUR_MS + 1_000), of_observations(now))
    put(fresh, of_observations(now - 26 * HOUR_MS))
    lcj = (await stats(fresh))["lcj"]
    assert (lcj["observationsWindow"], lcj["observationsTotal"]) == (2, 3)


async def test_candidates_are_told_by_how_they_stand(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(
        fresh,
        candidate("consent", at=now),
        candidate("consent", "verified", at=now, promotable=True),
        candidate("navigation", "verified", at=now - 48 * HOUR_MS),
        candidate("navigation", "disproven", at=now),
        of_curated("consent", now),
    )
    body = await stats(fresh)
    lcj, kpis = body["lcj"], body["kpis"]
    assert (lcj["candidatesTotal"], lcj["candidatesWindow"]) == (4, 3)
    assert (lcj["candidatesUnverified"], lcj["candidatesVerified"], lcj["candidatesDisproven"]) == (1, 2, 1)
    assert (lcj["candidatesPromotable"], lcj["curatedTotal"], lcj["curatedWindow"]) == (1, 1, 1)
    assert (kpis["verificationRate"], kpis["disprovenRate"], kpis["curationRate"]) == (0.5, 0.25, 0.5)
    assert lcj["topComponentsWindow"] == [
        {"component": "consent", "candidates": 2},
        {"component": "navigation", "candidates": 1},
    ]


async def test_top_components_limits_the_list_and_nothing_else(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(fresh, *(candidate(f"part-{number:02}", at=now) for number in range(25)), candidate("part-07", at=now))
    lcj = (await stats(fresh, topComponents=2))["lcj"]
    assert [one["component"] for one in lcj["topComponentsWindow"]] == ["part-07", "part-00"]
    assert lcj["candidatesWindow"] == 26
    assert len((await stats(fresh, topComponents=20))["lcj"]["topComponentsWindow"]) == 20


async def test_a_component_filter_filters_candidates_and_curation_and_nothing_else(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(
        fresh,
        of_observations(now, 3),
        *(candidate(name, "verified", at=now) for name in ("consent", "consent", "other")),
        of_curated("consent", now),
        candidate("other", at=now),
        of_curated("other", now),
        of_decision(Decision("commit", "auto"), now),
    )
    # The first call is the one that the rate of the others is about.
    await stats(fresh)
    everything = await stats(fresh)
    filtered = await stats(fresh, componentFilter="CONSENT")
    lcj = filtered["lcj"]
    assert (lcj["candidatesTotal"], lcj["candidatesWindow"], lcj["candidatesVerified"]) == (2, 2, 2)
    assert (lcj["curatedTotal"], lcj["curatedWindow"], lcj["observationsTotal"]) == (1, 1, 3)
    assert lcj["topComponentsWindow"] == [{"component": "consent", "candidates": 2}]
    assert (filtered["finalize"], filtered["kpis"]) == (everything["finalize"], everything["kpis"])
    assert {name: filtered[name] for name in RUNTIME} == {name: everything[name] for name in RUNTIME}
    nothing = (await stats(fresh, componentFilter="unheard-of"))["lcj"]
    assert (nothing["candidatesTotal"], nothing["candidatesWindow"], nothing["topComponentsWindow"]) == (0, 0, [])


async def test_a_filter_finds_a_component_that_came_after_a_days_list_was_full(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(fresh, *(candidate(f"part-{number}", at=now) for number in range(LABELS_PER_DAY)))
    put(fresh, candidate("latecomer", at=now), candidate("latecomer", at=now))
    assert (await stats(fresh, componentFilter="latecomer"))["lcj"]["candidatesWindow"] == 2
    listed = (await stats(fresh))["lcj"]["topComponentsWindow"]
    assert listed[0] == {"component": "(other)", "candidates": 2}


async def test_labels_of_others_are_not_shown_and_cannot_be_asked_for(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    secret = candidate("payroll-export", "verified", at=now) + of_decision(Decision("skip", "caller", "by ada"), now)
    put(fresh, secret, principal="somebody-else")
    body = await stats(fresh)
    assert (body["lcj"]["candidatesTotal"], body["finalize"]["skipsWindow"]) == (1, 1)
    assert (body["lcj"]["topComponentsWindow"], body["finalize"]["skipReasonsWindow"]) == ([], [])
    asked = (await stats(fresh, componentFilter="payroll-export"))["lcj"]
    assert (asked["candidatesTotal"], asked["candidatesVerified"], asked["candidatesWindow"]) == (0, 0, 0)


# -- finalize and outbox


async def test_decisions_are_told_with_their_reasons(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    skips = ["no_candidates"] * 3 + ["evidence_below_threshold"] * 2 + ["context_expired"]
    put(fresh, *(of_decision(Decision("skip", "auto", reason), now) for reason in skips))
    put(fresh, *(of_decision(Decision("commit", "auto"), now - age) for age in (0, 0, 30 * HOUR_MS)))
    body = await stats(fresh, maxSkipReasons=2)
    finalize = body["finalize"]
    assert (finalize["decisionsTotal"], finalize["decisionsWindow"]) == (9, 8)
    assert (finalize["commitsWindow"], finalize["skipsWindow"], body["kpis"]["commitRate"]) == (2, 6, 0.25)
    assert finalize["skipReasonsWindow"] == [
        {"reasonCode": "no_candidates", "count": 3},
        {"reasonCode": "evidence_below_threshold", "count": 2},
    ]


async def test_the_outbox_is_told_by_state_and_its_health_by_what_is_stuck(fresh: Server) -> None:
    put(fresh, *(of_job_done(fresh.clock.now_ms()) for _ in range(5)))
    queue(fresh, "pending", number=1)
    queue(fresh, "pending", number=2, age_ms=6 * 60_000)
    queue(fresh, "failed", number=3)
    queue(fresh, "leased", number=4)
    body = await stats(fresh)
    finalize = body["finalize"]
    assert (finalize["outboxPending"], finalize["outboxLeased"]) == (2, 1)
    assert (finalize["outboxDone"], finalize["outboxFailed"]) == (5, 1)
    assert 6 * 60_000 <= finalize["oldestPendingAgeMs"] < 7 * 60_000
    assert body["kpis"]["outboxHealth"] == round(1 - 2 / 9, 4)


# -- rollout


def acted(count: int, at: int) -> Tally:
    return Tally({("tool.verified", at // HOUR_MS, ""): (count, count)})


async def test_fifty_verified_actions_make_a_rollout_ready(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(fresh, acted(49, now))
    assert (await stats(fresh))["rolloutDecision"] == {
        "ready": False,
        "blockers": ["too_few_verified_actions"],
        "sampleSize": 49,
    }
    put(fresh, acted(1, now))
    body = await stats(fresh)
    assert body["rolloutDecision"] == {"ready": True, "blockers": [], "sampleSize": 50}
    assert body["kpis"]["runtimeReadiness"] == 1.0


async def test_contradicted_successes_stop_a_rollout(fresh: Server) -> None:
    now = fresh.clock.now_ms()
    put(fresh, acted(100, now), of_contradiction(now))
    assert (await stats(fresh))["rolloutDecision"]["ready"] is True
    put(fresh, of_contradiction(now))
    assert (await stats(fresh))["rolloutDecision"]["blockers"] == ["contradicted_successes"]


async def test_an_ailing_outbox_stops_a_rollout(fresh: Server) -> None:
    put(fresh, acted(50, fresh.clock.now_ms()))
    queue(fresh, "failed", number=1)
    assert (await stats(fresh))["rolloutDecision"]["blockers"] == ["outbox_unhealthy"]


async def test_a_broken_chain_stops_a_rollout(fresh: Server) -> None:
    put(fresh, acted(50, fresh.clock.now_ms()))
    await stats(fresh)
    assert (await stats(fresh))["rolloutDecision"]["ready"] is True
    in_store(fresh, lambda conn: conn.execute(update(ledger_link).values(body_hash=b"\x00" * 32)))
    body = await stats(fresh)
    assert body["rolloutDecision"]["blockers"] == ["chain_break"]
    assert body["kpis"]["runtimeReadiness"] == 0.75


# -- the runtime signals, from real calls

LONG = "<!doctype html><title>Long</title><main><a id=on href=/next>on</a><p style='height:4000px'>long</p></main>"


@pytest.fixture
def site() -> Iterator[Shop]:
    with shop() as running:
        running.pages |= {"/long": LONG, "/next": "<!doctype html><title>Next</title><h1>Next</h1>"}
        yield running


@pytest.mark.browser
async def test_real_calls_move_the_runtime_signals(fresh: Server, site: Shop) -> None:
    await fresh.call("tab_new", url=site.url("/long"))
    await fresh.call("perceive")
    await fresh.call("scroll_smart", to="next")
    await fresh.call("capture_screenshot")
    await fresh.call("dismiss_blockers")
    await fresh.call("click_selector", selector="#nowhere", timeoutMs=100, waitForNavigation=True)
    await fresh.call("click_selector", selector="#on")
    body = await stats(fresh)
    assert {name: (body[name]["attempts"], body[name]["successes"]) for name in RUNTIME} == {
        "scrollSmart": (1, 1),
        "clickNavigation": (2, 1),
        "dismissBlockers": (1, 1),
        "screenshotCapture": (1, 1),
    }
    host = site.base.removeprefix("http://")
    clicks = body["clickNavigation"]
    assert clicks["successRate"] == 0.5
    assert clicks["topHosts"] == [{"host": host, "attempts": 2, "successes": 1}]
    assert clicks["topRoutes"] == [{"route": f"{host}/long", "attempts": 2, "successes": 1}]
    assert {"selector": "#on", "attempts": 1, "successes": 1} in clicks["topSelectors"]
    assert [one["count"] for one in clicks["topReasonCodes"]] == [1]
    assert 0 < clicks["p50Ms"] <= clicks["p95Ms"]
    # The link led to its address, which proves the click; scrolling proves nothing that a rollout could rest on.
    assert body["rolloutDecision"]["sampleSize"] == 1
