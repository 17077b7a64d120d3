"""Does only what is right become guidance? A seeded simulation of noisy, bursty, drifting and poisoned evidence."""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from bench.findings import bad_share
from bench.results import Finding
from bench.tables import machine, quantile, remark, show, tell
from nova_mcp.memory.journal.evidence import Direction, Observation
from nova_mcp.memory.journal.throttle import Held, judge
from nova_mcp.memory.promotion.gates.counting import LONGEST_LOOKBACK_MS
from nova_mcp.memory.promotion.gates.folding import Reviewed, observed, reviewed
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS, Entry, Mark

PHENOMENA: Final = 500
MORE_PHENOMENA: Final = 10_000
DAYS: Final = 60
# Before that nothing can have proven itself in use.
WARM_UP_DAYS: Final = 14
NOISES: Final = (0.0, 0.1, 0.2, 0.3)
START_MS: Final = 20_000 * DAY_MS
AIM_NOISE: Final = 0.2
AIM_PRECISION: Final = 0.99
AIM_RECALL: Final = 0.60
FRESH_POISON: Final = 8

# What `bench truth` shows of actions with a contract, taken at the upper bounds of its errors: how often a use that
# worked is labelled a failure or not at all, and the other way round. The rest is labelled as what it was.
FLIPPED: Final = 0.003
UNCLEAR_WHEN_DONE: Final = 0.056
UNCLEAR_WHEN_NOT: Final = 0.268


@dataclass(frozen=True)
class Labels:
    """How raw outcomes become labels: `checked` of the uses carry a contract, the others are taken as they look.

    `noise` of the raw outcomes are wrong; of those, `unclear` look like nothing rather than like the opposite.
    """

    name: str
    noise: float = 0.0
    unclear: float = 0.0
    checked: float = 0.0

    def of(self, *, works: bool, made: random.Random) -> Direction:
        right: Direction = 1 if works else -1
        wrong: Direction = -1 if works else 1
        if made.random() < self.checked:
            drawn, unclear = made.random(), UNCLEAR_WHEN_DONE if works else UNCLEAR_WHEN_NOT
            return wrong if drawn < FLIPPED else 0 if drawn < FLIPPED + unclear else right
        if made.random() >= self.noise:
            return right
        return 0 if made.random() < self.unclear else wrong


WAYS: Final = (
    Labels("raw outcomes are the labels, wrong ones say the opposite"),
    Labels("raw outcomes are the labels, half of the wrong ones are unclear", unclear=0.5),
    Labels("half of the uses carry a contract", checked=0.5),
    Labels("every use carries a contract", checked=1.0),
)

# What is true of a phenomenon, kept apart from everything that Nova computes.
Nature = Literal["right", "wrong", "drifting", "returning", "poisoned"]
SHARES: Final[dict[Nature, int]] = {"right": 55, "wrong": 20, "drifting": 10, "returning": 10, "poisoned": 5}


@dataclass
class Truth:
    """Whether a phenomenon works on a given day, and how much of its use is seen as what it was."""

    nature: Nature
    uses_a_day: float
    breaks_on: int = 0
    returns_on: int = 0

    def works(self, day: int) -> bool:
        match self.nature:
            case "right":
                return True
            case "drifting":
                return day < self.breaks_on
            case "returning":
                return not self.breaks_on <= day < self.returns_on
            case "wrong" | "poisoned":
                return False


