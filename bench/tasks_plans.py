"""Random plans: what a run asks for, who does what in which order, and when somebody tries to complete it."""

import random
from typing import Any, get_args

from sqlalchemy import Connection

from bench.tasks_doing import a_unit, finish, reports, talk, wander
from bench.tasks_judge import Step, Story
from bench.tasks_play import ADA, BOB, EVE, OTHER, Attempt, Play
from bench.tasks_world import ADDRESSES, SetClock, World
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.memory.tasks.condition_rules import AskedCondition, BadCondition, settled_condition
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.model import Check, TaskContent, TaskKind, UnitKind, VerificationStep
from nova_mcp.memory.tasks.runs.create import RunWish
from nova_mcp.memory.tasks.runs.seeds import UnitSource
from nova_mcp.settings import GateMode

TARGET = "https://shop.example/"
# What a task is called, and whether the words ask for the text of every page.
GOALS = (
    ("See what is there", None), ("Find typos on every page", True), ("Alle Seiten auf Rechtschreibfehler lesen", True),
    ("Try the main buttons", None), ("Check WCAG accessibility", True), ("List the routes", None),
)  # fmt: skip
ALL_TEXT = frozenset({"content_audit", "compliance", "legal", "security_review", "accessibility"})


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


def _begin(play: Play, declared: TaskKind | None) -> None:
    dice, story = play.dice, play.story
    source = None
    if story.url_units and dice.random() < 0.5:
        first = [a_unit(play) for _ in range(dice.randint(1, 5))]
        freeze = dice.random() < 0.6
        source = UnitSource("explicit", tuple(play._spelled(one.place) for one in first), freeze=freeze)
        story.units.update({one.name: one for one in first})
        story.discovery = "frozen" if freeze else "partial"
    play.create(RunWish(content=play.content, target_url=TARGET, source=source, declared_kind=declared))


# -- playing it


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
