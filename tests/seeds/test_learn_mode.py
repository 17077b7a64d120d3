"""Learn Mode through a real client: turned on for a claim, counted from the record, held until it is done."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from loop_kit import Server, Shop
from place_kit import Place, failed

from nova_mcp.demo.site import practice_site
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.notes.playbook import SECTIONS
from nova_mcp.memory.tasks.tables import learn_activation

SETTINGS = {"tasks": {"learn_min_surfaces": 4, "learn_min_interactions": 3}}
REASON = "everything else on this site needs an account that we lack"

NAV = '<nav><a id="to-list" href="/list">List</a> <a id="to-about" href="/about">About</a></nav>'
PAGES = {
    "/plain": f"<!doctype html><title>Start</title><h1>Start</h1>{NAV}",
    "/list": """<!doctype html><title>List</title><h1>List</h1>
        <label>Sort <select id="sort" onchange="out.textContent = value"><option>new</option><option>old</option>
        </select></label><button id="more" onclick="out.textContent += ' more'">Show more</button>
        <output id="out"></output><input id="word" aria-label="Word"><button id="nothing">Nothing</button>""",
    "/about": "<!doctype html><title>About</title><h1>About</h1><p>Words about this site.",
    "/dialog": """<!doctype html><title>Dialog</title><button id="open" onclick="d.showModal()">Filter</button>
        <dialog id="d" aria-label="Filters"><button id="close" onclick="d.close()">Close</button></dialog>""",
    "/form": """<!doctype html><title>Form</title><form method="post" action="/order"><input name="word" value="lamp">
        <button>Order</button></form>""",
    "/focus": '<!doctype html><title>Focus</title><button id="go" onclick="f.focus()">Go</button><input id="f">',
}
for _name in ("first", "second", "third"):
    PAGES[f"/blog/the-{_name}-post"] = f"<!doctype html><title>{_name}</title><h1>{_name}</h1>"


@dataclass
class Visit:
    """A place that an agent holds by a claim and learns."""

    place: Place
    agent: str = "default"

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.place.call(tool, agentId=self.agent, **arguments)

    async def learn(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("get_instructions", mode="learn", **arguments)

    async def claim(self) -> str:
        return str((await self.call("tab_claim", ttlMs=600_000))["taskId"])

    async def begin(self) -> str:
        task_id = await self.claim()
        (told,) = (await self.learn())["learnMode"]["activation"]
        assert told == {"targetId": self.place.tab, "taskId": task_id, "activated": True, "reasonCode": None}
        return task_id

    async def look(self, path: str, tool: str = "perceive", **arguments: Any) -> dict[str, Any]:
        await self.call("navigate", url=f"{self.place.origin}{path}")
        return await self.call(tool, **arguments)

    async def counted(self) -> tuple[int, int]:
        (task,) = (await self.learn())["learnMode"]["progress"]["tasks"]
        return task["visitedSurfaces"], task["meaningfulInteractions"]

    async def give_up(self) -> dict[str, Any]:
        return await self.call("tab_release", coverageExhausted=True, coverageExhaustedReason=REASON)


@pytest.fixture
async def visit(place: Place) -> AsyncIterator[Visit]:
    found = Visit(place)
    await found.look("/plain")
    yield found
    await found.give_up()


async def row_of(server: Server, task_id: str) -> dict[str, Any]:
    (row,) = await server.rows(learn_activation, learn_activation.c.task_id == task_id)
    return row


# -- turning it on


async def test_without_a_claim_nothing_is_turned_on(visit: Visit) -> None:
    body = await visit.learn()
    assert body["ok"]
    assert body["learnMode"]["activation"] == [
        {"targetId": visit.place.tab, "taskId": None, "activated": False, "reasonCode": "claim_required"}
    ]
    assert (body["learnMode"]["progress"], body["evm"]) == (None, None)
    assert "claim_required" in body["instructionsText"]


async def test_a_tab_on_another_site_is_not_the_one_to_be_learned(visit: Visit) -> None:
    task_id = await visit.claim()
    for alias in ("domain", "scopeDomain", "domainScope"):
        body = await visit.learn(**{alias: "other.example"})
        (told,) = body["learnMode"]["activation"]
        assert told["reasonCode"] == "domain_mismatch"
        assert (told["taskId"], told["activated"], body["domain"]) == (task_id, False, "other.example")
    assert body["learnMode"]["progress"] is None


async def test_activation_tells_deliverable_sections_and_progress(visit: Visit) -> None:
    task_id = await visit.begin()
    learn = (await visit.learn())["learnMode"]
    assert (learn["version"], learn["deliverable"], learn["sections"]) == ("v3", "PLATFORM_PLAYBOOK", list(SECTIONS))
    assert learn["progress"] == {
        "tasks": [
            {
                "taskId": task_id,
                "learnModeActive": True,
                "visitedSurfaces": 0,
                "meaningfulInteractions": 0,
                "floorsMet": False,
            }
        ],
        "minVisitedSurfaces": 4,
        "minMeaningfulInteractions": 3,
        "allFloorsMet": False,
    }


async def test_all_claims_of_the_owner_learn_at_once(visit: Visit, server: Server) -> None:
    other = str((await server.call("tab_new", agentId=visit.agent, url=f"{visit.place.origin}/about"))["targetId"])
    try:
        first = await visit.claim()
        second = str((await server.call("tab_claim", agentId=visit.agent, targetId=other))["taskId"])
        refused = await server.call("get_instructions", mode="learn", agentId=visit.agent)
        failed(refused, -32003, "tab.active_ambiguous")
        assert (await server.call("get_instructions", agentId=visit.agent))["ok"]
        body = await server.call("get_instructions", mode="learn", scope="allOwnerClaims", agentId=visit.agent)
        told = {one["taskId"]: one["activated"] for one in body["learnMode"]["activation"]}
        assert told == {first: True, second: True}
        await visit.look("/list")
        body = await visit.learn()
        assert [one["visitedSurfaces"] for one in body["learnMode"]["progress"]["tasks"]] == [1, 1]
    finally:
        await server.call("tab_close", targetId=other, agentId=visit.agent)
    assert (await row_of(server, second))["outcome"] == "incomplete"


# -- what counts


async def test_surfaces_are_routes_that_were_read(visit: Visit) -> None:
    await visit.begin()
    await visit.call("navigate", url=f"{visit.place.origin}/about")
    await visit.call("perceive", mode="state")
    await visit.call("capture_screenshot")
    assert await visit.counted() == (0, 0)
    await visit.call("search_text", text="no such words")
    assert await visit.counted() == (0, 0)
    await visit.call("search_text", text="Words")
    await visit.call("read_text")
    assert await visit.counted() == (1, 0)
    await visit.look("/item/17", "read_text")
    await visit.look("/item/18", "read_text")
    assert await visit.counted() == (2, 0)


async def test_titles_below_one_parent_count_twice(visit: Visit) -> None:
    await visit.begin()
    for name in ("first", "second", "third"):
        await visit.look(f"/blog/the-{name}-post")
    assert await visit.counted() == (2, 0)


async def test_an_error_page_is_no_surface(visit: Visit, pages: Shop) -> None:
    await visit.begin()
    pages.failing.add("/broken")
    await visit.look("/broken")
    assert await visit.counted() == (0, 0)


async def test_what_the_browser_shows_instead_of_a_page_is_no_surface(visit: Visit) -> None:
    await visit.begin()
    await visit.call("navigate", url=f"{visit.place.origin}/about")
    await visit.call("navigate", url="http://127.0.0.1:1/")
    await visit.call("read_text")
    assert await visit.counted() == (0, 0)
    await visit.look("/about")
    assert await visit.counted() == (1, 0)


async def test_a_dialog_that_a_look_finds_open_is_a_surface(visit: Visit) -> None:
    await visit.begin()
    await visit.look("/dialog")
    assert await visit.counted() == (1, 0)
    await visit.call("click_selector", selector="#open")
    await visit.call("perceive")
    assert await visit.counted() == (2, 1)


async def test_interactions_need_an_effect_and_count_once(visit: Visit) -> None:
    await visit.begin()
    await visit.look("/list")
    await visit.call("click_selector", selector="#nothing")
    assert await visit.counted() == (1, 0)
    for _ in range(2):
        await visit.call("click_selector", selector="#more")
        assert await visit.counted() == (1, 1)
    await visit.call("choose_option", selector="#sort", text="old")
    await visit.call("type_selector", selector="#word", text="lamp")
    await visit.call("hover", selector="#more")
    assert await visit.counted() == (1, 3)


async def test_a_focus_that_only_moves_is_no_interaction(visit: Visit) -> None:
    await visit.begin()
    await visit.look("/focus")
    told = await visit.call("click_selector", selector="#go")
    assert told["effect"]["channels"] == ["focus_moved"]
    assert await visit.counted() == (1, 0)


async def test_a_guarded_call_counts_by_its_verdict(visit: Visit) -> None:
    await visit.begin()
    await visit.look("/form")
    told = await visit.call("guarded_submit_form", selector="button")
    assert told["guardedCommit"]["verificationStatus"] == "verified_success"
    assert await visit.counted() == (1, 1)


async def test_steps_of_a_sequence_count_one_by_one(visit: Visit) -> None:
    await visit.begin()
    await visit.look("/list")
    steps = [
        {"tool": "nova.click_selector", "args": {"selector": "#more"}},
        {"tool": "nova.choose_option", "args": {"selector": "#sort", "text": "old"}},
    ]
    assert (await visit.call("run_sequence", steps=steps))["ok"]
    assert await visit.counted() == (1, 2)


async def test_other_agents_and_other_sites_change_no_counter(visit: Visit, server: Server, pages: Shop) -> None:
    await visit.begin()
    await visit.look("/list")
    other = str((await server.call("tab_new", agentId="bob", url=f"{visit.place.origin}/about"))["targetId"])
    await server.call("perceive", targetId=other, agentId="bob")
    await server.call("tab_close", targetId=other, agentId="bob")
    elsewhere = str((await server.call("tab_new", agentId=visit.agent, url=f"{pages.base}/about"))["targetId"])
    await server.call("perceive", targetId=elsewhere, agentId=visit.agent)
    await server.call("tab_close", targetId=elsewhere, agentId=visit.agent)
    assert await visit.counted() == (1, 0)


async def test_the_agents_other_tabs_count_too(visit: Visit, server: Server) -> None:
    await visit.begin()
    beside = str((await server.call("tab_new", agentId=visit.agent, url=f"{visit.place.origin}/about"))["targetId"])
    await server.call("perceive", targetId=beside, agentId=visit.agent)
    await server.call("tab_close", targetId=beside, agentId=visit.agent)
    assert await visit.counted() == (1, 0)


# -- letting go


async def test_a_release_below_the_floors_is_refused_and_the_claim_stays(visit: Visit) -> None:
    task_id = await visit.begin()
    await visit.look("/list")
    body = failed(await visit.call("tab_release"), -32041, "learn.coverage_not_met")
    assert (body["taskId"], body["status"]) == (task_id, "blocked")
    assert body["required"] == {"visitedSurfaces": 4, "meaningfulInteractions": 3}
    assert body["current"] == {"visitedSurfaces": 1, "meaningfulInteractions": 0}
    assert (await visit.call("tab_claim"))["renewed"]


async def test_giving_up_needs_a_reason_of_twenty_characters(visit: Visit) -> None:
    await visit.begin()
    failed(await visit.call("tab_release", coverageExhausted=True), -32602, "learn.coverage_reason_required")
    for reason in ("x" * 19, "x" * 501, " " * 20, f"no\n{' ' * 20}", "\u2003" * 20):
        failed(await visit.call("tab_release", coverageExhausted=True, coverageExhaustedReason=reason))
    failed(await visit.call("tab_release", coverageExhaustedReason=REASON), -32041, "learn.coverage_not_met")


async def test_giving_up_with_a_reason_is_kept_beside_the_counters(visit: Visit, server: Server) -> None:
    task_id = await visit.begin()
    await visit.look("/list")
    body = await visit.give_up()
    assert body["released"]
    assert body["learnMode"] == {
        "required": {"visitedSurfaces": 4, "meaningfulInteractions": 3},
        "current": {"visitedSurfaces": 1, "meaningfulInteractions": 0},
        "floorsMet": False,
    }
    row = await row_of(server, task_id)
    assert (row["outcome"], row["exhausted_reason"], row["surfaces"]) == ("exhausted", REASON, 1)
    assert (await visit.learn())["learnMode"]["progress"] is None


async def test_a_claim_that_runs_out_is_not_held_and_ends_incomplete(visit: Visit, server: Server) -> None:
    task_id = await visit.begin()
    server.clock.shift_ms += 700_000
    assert (await visit.call("tab_release"))["releaseState"] == "expired"
    assert (await row_of(server, task_id))["outcome"] == "incomplete"


async def test_a_tab_that_closes_is_not_held_and_ends_incomplete(visit: Visit, server: Server) -> None:
    opened = str((await server.call("tab_new", agentId=visit.agent, url=f"{visit.place.origin}/about"))["targetId"])
    task_id = str((await server.call("tab_claim", targetId=opened, agentId=visit.agent))["taskId"])
    await server.call("get_instructions", mode="learn", targetId=opened, agentId=visit.agent)
    assert (await server.call("tab_close", targetId=opened, agentId=visit.agent))["ok"]
    row = await row_of(server, task_id)
    assert (row["outcome"], row["exhausted_reason"]) == ("incomplete", None)


async def test_task_mode_shows_no_learning_and_turns_nothing_on(visit: Visit) -> None:
    await visit.claim()
    body = await visit.call("get_instructions")
    assert (body["learnMode"], body["evm"]["version"]) == (None, "v1")
    assert (await visit.call("tab_release"))["released"]


# -- one whole visit

PLAYBOOK = "\n".join(f"## {name}\nNone observed: a practice site.\n" for name in SECTIONS)


async def test_a_whole_visit_to_the_practice_site_from_instructions_to_an_accepted_release(
    server: Server, tab: str
) -> None:
    with practice_site() as practice:
        visit = Visit(Place(server, tab, ScopeName(practice.scope("wiki"))))
        await visit.look("/")
        task_id = await visit.begin()
        text = (await visit.learn())["instructionsText"]
        assert "4 surfaces and 3 interactions" in text
        assert all(f"## {name}" in text for name in SECTIONS)
        for path in ("/suppliers/prices", "/handbook/returns", "/handbook/hours", "/"):
            await visit.look(path)
        body = failed(await visit.call("tab_release"), -32041, "learn.coverage_not_met")
        assert body["current"] == {"visitedSurfaces": 4, "meaningfulInteractions": 0}
        for control in ("#departments", "#purchasing", "#suppliers"):
            assert (await visit.call("click_selector", selector=control))["ok"]
        assert await visit.counted() == (4, 3)
        short = await server.call(
            "domain_note", domain=practice.url("wiki"), key="PLATFORM_PLAYBOOK", value="## Platform\nA wiki"
        )
        assert (short["ok"], short["playbookCheck"]["complete"]) == (True, False)
        stored = await server.call("domain_note", domain=practice.url("wiki"), key="PLATFORM_PLAYBOOK", value=PLAYBOOK)
        assert stored["playbookCheck"] == {"complete": True, "missingSections": []}
        body = await visit.call("tab_release")
        assert (body["released"], body["learnMode"]["floorsMet"]) == (True, True)
        row = await row_of(server, task_id)
        assert (row["outcome"], row["surfaces"], row["interactions"]) == ("complete", 4, 3)
        read = await server.client.read_resource("nova://playbook/wiki.localhost")
        assert read.contents[0].text.strip() == PLAYBOOK.strip()
        # Nothing was sent to reach the floors.
        assert practice.received("wiki", "POST", "/api/archive") == 0
