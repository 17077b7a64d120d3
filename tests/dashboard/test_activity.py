"""The start page follows the ledger: what is new comes once, in order, whoever recorded it."""

import re
import sqlite3
from dataclasses import replace

import pytest
from dashboard_kit import HOSTILE, NOW, SERVER, Stand, a_call, numbered
from filled import fill

from nova_mcp.dashboard.data.feed import KEPT, STALE_MS
from nova_mcp.dashboard.pages.activity import SILENT_MS
from nova_mcp.evidence.model import Caller, CallOutcome, ServerId
from nova_mcp.evidence.recorder import HEARTBEAT_S, describe_server
from nova_mcp.evidence.store import end_server, register_server

OTHER = ServerId("t" * 32)


async def _news(visitor, feed: str, after: int) -> dict:
    answer = await visitor.get(f"/live?feed={feed}&after={after}", headers={"accept": "application/json"})
    assert answer.status_code == 200
    return answer.json()


async def test_new_calls_come_once_and_in_order(desk: Stand):
    async with desk.operator() as visitor:
        first = await _news(visitor, "", 0)
        assert (first["all"], first["count"]) == (True, 0)
        desk.add(a_call("one"), a_call("two", at_ms=NOW - 4_000))
        second = await _news(visitor, first["feed"], first["last"])
        assert (second["all"], second["count"]) == (False, 2)
        assert second["rows"].index("/calls/two") < second["rows"].index("/calls/one")
        third = await _news(visitor, second["feed"], second["last"])
        assert (third["count"], third["rows"].strip()) == (0, "")


async def test_calls_of_every_server_are_followed_even_those_that_start_later(desk: Stand):
    async with desk.operator() as visitor:
        seen = await _news(visitor, "", 0)
        desk.db.write_sync(register_server, describe_server(OTHER, NOW, "test"))
        desk.add(a_call("here"), a_call("there", caller=Caller("local", "b", OTHER)))
        news = await _news(visitor, seen["feed"], seen["last"])
        assert ("/calls/here" in news["rows"], "/calls/there" in news["rows"]) == (True, True)


async def test_of_a_flood_the_end_is_shown_and_the_next_look_goes_on_behind_it(desk: Stand):
    async with desk.operator() as visitor:
        seen = await _news(visitor, "", 0)
        flood = numbered(3 * KEPT, lambda at: a_call(f"f{at}", at_ms=NOW + at))
        desk.add(*flood)
        news = await _news(visitor, seen["feed"], seen["last"])
        assert f"/calls/f{3 * KEPT - 1}" in news["rows"]
        desk.add(a_call("after", at_ms=NOW + 9_000))
        last = await _news(visitor, news["feed"], news["last"])
        assert (last["count"], "/calls/after" in last["rows"]) == (1, True)


@pytest.mark.parametrize(("feed", "after"), [("gone", "3"), ("", "x"), ("", "9" * 40), ("", "-1"), ("", "²")])
async def test_a_page_of_an_earlier_server_gets_everything_anew(desk: Stand, feed: str, after: str):
    desk.add(a_call("one"))
    async with desk.operator() as visitor:
        answer = await visitor.get(f"/live?feed={feed}&after={after}")
        assert (answer.json()["all"], answer.json()["count"]) == (True, 1)


async def test_two_pages_follow_independently(desk: Stand):
    async with desk.operator() as one, desk.operator() as other:
        mine, theirs = await _news(one, "", 0), await _news(other, "", 0)
        desk.add(a_call("new"))
        assert (await _news(one, mine["feed"], mine["last"]))["count"] == 1
        assert (await _news(other, theirs["feed"], theirs["last"]))["count"] == 1


async def test_an_announced_act_is_under_way_until_its_end_is_recorded(desk: Stand):
    desk.add(a_call("intent", kind="intent", outcome=CallOutcome("pending"), tool_name="nova.guarded_login"))
    async with desk.operator() as visitor:
        news = await _news(visitor, "", 0)
        assert (news["count"], "guarded_login" in news["underWay"]) == (0, True)
        desk.add(a_call("end", closes="intent"))
        later = await _news(visitor, news["feed"], news["last"])
        assert (later["count"], later["underWay"].strip()) == (1, "")


