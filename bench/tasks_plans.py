"""Random plans: what a run asks for, who does what on which page and says what of it, and every try to complete it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, get_args

from sqlalchemy import Connection

from bench.tasks_judge import Said, Scan, Step, Story, Work, reasons
from bench.tasks_world import (
    ADDRESSES,
    PLAIN,
    REDIRECTS,
    TEXT,
    Owner,
    SetClock,
    World,
)
from nova_mcp.observation.recorder import Recorder
from nova_mcp.settings import GateMode
from nova_mcp.tasks.answers import Completed
from nova_mcp.tasks.condition_rules import AskedCondition, BadCondition, settled_condition
from nova_mcp.tasks.event_codec import payload_hash
from nova_mcp.tasks.evidence_collector import EvidenceCollector
from nova_mcp.tasks.locators import Declared
from nova_mcp.tasks.model import Check, TaskContent, TaskKind, UnitKind, VerificationStep
from nova_mcp.tasks.run_creating import RunWish
from nova_mcp.tasks.run_keeper import RunKeeper
from nova_mcp.tasks.run_rules import CheckUpdate, FindingReport, FoundUnit, Report, UnitName, UnitUpdate
from nova_mcp.tasks.runs import Change, NotDone, Reported
from nova_mcp.tasks.seeding import UnitSource
from nova_mcp.tasks.verification_rules import StepReport

ADA, BOB, EVE, OTHER = ("local", "ada"), ("local", "bob"), ("local", "eve"), ("guest", "ada")
TARGET = "https://shop.example/"
# What a task is called, and whether the words ask for the text of every page.
GOALS = (
    ("See what is there", None), ("Find typos on every page", True), ("Alle Seiten auf Rechtschreibfehler lesen", True),
    ("Try the main buttons", None), ("Check WCAG accessibility", True), ("List the routes", None),
)  # fmt: skip
ALL_TEXT = frozenset({"content_audit", "compliance", "legal", "security_review", "accessibility"})
SELECTORS = ("#buy", "button.save", "nav a.home")
_numbers = count(1)


@dataclass(frozen=True)
class Attempt:
    """One try to complete a run: what the product said, and what is right."""

    plan: int
    condition: str
    product: tuple[str, ...]
    judge: tuple[str, ...]


@dataclass
class Play:
    """One plan while it is played."""

    world: World
    keeper: RunKeeper
    story: Story
    content: TaskContent
    number: int
    attempts: list[Attempt] = field(default_factory=list)
    run: str = ""
    rev: int = 0
    over: bool = False

    @property
    def dice(self) -> random.Random:
        return self.world.dice

    # -- saying

    def create(self, wish: RunWish) -> None:
        deciding = self.keeper.creating(ADA, wish, self.world.lives)
        self.world.ask(ADA, "nova.task_instance_create", deciding.decide)
        begun: Any = deciding.settled()
        self.run = begun.created.run.instance_id
        self.story.members[ADA] = self.world.clock.at_ms

    def say(self, agent: Owner, **report: Any) -> None:
        event = f"e{next(_numbers)}"
        change = Change("progress", self.run, self.rev, event, payload_hash("progress", {"event": event}))
        deciding = self.keeper.progressing(agent, change, Report(**report), self.world.lives)
        self.world.ask(agent, "nova.task_instance_progress", deciding.decide)
        told: Any = deciding.settled()
        self.rev = told.instance_rev
        self.story.members.setdefault(agent, self.world.clock.at_ms)

    def complete(self, agent: Owner, said: dict[str, Said]) -> None:
        """Try to complete the run; what is right is worked out first and apart."""
        right = tuple(reasons(self.story, self.world.clock.at_ms, said))
        event = f"e{next(_numbers)}"
        change = Change("complete", self.run, self.rev, event, payload_hash("complete", {"event": event}))
        shown = {
            key: StepReport(key, one.state, "shown" if one.holds else "", result_given=True)  # type: ignore[arg-type]
            for key, one in said.items()
        }
        deciding = self.keeper.completing(agent, change, (Reported(shown), None), self.world.lives)
        self.world.ask(agent, "nova.task_instance_complete", deciding.decide)
        match deciding.settled():
            case Completed():
                found: tuple[str, ...] = ()
                self.over = True
            case NotDone(reasons=listed):
                found = tuple(one.reason_code for one in listed)
            case other:
                raise AssertionError(f"neither done nor refused for a reason: {other}")
        self.attempts.append(Attempt(self.number, _called(self.story), found, right))

    def end(self) -> None:
        """Agents don't take open runs with them into the next plan."""
        if not self.over:
            event = f"e{next(_numbers)}"
            change = Change("abort", self.run, self.rev, event, payload_hash("abort", {"event": event}))
            deciding = self.keeper.aborting(ADA, change, ("aborted", "played"), self.world.lives)
            self.world.ask(ADA, "nova.task_instance_abort", deciding.decide)
            deciding.settled()

    # -- units as the run has them

    def discover(self, agent: Owner, found: Sequence[Work], **more: Any) -> None:
        new = [one for one in found if one.name not in self.story.units]
        self.story.units.update({one.name: one for one in new})
        self.say(agent, discovered=tuple(self._found(one) for one in found), **more)

    def _found(self, unit: Work) -> FoundUnit:
        if self.story.url_units:
            return FoundUnit(UnitName(url=self._spelled(unit.place)))
        if unit.sort is None or self.content.completion_condition.unit_kind == "selector":
            return FoundUnit(UnitName(key=unit.name))
        kinds = {"url": "url_exact", "path": "url_path", "selector": "selector"}
        return FoundUnit(UnitName(key=unit.name), declared=Declared(kinds[unit.sort], unit.place))  # type: ignore[arg-type]

    def _spelled(self, url: str) -> str:
        """The same address in another way of writing it."""
        mark = "&" if "?" in url else "?"
        ways = (url, url, f"{url}{mark}utm_source=mail", url.replace("shop.example/", "SHOP.example/"), f"{url}#top")
        return self.dice.choice(ways)

    def named(self, unit: Work) -> UnitName:
        return UnitName(url=self._spelled(unit.place)) if self.story.url_units else UnitName(key=unit.name)

    def move(self, agent: Owner, unit: Work, status: str) -> None:
        self.say(agent, updates=(UnitUpdate(self.named(unit), status, "so it is"),))  # type: ignore[arg-type]
        unit.status = status


