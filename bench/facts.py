"""Are facts right in a long stream of updates, noise and distractors, and do lookups stay fast as the store grows?"""

import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text

from bench.findings import bad_share, flat
from bench.postgres import private_cluster
from bench.tables import machine, quantile, show, tell
from nova_mcp.memory.facts import store
from nova_mcp.memory.facts.model import FRESH_MS, BindingId, Certainty, ClaimResult, Fact, Observation, Page, Scope
from nova_mcp.memory.facts.replay import rebuilt, replay
from nova_mcp.memory.facts.rules import canonical
from nova_mcp.storage.engine import Database

UPDATES = 100_000
MORE_UPDATES = 1_000_000
SLOTS = 400
SCOPES = 8
CLAIMS_PER_CALL = 25
SIZES = (10_000, 100_000, 1_000_000)
LOOKUPS = 400
PER_SCOPE = 20
START_MS = 1_800_000_000_000
PAGE = Page("https://shop.test/", "h", "shop.test/")
NOISE = 0.35
AGAIN = 0.15


@dataclass
class Slot:
    """What the generator knows to be true of one slot, kept apart from everything Nova computes."""

    scope: Scope
    key: str
    value: int = -1
    certainty: Certainty = "tentative"
    at_ms: int = 0
    doubted: bool = False
    seen: int = 0


@dataclass
class Tally:
    updates: int = 0
    noise: int = 0
    repeats: int = 0
    wrong_answers: int = 0
    wrong_values: int = 0
    touched: int = 0
    seconds: float = 0.0


@dataclass
class Stream:
    """Makes one call's claims after another; each update wins by a rule, each noise must not."""

    seed: int
    slots: list[Slot] = field(default_factory=list)
    now_ms: int = START_MS
    number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        for index in range(SLOTS):
            scope = Scope(f"tab_{index % SCOPES + 1}", "A", "local", "shop.test")
            # The same names in every scope, and names that begin alike.
            self.slots.append(Slot(scope, f"shop.slot_{index // SCOPES}"))

    def call(self, tally: Tally) -> tuple[Scope, list[tuple[Slot, Observation]]]:
        self.number += 1
        self.now_ms += self.random.choice((10, 1_000, 20_000))
        scope = Scope(f"tab_{self.random.randrange(SCOPES) + 1}", "A", "local", "shop.test")
        own = [slot for slot in self.slots if slot.scope == scope]
        claims = [self._claim(slot, tally) for slot in self.random.sample(own, CLAIMS_PER_CALL)]
        return scope, claims

    def _claim(self, slot: Slot, tally: Tally) -> tuple[Slot, Observation]:
        slot.seen += 1
        draw = self.random.random()
        if slot.value >= 0 and draw < NOISE:
            tally.noise += 1
            return slot, self._noise(slot)
        if slot.value >= 0 and draw < NOISE + AGAIN:
            tally.repeats += 1
            return slot, self._again(slot)
        tally.updates += 1
        return slot, self._update(slot)

    def _update(self, slot: Slot) -> Observation:
        """A new value with what it takes to win: an old or doubted fact, or clearly more certainty."""
        stale = self.now_ms - slot.at_ms > FRESH_MS
        if slot.value < 0 or stale or slot.doubted:
            certainty: Certainty = self.random.choice(("likely", "certain"))
        elif slot.certainty == "certain":
            # Nothing outdoes it while it is fresh, so time has to pass.
            self.now_ms = slot.at_ms + FRESH_MS + 1
            certainty = "likely"
        else:
            certainty = "certain"
        slot.value = slot.value + 1 if slot.value >= 0 else self.random.randrange(10**6)
        slot.certainty, slot.at_ms, slot.doubted = certainty, self.now_ms, False
        return self._observed(slot, slot.value, certainty)

    def _noise(self, slot: Slot) -> Observation:
        """Another value that must not win: a guess, or a doubt about something certain and fresh."""
        wrong = slot.value + self.random.choice((-1, 1, 1000, 7))
        fresh = self.now_ms - slot.at_ms <= FRESH_MS
        if fresh and slot.certainty == "certain" and not slot.doubted and self.random.random() < 0.5:
            slot.doubted = True
            return self._observed(slot, wrong, "likely")
        return self._observed(slot, wrong, "tentative")

    def _again(self, slot: Slot) -> Observation:
        certainty: Certainty = self.random.choice(("likely", "certain"))
        slot.at_ms = self.now_ms
        if certainty == "certain" or slot.certainty == "tentative":
            slot.certainty = certainty
        # The doubt was a likely one, so either clears it.
        slot.doubted = False
        return self._observed(slot, slot.value, certainty)

    def _observed(self, slot: Slot, value: int, certainty: Certainty) -> Observation:
        return Observation(slot.key, canonical(value), certainty, "agent", f"c{self.number}", PAGE, self.now_ms)


