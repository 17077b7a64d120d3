"""What is said once is said once to each connection, through real clients of both eras over HTTP and on standard input
and output."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from loop_kit import ShiftedClock, Shop, shop
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from place_kit import phenomenon
from real_kit import real_stdio
from sqlalchemy import Connection

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion import steps_store
from nova_mcp.server.http.bearer_tokens import load_credentials
from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.lifetime import Ending
from nova_mcp.server.manifest import load_manifest
from nova_mcp.settings import Settings

pytestmark = pytest.mark.browser

BAR = "position:fixed;left:0;right:0;bottom:0;padding:16px;background:#eee"
PAGE = (
    "<!doctype html><html lang=en><title>Offer</title><main><h1>Offer</h1><div id=offer>Ten per cent</div>"
    "<button id=go type=button onclick='out.textContent += `x`'>Go</button><p id=out></p></main>"
    f"<div id=cookie-banner style='{BAR}'><p>We use cookies to improve this site.</p>"
    "<button id=no type=button onclick='this.parentNode.remove()'>Reject all</button></div>"
)
ONCE = {
    *("pks", "pksAdvice", "taskHints", "pksSemanticLearning", "siteNoteWarning"),
    *("browserMemory", "setup.bootstrap", "currentFacts", "note text"),
}
ALL = sorted(ONCE)
HALF_AN_HOUR = 30 * 60_000


@dataclass
class Running:
    """A server over HTTP, its clock and the page of its agents."""

    built: list[Any]
    clock: ShiftedClock
    endpoint: str
    token: str
    url: str
    tab: str = ""

    @property
    def nova(self) -> Nova:
        return next(one for one in self.built if isinstance(one, Nova))

    @asynccontextmanager
    async def client(self, era: str, name: str = "one") -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {self.token}"}, timeout=60) as http,
            Client(
                streamable_http_client(self.endpoint, http_client=http),
                mode=era,
                client_info=Implementation(name=name, version="1"),
            ) as client,
        ):
            yield client

    async def prepare(self, client: Client) -> None:
        """Everything that there is to say, put where it is said."""
        host = self.url.removeprefix("http://").partition("/")[0]

        def write(conn: Connection) -> None:
            entry = phenomenon("once", "#offer", selector="#go")
            steps_store.born(conn, store.add(conn, ScopeName(host), entry, Birth()))

        await self.nova._db.write(write)
        self.tab = (await call(client, "tab_new", agentId="ada"))["targetId"]
        await call(client, "domain_note", domain="127.0.0.1", key="SOFT", value="Mind the gap.", enforcement="warn")
        await call(client, "memory_note", domain="127.0.0.1", content="The user likes blue.")
        condition = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
        context = {"taskType": "audit", "displayName": "Audit", "goal": "Read it", "completionCondition": condition}
        await call(
            client,
            "task_instance_create",
            agentId="ada",
            adHocContext=context,
            unitSource={"kind": "explicit", "explicitUrls": [self.url]},
        )
        await call(client, "navigate", url=self.url, agentId="ada", targetId=self.tab)
        claims = [{"signalKey": "core.ui.language", "value": "en"}]
        await call(client, "ok_observe", targetId=self.tab, claims=claims)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(f"nova.{tool}", arguments)
    assert answer.structured_content is not None
    body = dict(answer.structured_content)
    assert body["ok"], json.dumps(body)
    return body


async def words(client: Client, tab: str) -> list[str]:
    """What an agent hears of all that is said once, on one look and one press."""
    looked = await call(client, "perceive", agentId="ada", targetId=tab, maxTokens=4_000)
    pressed = await call(client, "click_selector", agentId="ada", targetId=tab, selector="#go")
    told = {*looked, *pressed}
    gates = {gate["gateId"] for gate in pressed.get("gates", [])}
    facts = {"currentFacts"} if (looked.get("okHints") or {}).get("currentFacts") else set()
    notes = {"note text" for note in looked["domainNotes"].get("notes", []) if "text" in note}
    return sorted(ONCE & (told | gates | facts | notes))


@pytest.fixture
def site() -> Any:
    with shop() as running:
        running.pages["/offer"] = PAGE
        yield running


@asynccontextmanager
async def running(data_dir: Path, site: Shop) -> AsyncIterator[Running]:
    clock, ending, ready = ShiftedClock(), Ending(), anyio.Event()
    found: list[Any] = []
    settings = Settings.model_validate(
        {
            "data_dir": data_dir,
            "http": {"port": 0},
            "learning": {"passes": False},
            "notes": {"browser_memory": {"users": ["*"]}},
        }
    )

    async def make(served: Settings) -> Nova:
        nova = await build(served, Ports(clock, SystemIds(clock)))
        found.append(nova)
        return nova

    def on_ready(endpoint: str) -> None:
        found.append(endpoint)
        ready.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_http, settings, make, load_manifest(), on_ready, ending)
        await ready.wait()
        endpoint = next(one for one in found if isinstance(one, str))
        token = load_credentials(data_dir, endpoint).tokens[0].token
        server = Running(found, clock, endpoint, token, site.url("/offer"))
        # The program behind the server is built with the first call.
        async with server.client("auto", "first") as first:
            await call(first, "tabs")
        yield server
        ending.because("test over")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_every_new_connection_over_http_hears_everything_once(era: str, tmp_path: Path, site: Shop) -> None:
    async with running(tmp_path, site) as server:
        async with server.client(era, "writer") as writer:
            await server.prepare(writer)
        for name in ("one", "two"):
            async with server.client(era, name) as client:
                assert await words(client, server.tab) == ALL, name
                assert await words(client, server.tab) == [], name
        async with server.client(era, "one") as again:
            # A handshake makes a connection; without one a client of that name goes on where it was.
            assert await words(again, server.tab) == (ALL if era == "legacy" else [])


async def test_a_client_without_a_session_is_a_new_connection_after_half_an_hour_of_silence(
    tmp_path: Path, site: Shop
) -> None:
    async with running(tmp_path, site) as server, server.client("auto", "one") as client:
        async with server.client("auto", "writer") as writer:
            await server.prepare(writer)
        assert await words(client, server.tab) == ALL
        for _ in range(2):
            server.clock.shift_ms += HALF_AN_HOUR - 60_000
            # Nothing of it is older than what was said; only browser memory comes up again by its own time.
            assert set(await words(client, server.tab)) <= {"currentFacts", "browserMemory"}
        server.clock.shift_ms += HALF_AN_HOUR + 60_000
        assert await words(client, server.tab) == ALL


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_server_on_standard_input_and_output_is_a_connection_for_as_long_as_it_runs(
    era: str, tmp_path: Path, site: Shop
) -> None:
    heard = []
    for number in range(2):
        async with real_stdio(tmp_path, era) as client:
            tab = (await call(client, "tab_new", agentId="ada"))["targetId"]
            if number == 0:
                note = {"domain": "127.0.0.1", "key": "SOFT", "value": "Mind the gap.", "enforcement": "warn"}
                await call(client, "domain_note", **note)
            await call(client, "navigate", url=site.url("/offer"), agentId="ada", targetId=tab)
            heard += [await words(client, tab), await words(client, tab)]
    assert heard == [["note text", "pksSemanticLearning", "siteNoteWarning"], []] * 2