def _called(story: Story) -> str:
    what = "pages" if story.url_units else "other units"
    stop = "" if story.mode == "exhaustive" else f" {story.metric}"
    return f"{story.mode}{stop}, {what}, {story.evidence}"


# -- drawing a plan


def drawn(conn: Connection, seed: int, recorder: Recorder, evidence: EvidenceCollector, keeper_of: Any) -> Play:
    dice = random.Random(seed)
    clock = recorder._ports.clock
    if not isinstance(clock, SetClock):
        raise TypeError("the clock has to stand still")
    # Nothing of an earlier plan is near.
    clock.at_ms += 600_000
    gate: GateMode = dice.choices(get_args(GateMode), (1, 1, 1, 7))[0]
    goal, all_text = dice.choice(GOALS)
    content, declared = _content(dice, goal)
    condition = content.completion_condition
    kinds = [kind for kind in (declared, content.task_kind) if kind is not None]
    story = Story(
        mode=condition.coverage_mode,
        url_units=condition.unit_kind in ("page", "url"),
        metric=condition.stop_metric,
        stop=condition.stop_value,
        evidence=condition.evidence.mode,
        max_gap=condition.evidence.max_gap_percent,
        unknown_passes=condition.evidence.treat_unknown_as == "pass",
        gate=gate,
        text_only=all_text is True or not kinds or any(kind in ALL_TEXT for kind in kinds),
        began_ms=clock.at_ms,
        checks={one.check_id: (one.required, "pending") for one in content.mandatory_checks},
        steps=tuple(Step(one.step_id, one.tool, one.required, one.page_url) for one in content.verification),
    )
    world = World(conn, dice, clock, recorder, evidence, story)
    play = Play(world, keeper_of(gate), story, content, seed)
    for _ in range(dice.randint(0, 4)):
        wander(play, dice.choice((ADA, BOB, EVE)))
    _begin(play, declared)
    return play


