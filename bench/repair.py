"""Is a lost element found again, and how often wrongly? Made-up redesigns of made-up pages, seeded."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.bounds import percent, upper_percent
from bench.repair_pages import STRENGTHS, Pair, Strength, made_pair
from bench.tables import machine, show
from bench.words import number
from nova_mcp.knowledge.repair import MIN_CONFIDENCE, Abstain, Assessment, Repair, assess, decide

PAIRS = 30
MORE_PAIRS = 400
SEED = 20_250_101
LEVELS = (0.0, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
MOST_WRONG = 0.01


@dataclass(frozen=True)
class Trial:
    """One lost element: what it became, None when it is gone, and what was found out about it."""

    truth: int | None
    found: Assessment | None


@dataclass(frozen=True)
class Score:
    right: int
    wrong: int
    abstained: int

    @property
    def proposed(self) -> int:
        return self.right + self.wrong

    @property
    def total(self) -> int:
        return self.proposed + self.abstained


Proposal = Callable[[Assessment | None], int | None]


def trials_of(pairs: Sequence[Pair], *, old_page: bool = True) -> list[Trial]:
    return [
        Trial(truth, assess(learned, pair.after, pair.before if old_page else None))
        for pair in pairs
        for learned, truth in zip(pair.before, pair.truth, strict=True)
    ]


def guarded(least: float) -> Proposal:
    """The node that would be proposed with every guard in place."""

    def propose(found: Assessment | None) -> int | None:
        match decide(found, least):
            case Repair(candidate):
                return candidate.node
            case Abstain():
                return None

    return propose


def bare(least: float) -> Proposal:
    """The node that likeness alone would propose, for comparison."""
    return lambda found: None if found is None or found.likeness.score < least else found.candidate.node


def scored(trials: Sequence[Trial], propose: Proposal) -> Score:
    proposals = [(propose(trial.found), trial.truth) for trial in trials]
    right = sum(node is not None and node == truth for node, truth in proposals)
    made = sum(node is not None for node, _ in proposals)
    return Score(right, made - right, len(trials) - made)


def show_strengths(title: str, tried: dict[Strength, list[Trial]]) -> Score:
    rows: list[list[object]] = []
    for how, trials in tried.items():
        kept = scored([one for one in trials if one.truth is not None], guarded(MIN_CONFIDENCE))
        gone = scored([one for one in trials if one.truth is None], guarded(MIN_CONFIDENCE))
        rows.append(
            [
                how.name,
                kept.total,
                percent(kept.right, kept.total),
                percent(kept.wrong, kept.total),
                percent(kept.abstained, kept.total),
                gone.total,
                percent(gone.wrong, gone.total),
            ]
        )
    columns = ("redesign", "kept", "right", "wrong", "abstained", "gone", "wrong")
    show(title, columns, rows)
    return scored([one for trials in tried.values() for one in trials], guarded(MIN_CONFIDENCE))


def show_curve(trials: Sequence[Trial]) -> None:
    rows: list[list[object]] = []
    for least in LEVELS:
        cells: list[object] = [f"{least:.2f}"]
        for propose in (guarded(least), bare(least)):
            score = scored(trials, propose)
            cells += [percent(score.proposed, score.total), percent(score.wrong, score.proposed)]
            cells.append(upper_percent(score.wrong, score.proposed))
        rows.append(cells)
    columns = ("at least", "coverage", "risk", "at most", "bare coverage", "risk", "at most")
    show("Risk and coverage by confidence, and by likeness alone", columns, rows)


def show_doubts(trials: Sequence[Trial]) -> None:
    doubts: Counter[str] = Counter()
    spared: Counter[str] = Counter()
    for trial in trials:
        verdict = decide(trial.found)
        if isinstance(verdict, Abstain):
            doubts[verdict.reason] += 1
            best = verdict.best
            spared[verdict.reason] += best is None or best.candidate.node != trial.truth
    rows = [[reason, count, percent(spared[reason], count)] for reason, count in doubts.most_common()]
    show("Why nothing was proposed, and how often that spared a wrong repair", ("reason", "count", "spared"), rows)


def main(*, long: bool = False) -> int:
    pairs = number("pairs", MORE_PAIRS if long else PAIRS)
    print(f"locator repair, {pairs} made-up pages per strength, seed {SEED}, {machine()}")
    chance = random.Random(SEED)
    made = {how: [made_pair(how, chance) for _ in range(pairs)] for how in STRENGTHS}
    tried = {how: trials_of(found) for how, found in made.items()}
    whole = show_strengths("Lost elements, with the page they were learned on", tried)
    alone = {how: trials_of(found, old_page=False) for how, found in made.items()}
    show_strengths("Lost elements, without it", alone)
    everything = [one for trials in tried.values() for one in trials]
    show_curve(everything)
    show_doubts(everything)
    failed = whole.wrong > MOST_WRONG * whole.total
    print(f"wrong {percent(whole.wrong, whole.total)} of {whole.total} (aim: at most {MOST_WRONG:.0%})")
    return int(failed)
