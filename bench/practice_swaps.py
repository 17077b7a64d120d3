"""Every learned control exchanges ids with every other one of its page: behind a selector is another thing then."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from bench.practice_pages import PAGES
from bench.practice_site import Swap, controls
from bench.practice_tasks import Task
from bench.practice_visits import Outcome, Record, Visits
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.store import Shelved

SEED = 20_250_303


@dataclass
class Trial:
    task: Task
    swap: Swap
    outcome: Outcome | None = None


def swaps_of(task: Task, learned: Sequence[str]) -> list[Swap]:
    """Each control that is acted through, with each other control of the page it is on."""
    found: dict[frozenset[str], Swap] = {}
    for path, html in PAGES["first"].items():
        if path != task.path and not path.startswith(f"{task.path}/"):
            continue
        names = controls(html)
        for one in (selector.removeprefix("#") for selector in learned):
            for other in names if one in names else ():
                if other != one:
                    found.setdefault(frozenset({path, one, other}), Swap(path, one, other))
    return list(found.values())


def trials(records: Sequence[Record], most: int | None) -> list[Trial]:
    every = [
        Trial(record.task, swap)
        for record in records
        for swap in swaps_of(record.task, [step["selector"] for steps in record.steps for step in steps])
    ]
    return every if most is None or most >= len(every) else random.Random(SEED).sample(every, most)


async def swapped(visits: Visits, every: list[Trial]) -> list[Trial]:
    """Each on its own: what a trial teaches about an entry is taken back before the next one."""
    database = visits.server.nova._db
    before = await database.read(store.entries, ScopeName(visits.scope))
    for trial in every:
        visits.site.swap = trial.swap
        trial.outcome = await visits.insisted(trial.task)
        await database.write(_put_back, before)
    visits.site.swap = None
    return every


def _put_back(conn: Connection, entries: Sequence[Shelved]) -> None:
    for one in entries:
        store.save(conn, one, visible=True)
