"""Visits to the practice site: by hand, to learn from them, with what was learned, and with what has to be repaired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp import Client

from bench.learning_server import LearningServer
from bench.practice_agent import Agent, Stuck, lesson, new_agent, values_named
from bench.practice_site import PracticeSite, Visit
from bench.practice_tasks import Part, Task

Steps = list[dict[str, Any]]
HOST = "practice.localhost"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One visit: what it cost, whether the site calls it done, and what was touched that should not have been."""

    calls: int
    tokens: int
    done: bool
    strays: tuple[str, ...]
    touched: int
    reasons: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return self.done and not self.strays


@dataclass
class Record:
    """Everything about one task."""

    task: Task
    first: Outcome
    steps: list[Steps]
    to_learn: int = 0
    levels: tuple[int, ...] = ()
    repeat: Outcome | None = None

    @property
    def actions(self) -> int:
        return sum(len(part.wishes) for part in self.task.parts)

    @property
    def least(self) -> int:
        """Calls of an agent that never looks twice: it goes there, looks, and does one thing after the other."""
        return 2 + self.actions


@dataclass
class Visits:
    """One agent after another on one site, each with a name and a tab of its own."""

    server: LearningServer
    site: PracticeSite
    client: Client
    names: int = 0
    known: dict[str, int] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        return f"{HOST}:{self.site.port}"

    async def arrived(self, task: Task) -> tuple[Agent, Visit, dict[str, Any]]:
        self.names += 1
        agent, visit = await new_agent(self.client, f"agent-{self.names}"), self.site.begin()
        await agent.arrive(f"http://{self.scope}{task.path}")
        return agent, visit, await agent.look()

    async def left(self, agent: Agent, task: Task, visit: Visit, reasons: Sequence[str] = ()) -> Outcome:
        calls, tokens, said = agent.bill.calls, agent.bill.tokens, tuple(agent.said)
        await agent.call("tab_close")
        return Outcome(calls, tokens, task.done(visit), task.strays(visit), len(visit.did), tuple(reasons), said)

    # -- the first time

    async def first(self, task: Task) -> Record:
        agent, visit, _ = await self.arrived(task)
        steps = [await agent.by_hand(part, task) for part in task.parts]
        return Record(task, await self.left(agent, task, visit), steps)

    # -- learning

    async def taught(self, record: Record) -> None:
        """The agent goes there once more and writes down what it did; what lies on later pages waits to be met."""
        task = record.task
        agent, visit, _ = await self.arrived(task)
        for part, steps in zip(task.parts, record.steps, strict=True):
            told = await agent.call("pks_upsert", scope=self.scope, phenomenon=lesson(task, part, steps))
            if not told.get("ok"):
                raise Stuck(f"{part.entry} was not stored: {told.get('reasonCode')} {told.get('message')}")
            if part is not task.parts[-1]:
                await agent.by_hand(part, task)
        record.to_learn = (await self.left(agent, task, visit)).calls

    async def used(self, task: Task) -> None:
        """One more use: by trying the entries out, or by hand where nothing may be tried out."""
        agent, visit, _ = await self.arrived(task)
        for part in task.parts:
            if not part.tried:
                await agent.by_hand(part, task, self._renamed(task))
                continue
            told = await self.applied(agent, task, part, trial=True)
            if not told.get("ok"):
                raise Stuck(f"{part.entry} could not be tried: {told.get('reasonCode')} {told.get('message')}")
        await self.left(agent, task, visit)

    def _renamed(self, task: Task) -> Mapping[str, str]:
        return task.renamed if self.site.design == "second" else {}

    async def promoted(self) -> None:
        """Have levels decided, and read them."""
        self.names += 1
        agent = await new_agent(self.client, f"agent-{self.names}")
        self.site.begin()
        await agent.arrive(f"http://{self.scope}/help")
        await agent.call("learn_promote", scope=self.scope)
        told = await agent.call("pks_get", scope=self.scope)
        # Where a newer revision waits beside the active one, that is the one in question.
        self.known = {one["phenomenonId"]: int((one.get("pending") or one)["level"]) for one in told["phenomena"]}
        await agent.call("tab_close")

    def levels(self, task: Task) -> tuple[int, ...]:
        return tuple(self.known.get(part.entry, 0) for part in task.parts)

    # -- using it

    async def applied(
        self, agent: Agent, task: Task, part: Part, *, trial: bool = False, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        wanted = [wish.name for wish in part.wishes if wish.name] if names is None else names
        more: dict[str, Any] = {"values": {name: task.values[name] for name in wanted}} if wanted else {}
        if part.commits:
            more["expect"] = list(part.expect)
        if trial:
            more["trial"] = True
        return await agent.call("phenomenon_apply", phenomenonId=part.entry, **more)

    async def again(self, task: Task) -> Outcome:
        """A fresh agent takes up what it is told of, with the values it is told to bring, and does nothing else."""
        agent, visit, seen = await self.arrived(task)
        reasons: list[str] = []
        told = values_named(seen)
        for part in task.parts:
            if part.entry not in told:
                told |= values_named(await agent.look())
            if part.entry not in told:
                reasons.append("not told of it")
                continue
            answer = await self.applied(agent, task, part, names=told[part.entry])
            if not answer.get("ok"):
                reasons.append(str(answer.get("reasonCode")))
        return await self.left(agent, task, visit, reasons)

    async def insisted(self, task: Task) -> Outcome:
        """An agent that applies what it remembers, whether it is told of it or not."""
        agent, visit, _ = await self.arrived(task)
        reasons: list[str] = []
        for part in task.parts:
            answer = await self.applied(agent, task, part)
            if not answer.get("ok"):
                reasons.append(str(answer.get("reasonCode")))
        return await self.left(agent, task, visit, reasons)
