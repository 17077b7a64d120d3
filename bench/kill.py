"""Kill the server, its driver and its browser at random points of many calls: nothing answered may be missing."""

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from bench.findings import bad_share
from bench.kill_parts import PROMISED_S, KeySite, PartsTally, key_site, plan_faults, rows_of, run_faults
from bench.tables import machine, show, tell
from bench.words import number
from nova_mcp.demo.site import practice_site
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.storage.engine import Database

CALLS_PER_ROUND = 12
LONGEST_ROUND_S = 4.0
GONE_WITHIN_S = 10.0


@dataclass
class Tally:
    """What the client saw and what was left behind."""

    rounds: int = 0
    sent: int = 0
    answered: set[str] = field(default_factory=set)
    browsers_left: int = 0


@asynccontextmanager
async def _server(data_dir: Path) -> AsyncIterator[tuple[Client, psutil.Process]]:
    command = str(Path(sys.executable).with_name("nova"))
    before = {child.pid for child in psutil.Process().children()}
    parameters = StdioServerParameters(command=command, args=["serve", "--data-dir", str(data_dir)])
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - opening the null device does not block
        async with Client(stdio_client(parameters, errlog=nowhere), mode="legacy") as client:
            started = [child for child in psutil.Process().children() if child.pid not in before]
            # Others may start beside this one.
            (process,) = [child for child in started if str(data_dir) in child.cmdline()]
            yield client, process


async def _work(client: Client, url: str, number: int, tally: Tally, answered: anyio.Event) -> None:
    """A mix of calls with and without a page; each under an agent id of its own, by which the ledger finds it."""
    for step in range(CALLS_PER_ROUND):
        agent_id = f"k{number}-{step}"
        tally.sent += 1
        name, arguments = [
            ("nova.tabs", {}),
            ("nova.navigate", {"url": url}),
            ("nova.perceive", {}),
            ("nova.click_selector", {"selector": "#add"}),
            ("nova.perceive", {"maxTokens": "wrong"}),
        ][step % 5]
        await client.call_tool(name, {**arguments, "agentId": agent_id})
        tally.answered.add(f"{agent_id} {name}")
        answered.set()


async def _round(data_dir: Path, url: str, number: int, kill_after_s: float, tally: Tally) -> None:
    tally.rounds += 1
    answered = anyio.Event()
    family: list[psutil.Process] = []
    try:
        async with _server(data_dir) as (client, process):
            await client.list_tools()
            async with anyio.create_task_group() as group:

                async def kill() -> None:
                    # Every other server lives to give one answer, however slow the machine is; others may die first.
                    if number % 2:
                        await answered.wait()
                    await anyio.sleep(kill_after_s)
                    family.extend(process.children(recursive=True))
                    os.kill(process.pid, signal.SIGKILL)
                    group.cancel_scope.cancel()

                group.start_soon(kill)
                await _work(client, url, number, tally, answered)
    except* (MCPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError, psutil.Error):
        # The connection breaks with its server; that is the point.
        await anyio.lowlevel.checkpoint()
    _, alive = psutil.wait_procs(family, timeout=GONE_WITHIN_S)
    tally.browsers_left += len([process for process in alive if process.status() != psutil.STATUS_ZOMBIE])


def _missing(data_dir: Path, answered: set[str]) -> tuple[int, int, int]:
    with Database.open(f"sqlite:///{data_dir / 'nova.db'}") as db:
        page = db.read_sync(events, EventFilter(limit=100_000))
        broken = db.read_sync(lambda conn: list(verify(conn)))
    records = [call.record for call in page.calls if call.record is not None]
    recorded = [f"{record.caller.agent_id} {record.tool_name}" for record in records]
    doubled = len(recorded) - len(set(recorded))
    return len(answered - set(recorded)), doubled, len(broken)


async def harness(calls: int, seed: int) -> tuple[Tally, int, int, int]:
    """Rounds of calls, each ended by a kill at a random moment, until that many calls were sent."""
    tally, dice = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, practice_site() as site:
        data_dir = Path(folder)
        while tally.sent < calls:
            await _round(data_dir, site.base_url + "/", tally.rounds, dice.uniform(0.0, LONGEST_ROUND_S), tally)
        return tally, *_missing(data_dir, tally.answered)