@dataclass
class Figures:
    """What came of one run at one level of noise."""

    met_active: int = 0
    met_right: int = 0
    met_working: int = 0
    active_days: int = 0
    active_right: int = 0
    falls_while_right: int = 0
    useful_days: list[float] = field(default_factory=list)
    demote_uses: list[int] = field(default_factory=list)
    demote_days: list[float] = field(default_factory=list)
    kept_broken: int = 0
    broken: int = 0
    poisoned_active: int = 0
    poisoned: int = 0
    folds: int = 0
    seconds: float = 0.0

    @property
    def precision(self) -> float:
        """Of the active entries that somebody came to use, how many worked then."""
        return self.met_right / self.met_active if self.met_active else 1.0

    @property
    def recall(self) -> float:
        """Of what worked when somebody came to use it, how much was active."""
        return self.met_right / self.met_working if self.met_working else 0.0

    @property
    def daily_precision(self) -> float:
        """The same by the calendar: what broke counts as wrong until somebody comes and finds out."""
        return self.active_right / self.active_days if self.active_days else 1.0


@dataclass
class Life:
    """One phenomenon lived through: its entry, its evidence and what was measured on the way."""

    truth: Truth
    entry: Entry
    made: random.Random
    labels: Labels
    held: dict[bool, Held] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    calls: int = 0
    first_active_at: int | None = None
    uses_when_broken: int | None = None
    left_active_after: int | None = None

    def session(self, at_ms: int) -> Iterator[tuple[int, bool]]:
        """The moments of one session: mostly a use or two; in every tenth each is a burst of repeats.

        With each moment: whether it repeats the one before, and so is taken for the same.
        """
        repeats = self.made.randint(3, 8) if self.made.random() < 0.1 else 1
        for use in range(self.made.randint(1, 3)):
            for again in range(repeats):
                yield at_ms + use * 4 * 60_000 + again * 5_000, again > 0

    def taken_for(self, at_ms: int) -> Direction:
        """What Nova takes a use for."""
        return self.labels.of(works=self.truth.works((at_ms - START_MS) // DAY_MS), made=self.made)

    def label(self, at_ms: int, session: str, taken: Direction) -> Mark:
        works = self.truth.works((at_ms - START_MS) // DAY_MS)
        self.calls += 1
        call, seq = f"c{self.calls}", self.calls
        if taken >= 0:
            return Mark(seq, at_ms, "action_success", taken, call, session)
        # What has changed its place shows as drift as often as it shows as an action in vain.
        if not works and self.truth.nature in ("drifting", "returning") and self.made.random() < 0.5:
            return Mark(seq, at_ms, "selector_drift", -1, call, session, 2)
        return Mark(seq, at_ms, "action_failure", -1, call, session)

    def see(self, mark: Mark, figures: Figures) -> None:
        """As the journal does: the same within half a minute counts once, failures apart from the rest."""
        side = mark.outcome < 0
        if judge(self.held.get(side), Observation(mark.kind, mark.outcome), mark.at_ms) != "count":
            return
        self.held[side] = Held(mark.at_ms, mark.seq, mark.outcome)
        before = self.entry
        self.entry = observed(before, mark).entry
        self.marks.append(mark)
        figures.folds += 1
        if before.level == 2 and self.entry.level < 2 and self.truth.works((mark.at_ms - START_MS) // DAY_MS):
            figures.falls_while_right += 1

    def review(self, at_ms: int) -> None:
        """What the background pass does after a session; one step each time. Falling has happened by then."""
        if self.entry.level == 2:
            return
        self.marks = [mark for mark in self.marks if mark.at_ms >= at_ms - LONGEST_LOOKBACK_MS]
        self.entry = reviewed(self.entry, self.marks, Reviewed(at_ms)).entry
        if self.entry.level == 2 and self.first_active_at is None:
            self.first_active_at = at_ms


def _truths(count: int, made: random.Random) -> Iterator[Truth]:
    names, weights = list(SHARES), list(SHARES.values())
    for nature in made.choices(names, weights, k=count):
        breaks_on = made.randint(20, 40)
        yield Truth(nature, made.choice((0.2, 0.7, 2.0)), breaks_on, breaks_on + made.randint(5, 20))


def _day(life: Life, day: int, figures: Figures) -> None:
    sessions = int(life.truth.uses_a_day) + (life.made.random() < life.truth.uses_a_day % 1)
    for number in range(sessions):
        begin = START_MS + day * DAY_MS + number * 4 * HOUR_MS + life.made.randrange(HOUR_MS)
        _session(life, begin, f"d{day}n{number}", figures)
    if life.truth.nature == "poisoned" and day == 20:
        _poisoning(life, START_MS + day * DAY_MS + 23 * HOUR_MS, figures)


def _session(life: Life, begin: int, name: str, figures: Figures) -> None:
    at_ms, taken = begin, life.taken_for(begin)
    if begin >= START_MS + WARM_UP_DAYS * DAY_MS:
        active, works = life.entry.level == 2, life.truth.works((begin - START_MS) // DAY_MS)
        figures.met_active += active
        figures.met_right += active and works
        figures.met_working += works
    for at_ms, again in life.session(begin):
        was_active, works = life.entry.level == 2, life.truth.works((at_ms - START_MS) // DAY_MS)
        taken = taken if again else life.taken_for(at_ms)
        life.see(life.label(at_ms, name, taken), figures)
        if not works and life.uses_when_broken is None and was_active and life.truth.breaks_on:
            life.uses_when_broken = life.calls - 1
        if life.uses_when_broken is not None and life.left_active_after is None and life.entry.level < 2:
            life.left_active_after = life.calls - life.uses_when_broken
            figures.demote_days.append((at_ms - START_MS) / DAY_MS - life.truth.breaks_on)
    life.review(at_ms + 60_000)


def _poisoning(life: Life, begin: int, figures: Figures) -> None:
    """One visit of somebody who wants it believed: proofs without end in a single session, claims on top of them."""
    for number in range(100):
        at_ms = begin + number * 15_000
        life.calls += 1
        kind: Literal["action_success", "telemetry_confirmed"] = (
            "action_success" if number % 2 else "telemetry_confirmed"
        )
        outcome: Literal[0, 1] = 1 if number % 2 else 0
        life.see(Mark(life.calls, at_ms, kind, outcome, f"p{number}", "poison"), figures)
        life.review(at_ms)
        if life.entry.level == 2:
            figures.poisoned_active += 1
            return


def _sampled(life: Life, day: int, figures: Figures) -> None:
    active, works = life.entry.level == 2, life.truth.works(day)
    figures.active_days += active
    figures.active_right += active and works


def _lived(truth: Truth, seed: int, labels: Labels, figures: Figures) -> None:
    entry = Entry(f"lcj_{seed}", "shop.test", "modal", created_at_ms=START_MS)
    life = Life(truth, entry, random.Random(seed), labels)
    figures.poisoned += truth.nature == "poisoned"
    for day in range(DAYS):
        _day(life, day, figures)
        if day >= WARM_UP_DAYS:
            _sampled(life, day, figures)
    if truth.works(0) and life.first_active_at is not None:
        figures.useful_days.append((life.first_active_at - START_MS) / DAY_MS)
    if life.uses_when_broken is not None:
        figures.broken += 1
        if life.left_active_after is None:
            figures.kept_broken += 1
        else:
            figures.demote_uses.append(life.left_active_after)


def simulated(count: int, labels: Labels, seed: int) -> Figures:
    """One population under one way of labelling; the same seed, the same figures."""
    figures, began = Figures(), time.perf_counter()
    for number, truth in enumerate(_truths(count, random.Random(seed))):
        _lived(truth, seed + 7919 * number, labels, figures)
    figures.seconds = time.perf_counter() - began
    return figures


def _breaking_point(kind: str) -> int | None:
    """In how many sessions somebody who never fails has to come back until a false entry is believed."""
    for sessions in range(1, FRESH_POISON + 1):
        entry, marks = Entry("lcj_p", "shop.test", kind, level=1), []
        for number in range(sessions * 10):
            at_ms = START_MS + number * HOUR_MS
            mark = Mark(number, at_ms, "action_success", 1, f"c{number}", f"s{number % sessions}")
            entry = observed(entry, mark).entry
            marks.append(mark)
            entry = reviewed(entry, marks, Reviewed(at_ms)).entry
        if entry.level == 2:
            return sessions
    return None


def _row(noise: float, found: Figures) -> list[object]:
    return [
        f"{noise:.0%}",
        f"{found.precision:.2%}",
        f"{found.recall:.1%}",
        f"{found.daily_precision:.2%}",
        100 * 30 * found.falls_while_right / max(1, found.active_right),
        quantile(found.useful_days, 0.5) if found.useful_days else "–",
        quantile(found.useful_days, 0.95) if found.useful_days else "–",
        f"{quantile(found.demote_uses, 0.5):.0f} / {quantile(found.demote_uses, 0.95):.0f}"
        if found.demote_uses
        else "–",
        quantile(found.demote_days, 0.5) if found.demote_days else "–",
        f"{found.kept_broken} of {found.broken}",
        f"{found.poisoned_active} of {found.poisoned}",
        f"{found.folds / found.seconds:,.0f}",
    ]


COLUMNS: Final = [
    *("raw noise", "precision", "recall", "daily", "falls/100 months", "days to useful p50", "p95"),
    *("uses to demote p50/p95", "days p50", "never demoted", "poisoned active", "folds/s"),
]


def _judge(noise: float, way: Labels, count: int, found: Figures) -> None:
    """Where no use carries a contract the same figures are told without a verdict: recall comes from checked labels."""
    if noise == AIM_NOISE:
        tell(
            Finding(
                aim="T4",
                what=f"active and right at {noise:.0%} raw noise; {way.name}",
                measured=f"precision {found.precision:.2%}, recall {found.recall:.1%}",
                bound=f"≥ {AIM_PRECISION:.0%}, ≥ {AIM_RECALL:.0%}" if way.checked else "",
                n=count,
                met=found.precision >= AIM_PRECISION and found.recall >= AIM_RECALL if way.checked else None,
            )
        )


def _count(*, long: bool) -> int:
    given = [word.partition("=")[2] for word in sys.argv if word.startswith("--phenomena=")]
    return int(given[0]) if given else MORE_PHENOMENA if long else PHENOMENA


def main(*, long: bool) -> int:
    count = _count(long=long)
    print(f"Promotion, {count} phenomena over {DAYS} days at each level of noise. {machine()}")
    remark("Of 100: " + ", ".join(f"{share} {nature}" for nature, share in SHARES.items()) + ".")
    held, poisoned, believed = True, 0, 0
    for way in WAYS:
        # Raw labels are there to compare with; they need no more than a fifth.
        rows, few = [], count if way.checked else max(1, count // 5)
        # Where everything is checked, raw outcomes don't count.
        for noise in NOISES if way.checked < 1 else (AIM_NOISE,):
            found = simulated(few, replace(way, noise=noise), seed=20261118)
            rows.append(_row(noise, found))
            _judge(noise, way, few, found)
            poisoned, believed = poisoned + found.poisoned, believed + found.poisoned_active
            if noise == AIM_NOISE and way.checked:
                held = held and found.precision >= AIM_PRECISION and found.recall >= AIM_RECALL
        show(f"{few:,} phenomena, judged whenever somebody comes, from day {WARM_UP_DAYS}; {way.name}", COLUMNS, rows)
    tell(bad_share("T8", "poisoned phenomena that became active, at any noise", believed, poisoned, 0))
    aim = f"precision >= {AIM_PRECISION:.0%}, recall >= {AIM_RECALL:.0%}"
    remark(f"Aim at {AIM_NOISE:.0%} raw noise where uses carry contracts: {aim}.")
    show(
        "A false shadow, praised without a failure by one principal",
        ["type", "active after sessions"],
        [[kind, _breaking_point(kind) or f"more than {FRESH_POISON}"] for kind in ("modal", "consent_cmp")],
    )
    return 0 if held and not believed else 1
