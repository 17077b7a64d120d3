"""Is a run completed exactly when its work is proven, and does that stay fast as runs and units pile up?"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import anyio
from sqlalchemy import Connection

from bench import tasks_growth, tasks_match
from bench.findings import bad_share
from bench.tables import machine, show, tell
from bench.tasks_plans import drawn, played
from bench.tasks_play import Attempt
from bench.tasks_world import SetClock
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper
from nova_mcp.memory.tasks.runs.service import RunKeeper
from nova_mcp.settings import GateMode
from nova_mcp.storage.engine import Database

PLANS = 2_000
MORE_PLANS = 20_000
WORKERS = 2
SEED = 20_260_729
# True completions that may be refused, in percent: where in doubt Nova says no.
MOST_REFUSED = 1.0


def attempts(seeds: Sequence[int]) -> list[Attempt]:
    """Every try to complete a run in so many plans, each played in a transaction of its own."""
    clock = SetClock(1_800_000_000_000)
    ports = Ports(clock, SystemIds(clock))
    found: list[Attempt] = []
    with tempfile.TemporaryDirectory() as folder, Database.open(f"sqlite:///{Path(folder) / 'nova.db'}") as db:
        evidence = EvidenceCollector()
        recorder = Recorder(
            db, ports, ServerId("bench"), also=(evidence.collect,), missed=evidence.missed, first=evidence.mark_gaps
        )
        anyio.run(recorder.start, describe_server(ServerId("bench"), clock.now_ms(), "0"))
        profiles = ProfileKeeper(db, ports, MULTI_TENANT_DOMAINS)

        @cache
        def keeper(gate: GateMode) -> RunKeeper:
            return RunKeeper(db, ports, gate, profiles)

        for seed in seeds:
            found += db.write_sync(_played, seed, recorder, evidence, keeper)
    return found


def _played(
    conn: Connection,
    seed: int,
    recorder: Recorder,
    evidence: EvidenceCollector,
    keeper: Callable[[GateMode], RunKeeper],
) -> list[Attempt]:
    return played(drawn(conn, seed, recorder, evidence, keeper))


def attempts_of_all(plans: int) -> list[Attempt]:
    """The same, shared among processes."""
    parts = [range(SEED + first, SEED + plans, WORKERS) for first in range(WORKERS)]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        return [one for tried in pool.map(attempts, parts) for one in tried]


def completions(plans: int) -> bool:
    """The tables; whether nothing was completed too early and hardly anything too late."""
    started = time.perf_counter()
    tried = attempts_of_all(plans)
    if "--disagreements" in sys.argv:
        for one in sorted(tried, key=lambda one: one.plan):
            _tell(one)
    rows = [
        _row(name, [one for one in tried if one.condition == name]) for name in sorted({t.condition for t in tried})
    ]
    total = _row("all", tried)
    title = f"{plans:,} random plans (seed {SEED}, {time.perf_counter() - started:.0f} s) · {machine()}"
    columns = ("condition", "tries", "rightly done", "too early (aim 0)", "refused though done", "%", "other reasons")
    show(title, columns, [*rows, total])
    codes = sorted({code for one in tried for code in (*one.judge, *one.product)})
    heads = ("reason", "right", "missing", "unfounded")
    show("reasons against completing, as Nova told them", heads, [_reason(code, tried) for code in codes])
    early, late = sum(map(_early, tried)), sum(map(_late, tried))
    done = sum(not one.judge for one in tried)
    tell(bad_share("T7", "runs completed too early", early, len(tried) - done, 0))
    tell(bad_share("T7", "completions refused though the work was proven", late, done, MOST_REFUSED / 100))
    return early == 0 and 100 * late <= MOST_REFUSED * done


def _tell(one: Attempt) -> None:
    if one.judge != one.product:
        print(f"plan {one.plan}: {one.condition}: told {list(one.product)}, right {list(one.judge)}", file=sys.stderr)


def _early(one: Attempt) -> bool:
    return not one.product and bool(one.judge)


def _late(one: Attempt) -> bool:
    return bool(one.product) and not one.judge


def _row(name: str, tried: Iterable[Attempt]) -> list[object]:
    counted = Counter[str]()
    for one in tried:
        counted["tries"] += 1
        counted["done"] += not one.judge
        counted["early"] += _early(one)
        counted["late"] += _late(one)
        counted["differing"] += bool(one.judge) and bool(one.product) and one.judge != one.product
    share = 100 * counted["late"] / counted["done"] if counted["done"] else 0.0
    return [name, counted["tries"], counted["done"], counted["early"], counted["late"], share, counted["differing"]]


def _reason(code: str, tried: Iterable[Attempt]) -> list[object]:
    right = [(code in one.judge, code in one.product) for one in tried]
    return [code, right.count((True, True)), right.count((True, False)), right.count((False, True))]


def main(*, long: bool = False) -> int:
    fine = completions(MORE_PLANS if long else PLANS)
    steady = tasks_growth.main(long=long) == 0
    recognised = tasks_match.main(long=long) == 0
    return int(not (fine and steady and recognised))
