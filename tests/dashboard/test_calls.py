"""Calls page by page, one call whole, and what its place in the chain says."""

import json
import re
from dataclasses import replace

import pytest
from dashboard_kit import HOSTILE, NOW, SERVER, Stand, a_call, numbered
from filled import COMMIT, INTENT, fill
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from nova_mcp.calls.model import ResourceContent
from nova_mcp.dashboard.pages import calls as calls_page
from nova_mcp.dashboard.pages import receipts
from nova_mcp.dashboard.pages.calls import Cursor, Filters, calls, cursor_of
from nova_mcp.evidence.model import Caller, CallOutcome, ServerId
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.rules import canonical_body
from nova_mcp.evidence.store import ledger_body, ledger_link, register_server
from nova_mcp.verification.model import Contract
from nova_mcp.verification.store import open_transition, settle
from nova_mcp.verification.transitions import NewTransition, Settlement

OTHER = ServerId("t" * 32)


def _walk(desk: Stand, wanted: Filters) -> list[str]:
    found: list[str] = []
    place: Cursor | None = None
    while True:
        page = desk.db.read_sync(calls, wanted, place)
        found += [line.call_id for line in page.lines]
        if page.next is None:
            return found
        place = page.next


def test_pages_hold_every_call_exactly_once_even_where_many_share_a_moment(desk: Stand):
    desk.db.write_sync(register_server, describe_server(OTHER, NOW, "test"))
    here = numbered(90, lambda at: a_call(f"a{at:03d}", at_ms=NOW - (at // 40)))
    there = numbered(70, lambda at: a_call(f"b{at:03d}", at_ms=NOW - (at // 40), caller=Caller("local", "x", OTHER)))
    desk.add(*here, *there)
    walked = _walk(desk, Filters())
    assert sorted(walked) == sorted(record.call_id for record in (*here, *there))
    moments = {record.call_id: record.started_at_ms for record in (*here, *there)}
    assert [moments[one] for one in walked] == sorted((moments[one] for one in walked), reverse=True)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Filters(tool="perceive"), ["p"]),
        (Filters(tool="nova.perceive"), ["p"]),
        (Filters(outcome="failed"), ["f"]),
        (Filters(agent="b"), ["b"]),
        (Filters(host="wiki.test"), ["w"]),
        (Filters(outcome="failed", host="wiki.test"), []),
        (Filters(intents=True), ["i", "w", "b", "f", "p"]),
        (Filters(), ["w", "b", "f", "p"]),
    ],
)
def test_filters_show_what_fits(desk: Stand, wanted: Filters, ids: list[str]):
    desk.add(
        a_call("p", at_ms=NOW - 9, tool_name="nova.perceive"),
        a_call("f", at_ms=NOW - 8, outcome=CallOutcome("failed", reason_code="x.y")),
        a_call("b", at_ms=NOW - 7, caller=Caller("local", "b", SERVER)),
        a_call("w", at_ms=NOW - 6, url="https://wiki.test/"),
        a_call("i", at_ms=NOW - 5, kind="intent", outcome=CallOutcome("pending")),
    )
    assert _walk(desk, wanted) == ids


def test_a_filter_looks_at_a_bounded_stretch_and_finds_rare_calls_by_going_on(
    desk: Stand, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls_page, "LOOKED_AT", 20)
    desk.add(a_call("rare", at_ms=NOW - 100, tool_name="nova.perceive"))
    desk.add(*numbered(50, lambda at: a_call(f"c{at}", at_ms=NOW - 50 + at)))
    first = desk.db.read_sync(calls, Filters(tool="perceive"), None)
    assert (first.lines, first.next is not None, first.looked_back_to_ms) == ((), True, NOW - 20)
    assert _walk(desk, Filters(tool="perceive")) == ["rare"]
    assert len(_walk(desk, Filters())) == 51
    monkeypatch.setattr(calls_page, "UNFILTERED", 7)
    assert len(_walk(desk, Filters())) == 51


@given(st.text(max_size=60))
def test_only_a_cursor_is_a_cursor(text: str):
    found = cursor_of(text)
    assert found is None or found.text() == text.lstrip("0") or int(text.split(".")[0]) == found.at_ms


@pytest.mark.parametrize("before", ["x", "1.2", f"1.2.{'s' * 99}", "1.2.s'--", "١.٢.s"])
async def test_a_broken_address_shows_the_newest_page(desk: Stand, before: str):
    desk.add(a_call("one"))
    async with desk.operator() as visitor:
        assert "/calls/one" in (await visitor.get("/calls", params={"before": before})).text


async def test_older_leads_on_and_keeps_the_filter(desk: Stand):
    desk.add(*numbered(60, lambda at: a_call(f"c{at:02d}", at_ms=NOW - at)))
    async with desk.operator() as visitor:
        first = await visitor.page("/calls?tool=click_selector")
        older = re.search(r'rel="next" href="/dashboard([^"]+)"', first)
        assert older is not None
        second = await visitor.page(older[1].replace("&amp;", "&"))
    assert ("/calls/c49" in first, "/calls/c50" in first) == (True, False)
    assert ("/calls/c49" in second, "/calls/c50" in second, 'value="click_selector"' in second) == (False, True, True)


async def test_a_commit_shows_its_receipt_and_leads_to_its_announcement(desk: Stand):
    fill(desk, 5)
    async with desk.operator() as visitor:
        page = await visitor.page(f"/calls/{COMMIT}")
        for said in (
            "Verified: there is proof that it worked.",
            "api/orders",
            "201",
            "no answer seen",
            "Your order 1042",
            "Pay now",
        ):
            assert said in page
        assert f'href="/dashboard/calls/{INTENT}"' in page
        announced = await visitor.page(f"/calls/{INTENT}")
        assert f'href="/dashboard/calls/{COMMIT}"' in announced
        picture = await visitor.get(f"/calls/{COMMIT}/picture/before")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        assert picture.content.startswith(b"\x89PNG")


async def test_only_pictures_of_the_receipt_are_handed_out(desk: Stand):
    fill(desk, 5)
    desk.program.resources["nova://screenshot/p-after"] = ResourceContent(
        "", "text/html", data=b"<script>alert(1)</script>"
    )
    async with desk.operator() as visitor:
        for path in (
            f"/calls/{COMMIT}/picture/after",
            f"/calls/{COMMIT}/picture/other",
            "/calls/call-000001/picture/before",
            "/calls/nowhere/picture/before",
        ):
            answer = await visitor.get(path)
            assert (answer.status_code, "alert(1)" in answer.text) == (404, False), path


async def test_the_chain_is_checked_on_the_spot(desk: Stand):
    desk.add(a_call("one"), a_call("two"), a_call("three"))
    async with desk.operator() as visitor:
        assert "link to the record before it fit" in await visitor.page("/calls/two")
        forged = a_call("two", outcome=CallOutcome("ok", verification="verified_success"))
        place = (ledger_body.c.server_id == SERVER) & (ledger_body.c.server_seq == 2)
        desk.db.write_sync(
            lambda conn: conn.execute(update(ledger_body).where(place).values(body=canonical_body(forged)))
        )
        assert "not the one that was recorded" in await visitor.page("/calls/two")
        desk.db.write_sync(
            lambda conn: conn.execute(
                update(ledger_link).where(ledger_link.c.server_seq == 2).values(hash=b"\x00" * 32)
            )
        )
        assert "does not fit" in await visitor.page("/calls/three")


async def test_an_erased_call_keeps_its_place(desk: Stand):
    desk.add(a_call("one"), a_call("two"))

    def erase(conn) -> None:
        conn.execute(ledger_body.delete().where(ledger_body.c.server_seq == 2))
        conn.execute(update(ledger_link).where(ledger_link.c.server_seq == 2).values(erased_at_ms=NOW))

    desk.db.write_sync(erase)
    async with desk.operator() as visitor:
        page = await visitor.page("/calls/two")
    assert "was erased" in page
    assert "still fits into the chain" in page


def _in_place_of(body: bytes) -> list[bytes]:
    """What somebody may put where a body was."""
    data = json.loads(body)
    odd = [
        {**data, "started_at_ms": "yesterday"},
        {**data, "tool_name": ["nova.click"]},
        {**data, "before": {**data["before"], "url": {"a": 1}}, "after": {**data["after"], "url": None}},
        {**data, "outcome": {**data["outcome"], "kind": {}}},
        {**data, "outcome": {**data["outcome"], "action_dispatched": "perhaps"}},
        {**data, "touched": {**data["touched"], "flags": [1]}},
        {**data, "arguments": json.loads("[" * 500 + "]" * 500)},
    ]
    return [b"", b"garbage", b"\xff\xfe", b"[]", b"null", b'{"v": 1}', *(json.dumps(one).encode() for one in odd)]


@pytest.mark.parametrize("which", range(13))
async def test_one_body_that_was_tampered_with_hides_no_other_and_is_told(desk: Stand, which: int):
    desk.add(a_call("one"), a_call("two"), a_call("three"))
    body = _in_place_of(canonical_body(a_call("two")))[which]
    place = (ledger_body.c.server_id == SERVER) & (ledger_body.c.server_seq == 2)
    desk.db.write_sync(lambda conn: conn.execute(update(ledger_body).where(place).values(body=body)))
    async with desk.operator() as visitor:
        for path in ("/", "/calls"):
            page = await visitor.page(path)
            assert page.count('href="/dashboard/calls/') == 3, path
        page = await visitor.page("/calls/two")
        assert "broken" in page
        assert "by retention" not in page.replace("not by retention", "")
        assert "fit." in await visitor.page("/calls/three")


async def test_a_body_that_was_taken_away_is_not_called_erased(desk: Stand):
    desk.add(a_call("one"), a_call("two"))
    desk.db.write_sync(lambda conn: conn.execute(ledger_body.delete().where(ledger_body.c.server_seq == 2)))
    async with desk.operator() as visitor:
        page = await visitor.page("/calls/two")
    assert "gone without having been erased" in page
    assert "was erased" not in page


async def test_a_body_that_is_still_there_is_not_called_erased(desk: Stand):
    desk.add(a_call("one"))
    marked = update(ledger_link).where(ledger_link.c.server_seq == 1).values(erased_at_ms=NOW)
    desk.db.write_sync(lambda conn: conn.execute(marked))
    async with desk.operator() as visitor:
        assert "marked as erased, but a body is there" in await visitor.page("/calls/one")


async def test_arguments_are_shown_as_the_ledger_keeps_them(desk: Stand):
    desk.add(replace(a_call("one"), arguments={"text": "[redacted:password]", HOSTILE: 1}))
    async with desk.operator() as visitor:
        page = await visitor.page("/calls/one")
    assert "[redacted:password]" in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("call_id", ["nowhere", "x" * 300, "..%2f..", "%00", HOSTILE])
async def test_an_unknown_call_is_not_found(desk: Stand, call_id: str):
    async with desk.operator() as visitor:
        answer = await visitor.get(f"/calls/{call_id}".replace("/../", "/"))
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text


async def test_a_minute_can_be_jumped_to(desk: Stand):
    # NOW is 14:13:20 of its day.
    desk.add(a_call("late", at_ms=NOW), a_call("early", at_ms=NOW - 120_000))
    async with desk.operator() as visitor:
        page = await visitor.page("/calls?until=2026-09-21T14:12")
        assert ("/calls/early" in page, "/calls/late" in page) == (True, False)
        for broken in ("2026-13-01T00:00", "yesterday", HOSTILE):
            shown = (await visitor.get("/calls", params={"until": broken})).text
            assert ("/calls/late" in shown, "<script>alert" in shown) == (True, False)


async def test_a_call_leads_to_its_neighbours_in_the_chain(desk: Stand):
    desk.add(a_call("one"), a_call("two"), a_call("three"))
    async with desk.operator() as visitor:
        page = await visitor.page("/calls/two")
        assert ('/calls/one">Record before' in page, '/calls/three">Record after' in page) == (True, True)
        assert "Record before" not in await visitor.page("/calls/one")


def test_receipts_are_paged_by_verdict_and_hold_each_act_once(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(receipts, "SHOWN", 7)
    monkeypatch.setattr(receipts, "LOOKED_AT", 9)
    states = ("verified_success", "verified_fail", "indeterminate", "not_dispatched")

    def write(conn) -> None:
        for at in range(40):
            caller = Caller("local", "a", SERVER)
            new = NewTransition(
                f"t{at:02d}", caller, f"c{at}", "nova.x", None, "https://shop.test", Contract(), NOW - at // 5, "Pay"
            )
            open_transition(conn, new)
            settle(conn, f"t{at:02d}", Settlement(states[at % 4], completed_at_ms=NOW + 9))

    desk.db.write_sync(write)
    for state in ("", *states):
        found, place = [], None
        while True:
            page = desk.db.read_sync(receipts.receipts, state, place)
            found += [line.call_id for line in page.lines]
            if page.following is None:
                break
            place = receipts.place_of(page.following)
            assert place is not None
        wanted = [f"t{at:02d}" for at in range(40) if not state or states[at % 4] == state]
        assert sorted(found) == wanted


async def test_a_receipt_leads_to_its_act(desk: Stand):
    fill(desk, 5)
    async with desk.operator() as visitor:
        page = await visitor.page("/receipts")
        assert (f"/calls/{INTENT}" in page, "button “Pay”" in page, "verified" in page) == (True, True, True)
        assert "No act here" in await visitor.page("/receipts?verdict=verified_fail")


@pytest.mark.parametrize(
    ("verification", "word"),
    [("verified", "verified"), ("likely", "likely"), ("uncertain", "uncertain"), ("failed", "disproved")],
)
async def test_every_verdict_of_an_action_has_its_word(desk: Stand, verification: str, word: str):
    desk.add(a_call("one", outcome=CallOutcome("failed", action_dispatched=True, verification=verification)))
    async with desk.operator() as visitor:
        page = await visitor.page("/calls/one")
    assert re.search(rf'class="badge \w+">{word}</span>', page)
