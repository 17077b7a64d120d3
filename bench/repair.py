"""Is a lost element found again, and how often wrongly? On real pages from version to version, and on made-up ones."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from bench.bounds import percent, upper_percent
from bench.findings import bad_share
from bench.repair_labs import LabPair, OldPage, lab_trials, measured_pairs, nothing_stored, stored_surroundings
from bench.repair_pages import STRENGTHS, Pair, Strength, made_pair
from bench.repair_sites import SITES
from bench.results import Finding
from bench.tables import left_out, machine, remark, show, tell
from bench.words import chosen, number
from nova_mcp.memory.knowledge.repair.repair import MIN_CONFIDENCE, Abstain, Assessment, Repair, assess, decide

PAIRS = 20
MORE_PAIRS = 400
SEED = 20_250_101
LEVELS = (0.0, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
MOST_WRONG = 0.01
LEAST_RIGHT = 0.92


@dataclass(frozen=True)
class Trial:
    """One lost element: what it may be now, nothing when it is gone, and what was found out about it."""

    truth: frozenset[int]
    found: Assessment | None


@dataclass(frozen=True)
class Score:
    """`spared` are the elements that are gone and for which nothing was proposed, as is right."""

    right: int
    wrong: int
    abstained: int
    spared: int = 0

    @property
    def proposed(self) -> int:
        return self.right + self.wrong

    @property
    def total(self) -> int:
        return self.proposed + self.abstained


Proposal = Callable[[Assessment | None], int | None]


def trials_of(pairs: Sequence[Pair], *, old_page: bool = True) -> list[Trial]:
    return [
        Trial(
            frozenset() if truth is None else frozenset({truth}),
            assess(learned, pair.after, pair.before if old_page else None),
        )
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
    right = sum(node in truth for node, truth in proposals)
    made = sum(node is not None for node, _ in proposals)
    spared = sum(node is None and not truth for node, truth in proposals)
    return Score(right, made - right, len(trials) - made, spared)


def site_trials(pairs: Sequence[LabPair], old_page: OldPage) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for one in lab_trials(pairs, old_page):
        found.setdefault(one.pair.site.name, []).append(Trial(one.truth, one.found))
    return found


def _site_row(name: str, use: str, trials: Sequence[Trial]) -> list[object]:
    score = scored(trials, guarded(MIN_CONFIDENCE))
    kept = sum(bool(one.truth) for one in trials)
    missed = score.abstained - score.spared
    return [
        *(name, use, len(trials), kept, score.right, score.wrong, missed),
        f"{score.spared}/{len(trials) - kept}",
        percent(score.right, kept),
        percent(score.wrong, score.proposed),
        upper_percent(score.wrong, score.proposed),
    ]


def show_sites(title: str, tried: Mapping[str, Sequence[Trial]]) -> None:
    uses = {site.name: site.use for site in SITES}
    rows = [_site_row(name, uses[name], trials) for name, trials in tried.items()]
    for use in ("tuning", "held out"):
        whole = [one for name, trials in tried.items() if uses[name] == use for one in trials]
        rows.append(_site_row(f"all {use}", "", whole))
    rows.append(_site_row("all", "", [one for trials in tried.values() for one in trials]))
    columns = ("site", "use", "elements", "kept", "right", "wrong", "missed", "gone: left", "right of kept",
               "wrong of proposed", "at most")  # fmt: skip
    show(title, columns, rows)


def show_strengths(title: str, tried: Mapping[Strength, Sequence[Trial]]) -> Score:
    rows: list[list[object]] = []
    for how, trials in tried.items():
        kept = scored([one for one in trials if one.truth], guarded(MIN_CONFIDENCE))
        gone = scored([one for one in trials if not one.truth], guarded(MIN_CONFIDENCE))
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


def show_curve(title: str, trials: Sequence[Trial]) -> None:
    rows: list[list[object]] = []
    for least in LEVELS:
        cells: list[object] = [f"{least:.2f}"]
        for propose in (guarded(least), bare(least)):
            score = scored(trials, propose)
            cells += [percent(score.proposed, score.total), percent(score.wrong, score.proposed)]
            cells.append(upper_percent(score.wrong, score.proposed))
        rows.append(cells)
    columns = ("at least", "coverage", "risk", "at most", "bare coverage", "risk", "at most")
    show(f"Risk and coverage by confidence, and by likeness alone: {title}", columns, rows)


def show_doubts(title: str, trials: Sequence[Trial]) -> None:
    doubts: Counter[str] = Counter()
    spared: Counter[str] = Counter()
    for trial in trials:
        verdict = decide(trial.found)
        if isinstance(verdict, Abstain):
            doubts[verdict.reason] += 1
            best = verdict.best
            spared[verdict.reason] += best is None or best.candidate.node not in trial.truth
    rows = [[reason, count, percent(spared[reason], count)] for reason, count in doubts.most_common()]
    show(
        f"Why nothing was proposed, and how often that spared a wrong repair: {title}",
        ("reason", "count", "spared"),
        rows,
    )


def _everything(tried: Iterable[Sequence[Trial]]) -> list[Trial]:
    return [one for trials in tried for one in trials]


def _judge(which: str, trials: Sequence[Trial]) -> None:
    score, kept = scored(trials, guarded(MIN_CONFIDENCE)), sum(bool(one.truth) for one in trials)
    if not kept:
        return
    tell(
        Finding(
            aim="T5",
            what=f"lost elements found again, {which}",
            measured=f"{score.right:,} of {kept:,} ({percent(score.right, kept)})",
            bound=f"≥ {LEAST_RIGHT:.0%}",
            n=kept,
            met=score.right >= LEAST_RIGHT * kept,
        )
    )
    tell(bad_share("T5", f"repairs proposed and wrong, {which}", score.wrong, score.proposed, MOST_WRONG))


def measure_sites() -> Score:
    """Every labelled site that can be had here; without any there is nothing to be wrong about."""
    wanted = chosen("sites", tuple(site.name for site in SITES))
    pairs = anyio.run(measured_pairs, wanted)
    sites = {one.site.name for one in pairs}
    remark(f"{len(pairs)} pages of {len(sites)} sites, each beside its next version\n")
    if missing := sorted(set(wanted) - sites):
        left_out(f"sites that could not be had here: {', '.join(missing)}")
    tried = site_trials(pairs, stored_surroundings)
    show_sites("Real redesigns, with the stored surroundings", tried)
    show_sites("Real redesigns, without them", site_trials(pairs, nothing_stored))
    held = {site.name for site in SITES if site.use == "held out"}
    _judge("all sites", _everything(tried.values()))
    _judge("held-out sites", [one for name, trials in tried.items() if name in held for one in trials])
    show_curve("real redesigns", _everything(tried.values()))
    show_doubts("held out", [one for name, trials in tried.items() if name in held for one in trials])
    return scored(_everything(tried.values()), guarded(MIN_CONFIDENCE))


def measure_made(pairs: int) -> Score:
    chance = random.Random(SEED)
    made = {how: [made_pair(how, chance) for _ in range(pairs)] for how in STRENGTHS}
    tried = {how: trials_of(found) for how, found in made.items()}
    whole = show_strengths("Made-up redesigns, with the page they were learned on", tried)
    alone = {how: trials_of(found, old_page=False) for how, found in made.items()}
    show_strengths("Made-up redesigns, without it", alone)
    show_curve("made-up redesigns", _everything(tried.values()))
    return whole


def main(*, long: bool = False) -> int:
    pairs = number("pairs", MORE_PAIRS if long else PAIRS)
    print(f"locator repair · seed {SEED} · {machine()}")
    failed = 0
    for name, score in (("real", measure_sites()), ("made-up", measure_made(pairs))):
        share = percent(score.wrong, score.proposed)
        remark(f"{name}: {score.wrong} of {score.proposed} proposals wrong, {share} (aim: at most {MOST_WRONG:.0%})")
        failed += score.wrong > MOST_WRONG * max(score.proposed, 1)
    return int(failed > 0)
