"""Does Nova say what is true? Guarded actions on a site that fails at random and keeps the books."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from tests.pages.faults.cases import CASES, SUBMIT, Case, Evidence, not_success
from tests.pages.faults.flash import HALVES, SAVED, SILENT, Flash, draw_flash, wording_cases
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
# So many wrong arms bound the share well below the aim when none of them deceives.
PRESSED = 2000
# Submissions whose answer is a redirect with a message; the expectations of the table do not apply to them.
TOLD = Case("flash", "document", SUBMIT, not_success(), page="flash")


@dataclass(frozen=True, slots=True)
class Trial:
    """One drawn fault with its parameters."""

    number: int
    case: Case
    delay_ms: int | None = None
    wait_ms: int | None = None
    flash: Flash | None = None

    @property
    def key(self) -> str:
        return f"r{self.number}"

    def parameters(self) -> dict[str, object]:
        drawn: dict[str, object] = {} if self.flash is None else self.flash.query()
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

    @property
    def evidence(self) -> Evidence:
        """Whether the page shows how it went."""
        flash = self.trial.flash
        if flash is None:
            return self.trial.case.evidence
        return "hidden" if flash.case == SILENT and flash.place == "same" else "plain"

    @property
    def pressed(self) -> bool:
        """The submission reached the server: only such a trial can deceive."""
        return self.received > 0

    @property
    def wrong(self) -> bool:
        """Sent and not done."""
        return self.pressed and not self.done


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


def draw_flashes(count: int, seed: int, first: int) -> list[Trial]:
    """Every kind of message in both halves in turn; one in three says that it was saved, and it was."""
    dice = random.Random(seed)
    kinds = [case for case in wording_cases() if case != SAVED]
    flashes = [
        draw_flash(SAVED if at % 3 == 2 else kinds[(at - at // 3) % len(kinds)], HALVES[at // 3 % 2], dice)
        for at in range(count)
    ]
    return [Trial(first + at, TOLD, flash=flash) for at, flash in enumerate(flashes)]


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


async def measure(count: int, flashes: int, seed: int, workers: int = WORKERS) -> list[Seen]:
    tools = load_catalogue().tools
    known = [case for case in CASES if case.act.tool.removeprefix("nova.") in tools]
    queue = draw(known, count, seed) + draw_flashes(flashes, seed, count)
    random.Random(seed).shuffle(queue)
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
    return [one for one in seen if one.evidence == evidence]


def show_shares(seen: Sequence[Seen]) -> int:
    """The headline; returns how often something was wrong that must never be.

    A failure counts where its submission reached the server. A verifier that always abstains has no false success and
    no decided answer either: both stand in the table.
    """
    wrong, successes = [one for one in seen if one.wrong], [one for one in seen if one.done]
    unsent = [one for one in seen if not one.pressed]
    plain = _by_evidence(successes, "plain")
    told = _by_evidence(wrong, "plain")
    likely = [one for one in seen if one.told.claim == "likely"]
    rows = [
        _share("false success: verified, pressed and not done", _count(wrong, "verified"), len(wrong), "<= 0.5 %"),
        _share("verified although nothing arrived", _count(unsent, "verified"), len(unsent), "0"),
        _share("likely that was no success", len([o for o in likely if not o.done]), len(likely), ""),
        _share("false alarm: failed on a real success", _count(successes, "failed"), len(successes), "<= 2 %"),
        _share("unclear on a success the page shows", _count(plain, "unclear"), len(plain), "<= 5 %"),
        _share("only likely on a success the page shows", _count(plain, "likely"), len(plain), ""),
        _share("unclear on any success", _count(successes, "unclear"), len(successes), ""),
        _share("failure the page shows, said to have failed", _count(told, "failed"), len(told), ""),
        _share("failure the page shows, left unclear", _count(told, "unclear"), len(told), ""),
        _share("indeterminate, all pressed", _indeterminate(seen), len([o for o in seen if o.pressed]), ""),
        _share("refused as a duplicate, wrongly", _count(seen, "duplicate"), len(seen), "0"),
        _share("ended by a defect of Nova's own", _count(seen, "broken"), len(seen), "0"),
        _share("sent more often than asked", _extra(seen), len(seen), "0"),
    ]
    show("Claims against the server's book", ["", "n", "hits", "share", "Wilson 95 %", "upper 95 %", "aim"], rows)
    false_success = _count(wrong, "verified")
    tell(bad_share("T1", "`verified` on a real failure that was pressed, fault site", false_success, len(wrong), 0.005))
    tell(bad_share("T2", "failed on a real success, fault site", _count(successes, "failed"), len(successes), 0.02))
    tell(bad_share("T2", "unclear on a success the page shows, fault site", _count(plain, "unclear"), len(plain), 0.05))
    return false_success + _count(unsent, "verified") + _extra(seen) + _count(seen, "broken")


def show_halves(seen: Sequence[Seen]) -> None:
    """The answers that bring a message: wordings and markup the rules were written with, and those put aside before."""
    kinds = [(case, half) for case in wording_cases() for half in HALVES]
    rows: list[list[object]] = []
    for case, half in kinds:
        mine = [one for one in seen if (flash := one.trial.flash) and (flash.case, flash.half) == (case, half)]
        for done in (False, True):
            part = [one for one in mine if one.pressed and one.done is done]
            if part:
                claims = [_count(part, claim) for claim in ("verified", "likely", "failed", "unclear")]
                seconds = sorted(one.seconds for one in part)[len(part) // 2]
                rows.append([case, half, "done" if done else "not done", len(part), *claims, seconds])
    heads = ["what the page says", "half", "really", "n", "verified", "likely", "failed", "unclear", "p50 s"]
    if rows:
        show("Redirect after the post, with a message", heads, rows)
    for half in HALVES:
        mine = [one for one in seen if one.trial.flash and one.trial.flash.half == half]
        wrong, right = [one for one in mine if one.wrong], [one for one in mine if one.done]
        name = "put aside" if half == "aside" else "worked with"
        tell(bad_share("T1", f"`verified` on a refusal, wordings {name}", _count(wrong, "verified"), len(wrong), 0.005))
        tell(bad_share("T2", f"failed on a success, wordings {name}", _count(right, "failed"), len(right), 0.02))


def _indeterminate(seen: Sequence[Seen]) -> int:
    return len([one for one in seen if one.pressed and one.told.verification == "indeterminate"])


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
            [o.trial.key, o.trial.case.name, _drawn(o.trial), o.told.claim, o.told.reason_code or "", o.done]
            for o in odd[:limit]
        ]
        show("Wrong claims", ["key", "case", "drawn", "claim", "reason", "done"], rows)


def _drawn(trial: Trial) -> str:
    return str(trial.parameters()) if trial.flash is None else trial.flash.words()


def main(*, long: bool) -> int:
    print(f"truth · {machine()}\n")
    count, workers = number("trials", 1200 if long else 150), number("workers", WORKERS)
    flashes = number("flashes", 3000 if long else 240)
    started = time.perf_counter()
    seen = anyio.run(measure, count, flashes, SEED, workers)
    pressed = len([one for one in seen if one.wrong])
    remark(
        f"{len(seen)} guarded actions, {pressed} of them pressed and not done "
        f"(the long form: {PRESSED:,} or more), "
        f"seed {SEED}, {workers} tabs, {time.perf_counter() - started:.0f} s\n"
    )
    wrong = show_shares(seen)
    show_halves(seen)
    show_surprises(seen)
    show_cases(seen)
    return int(bool(wrong))
