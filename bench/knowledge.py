"""What knowledge costs as it grows: suggesting, matching, planning candidates and recording a call, on both databases.

Entries, clusters and observations are laid down in bulk, twenty entries a site and ten observations an entry; what is
measured reads a few rows of all that, and that is the claim: the last column stays near one.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, text

from bench.findings import flat
from bench.postgres import private_cluster
from bench.tables import machine, show, tell
from nova_mcp.core.clock import system_ports
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.memory.journal.collector import derive
from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.journal.statistics.counters import Counters
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge.matching.entry_ranking import Request
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    DayCount,
    Fingerprint,
    Health,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.service import KnowledgeKeeper
from nova_mcp.memory.knowledge.store import _values
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope, knowledge_selector
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.drafts import cluster_store
from nova_mcp.memory.promotion.drafts.clusters import cluster_of, with_observation
from nova_mcp.memory.promotion.drafts.generator import planned, suggestions
from nova_mcp.memory.promotion.drafts.scoring import cluster_rank
from nova_mcp.memory.promotion.model import DAY_MS, ClusterDay, ClusterKey
from nova_mcp.memory.promotion.tables import learning_cluster, learning_cluster_day
from nova_mcp.storage.engine import Database

SIZES = (1_000, 10_000)
LONG_SIZES = (1_000, 10_000, 100_000)
PER_SITE = 20
PER_ENTRY = 10
AIM = 2.0
ROUNDS = 60
NOW_MS = 20_000 * DAY_MS + DAY_MS // 2
CHUNK = 1_000


def _site(number: int) -> ScopeName:
    return ScopeName(f"site{number // PER_SITE}.example")


def _entry(number: int) -> Phenomenon:
    """Every hundredth has failed in most of its uses, so that there are always some that need a look."""
    failing = number % 100 == 7
    day = NOW_MS // DAY_MS
    health = Health(
        attempts=8,
        successes=2 if failing else 8,
        failures=6 if failing else 0,
        consecutive_failures=2 if failing else 0,
        recent=(DayCount(day - number % 20, 0, 2 if failing else 8, 6 if failing else 0),),
        last_confirmed_at_ms=NOW_MS - number % 25 * DAY_MS,
    )
    name = f"entry{number % PER_SITE}"
    content = Content(
        "modal",
        Fingerprint((Signal("dom", f"#{name}"), Signal("text", f"Offer {number % PER_SITE}"))),
        Playbook("dismiss", (Action("click", f"#{name} .close", (f"#{name} button",)),)),
    )
    at_ms = NOW_MS - 30 * DAY_MS
    made = Phenomenon(StableId(name), content, 2, at_ms, at_ms, health=health)
    return replace(made, baseline=frozenset(content.fingerprint.signals))


def _entries(first: int, last: int) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    sites = sorted({_site(number) for number in range(first, last)})
    plain = {"content_rev": 1, "state_rev": 1, "context": "{}", "service_categories": "[]", "framework_markers": "[]"}
    yield knowledge_scope, [{"scope": site, **plain, "updated_at_ms": NOW_MS} for site in sites]
    place = {"slot": "current", "origin": "manual", "candidate_key": None}
    rows = [
        {"entry_id": number + 1, "scope": _site(number), **place, **_values(_entry(number))}
        for number in range(first, last)
    ]
    yield knowledge_entry, rows
    yield (
        knowledge_selector,
        [
            {"scope": _site(number), "selector": f"#entry{number % PER_SITE} .close", "entry_id": number + 1}
            for number in range(first, last)
        ],
    )


def _clusters(first: int, last: int) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """A cluster for each entry, with its observations: of many ages, and many of the same rank."""
    clusters, days, seen = [], [], []
    for number in range(first, last):
        draw = random.Random(number)
        key = ClusterKey(_site(number), f"#b{number % PER_SITE}")
        kept: dict[int, ClusterDay] = {}
        for turn in range(PER_ENTRY):
            at_ms = NOW_MS - draw.choice((0, 1, 3, 9, 20)) * DAY_MS - draw.randrange(DAY_MS // 4)
            outcome = -1 if draw.random() < 0.1 else 1
            kind = "action_failure" if outcome < 0 else "action_success"
            session = f"s{draw.randrange(3)}"
            day = at_ms // DAY_MS
            one = Observation("action_failure" if outcome < 0 else "action_success", -1 if outcome < 0 else 1)
            kept[day] = with_observation(kept.get(day), one, session, at_ms)
            seen.append(_observed(number, turn, at_ms, kind, outcome, session, key))
        found = cluster_of(key, kept.values(), NOW_MS)
        rank = -1.0 if found is None else cluster_rank(found, known=False)
        last_at = max(day.last_at_ms for day in kept.values())
        name = {"host": key.host, "key": key.key}
        clusters.append({**name, "rank": rank, "first_day": min(kept), "last_at_ms": last_at})
        days += [{**name, "day": day.day, "body": cluster_store._written(day)} for day in kept.values()]
    yield learning_cluster, clusters
    yield learning_cluster_day, days
    yield observation, seen


def _observed(
    number: int, turn: int, at_ms: int, kind: str, outcome: int, session: str, key: ClusterKey
) -> dict[str, Any]:
    return {
        "owner_agent_id": "ada", "principal": "local", "task_id": None, "target_id": "tab_1",
        "activity_session_id": session, "context_host": key.host, "kind": kind, "outcome": outcome, "severity": 0,
        "tool_name": "nova.click_selector", "target_stable_id": None, "candidate_key": None, "fingerprint_hash": None,
        "selector_norm": key.key, "payload": '{"route":"x.example/a"}', "throttle_key": f"k{number}-{turn}",
        "call_id": f"old-{number}-{turn}", "server_id": "old", "server_seq": 0, "source_scope": None,
        "created_at_ms": at_ms, "cluster_key": key.key,
    }  # fmt: skip


def _fill(db: Database, have: int, size: int) -> None:
    for first in range(have, size, CHUNK):
        last = min(first + CHUNK, size)

        def write(conn: Connection, first: int = first, last: int = last) -> None:
            for table, rows in (*_entries(first, last), *_clusters(first, last)):
                conn.execute(insert(table), rows)

        db.write_sync(write)
    if db.dialect == "postgresql":
        db.write_sync(lambda conn: conn.execute(text("ANALYZE")))


# -- measuring

Act = Callable[[int], object]


def _timed(acts: list[Act], rounds: int) -> list[float]:
    """The median of each; they take turns, so that whatever else the machine does falls on all of them alike."""
    timings: list[list[float]] = [[] for _ in acts]
    for number in range(rounds + 10):
        for act, found in zip(acts, timings, strict=True):
            started = time.perf_counter()
            act(number)
            found.append((time.perf_counter() - started) * 1000)
    return [statistics.median(found[10:]) for found in timings]


def _click(server_id: str, number: int, site: ScopeName) -> CallRecord:
    page = PageState("tab_1", "A", f"https://{site}/a", f"{site}/a", 1)
    return CallRecord(
        call_id=f"{server_id}-{number}",
        caller=Caller("local", "ada", ServerId(server_id)),
        tool_name="nova.click_selector",
        effect="act",
        started_at_ms=NOW_MS + number * 60_000,
        duration_ms=40,
        outcome=CallOutcome("ok", action_dispatched=True, verification="verified"),
        before=page,
        after=page,
        touched=Touched(f"#b{number % PER_SITE}", "h", "f"),
        arguments={"selector": "#b"},
        signals=Signals(label="success", effect_observed=True, came_from="x", page_state="y"),
    )


def _acts(db: Database, size: int) -> dict[str, Act]:
    draw = random.Random(size)
    keeper = KnowledgeKeeper(db, system_ports().clock, steps_store)
    observed = (ObservedSignal("#entry3", "dom"), ObservedSignal("Offer 3", "text"))
    server_id, counters = f"bench-{size}", Counters()
    db.write_sync(register_server, ServerInfo(ServerId(server_id), NOW_MS, 1, 1, "bench", "0"))

    def site(_: int = 0) -> ScopeName:
        return _site(draw.randrange(size))

    def match(number: int) -> None:
        known = db.read_sync(keeper._read, site(), None)
        found = keeper.match(known, observed, Request())
        if not found.matches:
            raise AssertionError("an active entry that fits was not found")

    def record(number: int) -> None:
        def write(conn: Connection) -> None:
            call = _click(server_id, number, site())
            link = append_call(conn, call)
            derive(conn, call, link, HOOKS)
            counters.count(conn, call, link)

        db.write_sync(write)

    return {
        "learn_suggest, every site": lambda _: db.read_sync(suggestions, None, 20, NOW_MS),
        "learn_suggest, one site": lambda _: db.read_sync(suggestions, site(), 20, NOW_MS),
        "pks_match, nothing kept in mind": match,
        "learn_generate, the plan": lambda _: db.read_sync(planned, site(), "local", 5, NOW_MS),
        "one call recorded and learned from": record,
    }


def _series(urls: list[str], sizes: tuple[int, ...]) -> list[list[Any]]:
    with ExitStack() as stack:
        acts = []
        for url, size in zip(urls, sizes, strict=True):
            db = stack.enter_context(Database.open(url))
            begun = time.perf_counter()
            _fill(db, 0, size)
            print(f"{size:,} entries laid down in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
            acts.append(_acts(db, size))
        found = {what: _timed([one[what] for one in acts], ROUNDS) for what in acts[0]}
    return [[what, *took, took[-1] / took[0]] for what, took in found.items()]


def main(*, long: bool) -> int:
    print(f"knowledge · {machine()}\n")
    sizes = LONG_SIZES if long else SIZES
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        rows += _told("SQLite", [f"sqlite:///{folder}/nova{size}.db" for size in sizes], sizes)
    with private_cluster("shared_buffers = 256MB\nmax_wal_size = 4GB\n") as cluster:
        rows += _told("PostgreSQL", [cluster.fresh_database() for _ in sizes], sizes)
    return int(any(row[-1] > AIM for row in rows))


def _told(label: str, urls: list[str], sizes: tuple[int, ...]) -> list[list[Any]]:
    rows = _series(urls, sizes)
    columns = ["median ms", *(f"{size:,} / {size * PER_ENTRY:,}" for size in sizes), f"last / first (aim <= {AIM:g})"]
    show(f"Knowledge as it grows, {label} (entries / observations)", columns, rows)
    for what, *took, _ in rows:
        tell(flat("S7", f"{what}, {label}, by entries", took, sizes, LONG_SIZES[-1], ROUNDS))
    return rows