def _content(dice: random.Random, goal: str) -> tuple[TaskContent, TaskKind | None]:
    kind: UnitKind = dice.choices(get_args(UnitKind), (12, 12, 4, 2, 6, 2, 2, 2))[0]
    mode = dice.choices(("exhaustive", "threshold", "exploratory"), (5, 2, 2))[0]
    metric = "all_units_processed" if mode == "exhaustive" else dice.choice(("checked_units", "distinct_findings"))
    stop = None if mode == "exhaustive" else dice.randint(1, 4)
    asked = AskedCondition(
        mode, kind, metric, stop,  # type: ignore[arg-type]
        evidence_mode=dice.choice((None, "none", "require_observed", "require_strong", "require_strong")),
        max_gap_percent=dice.choice((0, 0, 0, 20, 50, 100)),
        treat_unknown_as=dice.choice(("gap", "gap", "pass")),
    )  # fmt: skip
    condition = settled_condition(asked)
    if isinstance(condition, BadCondition):
        raise TypeError(condition.message)
    checks = tuple(Check(f"c{n}", "Look", required=dice.random() < 0.7) for n in range(dice.choice((0, 0, 1, 2))))
    steps = tuple(
        VerificationStep(
            f"s{n}", dice.choice(("nova.read_text", "nova.perceive")), "Look again", "has_results",
            required=dice.random() < 0.8, page_url=dice.choice((None, *ADDRESSES[:8])),
        )
        for n in range(dice.choice((0, 0, 0, 1, 2)))
    )  # fmt: skip
    kinds = (None, None, None, *get_args(TaskKind))
    content = TaskContent(
        "t", "Work", goal, condition, task_kind=dice.choice(kinds), mandatory_checks=checks, verification=steps
    )
    return content, dice.choice(kinds)


def _unit(play: Play) -> Work:
    dice, kind = play.dice, play.content.completion_condition.unit_kind
    if play.story.url_units:
        address = dice.choices(ADDRESSES, [6] * len(PLAIN) + [2] * (len(ADDRESSES) - len(PLAIN)))[0]
        return Work(address, "url", address)
    if kind == "selector":
        selector = dice.choice(SELECTORS)
        return Work(selector, "selector", selector)
    name = f"unit{dice.randrange(12)}"
    if name in play.story.units:
        return play.story.units[name]
    sort = dice.choice((None, "url", "path", "selector"))
    if sort is None:
        return Work(name, None)
    place = dice.choice(SELECTORS) if sort == "selector" else dice.choice(ADDRESSES)
    return Work(name, sort, place.partition("?")[0] if sort == "path" else place)  # type: ignore[arg-type]


def _begin(play: Play, declared: TaskKind | None) -> None:
    dice, story = play.dice, play.story
    source = None
    if story.url_units and dice.random() < 0.5:
        first = [_unit(play) for _ in range(dice.randint(1, 5))]
        freeze = dice.random() < 0.6
        source = UnitSource("explicit", tuple(play._spelled(one.place) for one in first), freeze=freeze)
        story.units.update({one.name: one for one in first})
        story.discovery = "frozen" if freeze else "partial"
    play.create(RunWish(content=play.content, target_url=TARGET, source=source, declared_kind=declared))


# -- what agents do


def wander(play: Play, agent: Owner) -> None:
    """One thing that somebody does on a page, for no reason but that it may happen."""
    world, dice = play.world, play.dice
    places = [unit.place for unit in play.story.units.values() if unit.sort in ("url", "path")]
    kept = dice.random() > 0.01
    match dice.randrange(14):
        case 0 | 1 | 2 | 3:
            world.navigate(agent, dice.choice([*places, *places, *ADDRESSES[:6]]), kept=kept)
        case 4:
            world.look(agent, "nova.read_text", scan=_scan(dice, read=True) if dice.random() < 0.4 else None, kept=kept)
        case 5:
            world.look(agent, "nova.perceive", mode=dice.choice(("summary", "state")), kept=kept)
        case 6 | 7:
            world.look(agent, "nova.coverage_scan", scan=_scan(dice, read=False), kept=kept)
        case 8:
            world.look(agent, "nova.eval")
        case 9:
            world.look(agent, dice.choice(("nova.capture_screenshot", "nova.page_info", "nova.run_sequence")))
        case 10:
            world.look(agent, "nova.search_text", hit=dice.random() < 0.5)
        case 11:
            ok = dice.random() < 0.7
            world.look(agent, "nova.click_selector", selector=dice.choice(SELECTORS), ok=ok, kept=kept)
        case 12:
            world.moved_under(agent, "nova.read_text")
        case 13:
            _elsewhere(play, agent)
    world.wait(dice.choice((10, 200, 700, 1_200, 3_000, 3_000, 20_000)))


