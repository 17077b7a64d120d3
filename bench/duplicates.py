"""Never twice by accident, never silently less: what a site received against what was asked for."""

import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from tests.pages.faults.site import FaultSite, fault_site

from bench.bounds import percent, upper_percent
from bench.driving import DUPLICATE, Hand, Told, close_hand, new_hand, nova_here
from bench.duplicate_kills import KillTrial, kill_trials, processor_load
from bench.findings import bad_share
from bench.races import KINDS as RACES
from bench.races import RaceOutcome, race_trials
from bench.tables import machine, remark, show, tell
from bench.words import number
from nova_mcp.app import Nova

SEED = 20261117
WORKERS = 6
TRIALS_PER_TAB = 150
SHORT_LIMIT_S = 300.0
LONG_LIMIT_S = 6 * 3600.0
# Fewer say little about what happens once in thousands.
WANTED = 10_000
SUBMIT = "nova.guarded_submit_form"
GO = {"selector": "#go"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One trial. `most` is how often the site may have received it, `asked` how often it should have."""

    kind: str
    key: str
    received: int
    resent: int
    most: int
    asked: int
    answers: tuple[Told, ...]

    @property
    def duplicated(self) -> bool:
        return self.received > self.most

    @property
    def dropped(self) -> bool:
        """More answers claim a success of their own than submissions arrived."""
        claimed = [told for told in self.answers if told.claim == "verified" and not told.commit.get("resolvedFrom")]
        return len(claimed) > self.received

    @property
    def lost(self) -> bool:
        return self.received < self.asked


@dataclass(frozen=True, slots=True)
class Bench:
    """What one worker works with: two agents, each on a tab of its own."""

    site: FaultSite
    first: Hand
    second: Hand
    dice: random.Random

    def outcome(self, kind: str, key: str, most: int, asked: int, *answers: Told) -> Outcome:
        return Outcome(kind, key, self.site.count(key), self.site.resent(key), most, asked, answers)


Kind = Callable[[Bench, str], Awaitable[Outcome]]


async def _repeat_after(bench: Bench, kind: str, case: str, key: str, delay_ms: int) -> Outcome:
    """The answer never comes; the agent opens the form again and calls again, without having looked."""
    url = bench.site.url(case, key, delay=delay_ms)
    await bench.first.open(url)
    told = await bench.first.act(SUBMIT, GO)
    await bench.first.open(url)
    again = await bench.first.act(SUBMIT, GO)
    return bench.outcome(kind, key, 1, 1, told, again)


async def answer_dropped(bench: Bench, key: str) -> Outcome:
    return await _repeat_after(bench, "answer_dropped", "lost_committed", key, bench.dice.randint(0, 80))


async def answer_dropped_in_page(bench: Bench, key: str) -> Outcome:
    await bench.first.open(bench.site.url("fetch_lost_committed", key, delay=bench.dice.randint(0, 80)))
    told = await bench.first.act(SUBMIT, GO)
    again = await bench.first.act(SUBMIT, GO)
    return bench.outcome("answer_dropped_in_page", key, 1, 1, told, again)


async def timed_out(bench: Bench, key: str) -> Outcome:
    """The window ends long before the server answers."""
    await bench.first.open(bench.site.url("fetch_late", key, delay=6000))
    soon = {**GO, "transitionContract": {"stabilityWindowMs": 500}}
    told = await bench.first.act(SUBMIT, soon)
    again = await bench.first.act(SUBMIT, soon)
    return bench.outcome("timed_out", key, 1, 1, told, again)


async def slow_redirect(bench: Bench, key: str) -> Outcome:
    """Impatient: the second call starts while the first still follows redirects."""
    await bench.first.open(bench.site.url("redirect_chain", key, delay=bench.dice.randint(100, 500)))
    return await _both(bench, "slow_redirect", key, bench.first, bench.first)


async def called_twice(bench: Bench, key: str) -> Outcome:
    await bench.first.open(bench.site.url("ok_fetch", key, delay=bench.dice.randint(0, 150)))
    told = await bench.first.act(SUBMIT, GO)
    again = await bench.first.act(SUBMIT, GO)
    return bench.outcome("called_twice", key, 1, 1, told, again)


async def called_twice_at_once(bench: Bench, key: str) -> Outcome:
    await bench.first.open(bench.site.url("ok_document", key, delay=bench.dice.randint(0, 150)))
    return await _both(bench, "called_twice_at_once", key, bench.first, bench.first)


async def two_agents_two_tabs(bench: Bench, key: str) -> Outcome:
    url = bench.site.url(bench.dice.choice(("ok_document", "redirect_chain")), key, delay=bench.dice.randint(0, 300))
    await bench.first.open(url)
    await bench.second.open(url)
    return await _both(bench, "two_agents_two_tabs", key, bench.first, bench.second)


async def two_agents_one_tab(bench: Bench, key: str) -> Outcome:
    await bench.first.open(bench.site.url("ok_document", key, delay=bench.dice.randint(0, 150)))
    intruder = Hand(bench.second.nova, bench.second.agent, bench.first.tab)
    return await _both(bench, "two_agents_one_tab", key, bench.first, intruder)


async def _both(bench: Bench, kind: str, key: str, one: Hand, other: Hand) -> Outcome:
    answers: list[Told] = []

    async def go(hand: Hand, wait_s: float) -> None:
        await anyio.sleep(wait_s)
        answers.append(await hand.act(SUBMIT, GO))

    async with anyio.create_task_group() as group:
        group.start_soon(go, one, 0.0)
        group.start_soon(go, other, bench.dice.choice((0.0, bench.dice.uniform(0.0, 0.4))))
    return bench.outcome(kind, key, 1, 1, *answers)


async def other_intent(bench: Bench, key: str) -> Outcome:
    """Another intent key is another intent: both must arrive."""
    await bench.first.open(bench.site.url("ok_fetch", key))
    told = await bench.first.act(SUBMIT, {**GO, "intentKey": f"{key}-a"})
    again = await bench.first.act(SUBMIT, {**GO, "intentKey": f"{key}-b"})
    return bench.outcome("other_intent", key, 2, 2, told, again)


async def after_looking(bench: Bench, key: str) -> Outcome:
    """Whoever has looked at the page and asks again means it."""
    await bench.first.open(bench.site.url("ok_fetch", key))
    told = await bench.first.act(SUBMIT, GO)
    await bench.first.call("nova.perceive")
    again = await bench.first.act(SUBMIT, GO)
    return bench.outcome("after_looking", key, 2, 2, told, again)


# How often each is drawn: those that wait long are few.
KINDS: dict[Kind, int] = {
    answer_dropped: 3,
    answer_dropped_in_page: 3,
    timed_out: 1,
    slow_redirect: 12,
    called_twice: 8,
    called_twice_at_once: 24,
    two_agents_two_tabs: 30,
    two_agents_one_tab: 16,
    other_intent: 2,
    after_looking: 2,
}


@dataclass(frozen=True, slots=True)
class Work:
    """What the workers share."""

    nova: Nova
    site: FaultSite
    queue: list[tuple[int, Kind]]
    out: list[Outcome]
    until: float

    def over(self) -> bool:
        return not self.queue or time.monotonic() > self.until


async def _worker(work: Work, number: int) -> None:
    dice = random.Random(SEED + number)
    while not work.over():
        left = len(work.queue)
        hands = [await new_hand(work.nova, f"d{number}{name}-{left}") for name in "ab"]
        bench = Bench(work.site, hands[0], hands[1], dice)
        for _ in range(TRIALS_PER_TAB):
            if work.over():
                break
            index, kind = work.queue.pop()
            work.out.append(await kind(bench, f"k{index}"))
        for hand in hands:
            await close_hand(hand)


async def measure(count: int, limit_s: float) -> list[Outcome]:
    """That many trials, or as many as fit into the time."""
    dice = random.Random(SEED)
    kinds = list(KINDS)
    drawn = [*kinds, *dice.choices(kinds, [KINDS[kind] for kind in kinds], k=max(0, count - len(kinds)))][:count]
    queue = list(enumerate(drawn))[::-1]
    out: list[Outcome] = []
    with fault_site() as site:
        async with nova_here(pictures=False) as nova, anyio.create_task_group() as group:
            work = Work(nova, site, queue, out, time.monotonic() + limit_s)
            for number in range(WORKERS):
                group.start_soon(_worker, work, number)
    return out


def show_outcomes(outcomes: Sequence[Outcome]) -> int:
    rows: list[list[object]] = []
    for kind in [kind.__name__ for kind in KINDS]:
        mine = [one for one in outcomes if one.kind == kind]
        if mine:
            refused = len([one for one in mine if any(told.claim == "duplicate" for told in one.answers)])
            counts = [len([o for o in mine if o.duplicated]), len([o for o in mine if o.dropped])]
            lost = len([o for o in mine if o.lost])
            rows.append([kind, len(mine), *counts, lost, refused, sum(o.resent for o in mine)])
    heads = ["trial", "n", "duplicated", "silently dropped", "lost", "refused as duplicate", "resent by the browser"]
    show("Commits received against commits asked for", heads, rows)
    return len([one for one in outcomes if one.duplicated or one.dropped])


def show_races(races: Sequence[RaceOutcome]) -> int:
    rows: list[list[object]] = []
    for kind in [kind.__name__ for kind in RACES]:
        mine = [one for one in races if one.kind == kind]
        if mine:
            wrong = [len([o for o in mine if getattr(o, name)]) for name in ("duplicated", "dropped", "lost")]
            refused = len([o for o in mine if any(told.verdict == DUPLICATE for told in o.answers)])
            rows.append([kind, len(mine), *wrong, refused])
    heads = ["trial", "n", "duplicated", "silently dropped", "lost", "refused as duplicate"]
    show("The decisions around the press, on two servers and one store, with a scripted page", heads, rows)
    return len([one for one in races if one.duplicated or one.dropped])


def show_total(trials: Sequence[Outcome | RaceOutcome | KillTrial]) -> None:
    total = len(trials)
    duplicated = len([one for one in trials if one.duplicated])
    dropped = len([one for one in trials if one.dropped])
    lost = len([one for one in trials if one.lost])
    rows = [
        [name, total, hits, percent(hits, total), upper_percent(hits, total), aim]
        for name, hits, aim in (
            ("duplicated", duplicated, "0"),
            ("silently dropped", dropped, "0"),
            ("lost", lost, "<= 1 %"),
        )
    ]
    show("All trials", ["", "n", "hits", "share", "upper 95 %", "aim"], rows)
    small = {"smaller": f"{WANTED:,} trials"} if total < WANTED else {}
    for name, hits, most in (("doubled", duplicated, 0.0), ("silently dropped", dropped, 0.0), ("lost", lost, 0.01)):
        tell(bad_share("T3", f"commits {name}, all trials", hits, total, most).model_copy(update=small))
    # A scripted page stands in for the browser in most of them; those with a browser bound less, and are told apart.
    real = [one for one in trials if not isinstance(one, RaceOutcome)]
    doubled = len([one for one in real if one.duplicated])
    tell(bad_share("T3", "commits doubled, those of the trials that ran in a browser", doubled, len(real), 0))


def show_kills(kills: Sequence[KillTrial]) -> None:
    rows = []
    for moment in ("before arrival", "after arrival"):
        mine = [one for one in kills if one.moment == moment]
        if mine:
            rows.append(
                [
                    moment,
                    len(mine),
                    len([k for k in mine if k.duplicated]),
                    len([k for k in mine if k.dropped]),
                    len([k for k in mine if k.lost]),
                    len([k for k in mine if k.repeat == "duplicate"]),
                    len([k for k in mine if k.repeat == "verified"]),
                    len([k for k in mine if k.insisted]),
                ]
            )
    heads = [
        "killed",
        "n",
        "duplicated",
        "silently dropped",
        "lost",
        "repeat refused",
        "repeat verified",
        "sent on purpose",
    ]
    show("kill -9 in mid-commit, restart, same call again", heads, rows)
    for kill in kills:
        if kill.history:
            why = "duplicated" if kill.duplicated else "silently dropped"
            remark("\n".join([f"{kill.key} ({kill.case}) was {why}:", *kill.history]))


def main(*, long: bool) -> int:
    print(f"duplicates · {machine()}\n")
    started = time.perf_counter()
    outcomes = anyio.run(measure, number("trials", 2_000 if long else 200), LONG_LIMIT_S if long else SHORT_LIMIT_S)
    remark(f"{len(outcomes)} trials in the browser, seed {SEED}, {time.perf_counter() - started:.0f} s")
    started = time.perf_counter()
    load = number("load", 0)
    with tempfile.TemporaryDirectory() as folder, processor_load(load):
        kills = anyio.run(kill_trials, Path(folder), number("kills", 400 if long else 10), number("seed", SEED))
    beside = f" beside {load} busy processes" if load else ""
    remark(f"{len(kills)} trials with a killed server{beside}, {time.perf_counter() - started:.0f} s")
    started = time.perf_counter()
    with fault_site() as site:
        races = anyio.run(race_trials, site, number("races", 10_000 if long else 400), SEED)
    remark(f"{len(races)} trials with a scripted page, {time.perf_counter() - started:.0f} s\n")
    wrong = show_outcomes(outcomes) + show_races(races)
    show_kills(kills)
    show_total([*outcomes, *races, *kills])
    return int(bool(wrong or [one for one in kills if one.duplicated or one.dropped]))
