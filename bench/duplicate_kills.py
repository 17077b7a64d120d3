"""A real server killed between dispatch and answer, started again on the same data, and asked the same again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from sqlalchemy import select
from tests.pages.faults.site import FaultSite, fault_site

from bench.driving import Told, read_answer
from nova_mcp.storage.engine import Database
from nova_mcp.verification.store import transition

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
    case: str
    moment: str
    received_before: int
    received: int
    repeat: str
    resolved: bool
    # The agent looked, did not find its commit, and sent it again on purpose.
    insisted: bool
    history: tuple[str, ...] = ()

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
    case: str
    url: str
    agent: str
    events: list[tuple[float, str]] = field(default_factory=list)

    def log(self, what: str) -> None:
        self.events.append((time.time(), what))


@contextmanager
def processor_load(processes: int) -> Iterator[None]:
    """Keeps that many processes busy meanwhile; each ends by itself with this one."""
    spin = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
    busy = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


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
    trial.log(f"called {json.dumps(more) if more else ''}".strip())
    told = read_answer(await _act(client, SUBMIT, {**place, "selector": "#go", **more}))
    transition_id = told.commit.get("transitionId") or told.body.get("earlierTransitionId")
    trial.log(f"answered {told.claim} {told.reason_code or ''} {transition_id or ''}".strip())
    return told


async def _repeat(client: Client, site: FaultSite, trial: Pending, data_dir: Path) -> KillTrial:
    received = site.count(trial.key)
    tab = await _tab(client, trial.agent)
    told = await _submit(client, trial, tab)
    insisted = told.claim == "duplicate" and site.count(trial.key) == 0
    if insisted:
        # The careful way on: look, then say which earlier attempt this one repeats.
        await _act(client, "nova.perceive", {"targetId": tab, "agentId": trial.agent})
        earlier = str(told.body.get("earlierTransitionId", ""))
        await _submit(client, trial, tab, retryOf=earlier)
    outcome = KillTrial(
        trial.key,
        trial.case,
        "after arrival" if received else "before arrival",
        received,
        site.count(trial.key),
        told.claim,
        bool(told.commit.get("resolvedFrom")),
        insisted,
    )
    if outcome.duplicated or outcome.dropped:
        return replace(outcome, history=_history(site, trial, data_dir))
    return outcome


def _history(site: FaultSite, trial: Pending, data_dir: Path) -> tuple[str, ...]:
    """Everything that is known of one commit in the order of time: calls, kills, arrivals and stored transitions."""
    events = [*trial.events, *((at, f"arrived with nonce {nonce}") for at, nonce in site.arrivals(trial.key))]
    with Database.open(f"sqlite:///{data_dir / 'nova.db'}") as db:
        mine = select(transition).where(transition.c.agent_id == trial.agent)
        for row in db.read_sync(lambda conn: conn.execute(mine).all()):
            events.append((row.started_at_ms / 1000, f"stored {row.transition_id} of server {row.server_id} begins"))
            if row.completed_at_ms is not None:
                ending = f"stored {row.transition_id} is {row.state} {row.reason or ''} identity {row.identity}"
                events.append((row.completed_at_ms / 1000, ending))
    events.sort()
    return tuple(f"{at - events[0][0]:8.3f} s  {what}" for at, what in events)


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
        for trial in trials:
            trial.log(f"server process {process.pid} killed")
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
                    # One by one: a connection that breaks here must not count those twice that are done.
                    while waiting:
                        done.append(await _repeat(client, site, waiting[0], data_dir))
                        waiting.pop(0)
                    if len(done) >= count:
                        break
                    for _ in range(min(TABS, count - len(done))):
                        number += 1
                        key = f"q{number}"
                        case = dice.choice(CASES)
                        url = site.url(case, key, delay=dice.randint(0, 500))
                        waiting.append(Pending(key, case, url, f"killed-{number}"))
                    await _begin_and_kill(client, process, site, waiting, dice)
            except* (MCPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError, psutil.Error):
                # The connection breaks with its server; that is the point.
                await anyio.lowlevel.checkpoint()
    return done