def _elsewhere(play: Play, agent: Owner) -> None:
    """Things that are no call on a page."""
    world, dice = play.world, play.dice
    match dice.randrange(4):
        case 0:
            world.stir(agent)
        case 1:
            world.close(agent)
        case 2:
            world.tab_of(agent).claim = f"claim{dice.randrange(1_000)}"
        case 3:
            # Two agents look at one tab.
            world.tabs[agent] = world.tab_of(dice.choice((ADA, BOB)))


def _scan(dice: random.Random, *, read: bool) -> Scan:
    """Mostly a good one; else with one thing that may be wrong with it."""
    name = TEXT if read else dice.choice((TEXT, TEXT, "nova_i18n_spellcheck_v1", "nova_structured_dom_v1"))
    base = Scan(name, channels=1 if read else 4, asks_channels=not read)
    wrong: tuple[dict[str, Any], ...] = (
        {"failed": True}, {"moved": True}, {"hydration": "unstable"}, {"hydration": "unchecked"}, {"extracted": 511},
        {"extracted": 510}, {"extracted": 424}, {"extracted": 425}, {"measured": 0, "extracted": 0}, {"channels": 3},
        {"frames": 1, "frames_read": False}, {"frames": 1}, {"whole": False}, {"measured": 10, "extracted": 14},
    )  # fmt: skip
    return replace(base, **dice.choice(wrong)) if dice.random() < 0.4 else base


# -- what agents say


def talk(play: Play, agent: Owner) -> None:
    """One report of progress that is legal as the run stands."""
    dice, story = play.dice, play.story
    units = list(story.units.values())
    match dice.randrange(8):
        case 0 | 1:
            play.discover(agent, list({(one := _unit(play)).name: one for _ in range(dice.randint(1, 3))}.values()))
        case 2 | 3 | 4 if units:
            _advance(play, agent, dice.choice(units))
        case 5:
            key = f"f{dice.randrange(6)}"
            unit = dice.choice([None, *units])
            name = None if unit is None else play.named(unit)
            play.say(agent, findings=(FindingReport(key, "seen", name),))
            story.findings[key] = None if unit is None else unit.name
        case 6 if story.checks:
            check = dice.choice(sorted(story.checks))
            state = dice.choice(("satisfied", "failed", "waived", "not_applicable", "pending"))
            play.say(agent, checks=(CheckUpdate(check, state, "for a good reason"),))  # type: ignore[arg-type]
            story.checks[check] = (story.checks[check][0], state)
        case _:
            if dice.random() < 0.4:
                _freeze(play, agent)
            else:
                play.say(agent, note="Going on")


def _advance(play: Play, agent: Owner, unit: Work) -> None:
    if unit.status in ("checked", "excluded"):
        play.say(agent, note="Nothing new")
        return
    following = {
        "discovered": ("checked", "checked", "checked", "excluded", "blocked", "failed"),
        "blocked": ("discovered", "checked", "excluded"),
        "failed": ("discovered", "checked", "excluded"),
    }
    play.move(agent, unit, play.dice.choice(following[unit.status]))


def _freeze(play: Play, agent: Owner) -> None:
    if play.story.discovery != "frozen":
        play.story.discovery = "frozen"
        play.say(agent, discovery="frozen")


# -- doing it properly


