"""A real server killed between dispatch and answer, started again on the same data, and asked the same again."""

import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.pages.faults.site import FaultSite, fault_site

from bench.driving import Told, read_answer

TABS = 5
CASES = ("ok_document", "redirect_chain", "ok_fetch", "lost_committed")
SUBMIT = "nova.guarded_submit_form"
ARRIVAL_LIMIT_S = 60.0
GONE_WITHIN_S = 10.0
# So often the server dies right after the first of its commits arrived.
EARLY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class KillTrial:
    """One commit whose server died; `repeat` is what the next server said to the same call."""

    key: str
    moment: str
    received_before: int
    received: int
    repeat: str
    resolved: bool

    @property
    def duplicated(self) -> bool:
        return self.received > 1

    @property
    def dropped(self) -> bool:
        return self.repeat == "verified" and self.received == self.received_before and not self.resolved

    @property
    def lost(self) -> bool:
        return self.received == 0


@dataclass(frozen=True, slots=True)
class Pending:
    key: str
    url: str
    agent: str


@asynccontextmanager
async def _server(data_dir: Path) -> AsyncIterator[tuple[Client, psutil.Process]]:
    command = str(Path(sys.executable).with_name("nova"))
    before = {child.pid for child in psutil.Process().children()}
    arguments = ["serve", "--data-dir", str(data_dir), "--tools", "all"]
    environment = {**os.environ, "NOVA_RECEIPTS_PICTURES": "false"}
    parameters = StdioServerParameters(command=command, args=arguments, env=environment)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - opening the null device does not block
        async with Client(stdio_client(parameters, errlog=nowhere), mode="legacy") as client:
            (process,) = [child for child in psutil.Process().children() if child.pid not in before]
            yield client, process


async def _act(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    answer = await client.call_tool(tool, dict(arguments))
    return dict(answer.structured_content or {})


async def _tab(client: Client, agent: str) -> str:
    return str((await _act(client, "nova.tab_new", {"agentId": agent}))["targetId"])


async def _submit(client: Client, trial: Pending, tab: str, **more: str) -> Told:
    place = {"targetId": tab, "agentId": trial.agent}
    await _act(client, "nova.navigate", {**place, "url": trial.url})
    return read_answer(await _act(client, SUBMIT, {**place, "selector": "#go", **more}))


async def _repeat(client: Client, site: FaultSite, trial: Pending, received: int, moment: str) -> KillTrial:
    tab = await _tab(client, trial.agent)
    told = await _submit(client, trial, tab)
    if told.claim == "duplicate" and site.count(trial.key) == 0:
        # The careful way on: look, then say which earlier attempt this one repeats.
        await _act(client, "nova.perceive", {"targetId": tab, "agentId": trial.agent})
        earlier = str(told.body.get("earlierTransitionId", ""))
        await _submit(client, trial, tab, retryOf=earlier)
    resolved = bool(told.commit.get("resolvedFrom"))
    return KillTrial(trial.key, moment, received, site.count(trial.key), told.claim, resolved)


async def _begin_and_kill(
    client: Client, process: psutil.Process, site: FaultSite, trials: list[Pending], dice: random.Random
) -> None:
    """All commits at once; the server dies between dispatch and answer of at least one of them."""
    tabs = [await _tab(client, trial.agent) for trial in trials]
    family = process.children(recursive=True)
    async with anyio.create_task_group() as group:
        for trial, tab in zip(trials, tabs, strict=True):
            group.start_soon(_submit, client, trial, tab)
        # After the first arrival the others are on their way; after the last one all wait for their answers.
        awaited = trials[:1] if dice.random() < EARLY_SHARE else trials
        for trial in awaited:
            await anyio.to_thread.run_sync(site.wait_for, trial.key, 1, ARRIVAL_LIMIT_S)
        await anyio.sleep(dice.uniform(0.0, 0.25))
        os.kill(process.pid, signal.SIGKILL)
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(psutil.wait_procs, family, GONE_WITHIN_S)


async def kill_trials(data_dir: Path, count: int, seed: int) -> list[KillTrial]:
    dice = random.Random(seed)
    done: list[KillTrial] = []
    waiting: list[Pending] = []
    number = 0
    with fault_site() as site:
        while len(done) < count:
            try:
                async with _server(data_dir) as (client, process):
                    await client.list_tools()
                    for trial in waiting:
                        before = site.count(trial.key)
                        moment = "after arrival" if before else "before arrival"
                        done.append(await _repeat(client, site, trial, before, moment))
                    waiting = []
                    if len(done) >= count:
                        break
                    for _ in range(min(TABS, count - len(done))):
                        number += 1
                        key = f"q{number}"
                        url = site.url(dice.choice(CASES), key, delay=dice.randint(0, 500))
                        waiting.append(Pending(key, url, f"killed-{number}"))
                    await _begin_and_kill(client, process, site, waiting, dice)
            except* (MCPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError, psutil.Error):
                # The connection breaks with its server; that is the point.
                await anyio.lowlevel.checkpoint()
    return done
