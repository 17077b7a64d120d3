"""What calls on a run and on its pages cost as its units and other agents' open runs grow, on SQLite.

Units of one run are judged together, so that answers about a large run may take longer; what is recorded with every
call on a page, and whatever others have open, may not.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import anyio
from sqlalchemy import Connection

from bench.findings import flat
from bench.tables import machine, show, tell
from bench.tasks_judge import Act, Scan
from bench.tasks_world import TEXT, Owner, SetClock, Tab, _record
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.model import CompletionCondition, EvidencePolicy, TaskContent
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper
from nova_mcp.memory.tasks.runs.create import RunWish
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.read import Wanted
from nova_mcp.memory.tasks.runs.rules import FoundUnit, Report, UnitName, UnitUpdate
from nova_mcp.memory.tasks.runs.service import RunKeeper
from nova_mcp.memory.tasks.runs.transactions import Change, Occasion, Reported
from nova_mcp.storage.engine import Database

T = TypeVar("T")
UNITS = (10, 1_000, 5_000)
OTHERS = (10, 100, 1_000)
USUAL_UNITS, USUAL_OTHERS = 100, 10
ROUNDS, WARMING = 200, 20
AT_ONCE = 500
# The recorded call and what others have open must not grow; a run's own answers read its units once.
AIM = 2.0
STEADY = ("a page read, recorded", "a page read, recorded, agent without runs")
SERVER = ServerId("bench")
ADA: Owner = ("local", "ada")
NOBODY: Owner = ("local", "nobody")
CONTENT = TaskContent(
    "audit", "Audit", "Look at all there is",
    CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("require_observed")),
)  # fmt: skip
Work = Callable[[int], object]


def _url(number: int) -> str:
    return f"https://shop.example/page/{number}"


@dataclass
class Place:
    """A store with one run of so many units, and other agents' open runs of a few."""

    db: Database
    clock: SetClock
    recorder: Recorder
    keeper: RunKeeper
    units: int
    run: str = ""
    rev: int = 0

    @classmethod
    def new(cls, db: Database, units: int, others: int) -> "Place":
        clock = SetClock(1_800_000_000_000)
        ports = Ports(clock, SystemIds(clock))
        recorder = Recorder(db, ports, SERVER, also=(EvidenceCollector().collect,))
        anyio.run(recorder.start, describe_server(SERVER, clock.now_ms(), "0"))
        keeper = RunKeeper(db, ports, "block", ProfileKeeper(db, ports, MULTI_TENANT_DOMAINS))
        place = cls(db, clock, recorder, keeper, units)
        for number in range(others):
            place.begin(("local", f"other{number}"), 10)
        place.run, place.rev = place.begin(ADA, units)
        return place

    # -- calls

    def ask(self, owner: Owner, work: Callable[[Connection, Occasion], T]) -> T | NovaError:
        self.clock.at_ms += 10
        record = CallRecord(
            self.recorder._ports.ids.call_id(), Caller(*owner, SERVER), "nova.task", "write", self.clock.at_ms, 1,
            CallOutcome("ok"),
        )  # fmt: skip
        at = Occasion(owner, self.clock.at_ms)
        return self.db.write_sync(
            self.recorder._append_written, record, self.recorder._also, lambda conn, _: work(conn, at)
        )

    def begin(self, owner: Owner, units: int) -> tuple[str, int]:
        begun: Any = self.ask(owner, lambda conn, at: self.keeper.create(conn, at, RunWish(content=CONTENT)))
        run, rev = str(begun.created.run.instance_id), 0
        for first in range(0, units, AT_ONCE):
            some = range(first, min(units, first + AT_ONCE))
            found = tuple(FoundUnit(UnitName(url=_url(number))) for number in some)
            rev = self.report(owner, run, rev, Report(discovered=found))
        return run, rev

    def report(self, owner: Owner, run: str, rev: int, report: Report) -> int:
        change = _change("progress", run, rev)
        told: Any = self.ask(owner, lambda conn, at: self.keeper.progress(conn, at, change, report))
        return int(told.instance_rev)

    # -- what is measured

    def progress(self, number: int) -> None:
        status: Any = "blocked" if number % 2 == 0 else "discovered"
        update = UnitUpdate(UnitName(url=_url(self.units // 2)), status, "to and fro")
        self.rev = self.report(ADA, self.run, self.rev, Report(updates=(update,)))

    def get(self, number: int) -> None:
        self.ask(ADA, lambda conn, at: self.keeper.look(conn, at, self.run, Wanted()))

    def complete(self, number: int) -> None:
        change = _change("complete", self.run, self.rev)
        self.ask(ADA, lambda conn, at: self.keeper.complete(conn, at, change, Reported(), None))

    def read(self, number: int, owner: Owner = ADA, scan: Scan | None = None) -> None:
        self.clock.at_ms += 3_000
        tool = "nova.read_text" if scan is None else "nova.coverage_scan"
        page = _url(number % self.units)
        act = Act(owner, f"tab_{owner[1]}", self.clock.at_ms, self.clock.at_ms + 50, tool, page, scan=scan)
        self.clock.at_ms += 50
        record = _record(act, Tab(act.target, page, status=200), server=SERVER, ids=self.recorder._ports.ids)
        self.db.write_sync(self.recorder._append, record, self.recorder._also)

    def works(self) -> dict[str, Work]:
        return {
            "task_instance_progress": self.progress,
            "task_instance_get": self.get,
            "task_instance_complete, refused": self.complete,
            STEADY[0]: self.read,
            "a page scanned, recorded and credited": lambda number: self.read(number, scan=Scan(TEXT)),
            STEADY[1]: lambda number: self.read(number, NOBODY),
        }


_numbers = count(1)


def _change(kind: Any, run: str, rev: int) -> Change:
    event = f"e{next(_numbers)}"
    return Change(kind, run, rev, event, payload_hash(kind, {"event": event}))


def _timed(works: list[Work]) -> list[float]:
    """The median of each; they take turns, so that whatever else the machine does falls on all of them alike."""
    timings: list[list[float]] = [[] for _ in works]
    for number in range(ROUNDS + WARMING):
        for work, found in zip(works, timings, strict=True):
            started = time.perf_counter()
            work(number)
            found.append((time.perf_counter() - started) * 1000)
    return [statistics.median(found[WARMING:]) for found in timings]


def _series(sizes: list[tuple[int, int]]) -> list[list[Any]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        places = []
        for number, (units, others) in enumerate(sizes):
            db = stack.enter_context(Database.open(f"sqlite:///{Path(folder) / f'nova{number}.db'}"))
            places.append(Place.new(db, units, others).works())
        found = {what: _timed([one[what] for one in places]) for what in places[0]}
    return [[what, *took, took[-1] / took[0]] for what, took in found.items()]


def main(*, long: bool) -> int:
    by_units = _series([(units, USUAL_OTHERS) for units in UNITS])
    columns = ("median ms", *(f"{units:,}" for units in UNITS), "last ÷ first")
    show(f"units of the run grow, SQLite · {machine()}", columns, by_units)
    by_others = _series([(USUAL_UNITS, others) for others in OTHERS])
    columns = ("median ms", *(f"{others:,}" for others in OTHERS), f"last ÷ first (aim ≤ {AIM:g})")
    show("open runs of other agents grow, SQLite", columns, by_others)
    for what, *took, _ in by_others:
        tell(flat("S7", f"{what}, SQLite, by open runs of others", took, OTHERS, OTHERS[-1], ROUNDS))
    steady = [row[-1] for row in by_units if row[0] in STEADY] + [row[-1] for row in by_others]
    return int(any(ratio > AIM for ratio in steady))
