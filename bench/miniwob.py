"""Claimed against real outcome on task pages that none of us wrote (MiniWoB++), a right and a wrong script each."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from bench.bounds import percent, upper_percent, wilson
from bench.driving import Hand, close_hand, new_hand, nova_here
from bench.findings import bad_share
from bench.miniwob_agent import Agent, Stopped, Unsupported
from bench.miniwob_site import Reward, TaskSite, task_site
from bench.miniwob_tasks import TASKS
from bench.packages import NotInstalled, installed
from bench.tables import left_out, machine, remark, show, tell
from bench.words import number
from nova_mcp.app import Nova

WORKERS = 4
RUNS_PER_TAB = 100


@dataclass(frozen=True, slots=True)
class Run:
    task: str
    seed: int
    right: bool

    @property
    def name(self) -> str:
        return f"{self.task}-{self.seed}-{'right' if self.right else 'wrong'}"


@dataclass(frozen=True, slots=True)
class Result:
    """The claim stands before the reward is asked for; `why` is the last reason code."""

    run: Run
    claim: str
    why: str
    reward: Reward | None

    @property
    def done(self) -> bool:
        return self.reward is not None and self.reward.success

    @property
    def decided(self) -> bool:
        return self.claim in ("verified", "failed", "untouched")


async def _claim(agent: Agent, run: Run) -> tuple[str, str]:
    try:
        await TASKS[run.task](agent, run.right)
    except Stopped:
        pass
    except Unsupported as missing:
        return "not run", str(missing)
    except (IndexError, KeyError, ValueError, StopIteration) as error:
        return "not run", f"script: {type(error).__name__} {error}"
    last = agent.steps[-1]
    return last.claim, last.reason_code or ""


async def run_one(hand: Hand, site: TaskSite, run: Run) -> Result:
    await hand.open(site.url(run.task, run.name, run.seed))
    claim, why = await _claim(Agent(hand), run)
    await hand.open("about:blank")
    reward = await anyio.to_thread.run_sync(site.reward, run.name)
    return Result(run, claim, why, reward)


async def _worker(nova: Nova, name: str, site: TaskSite, queue: list[Run], results: list[Result]) -> None:
    while queue:
        hand = await new_hand(nova, f"{name}-{len(queue)}")
        for _ in range(RUNS_PER_TAB):
            if not queue:
                break
            results.append(await run_one(hand, site, queue.pop()))
        await close_hand(hand)


async def measure(site: TaskSite, tasks: Sequence[str], seeds: int) -> list[Result]:
    queue = [Run(task, seed, right) for task in tasks for seed in range(seeds) for right in (True, False)]
    random.Random(0).shuffle(queue)
    results: list[Result] = []
    async with nova_here() as nova, anyio.create_task_group() as group:
        for number in range(WORKERS):
            group.start_soon(_worker, nova, f"m{number}", site, queue, results)
    return results


def _row(name: str, hits: int, trials: int, aim: str) -> list[object]:
    low, high = wilson(hits, trials)
    return [
        name,
        trials,
        hits,
        percent(hits, trials),
        f"{100 * low:.2f}-{100 * high:.2f} %",
        upper_percent(hits, trials),
        aim,
    ]


def show_results(results: Sequence[Result]) -> int:
    ran = [one for one in results if one.claim != "not run" and one.reward is not None]
    failures = [one for one in ran if not one.done]
    successes = [one for one in ran if one.done]
    false_success = [one for one in failures if one.claim == "verified"]
    likely = [one for one in ran if one.claim == "likely"]
    rows = [
        _row("false success: verified, not rewarded", len(false_success), len(failures), "<= 0.5 %"),
        _row("likely, not rewarded", len([o for o in likely if not o.done]), len(likely), ""),
        _row(
            "false alarm: failed, rewarded",
            len([o for o in successes if o.claim == "failed"]),
            len(successes),
            "<= 2 %",
        ),
        _row(
            "missed: rewarded, not verified", len([o for o in successes if o.claim != "verified"]), len(successes), ""
        ),
        _row("coverage: a definite claim", len([o for o in ran if o.decided]), len(ran), ""),
        _row("not run", len(results) - len(ran), len(results), ""),
    ]
    heads = ["", "n", "hits", "share", "Wilson 95 %", "upper 95 %", "aim"]
    show("Claims against the task's own reward", heads, rows)
    alarms = len([o for o in successes if o.claim == "failed"])
    unclear = len([o for o in successes if o.claim == "unclear"])
    tell(bad_share("T1", "`verified` and not rewarded, MiniWoB++", len(false_success), len(failures), 0.005))
    tell(bad_share("T2", "failed and rewarded, MiniWoB++", alarms, len(successes), 0.02))
    tell(bad_share("T2", "unclear and rewarded, MiniWoB++", unclear, len(successes), 0.05))
    return len(false_success)


def show_tasks(results: Sequence[Result]) -> None:
    rows: list[list[object]] = []
    for task in TASKS:
        mine = [one for one in results if one.run.task == task]
        if not mine:
            continue
        right = [one for one in mine if one.run.right]
        wrong = [one for one in mine if not one.run.right]
        odd = [f"{o.claim}:{o.why}" for o in mine if (o.claim == "verified") is not o.done]
        rows.append(
            [
                task,
                len(mine),
                f"{len([o for o in right if o.done])}/{len(right)}",
                f"{len([o for o in right if o.claim == 'verified'])}",
                f"{len([o for o in wrong if o.done])}/{len(wrong)}",
                f"{len([o for o in wrong if o.claim == 'verified'])}",
                max(set(odd), key=odd.count) if odd else "",
            ]
        )
    heads = ["task", "n", "right: rewarded", "verified", "wrong: rewarded", "verified", "most frequent mismatch"]
    show("By task", heads, rows)


def main(*, long: bool) -> int:
    print(f"miniwob · {machine()}\n")
    try:
        package = installed("miniwob-1.1.0", "miniwob==1.1.0")
    except NotInstalled as missing:
        left_out(str(missing))
        return 0
    seeds = number("seeds", 20 if long else 3)
    started = time.perf_counter()
    with task_site(package) as site:
        results = anyio.run(measure, site, list(TASKS), seeds)
    remark(f"{len(TASKS)} tasks x {seeds} seeds x 2 scripts in {time.perf_counter() - started:.0f} s\n")
    wrong = show_results(results)
    show_tasks(results)
    return int(bool(wrong))