async def test_looking_changes_nothing_in_the_store(desk: Stand):
    fill(desk, 60)
    watcher = sqlite3.connect(desk.settings.data_dir / "nova.db")
    before = watcher.execute("PRAGMA data_version").fetchone()
    files = _files(desk)
    async with desk.operator() as visitor:
        for path in ("/", "/live", "/calls", "/calls/call-commit", "/statistics", "/questions", "/controls"):
            assert (await visitor.get(path)).status_code == 200
    assert watcher.execute("PRAGMA data_version").fetchone() == before
    assert _files(desk) == files
    desk.add(a_call("written"))
    assert watcher.execute("PRAGMA data_version").fetchone() != before
    watcher.close()


def _files(desk: Stand) -> list[str]:
    return sorted(str(path) for path in desk.settings.data_dir.rglob("*"))


async def test_the_day_is_summed_up_from_the_counters(desk: Stand):
    fill(desk, 200)
    async with desk.operator() as visitor:
        page = await visitor.page("/")
    assert "Calls, last 24 h" in page
    assert "False successes caught" in page
    assert "An agent waits for a person." in page


async def test_new_calls_bring_the_figures_of_the_day_along(desk: Stand):
    async with desk.operator() as visitor:
        first = await _news(visitor, "", 0)
        assert ("tiles" in first, "chart" in first) == (False, False)
        desk.add(a_call("one"))
        news = await _news(visitor, first["feed"], first["last"])
        assert ("Calls, last 24 h" in news["tiles"], "Calls per hour" in news["chart"]) == (True, True)


@pytest.mark.parametrize(("late_ms", "word"), [(HEARTBEAT_S * 1_000 + 5_000, "running"), (SILENT_MS + 1, "silent")])
async def test_a_server_is_silent_only_after_signs_of_life_that_it_owed(desk: Stand, late_ms: int, word: str):
    desk.db.write_sync(register_server, describe_server(OTHER, NOW, "test"))
    async with desk.operator() as visitor:
        desk.clock.at_ms = NOW + late_ms
        page = await visitor.page("/")
    assert re.search(rf'>{word}</span>\s*<span class="muted"><span title="{OTHER}">', page)


async def test_what_a_page_called_itself_stays_text_in_live_pieces(desk: Stand):
    named = a_call("bad", url=f"https://x.test/{HOSTILE}", tool_name=HOSTILE, caller=Caller("local", HOSTILE, SERVER))
    desk.add(replace(named, outcome=CallOutcome("failed", reason_code=HOSTILE)))
    async with desk.operator() as visitor:
        rows = (await _news(visitor, "", 0))["rows"]
    assert "<script" not in rows
    assert "<img" not in rows
    assert "&lt;script&gt;" in rows
    assert "{{7*7}}" in rows


async def test_after_a_long_pause_the_list_begins_anew(desk: Stand):
    async with desk.operator() as visitor:
        seen = await _news(visitor, "", 0)
        desk.add(a_call("one"))
        desk.clock.at_ms += STALE_MS + 1
        news = await _news(visitor, seen["feed"], seen["last"])
        assert (news["all"], news["count"], news["feed"] != seen["feed"]) == (True, 1, True)


async def test_a_server_that_came_and_went_between_two_looks_is_not_missed(desk: Stand):
    async with desk.operator() as visitor:
        seen = await _news(visitor, "", 0)
        desk.db.write_sync(register_server, describe_server(OTHER, NOW, "test"))
        desk.add(a_call("brief", at_ms=NOW, caller=Caller("local", "b", OTHER)))
        desk.db.write_sync(end_server, OTHER, NOW + 500, "closed")
        news = await _news(visitor, seen["feed"], seen["last"])
        assert "/calls/brief" in news["rows"]