def _play(db: Database, updates: int, seed: int) -> Tally:
    stream, tally = Stream(seed), Tally()
    began = time.perf_counter()
    while tally.updates < updates:
        scope, claims = stream.call(tally)
        told = db.write_sync(store.note, scope, [one for _, one in claims])
        tally.wrong_answers += _wrong(claims, told or ())
    tally.seconds = time.perf_counter() - began
    for slot in stream.slots:
        fact = db.read_sync(store.current_facts, slot.scope.binding_id, [slot.key]).get(slot.key)
        tally.wrong_values += fact is None or json.loads(fact.value) != slot.value
    tally.touched = _touched(db, stream)
    return tally


def _wrong(claims: Sequence[tuple[Slot, Observation]], told: Sequence[ClaimResult]) -> int:
    """Answers whose value is not the true one right after the claim; a guess is answered with itself."""
    wrong = abs(len(claims) - len(told))
    for (slot, seen), result in zip(claims, told, strict=False):
        right = seen.value if result.state == "observation_only" else canonical(slot.value)
        wrong += (result.key, result.value) != (slot.key, right)
    return wrong


def _touched(db: Database, stream: Stream) -> int:
    """Slots that hold more or less than their own observations account for."""
    touched = 0
    for slot in stream.slots:
        seen = db.read_sync(_observations, slot)
        mine = {version: fact for (_, version), fact in rebuilt(seen).items()}
        stored = db.read_sync(_versions, slot)
        touched += len(seen) != slot.seen or mine != {fact.version: fact for fact in stored}
    return touched


def _observations(conn: Connection, slot: Slot) -> list[Observation]:
    rows = conn.execute(
        text("SELECT * FROM fact_observation WHERE binding_id = :b AND signal_key = :k ORDER BY observation_id"),
        {"b": slot.scope.binding_id, "k": slot.key},
    )
    return [store.to_observation(row) for row in rows]


def _versions(conn: Connection, slot: Slot) -> list[Fact]:
    known = store.current_facts(conn, slot.scope.binding_id, [slot.key])
    closed = store.closed_versions(conn, slot.scope.binding_id, [slot.key], 10**9)
    return [*known.values(), *closed.get(slot.key, [])]


# -- does it stay fast

_FILL_SCOPES = text(
    "INSERT INTO fact_binding (binding_id, target_id, sandbox_id, principal, service_key, custom_facts, opened_at_ms) "
    "WITH RECURSIVE n(i) AS (SELECT CAST(:low AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :high) "
    "SELECT 'f' || CAST(i AS TEXT) || '/shop.test', 'f' || CAST(i AS TEXT), 'A', 'local', 'shop.test', 20, 0 FROM n"
)
_FILL_FACTS = text(
    "INSERT INTO fact (binding_id, signal_key, version, value, state, confidence, certainty, source_kind, support, "
    "contradictions, corroborated, contradicting, call_id, url, url_hash, first_observed_at_ms, last_observed_at_ms, "
    "valid_from_ms) WITH RECURSIVE n(i) AS (SELECT CAST(:low AS INTEGER) UNION ALL SELECT i + 1 FROM n "
    "WHERE i + 1 < :high) SELECT 'f' || CAST(i / 20 AS TEXT) || '/shop.test', 'shop.k' || CAST(i % 20 AS TEXT), 1, "
    "'1', 'fresh', 750, 'likely', 'agent', 1, 0, FALSE, 0, 'c', 'u', 'h', 0, 0, 0 FROM n"
)