def finish(play: Play) -> None:
    """Do what the run asks for as an honest agent would, with a slip now and then."""
    dice, story = play.dice, play.story
    slip = dice.choice((0.0, 0.0, 0.03, 0.15))
    # What now and then is wrong with a visit; in half of the plans nothing.
    flaw = dice.choice((None,) * 8 + FLAWS)
    agent = ADA if BOB not in story.members else dice.choice((ADA, BOB))
    if not story.units:
        play.discover(agent, [_unit(play)])
    for unit in list(story.units.values()):
        if dice.random() < slip:
            continue
        _settle(play, agent, unit, flaw if dice.random() < 0.4 else None)
    for check in story.checks:
        if dice.random() >= slip:
            play.say(agent, checks=(CheckUpdate(check, "satisfied"),))
            story.checks[check] = (story.checks[check][0], "satisfied")
    if story.metric == "distinct_findings":
        for number, unit in enumerate([*story.units.values()] * 4):
            if number < (story.stop or 1):
                play.say(agent, findings=(FindingReport(f"g{number}", "seen", play.named(unit)),))
                story.findings[f"g{number}"] = unit.name
    for step in story.steps:
        if dice.random() >= slip:
            play.world.navigate(agent, step.page or PLAIN[0])
            play.world.look(agent, step.tool)
    if dice.random() >= slip:
        _freeze(play, agent)


FLAWS = ("scan", "unread", "eval", "quick", "stranger", "elsewhere", "lost", "unscanned")


def _settle(play: Play, agent: Owner, unit: Work, flaw: str | None) -> None:
    """Look at a unit and say that it is checked, or leave it out where it can't be had."""
    world, dice = play.world, play.dice
    doer = EVE if flaw == "stranger" else agent
    if unit.sort == "selector":
        world.look(doer, "nova.click_selector", selector=unit.place, ok=flaw != "scan", kept=flaw != "lost")
    elif unit.sort is not None and flaw != "unread":
        _visit(play, doer, unit, flaw)
    elif unit.sort is not None:
        world.navigate(doer, unit.place)
    hopeless = unit.place in REDIRECTS or world.tab_of(agent).error_page
    if unit.status in ("discovered", "blocked", "failed"):
        play.move(agent, unit, "excluded" if hopeless and dice.random() < 0.8 else "checked")


def _visit(play: Play, agent: Owner, unit: Work, flaw: str | None) -> None:
    world, dice = play.world, play.dice
    world.navigate(agent, dice.choice(ADDRESSES) if flaw == "elsewhere" else unit.place)
    world.wait(dice.choice((5, 50, 300)))
    if flaw == "eval":
        world.look(agent, "nova.eval")
    read = dice.random() < 0.5
    scan = Scan(TEXT, channels=1 if read else 4, asks_channels=not read)
    if flaw == "scan":
        scan = _scan(dice, read=read)
    tool = "nova.read_text" if read else "nova.coverage_scan"
    if flaw == "unscanned":
        world.look(agent, "nova.perceive", mode=dice.choice(("summary", "state")))
    else:
        world.look(agent, tool, scan=scan, kept=flaw != "lost")
    world.wait(10 if flaw == "quick" else dice.choice((600, 900, 1_100, 1_500, 4_000)))


def reports(play: Play) -> dict[str, Said]:
    """What is said of the steps; most of it is true."""
    dice = play.dice
    states = ("passed",) * 12 + ("failed", "inconclusive", "skipped")
    return {
        step.step_id: Said(dice.choice(states), holds=dice.random() < 0.9)
        for step in play.story.steps
        if dice.random() < 0.9
    }


def played(play: Play) -> list[Attempt]:
    _played(play)
    play.end()
    return play.attempts


def _played(play: Play) -> None:
    """Do and say things in any order, try to complete now and then, and once at the end."""
    dice = play.dice
    for _ in range(dice.randint(2, 14)):
        who = dice.choices((ADA, BOB, EVE, OTHER), (6, 3, 2, 1))[0]
        if dice.random() < 0.6:
            wander(play, who)
        else:
            talk(play, ADA if who in (EVE, OTHER) else who)
        if dice.random() < 0.05:
            play.complete(ADA, reports(play))
        if play.over:
            return
    if dice.random() < 0.75:
        finish(play)
    play.complete(dice.choice((ADA, BOB, EVE)), reports(play))