async def lose_parts(data_dir: Path, each: int, workers: int, seed: int) -> tuple[list[PartsTally], KeySite]:
    """The same number of each kind of fault, spread over servers that work beside each other."""
    planned = plan_faults(each, random.Random(seed))
    tallies: list[PartsTally] = []
    with key_site() as site:

        async def work(number: int) -> None:
            mine = planned[number::workers]
            tallies.append(await run_faults(_server, data_dir / f"worker{number}", site, mine, f"p{number}"))

        async with anyio.create_task_group() as group:
            for number in range(workers):
                (data_dir / f"worker{number}").mkdir()
                group.start_soon(work, number)
    return tallies, site


def show_parts(*, long: bool, seed: int) -> int:
    """Driver and browser killed and stopped; the ledger and the site tell what became of the work."""
    each, workers = number("faults", 200 if long else 3), number("workers", 2)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tallies, site = anyio.run(lose_parts, Path(folder), each, workers, seed)
        lost = doubled = broken = 0
        for index in range(workers):
            missing, twice, links = _missing(Path(folder) / f"worker{index}", _worker_answers(tallies, index))
            lost, doubled, broken = lost + missing, doubled + twice, broken + links
    faults = [fault for tally in tallies for fault in tally.faults]
    done = {key for tally in tallies for key in tally.done}
    unpressed = len([key for key in done if not site.pressed[key]])
    twice_pressed = len([key for key, times in site.pressed.items() if times > 1])
    left, sent = sum(tally.left for tally in tallies), sum(tally.sent for tally in tallies)
    answered = sum(len(tally.answered) for tally in tallies)
    seconds = time.perf_counter() - started
    show(
        f"driver and browser lost at random points (seed {seed}, {workers} servers at a time, {seconds:.0f} s)",
        [
            "lost",
            "signal",
            "n",
            "back after (median, s)",
            "slowest (s)",
            f"over {PROMISED_S:g} s",
            "call under way answered (slowest, s)",
            "login still there",
        ],
        rows_of(faults),
    )
    show(
        "what was answered and pressed meanwhile",
        [
            "calls sent",
            "answered",
            "answered but missing",
            "recorded twice",
            "keys done",
            "never arrived",
            "twice",
            "left",
        ],
        [[sent, answered, lost, doubled, len(done), unpressed, twice_pressed, left]],
    )
    late = len([one for one in faults if one.back_s > PROMISED_S])
    gone = len([one for one in faults if not one.logged_in])
    tell(bad_share("R1", "answered calls missing after a lost driver or browser", lost, answered, 0))
    tell(bad_share("R1", "answered presses that never arrived", unpressed, len(done), 0))
    tell(bad_share("R1", "presses that arrived twice", twice_pressed, len(site.pressed), 0))
    tell(bad_share("R1", f"losses after which nothing was answered for {PROMISED_S:g} s", late, len(faults), 0))
    tell(bad_share("R1", "losses after which the kept login was gone", gone, len(faults), 0))
    tell(
        bad_share(
            "R1", "processes left behind by servers whose parts were lost", min(left, len(faults)), len(faults), 0
        )
    )
    return int(bool(lost or doubled or broken or unpressed or twice_pressed or late or gone or left))


def _worker_answers(tallies: Sequence[PartsTally], worker: int) -> set[str]:
    return {agent for tally in tallies for agent in tally.answered if agent.startswith(f"p{worker}-")}


def main(*, long: bool) -> int:
    """`--faults=N` of each kind and `--workers=N` choose the second part; `--parts-only` leaves the first one out."""
    print(f"kill · {machine()}\n")
    seed = 20260728
    failed = 0 if "--parts-only" in sys.argv else show_kills(long=long, seed=seed)
    return int(bool(failed | show_parts(long=long, seed=seed)))


def show_kills(*, long: bool, seed: int) -> int:
    """The server itself killed, again and again."""
    started = time.perf_counter()
    tally, missing, doubled, broken = anyio.run(harness, 1000 if long else 300, seed)
    show(
        f"kill -9 at random points (seed {seed}, {time.perf_counter() - started:.0f} s)",
        [
            "rounds",
            "calls sent",
            "answered",
            "answered but missing",
            "recorded twice",
            "broken links",
            "processes left",
        ],
        [[tally.rounds, tally.sent, len(tally.answered), missing, doubled, broken, tally.browsers_left]],
    )
    tell(bad_share("R1", "answered calls missing after `kill -9`", missing, len(tally.answered), 0))
    tell(bad_share("R1", "calls recorded twice", doubled, len(tally.answered), 0))
    tell(bad_share("R1", "broken links of the chain", broken, tally.sent, 0))
    tell(bad_share("R1", "kills that left a process behind", min(tally.browsers_left, tally.rounds), tally.rounds, 0))
    return int(bool(missing or doubled or broken or tally.browsers_left))
