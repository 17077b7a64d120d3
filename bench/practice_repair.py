"""After the redesign: what is lost is looked for, patched, proven by use on other days, and active again."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.learning_server import DAY_MS, MINUTE_MS
from bench.practice_agent import Agent, Stuck, lesson
from bench.practice_pages import PAGES
from bench.practice_site import Design, controls
from bench.practice_tasks import Part, Task
from bench.practice_visits import Record, Steps, Visits

ROUNDS = 5
DAYS = 4
# Checks have a budget per hour.
PAUSE_MS = 61 * MINUTE_MS


@dataclass
class Repaired:
    task: Task
    seen: list[str] = field(default_factory=list)
    right: int = 0
    wrong: int = 0
    abstained: int = 0
    by_hand: int = 0
    days: int = 0
    active: bool = False
    works: bool = False

    @property
    def verdicts(self) -> str:
        return ", ".join(self.seen)


def meaning(selector: str, design: Design, task: Task) -> str | None:
    """What a control stands for, by its id, on the pages of a task."""
    own = (html for path, html in PAGES[design].items() if path == task.path or path.startswith(f"{task.path}/"))
    return {name: meant for html in own for name, meant in controls(html).items()}.get(selector.removeprefix("#"))


async def repaired(visits: Visits, records: Sequence[Record], refused: Container[Task]) -> list[Repaired]:
    """`refused` are the tasks whose entries could not be applied any more."""
    found = [await _mended(visits, record, refused=record.task in refused) for record in records]
    for day in range(1, DAYS + 1):
        visits.server.later(DAY_MS)
        for _ in range(2):
            for one in found:
                if not one.active and one.by_hand + one.right:
                    await visits.used(one.task)
            visits.server.later(MINUTE_MS)
        await visits.promoted()
        for one in found:
            if not one.active and min(visits.levels(one.task)) == 2:
                one.active, one.days = True, day if one.by_hand + one.right else 0
    visits.server.later(DAY_MS)
    for one in found:
        one.works = (await visits.again(one.task)).right
    return found


async def _mended(visits: Visits, record: Record, *, refused: bool) -> Repaired:
    task, found = record.task, Repaired(record.task)
    for part, learned in zip(task.parts, record.steps, strict=True):
        steps = [dict(step) for step in learned]
        for _ in range(ROUNDS):
            visits.server.later(PAUSE_MS)
            if await _round(visits, found, part, steps):
                break
    if refused and not found.right + found.by_hand:
        await _redone(visits, found, task.parts[-1])
    return found


async def _round(visits: Visits, found: Repaired, part: Part, steps: Steps) -> bool:
    """One check of one entry, and what is done about it; True when nothing is left to be done."""
    task = found.task
    agent, visit, _ = await visits.arrived(task)
    told = await agent.call("revalidate", limit=5)
    if "results" not in told:
        raise Stuck(f"no check: {told}")
    row = next((one for one in told["results"] if one["stableId"] == part.entry), None)
    verdict = "not checked" if row is None else str(row["verdict"])
    found.seen.append(verdict)
    finished = verdict == "healthy"
    if row is not None and not finished:
        candidate = row["repairCandidate"]
        finished = not await _patched(visits, agent, found, part, steps, candidate)
    await visits.left(agent, task, visit)
    return finished


async def _patched(
    visits: Visits, agent: Agent, found: Repaired, part: Part, steps: Steps, candidate: dict[str, Any] | None
) -> bool:
    """Whether a suggestion was taken up; where there is none, the agent does it by hand and writes that down."""
    task = found.task
    if candidate is not None and candidate["selector"] is not None:
        lost, selector = candidate["lostSelector"], candidate["selector"]
        if meaning(lost, "first", task) == meaning(selector, "second", task):
            found.right += 1
            for step in steps:
                if step["selector"] == lost:
                    step["selector"] = selector
            await _patch(visits, agent, task, part, steps)
            return True
        found.wrong += 1
    else:
        found.abstained += 1
    found.by_hand += 1
    await _done_before(agent, task, part)
    steps[:] = await agent.by_hand(part, task, task.renamed)
    await agent.arrive(f"http://{visits.scope}{task.path}")
    await agent.look()
    await _done_before(agent, task, part)
    await _patch(visits, agent, task, part, steps)
    return False


async def _redone(visits: Visits, found: Repaired, part: Part) -> None:
    """What was refused although everything that can be seen at first is as it was: a later step has changed."""
    agent, visit, _ = await visits.arrived(found.task)
    await _patched(visits, agent, found, part, [], None)
    found.abstained -= 1
    await visits.left(agent, found.task, visit)


async def _done_before(agent: Agent, task: Task, part: Part) -> None:
    for one in task.parts[: task.parts.index(part)]:
        await agent.by_hand(one, task, task.renamed)


async def _patch(visits: Visits, agent: Agent, task: Task, part: Part, steps: Steps) -> None:
    whole = lesson(task, part, steps)
    signals = {"signals": list(part.signals_after or part.signals)}
    patch = {"playbook": whole["playbook"], "fingerprint": signals}
    told = await agent.call("pks_patch", scope=visits.scope, phenomenonId=part.entry, patch=patch)
    if not told.get("ok"):
        raise Stuck(f"{part.entry} was not patched: {told.get('reasonCode')} {told.get('message')}")
