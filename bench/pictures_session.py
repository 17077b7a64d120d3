"""What the pictures show: the demo's story, then the real server on its store with an agent at work."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.demo.site import PracticeSite, practice_site
from nova_mcp.demo.site_answers import HANDBOOK

STARTS_WITHIN_S: Final = 60.0
STORY_LIMIT_S: Final = 600
QUESTION: Final = "The shop asks for a delivery date. Which one shall I take?"
READ_SO_FAR: Final = 2
# Known by the tab it speaks of, not by who calls.
NAMELESS: Final = ("ok_observe",)
SCAN: Final = "nova_full_page_text_v1"


@dataclass(frozen=True, slots=True)
class Served:
    """Where the server is and what opens it."""

    root: str
    token: str


def _nova(*words: str) -> list[str]:
    return [sys.executable, "-m", "nova_mcp.cli", *words]


def play_story(folder: Path) -> None:
    """The demo, kept; it ends with a code that says whether every chapter did what it says."""
    done = subprocess.run(_nova("demo", "--data-dir", str(folder)), check=False, timeout=STORY_LIMIT_S)
    if done.returncode != 0:
        raise SystemExit("the story did not go as it should, so there is nothing worth a picture")


@contextmanager
def stopped(folder: Path) -> Iterator[None]:
    """While the emergency stop is on."""
    subprocess.run(_nova("stop", "--data-dir", str(folder)), check=True, capture_output=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run(_nova("resume", "--data-dir", str(folder)), check=True, capture_output=True, timeout=60)


# -- the server


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def server(folder: Path) -> Iterator[Served]:
    """`nova serve --http` on that store, until nobody needs it any more."""
    port = _free_port()
    command = _nova("serve", "--http", f"127.0.0.1:{port}", "--data-dir", str(folder))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        root = f"http://127.0.0.1:{port}"
        _wait_until_up(root, process)
        token = json.loads((folder / "mcp.json").read_text(encoding="utf-8"))["token"]
        yield Served(root, token)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _wait_until_up(root: str, process: "subprocess.Popen[bytes]") -> None:
    with httpx2.Client(timeout=2.0) as client, _deadline(process):
        while process.poll() is None:
            with contextlib.suppress(httpx2.TransportError):
                if client.get(f"{root}/health").is_success:
                    return
    said = process.stderr.read().decode(errors="replace") if process.stderr else ""
    raise SystemExit(f"the server did not start: {said.strip()[-400:]}")


@contextmanager
def _deadline(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Ends a server that never answers, so that nobody waits for it for ever."""
    timer = threading.Timer(STARTS_WITHIN_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# -- an agent at work


@dataclass(frozen=True, slots=True)
class Agent:
    """A client like any other; a call that fails ends the session, since its picture would be missing."""

    client: Client
    name: str

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        named = {} if tool in NAMELESS else {"agentId": self.name}
        answer = await self.client.call_tool("nova.call", {"tool": tool, "args": {**named, **arguments}})
        body = answer.structured_content or {}
        if answer.is_error:
            raise RuntimeError(f"{tool}: {body.get('reasonCode')} {body.get('message')}")
        return body


@asynccontextmanager
async def agent_at_work(served: Served, folder: Path) -> AsyncIterator[None]:
    """Things that only stand while an agent works: facts of its tab, an open goal, a run half done, a question."""
    headers = {"Authorization": f"Bearer {served.token}"}
    mailbox = Mailbox(folder)
    with mailbox.attending(), practice_site() as site:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=STORY_LIMIT_S) as http,
            Client(streamable_http_client(f"{served.root}/mcp", http_client=http), mode="auto") as client,
            anyio.create_task_group() as group,
        ):
            agent = Agent(client, "ada")
            await _shop(agent, site)
            await _handbook(agent, site)
            group.start_soon(_ask, agent)
            with anyio.fail_after(STARTS_WITHIN_S):
                while not mailbox.questions():  # noqa: ASYNC110 - the question comes from another process, as a file
                    await anyio.sleep(0.1)
            yield
            group.cancel_scope.cancel()


async def _shop(agent: Agent, site: PracticeSite) -> None:
    shop = site.url("shop")
    tab = str((await agent.call("tab_new"))["targetId"])
    await agent.call("navigate", targetId=tab, url=shop)
    await agent.call("perceive", targetId=tab)
    for language, certainty in (("en", "likely"), ("en-GB", "certain")):
        await agent.call("ok_observe", targetId=tab, claims=[_claim("core.ui.language", language, certainty)])
    claims = [_claim("core.page.type", "shop", "certain"), _claim("core.login_state", "logged_out", "likely")]
    await agent.call("ok_observe", targetId=tab, claims=claims)
    steps = [{"actionDesc": words} for words in ("Put a kettle into the cart", "Fill in the name", "Place the order")]
    await agent.call("goal_register", targetId=tab, op="create", summary="Order a second kettle", steps=steps)
    await agent.call("domain_note", domain=shop, key="ORDERS", value="One kettle a day.", enforcement="warn")
    rule = "Name what proves an order before placing it."
    await agent.call("operator_notes_store", content=rule, tags=["orders", "proof"])


def _claim(key: str, value: str, certainty: str) -> dict[str, str]:
    return {"signalKey": key, "value": value, "certainty": certainty, "evidence": "The page says so."}


async def _handbook(agent: Agent, site: PracticeSite) -> None:
    pages = [site.url("wiki", path) for path in HANDBOOK]
    done_when = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
    kept = await agent.call(
        "task_profile_upsert",
        taskType="audit",
        displayName="Check the handbook",
        goal="Read every page of the handbook and see whether it still holds.",
        domain=pages[0],
        completionCondition=done_when,
        stableGuidance=[{"guidanceId": "links", "kind": "custom", "text": "The list of pages is on the front page."}],
    )
    units = {"kind": "explicit", "explicitUrls": pages, "freezeAfterPopulate": True}
    run = await agent.call("task_instance_create", profileId=kept["profileId"], targetUrl=pages[0], unitSource=units)
    tab = str((await agent.call("tab_new"))["targetId"])
    for page in pages[:READ_SO_FAR]:
        await agent.call("navigate", targetId=tab, url=page)
        await agent.call("coverage_scan", targetId=tab, scanId=SCAN)
    said = [{"url": page, "status": "checked"} for page in pages[: READ_SO_FAR + 1]]
    progress = {"instanceId": run["instanceId"], "expectedInstanceRev": 0, "clientEventId": "morning"}
    await agent.call("task_instance_progress", **progress, unitUpdates=said)


async def _ask(agent: Agent) -> None:
    with contextlib.suppress(RuntimeError):
        await agent.call("ask_human", why=QUESTION, timeoutMs=600_000)
