"""The real program as a process of its own: an agent over MCP on one side, a person at the dashboard on the other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
from mcp import Client
from real_kit import LIMIT_S, http_connection, real_http_server, text_of


@asynccontextmanager
async def person(root: str, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"origin": root}
    async with httpx.AsyncClient(base_url=root, timeout=LIMIT_S, headers=headers) as http:
        assert (await http.post("/dashboard/login", data={"token": token})).status_code == 303
        yield http


def _csrf(page: str) -> str:
    return page.split('name="csrf" content="')[1].split('"')[0]


async def _asked(http: httpx.AsyncClient) -> str:
    """Wait for a question as a page does, by asking again."""
    with anyio.fail_after(LIMIT_S):
        while True:
            if ids := (await http.get("/dashboard/questions/live")).json()["ids"]:
                return str(ids[0])


async def test_a_call_is_on_the_page_and_its_chain_fits(tmp_path: Path):
    async with real_http_server(tmp_path) as (endpoint, token), person(endpoint.removesuffix("/mcp"), token) as http:
        async with http_connection(endpoint, token, "auto") as agent:
            await agent.call_tool("nova.memory_stats", {"agentId": "ada"})
        news = (await http.get("/dashboard/live")).json()
        assert (news["count"], "memory_stats" in news["rows"]) == (1, True)
        call_id = news["rows"].split("/dashboard/calls/")[1].split('"')[0]
        page = (await http.get(f"/dashboard/calls/{call_id}")).text
        assert "link to the record before it fit" in page
        assert "ada" in page


async def test_a_person_at_the_dashboard_answers_an_agent(tmp_path: Path):
    async with real_http_server(tmp_path) as (endpoint, token), person(endpoint.removesuffix("/mcp"), token) as http:
        csrf = _csrf((await http.get("/dashboard/")).text)
        async with http_connection(endpoint, token, "auto") as agent:
            alone = await agent.call_tool("nova.ask_human", {"why": "Log in", "timeoutMs": 1000})
            assert "neither `nova watch` nor the dashboard is open" in text_of(alone)
            assert (await http.post("/dashboard/here", headers={"x-nova-csrf": csrf})).status_code == 200
            said: list[str] = []

            async def ask(agent: Client) -> None:
                said.append(text_of(await agent.call_tool("nova.ask_human", {"why": "Log in", "timeoutMs": 60_000})))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, agent)
                form = {"csrf": csrf, "id": await _asked(http), "answer": "done", "note": "used my key"}
                assert (await http.post("/dashboard/questions", data=form)).status_code == 303
            assert "is done" in said[0]
            assert "used my key" in said[0]


async def test_the_stop_of_the_dashboard_holds_every_agent(tmp_path: Path):
    async with real_http_server(tmp_path) as (endpoint, token), person(endpoint.removesuffix("/mcp"), token) as http:
        csrf = _csrf((await http.get("/dashboard/")).text)
        async with http_connection(endpoint, token, "auto") as agent:
            await http.post("/dashboard/controls/stop", data={"csrf": csrf, "note": "enough"})
            refused = await agent.call_tool("nova.memory_stats", {})
            assert "safety.emergency_stop" in text_of(refused)
            await http.post("/dashboard/controls/resume", data={"csrf": csrf})
            assert not (await agent.call_tool("nova.memory_stats", {})).is_error
