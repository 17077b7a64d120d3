"""A run while a random plan is played: what is said to Nova about it, and each try to complete it before the judge."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bench.tasks_judge import Said, Story, Work, reasons
from bench.tasks_world import Owner, World
from nova_mcp.memory.tasks.answers import Completed
from nova_mcp.memory.tasks.coverage.locators import Declared
from nova_mcp.memory.tasks.model import TaskContent
from nova_mcp.memory.tasks.runs.create import RunWish
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.rules import FoundUnit, Report, UnitName, UnitUpdate
from nova_mcp.memory.tasks.runs.service import RunKeeper
from nova_mcp.memory.tasks.runs.transactions import Change, NotDone, Reported
from nova_mcp.memory.tasks.runs.verification_rules import StepReport

ADA, BOB, EVE, OTHER = ("local", "ada"), ("local", "bob"), ("local", "eve"), ("guest", "ada")
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
        begun: Any = self.world.ask(
            ADA, "nova.task_instance_create", lambda conn, at: self.keeper.create(conn, at, wish)
        )
        self.run = begun.created.run.instance_id
        self.story.members[ADA] = self.world.clock.at_ms

    def say(self, agent: Owner, **report: Any) -> None:
        event = f"e{next(_numbers)}"
        change = Change("progress", self.run, self.rev, event, payload_hash("progress", {"event": event}))
        told: Any = self.world.ask(
            agent,
            "nova.task_instance_progress",
            lambda conn, at: self.keeper.progress(conn, at, change, Report(**report)),
        )
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
        done = self.world.ask(
            agent,
            "nova.task_instance_complete",
            lambda conn, at: self.keeper.complete(conn, at, change, Reported(shown), None),
        )
        match done:
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
            self.world.ask(
                ADA,
                "nova.task_instance_abort",
                lambda conn, at: self.keeper.abort(conn, at, change, "aborted", "played"),
            )

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
    what = "pages" if story.url_units else "others"
    stop = {"checked_units": " (units)", "distinct_findings": " (findings)"}.get(story.metric, "")
    return f"{story.mode}{stop}, {what}, {story.evidence.removeprefix('require_')}"
