"""Does Nova say what is true? Guarded actions on a site that fails at random and keeps the books."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from tests.pages.faults.cases import CASES, Case, Evidence
from tests.pages.faults.site import FaultSite, fault_site

from bench.bounds import percent, upper_percent, wilson
from bench.driving import Hand, Told, close_hand, new_hand, nova_here
from bench.findings import bad_share
from bench.tables import machine, remark, show, tell
from bench.words import number
from nova_mcp.app import Nova
from nova_mcp.tools.catalogue import load_catalogue

SEED = 20261116
WORKERS = 4
TRIALS_PER_TAB = 200


@dataclass(frozen=True, slots=True)
class Trial:
    """One drawn fault with its parameters."""

    number: int
    case: Case
    delay_ms: int | None
    wait_ms: int | None

    @property
    def key(self) -> str:
        return f"r{self.number}"

    def parameters(self) -> dict[str, object]:
        drawn: dict[str, object] = {}
        if self.delay_ms is not None:
            drawn["delay"] = self.delay_ms
        if self.wait_ms is not None:
            drawn["wait"] = self.wait_ms
        return drawn


@dataclass(frozen=True, slots=True)
class Seen:
    """What Nova claimed, written down before the server's book was opened, and what the book says."""

    trial: Trial
    told: Told
    done: bool
    received: int
    resent: int
    seconds: float


def draw(known: Sequence[Case], count: int, seed: int) -> list[Trial]:
    """Every case once, then at random by weight."""
    dice = random.Random(seed)
    cases = [*known, *dice.choices(known, [case.weight for case in known], k=max(0, count - len(known)))][:count]
    dice.shuffle(cases)
    return [
        Trial(
            number,
            case,
            dice.randint(*case.delay_ms) if case.delay_ms else None,
            dice.randint(*case.wait_ms) if case.wait_ms else None,
        )
        for number, case in enumerate(cases)
    ]


async def run_trial(hand: Hand, site: FaultSite, trial: Trial) -> Seen:
    case, key = trial.case, trial.key
    await hand.open(site.url(case.path_case, key, **trial.parameters()))
    for step in case.before:
        await hand.call(step.tool, step.filled(key))
    started = time.perf_counter()
    told = await hand.act(case.act.tool, case.act.filled(key))
    seconds = time.perf_counter() - started
    wanted = max(1, case.expected.commits)
    return Seen(trial, told, site.committed(key) >= wanted, site.count(key), site.resent(key), seconds)


async def _worker(nova: Nova, name: str, site: FaultSite, queue: list[Trial], seen: list[Seen]) -> None:
    hand: Hand | None = None
    used = 0
    while queue:
        if hand is None or used >= TRIALS_PER_TAB:
            if hand is not None:
                await close_hand(hand)
            hand, used = await new_hand(nova, f"{name}-{len(queue)}"), 0
        seen.append(await run_trial(hand, site, queue.pop()))
        used += 1


async def measure(count: int, seed: int, workers: int = WORKERS) -> list[Seen]:
    tools = load_catalogue().tools
    queue = draw([case for case in CASES if case.act.tool.removeprefix("nova.") in tools], count, seed)[::-1]
    seen: list[Seen] = []
    with fault_site() as site:
        async with nova_here() as nova, anyio.create_task_group() as group:
            for number in range(workers):
                group.start_soon(_worker, nova, f"w{number}", site, queue, seen)
    return seen


def _share(name: str, hits: int, trials: int, aim: str) -> list[object]:
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


def _by_evidence(seen: Sequence[Seen], evidence: Evidence) -> list[Seen]:
    return [one for one in seen if one.trial.case.evidence == evidence]


def show_shares(seen: Sequence[Seen]) -> int:
    """The headline; returns the number of false successes."""
    failures = [one for one in seen if not one.done]
    successes = [one for one in seen if one.done]
    plain = _by_evidence(successes, "plain")
    false_success = [one for one in failures if one.told.claim == "verified"]
    likely = [one for one in seen if one.told.claim == "likely"]
    rows = [
        _share("false success: verified on a real failure", len(false_success), len(failures), "<= 0.5 %"),
        _share("likely that was no success", len([o for o in likely if not o.done]), len(likely), ""),
        _share("false alarm: failed on a real success", _count(successes, "failed"), len(successes), "<= 2 %"),
        _share("unclear on a success the page shows", _count(plain, "unclear"), len(plain), "<= 5 %"),
        _share("unclear on any success", _count(successes, "unclear"), len(successes), ""),
        _share("unclear on a failure", _count(failures, "unclear"), len(failures), ""),
        _share("refused as a duplicate, wrongly", _count(seen, "duplicate"), len(seen), "0"),
        _share("ended by a defect of Nova's own", _count(seen, "broken"), len(seen), "0"),
        _share("sent more often than asked", _extra(seen), len(seen), "0"),
    ]
    show("Claims against the server's book", ["", "n", "hits", "share", "Wilson 95 %", "upper 95 %", "aim"], rows)
    tell(bad_share("T1", "`verified` on a real failure, fault site", len(false_success), len(failures), 0.005))
    tell(bad_share("T2", "failed on a real success, fault site", _count(successes, "failed"), len(successes), 0.02))
    tell(bad_share("T2", "unclear on a success the page shows, fault site", _count(plain, "unclear"), len(plain), 0.05))
    return len(false_success) + _extra(seen) + _count(seen, "broken")


def _count(seen: Sequence[Seen], claim: str) -> int:
    return len([one for one in seen if one.told.claim == claim])


def _extra(seen: Sequence[Seen]) -> int:
    return len([one for one in seen if one.received > max(1, one.trial.case.expected.commits)])


def show_cases(seen: Sequence[Seen]) -> None:
    rows: list[list[object]] = []
    for case in CASES:
        mine = [one for one in seen if one.trial.case is case]
        if not mine:
            continue
        claims = Counter(one.told.claim for one in mine)
        done = len([one for one in mine if one.done])
        off = [one for one in mine if one.told.verification not in case.expected.verification]
        rows.append(
            [
                case.name,
                len(mine),
                done,
                *(claims[name] for name in ("verified", "likely", "failed", "unclear", "untouched")),
                len(off),
                sorted(one.seconds for one in mine)[len(mine) // 2],
            ]
        )
    heads = ["case", "n", "done", "verified", "likely", "failed", "unclear", "untouched", "not as tabled", "p50 s"]
    show("By case", heads, rows)


def show_surprises(seen: Sequence[Seen], limit: int = 25) -> None:
    """Every false success and false alarm by its number, so that it can be looked at again."""
    odd = [
        one
        for one in seen
        if (one.told.claim == "verified" and not one.done) or (one.told.claim == "failed" and one.done)
    ]
    if odd:
        rows = [
            [o.trial.key, o.trial.case.name, str(o.trial.parameters()), o.told.claim, o.told.reason_code or "", o.done]
            for o in odd[:limit]
        ]
        show("Wrong claims", ["key", "case", "drawn", "claim", "reason", "done"], rows)


def main(*, long: bool) -> int:
    print(f"truth · {machine()}\n")
    count, workers = number("trials", 2200 if long else 150), number("workers", WORKERS)
    started = time.perf_counter()
    seen = anyio.run(measure, count, SEED, workers)
    remark(f"{len(seen)} guarded actions, seed {SEED}, {workers} tabs, {time.perf_counter() - started:.0f} s\n")
    wrong = show_shares(seen)
    show_surprises(seen)
    show_cases(seen)
    return int(bool(wrong))
