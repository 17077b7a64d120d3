"""Reviews on the real stack: real Chromium, real gates, and a ledger that tells who decided what."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from dashboard_kit import ENDPOINT, ORIGIN, TOKEN, Visitor
from loop_kit import Server, Shop, serving, shop
from place_kit import Place

from nova_mcp.dashboard.app import build
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, recent
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion import event_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import HOUR_MS, Mark
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.memory.promotion.prompts.rules import Moment, detected
from nova_mcp.server.http.dashboard_home import Home, Keys
from promotion_kit import phenomenon

pytestmark = pytest.mark.browser

DESK = "<!doctype html><title>Desk</title><main><h1>Desk</h1><button id=show type=button>Show</button></main>"


@dataclass
class Here(Place):
    """A site of its own with an entry that has something in its favour."""

    async def keep(self, level: int, proofs: int, **changes: Any) -> Shelved:
        now = self.server.clock.now_ms()
        made = phenomenon("show", "#show", level=level, created_at_ms=now - HOUR_MS, updated_at_ms=now - HOUR_MS)
        (put,) = await self.put(replace(made, **changes))
        marks = [
            Mark(0, now - 60_000 * (proofs - at), "action_success", 1, f"{self.scope}-{at}", f"s{at % 2}")
            for at in range(proofs)
        ]

        def write(conn: Any) -> None:
            (kept,) = store.by_ids(conn, [put.entry_id])
            witnessed(conn, kept, marks)

        await self.server.nova.database.write(write)
        return put

    async def level(self) -> tuple[int, str | None]:
        kept = (await self.shelved("show")).kept
        return kept.level, kept.deprecated_reason

    async def calls(self, *tools: str) -> list[CallRecord]:
        """What the ledger has of the dashboard's calls, the oldest first."""
        found = await self.server.nova.database.read(recent, EventFilter(limit=40))
        records = [one.record for one in reversed(found) if one.record is not None and one.record.kind == "call"]
        return [one for one in records if one.caller.agent_id == "dashboard" and one.tool_name in tools]

    async def events(self) -> list[Any]:
        return await self.server.nova.database.read(event_store.of_entry, self.scope, "show", 20)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def pages() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update({"/desk": DESK, "/": DESK})
        yield running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    async with serving(tmp_path_factory.mktemp("nova")) as running:
        yield running


@pytest.fixture
def here(server: Server, pages: Shop) -> Here:
    return Here.new(server, pages)


@asynccontextmanager
async def operator(server: Server) -> AsyncIterator[Visitor]:
    """Signed in to a dashboard over the running program."""

    async def running() -> Any:
        return server.nova

    keys = Keys("local", TOKEN, ENDPOINT, {TOKEN: "local"}.get, "mcp.json", 0)
    app = build(Home(server.nova._parts.settings, server.nova._parts.ports, keys, running))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as http:
        visitor = Visitor(http)
        assert (await visitor.post("/login", {"token": TOKEN}, csrf=None)).status_code == 303
        yield visitor


def decide(here: Here, transition: str = "l1_to_l2") -> dict[str, str]:
    return {"scope": here.scope, "id": "show", "act": "decide", "transition": transition}


def retire(here: Here) -> dict[str, str]:
    return {"scope": here.scope, "id": "show", "act": "retire", "reason": "it is not how the site works"}


async def test_a_confirmed_step_is_taken_once_and_stands_in_the_ledger(here: Here):
    here.tab = await here.server.new_tab()
    await here.go("/desk")
    await here.keep(level=0, proofs=4)
    async with operator(here.server) as visitor:
        page = await visitor.page(f"/review/entry?scope={here.scope}&id=show&act=decide")
        assert 'name="transition" value="l0_to_l1"' in page
        for _ in range(2):
            # The second is a form that was sent twice; the entry would pass the next gates as well.
            assert (await visitor.post("/review/entry", decide(here, "l0_to_l1"))).status_code == 303
    assert await here.level() == (1, None)
    assert [(one.reason_kind, one.rejection) for one in await here.events()] == [("l0_to_l1", None)]
    calls = await here.calls("nova.learn_promote")
    assert [(one.caller.principal, one.outcome.kind) for one in calls] == [("local", "ok"), ("local", "ok")]


