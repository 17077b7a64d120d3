"""Says when a run is done, from what happened and what was said: written from the contract and not from the product.

Everything is worked out anew from the whole story each time; nothing is kept, raised or looked up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

Grade = Literal["strong", "weak", "none", "unknown"]
BEFORE_JOINING_MS = 30_000
SILENCE_MS = 2_500
LONGEST_STAY_MS = 2_500
STRONG_DWELL_MS = 1_000
TEXT_SCANS = ("nova_full_page_text_v1", "nova_i18n_spellcheck_v1")
# What shows an agent the words of a page; a search shows them where it finds something.
READING = ("nova.read_text", "nova.extract_table", "nova.coverage_scan")
CHANNELS = 4


@dataclass(frozen=True)
class Scan:
    """What a scan measured; a page that was read as a whole is one whose channels nobody asks for."""

    scan_id: str
    failed: bool = False
    moved: bool = False
    hydration: str = "stable"
    extracted: int = 500
    measured: int = 500
    channels: int = CHANNELS
    whole: bool = True
    frames: int = 0
    frames_read: bool = True
    asks_channels: bool = True


@dataclass(frozen=True)
class Act:
    """One call on a page. `url` is the page it ended on, `led_from` are spellings of it that led there."""

    agent: tuple[str, str]
    target: str
    at_ms: int
    end_ms: int
    tool: str
    url: str
    claim: str | None = None
    ok: bool = True
    mode: str | None = None
    hit: bool = False
    # The page that was looked at is the page that the call ended on.
    steady: bool = True
    error_page: bool = False
    touched: bool = False
    led_from: tuple[str, ...] = ()
    selector: str | None = None
    scan: Scan | None = None
    # Whether the ledger has it.
    kept: bool = True

    @property
    def reads(self) -> bool:
        if not self.steady:
            return False
        if self.tool == "nova.perceive":
            return self.mode != "state"
        return self.tool in READING or (self.tool == "nova.search_text" and self.hit)


@dataclass
class Work:
    """A unit as it is claimed, and where it is to be seen."""

    name: str
    sort: Literal["url", "path", "selector"] | None
    place: str = ""
    status: str = "discovered"


@dataclass(frozen=True)
class Step:
    step_id: str
    tool: str
    required: bool = True
    page: str | None = None


@dataclass(frozen=True)
class Said:
    """What is reported on a step, and whether its assertion holds on the result that is shown."""

    state: str
    holds: bool


@dataclass
class Story:
    """Everything about one run that a judge has to know."""

    mode: str
    url_units: bool
    metric: str
    stop: int | None
    evidence: str
    max_gap: int
    unknown_passes: bool
    gate: str
    # Whether only scans of text are taken.
    text_only: bool
    began_ms: int
    discovery: str = "unknown"
    members: dict[tuple[str, str], int] = field(default_factory=dict)
    units: dict[str, Work] = field(default_factory=dict)
    findings: dict[str, str | None] = field(default_factory=dict)
    # Required or not, and how it stands.
    checks: dict[str, tuple[bool, str]] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    acts: list[Act] = field(default_factory=list)
    # By target: when its page was left, and when it stirred by itself.
    left: dict[str, list[int]] = field(default_factory=dict)
    stirred: dict[str, list[int]] = field(default_factory=dict)

    def belongs(self, act: Act) -> bool:
        joined = self.members.get(act.agent)
        return joined is not None and act.at_ms >= joined - BEFORE_JOINING_MS

    @property
    def seen(self) -> list[Act]:
        return [act for act in self.acts if act.kept and act.ok and self.belongs(act)]

    @property
    def gap(self) -> bool:
        return any(not act.kept and self.belongs(act) for act in self.acts)


# -- visits


@dataclass(frozen=True)
class Visit:
    url: str
    dwell_ms: int
    read: bool
    believable: bool


def visits(story: Story, now_ms: int) -> list[Visit]:
    by_target: dict[str, list[Act]] = {}
    for act in story.seen:
        by_target.setdefault(act.target, []).append(act)
    return [visit for target, acts in by_target.items() for visit in _on_target(story, target, acts, now_ms)]


def _on_target(story: Story, target: str, acts: Sequence[Act], now_ms: int) -> Iterable[Visit]:
    groups: list[list[Act]] = []
    for act in acts:
        if groups and _same_visit(story, target, groups[-1], act):
            groups[-1].append(act)
        else:
            groups.append([act])
    for number, group in enumerate(groups):
        last_end = max(act.end_ms for act in group)
        left = [at for at in story.left.get(target, []) if at >= last_end]
        following = groups[number + 1][0] if number + 1 < len(groups) else None
        over = [*left[:1], now_ms]
        if following is not None and following.url == group[0].url:
            # The same page under another claim, after silence, or touched by now: the visit ends where the next begins.
            over.append(following.at_ms)
        stayed = min(LONGEST_STAY_MS, max(0, min(over) - last_end))
        yield Visit(
            group[0].url,
            last_end - group[0].at_ms + stayed,
            any(act.reads for act in group),
            not group[0].error_page and not group[0].touched,
        )


def _same_visit(story: Story, target: str, group: Sequence[Act], act: Act) -> bool:
    first = group[0]
    if (first.url, first.claim, first.touched, first.error_page) != (
        act.url, act.claim, act.touched, act.error_page,
    ):  # fmt: skip
        return False
    # Leaving a page and coming back to it are no rest.
    last_end = max(one.end_ms for one in group)
    signs = [at for at in (*story.stirred.get(target, []), *story.left.get(target, [])) if last_end < at < act.at_ms]
    times = [last_end, *sorted(signs), act.at_ms]
    return all(later - earlier <= SILENCE_MS for earlier, later in pairwise(times))


# -- grades and coverage


def _pages_of(story: Story, unit: Work) -> set[str]:
    """The page a unit stands for, and those its own address was seen to lead to under another spelling."""
    return {unit.place} | {act.url for act in story.seen if unit.place in act.led_from}


def _without_query(url: str) -> str:
    return url.partition("?")[0]


def grade(story: Story, unit: Work, found: Sequence[Visit]) -> Grade:
    if unit.sort is None:
        return "unknown"
    if unit.sort == "selector":
        matched = any(act.selector == unit.place for act in story.seen)
        return "weak" if matched else "unknown" if story.gap else "none"
    if unit.sort == "path":
        here = [visit for visit in found if _without_query(visit.url) == unit.place]
    else:
        pages = _pages_of(story, unit)
        here = [visit for visit in found if visit.url in pages]
    if not here:
        return "unknown" if story.gap else "none"
    proven = any(one.read and one.believable and one.dwell_ms >= STRONG_DWELL_MS for one in here)
    return "strong" if proven else "weak"


def covered(story: Story, unit: Work) -> bool:
    pages = _pages_of(story, unit)
    return any(act.scan is not None and act.url in pages and _eligible(story, act, act.scan) for act in story.seen)


def _eligible(story: Story, act: Act, scan: Scan) -> bool:
    over = scan.extracted - scan.measured
    trusted = not scan.failed and not scan.moved and over <= max(4, 0.02 * scan.measured)
    if not trusted or act.error_page or act.touched or scan.hydration != "stable":
        return False
    if scan.scan_id not in TEXT_SCANS:
        return not story.text_only
    if scan.measured == 0 or not scan.whole or 100 * scan.extracted < 85 * scan.measured:
        return False
    if scan.asks_channels and scan.channels < CHANNELS:
        return False
    return scan.frames == 0 or scan.frames_read


# -- done or not


def reasons(story: Story, now_ms: int, said: Mapping[str, Said]) -> list[str]:
    """Every reason against completing the run now, in the order of the contract."""
    units = story.units.values()
    statuses = [unit.status for unit in units]
    found = visits(story, now_ms)
    grades = {unit.name: grade(story, unit, found) for unit in units}
    pending = [state for required, state in story.checks.values() if required]
    exhaustive = story.mode == "exhaustive"
    code = "threshold_not_met" if story.mode == "threshold" else "minimum_not_met"
    judged: list[tuple[bool, Callable[[], bool], str]] = [
        (
            True,
            lambda: all(s in ("satisfied", "waived", "not_applicable") for s in pending),
            "pending_mandatory_checks",
        ),
        (exhaustive, lambda: story.discovery == "frozen", "discovery_not_frozen"),
        (exhaustive, lambda: bool(statuses), "no_units_discovered"),
        (exhaustive, lambda: not {"blocked", "failed"} & {*statuses}, "units_blocked_or_failed"),
        (exhaustive, lambda: "discovered" not in statuses, "units_remaining"),
        (exhaustive, lambda: "checked" in statuses, "no_units_checked"),
        (not exhaustive, lambda: _metric(story, statuses, grades) >= (story.stop or 1), code),
        (
            exhaustive and story.url_units and story.gate == "block",
            lambda: all(unit.status == "excluded" or covered(story, unit) for unit in units),
            "url_units_remaining",
        ),
        (story.evidence != "none", lambda: not _gap(story, grades), "evidence_gap"),
        (bool(story.steps), lambda: all(_passed(story, step, said) for step in story.steps), "verification_failed"),
    ]
    return [code for asked, holds, code in judged if asked and not holds()]


def _metric(story: Story, statuses: Sequence[str], grades: Mapping[str, Grade]) -> int:
    if story.metric == "checked_units":
        return statuses.count("checked")
    if story.evidence == "none":
        return len(story.findings)
    return sum(unit is not None and grades[unit] in ("strong", "weak") for unit in story.findings.values())


def _gap(story: Story, grades: Mapping[str, Grade]) -> bool:
    claimed = [grades[unit.name] for unit in story.units.values() if unit.status == "checked"]
    good = {"strong"} if story.evidence == "require_strong" else {"strong", "weak"}
    if story.unknown_passes:
        good.add("unknown")
    missing = sum(one not in good for one in claimed)
    return 100 * missing > story.max_gap * len(claimed)


def _passed(story: Story, step: Step, said: Mapping[str, Said]) -> bool:
    if not step.required:
        return True
    told = said.get(step.step_id)
    if told is None or told.state != "passed" or not told.holds:
        return False
    return any(act.tool == step.tool and step.page in (None, act.url) for act in story.seen)