def _fill(db: Database, low: int, high: int) -> None:
    def fill(conn: Connection) -> None:
        conn.execute(_FILL_SCOPES, {"low": low // PER_SCOPE, "high": high // PER_SCOPE})
        conn.execute(_FILL_FACTS, {"low": low, "high": high})

    db.write_sync(fill)


def _median_ms(work: Callable[[int], object], rounds: int) -> float:
    timings = []
    for number in range(rounds + 50):
        began = time.perf_counter()
        work(number)
        if number >= 50:
            timings.append((time.perf_counter() - began) * 1000)
    return quantile(timings, 0.5)


def _growth(db: Database, name: str) -> bool:
    made, filled = random.Random(5), 0
    rows: list[list[Any]] = []
    for size in SIZES:
        _fill(db, filled, size)
        filled = size
        scopes = size // PER_SCOPE

        def scope(number: int, scopes: int = scopes) -> BindingId:
            return BindingId(f"f{made.randrange(scopes)}/shop.test")

        one = _median_ms(lambda n: db.read_sync(store.current_facts, scope(n), ["shop.k7"]), LOOKUPS)
        whole = _median_ms(lambda n: db.read_sync(store.scope_of, scope(n)), LOOKUPS)

        def write(number: int) -> None:
            where = Scope(scope(number).partition("/")[0], "A", "local", "shop.test")
            seen = Observation("shop.k7", "2", "certain", "agent", f"w{number}", PAGE, START_MS + number)
            db.write_sync(store.note, where, [seen])

        rows.append([size, one, whole, _median_ms(write, LOOKUPS)])
    for column, what in ((1, "one fact looked up"), (2, "a whole scope looked up"), (3, "a claim written")):
        tell(flat("S7", f"{what}, {name}", [row[column] for row in rows], SIZES, SIZES[-1], LOOKUPS))
    ratios: list[float] = [rows[-1][column] / rows[0][column] for column in (1, 2, 3)]
    rows.append(["last ÷ first (aim <= 2)", *ratios])
    show(f"Lookups while the store grows, {name}, ms p50", ["facts", "one key", "whole scope", "claim"], rows)
    return max(ratios) <= 2


def _truth(db: Database, name: str, updates: int, seed: int) -> bool:
    tally = _play(db, updates, seed)
    done = db.read_sync(replay)
    claims = tally.updates + tally.noise + tally.repeats
    row = [
        *(seed, tally.updates, tally.noise, tally.repeats, tally.wrong_answers, tally.wrong_values, tally.touched),
        *(len(done.differences), claims / tally.seconds),
    ]
    columns = ["seed", "updates", "noise", "repeats", "wrong told", "wrong kept", "touched", "replay ≠", "claims/s"]
    show(f"Updates that must win, noise that must not: {SLOTS} slots in {SCOPES} tabs, {name}", columns, [row])
    tell(bad_share("T6", f"claims answered with a wrong value, {name}", tally.wrong_answers, claims, 0))
    tell(bad_share("T6", f"slots that hold a wrong value in the end, {name}", tally.wrong_values, SLOTS, 0))
    tell(bad_share("T6", f"slots touched by what was not theirs, {name}", tally.touched, SLOTS, 0))
    return not (tally.wrong_answers or tally.wrong_values or tally.touched or done.differences)


def main(*, long: bool) -> int:
    print(f"Live facts. {machine()}")
    updates = MORE_UPDATES if long else UPDATES
    right = True
    with tempfile.TemporaryDirectory() as folder, private_cluster() as cluster:
        for name, url in (("SQLite", f"sqlite:///{folder}/facts.db"), ("PostgreSQL", cluster.fresh_database())):
            with Database.open(url) as db:
                right = _truth(db, name, updates, seed=20261116) and right
                right = _growth(db, name) and right
    return 0 if right else 1