async def test_gates_that_hold_are_held_to_although_the_operator_confirms(here: Here):
    here.tab = await here.server.new_tab()
    await here.go("/desk")
    await here.keep(level=1, proofs=1)
    async with operator(here.server) as visitor:
        await visitor.post("/review/entry", decide(here))
    assert await here.level() == (1, None)


async def test_a_site_is_opened_for_the_review_and_closed_again(here: Here):
    await here.keep(level=1, proofs=4)
    tabs = len((await here.server.call("tabs"))["tabs"])
    async with operator(here.server) as visitor:
        first = await visitor.post("/review/entry", decide(here))
        assert first.status_code == 409
        assert await here.level() == (1, None)
        again = await visitor.post("/review/entry", {**decide(here), "url": f"{here.origin}/desk"})
        assert again.status_code == 303
    assert await here.level() == (2, None)
    assert len((await here.server.call("tabs"))["tabs"]) == tabs
    calls = await here.calls("nova.learn_promote", "nova.tab_new", "nova.tab_close")
    assert [(one.tool_name, one.outcome.kind) for one in calls[-4:]] == [
        ("nova.learn_promote", "failed"),
        ("nova.tab_new", "ok"),
        ("nova.learn_promote", "ok"),
        ("nova.tab_close", "ok"),
    ]


async def test_a_candidate_is_rejected_with_its_reason(here: Here):
    here.tab = await here.server.new_tab()
    await here.go("/desk")
    await here.keep(level=0, proofs=1)
    async with operator(here.server) as visitor:
        for _ in range(2):
            assert (await visitor.post("/review/entry", retire(here))).status_code == 303
        page = await visitor.page(f"/knowledge/entry?scope={here.scope}&id=show")
    assert await here.level() == (0, "it is not how the site works")
    assert "Retired: it is not how the site works" in page
    told = [one.reason_kind for one in await here.events()]
    assert told == ["deprecation"]


async def test_an_active_entry_that_nothing_speaks_against_stays(here: Here):
    here.tab = await here.server.new_tab()
    await here.go("/desk")
    await here.keep(level=2, proofs=4)
    async with operator(here.server) as visitor:
        answer = await visitor.post("/review/entry", retire(here))
        page = (await visitor.http.get(answer.headers["location"])).text
    assert await here.level() == (2, None)
    assert "An active entry is retired after a failure or drift in the last 7 days." in page


async def test_a_question_is_answered_once(here: Here):
    moment = Moment(here.origin, "fp", ("consent",), selector="#no", layer="#cmp", tool="nova.click_selector")
    (made,) = detected(moment, here.server.clock.now_ms())
    await here.server.nova.database.write(semantic_store.save, "local", made, here.server.clock.now_ms())
    form = {"id": made.opportunity_id, "verdict": "not_applicable", "reason": "seen"}
    notices = []
    async with operator(here.server) as visitor:
        assert made.opportunity_id in (await visitor.page("/review")).replace("%3A", ":").replace("%2F", "/")
        for verdict in ("not_applicable", "unsafe"):
            answer = await visitor.post("/review/question", {**form, "verdict": verdict})
            notices.append((await visitor.http.get(answer.headers["location"])).text)
    kept = await here.server.nova.database.read(semantic_store.find, "local", made.opportunity_id, lock=False)
    assert kept is not None
    assert (kept.state, kept.verdict, kept.reason) == ("dismissed", "not_applicable", "seen")
    assert "Answered: there is nothing to store." in notices[0]
    assert "it was answered before" in notices[1]
    outcomes = [one.outcome.kind for one in await here.calls("nova.learn_resolve_opportunity")]
    assert outcomes == ["ok", "failed"]


async def test_while_everything_is_stopped_nothing_is_decided(here: Here):
    here.tab = await here.server.new_tab()
    await here.go("/desk")
    await here.keep(level=1, proofs=4)
    stop = here.server.nova._parts.settings.stop_file
    stop.touch()
    try:
        async with operator(here.server) as visitor:
            await visitor.post("/review/entry", decide(here))
    finally:
        stop.unlink()
    assert await here.level() == (1, None)
