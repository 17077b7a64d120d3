"""Is a described task recognised as the one it is, and does finding it stay fast as profiles pile up?"""

import csv
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, insert, text

from bench.bounds import wilson
from bench.findings import flat
from bench.postgres import private_cluster
from bench.results import Finding
from bench.tables import machine, quantile, show, tell
from nova_mcp.core.clock import system_ports
from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS, site
from nova_mcp.memory.tasks.model import CompletionCondition, EvidencePolicy, Guidance, TaskContent
from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.profiles.matching import Candidate, best_of, credits_of, match_profiles, query_of
from nova_mcp.memory.tasks.profiles.rules import Change, created_profile
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper
from nova_mcp.memory.tasks.profiles.shortlist import PROFILES_FOUND
from nova_mcp.memory.tasks.tables import task_profile
from nova_mcp.storage.engine import Database

Half = Literal["tuned", "held_out"]
Row = tuple[str, str, int, str, str | None, int]

DATA = Path(__file__).parent / "data" / "tasks"
HALVES: tuple[Half, ...] = ("tuned", "held_out")
KINDS = {
    "same": "worded like the profile",
    "other": "in other words",
    "lang": "in the other language",
    "near": "near miss",
    "none": "nothing of the kind",
}
SIZES = (100, 1_000, 10_000, 100_000)
# Pages of the store that are kept in memory while it is filled, in KiB; only that makes a hundred thousand bearable.
FILLING_KIB = 512 * 1024
LOOKUPS = 100
PER_TRANSACTION = 1_000
VOCABULARY = 20_000
HOSTS = 500
CONDITION = CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("require_observed"))


# -- is it the right one


@dataclass(frozen=True)
class Described:
    """What somebody asks for, and which profile that is."""

    kind: str
    expected: str | None
    domain: str | None
    platform: str | None
    text: str


@dataclass(frozen=True)
class Verdict:
    described: Described
    accepted: str | None

    @property
    def right(self) -> bool:
        return self.accepted == self.described.expected


def profiles() -> list[Candidate]:
    lines = (DATA / "profiles.jsonl").read_text(encoding="utf-8").splitlines()
    return [_candidate(json.loads(line)) for line in lines]


def _candidate(row: dict[str, str | list[str]]) -> Candidate:
    guidance = tuple(Guidance(f"g{n}", "custom", text) for n, text in enumerate(row["guidance"]))
    content = TaskContent(str(row["type"]), str(row["name"]), str(row["goal"]), CONDITION, stable_guidance=guidance)
    domain = str(row["domain"]) if "domain" in row else None
    platform = str(row["platform"]) if "platform" in row else None
    return Candidate(str(row["id"]), credits_of(content), domain, None if domain is None else site(domain), platform)


def described(half: Half) -> list[Described]:
    with (DATA / f"{half}.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        Described(
            row["kind"],
            None if row["expected"] == "-" else row["expected"],
            row["domain"] or None,
            row["platform"] or None,
            row["description"],
        )
        for row in rows
    ]


def judged(half: Half) -> list[Verdict]:
    """Every description of a half against the profiles of both."""
    known = profiles()
    return [Verdict(one, _accepted(one, known)) for one in described(half)]


def _accepted(one: Described, known: Sequence[Candidate]) -> str | None:
    of_site = None if one.domain is None else site(one.domain)
    query = query_of(one.text, domain=one.domain, site=of_site, platform=one.platform)
    best = best_of(match_profiles(query, known))
    return None if best is None else best.candidate.profile_id


def _share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{hits / trials if trials else 0:.2f} ({low:.2f}–{high:.2f})"


def quality() -> None:
    rows: list[list[object]] = []
    for half in HALVES:
        found = judged(half)
        accepted = [one for one in found if one.accepted is not None]
        meant = [one for one in found if one.described.expected is not None]
        own = [one for one in meant if one.described.kind != "lang"]
        rows.append(
            [
                half.replace("_", " "),
                len(found),
                _share(sum(one.right for one in accepted), len(accepted)),
                _share(sum(one.right for one in meant), len(meant)),
                _share(sum(one.right for one in own), len(own)),
            ]
        )
        _recognised(half.replace("_", " "), rows[-1])
    columns = ("half", "descriptions", "precision of accepted", "recall", "recall, language of the profile")
    show(f"tasks recognised among {len(profiles())} profiles, with 95 % intervals · {machine()}", columns, rows)
    kinds = [[words, *(_of_kind(judged(half), kind) for half in HALVES)] for kind, words in KINDS.items()]
    show("right answers by kind of description", ("kind", *(half.replace("_", " ") for half in HALVES)), kinds)


def _recognised(half: str, row: Sequence[object]) -> None:
    _, descriptions, precision, recall, own = row
    said = f"precision {precision}, recall {recall}, in the language of the profile {own}"
    what = f"descriptions recognised, {half}"
    tell(Finding(aim="K1", what=what, measured=said, bound="", n=int(str(descriptions)), met=None))


def _of_kind(found: Sequence[Verdict], kind: str) -> str:
    fitting = [one for one in found if one.described.kind == kind]
    return f"{sum(one.right for one in fitting)} of {len(fitting)}"


# -- does it stay fast


class Maker:
    """Profiles in made-up words, a few of them in every second profile and most of them in hardly any."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "bdfgklmnprstvz"
        syllables = [a + b for a in letters for b in "aeiou"]
        self._words = [
            "".join(self._random.choices(syllables, k=self._random.randint(2, 4))) for _ in range(VOCABULARY)
        ]
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))

    def _text(self, count: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def content(self, number: int) -> TaskContent:
        host = f"host{self._random.randrange(HOSTS)}.example" if number % 2 else None
        guidance = tuple(Guidance(f"g{n}", "custom", self._text(8)) for n in range(2))
        return TaskContent(
            self._text(1), self._text(4), self._text(14), CONDITION, domain=host, stable_guidance=guidance
        )

    def question(self, content: TaskContent) -> str:
        words = f"{content.display_name} {content.goal}".split()
        return " ".join([*self._random.sample(words, 6), self._text(2)])


def _first(db: Database, maker: Maker, count: int) -> list[TaskContent]:
    """The profiles that are asked about, written as calls write them."""
    made = [maker.content(number) for number in range(count)]

    def some(conn: Connection) -> None:
        for number, content in enumerate(made):
            new = created_profile(f"p{number:06}", content, Change(), number + 1)
            store.create(conn, "local", new, MULTI_TENANT_DOMAINS)

    db.write_sync(some)
    return made


def _grow(db: Database, maker: Maker, start: int, end: int) -> None:
    """Profiles by the thousand, with the same rows but past the statements of single calls."""
    if db.dialect == "sqlite":
        db.write_sync(lambda conn: conn.exec_driver_sql(f"PRAGMA cache_size=-{FILLING_KIB}"))
    for first in range(start, end, PER_TRANSACTION):
        numbers = range(first, min(end, first + PER_TRANSACTION))
        new = [created_profile(f"p{number:06}", maker.content(number), Change(), number + 1) for number in numbers]
        rows = [store._to_row("local", one) for one in new]
        terms = [
            ("local", term, one.created_at_ms, one.profile_id, entry.site, entry.terms[term])
            for one in new
            for entry in [store._entry(one, MULTI_TENANT_DOMAINS)]
            for term in sorted(entry.terms)
        ]
        counted = Counter(row[1] for row in terms)
        db.write_sync(_load, rows, terms, sorted(counted.items()))
    db.write_sync(lambda conn: conn.exec_driver_sql("ANALYZE"))


def _load(conn: Connection, rows: list[dict[str, Any]], terms: list[Row], counted: list[tuple[str, int]]) -> None:
    conn.execute(insert(task_profile), rows)
    columns = "principal, term, created_at_ms, profile_id, site, credit"
    cursor = conn.connection.cursor()
    if conn.dialect.name == "postgresql":
        with cursor.copy(f"COPY task_profile_term ({columns}) FROM STDIN") as copy:
            for row in terms:
                copy.write_row(row)
    else:
        cursor.executemany(f"INSERT INTO task_profile_term ({columns}) VALUES (?, ?, ?, ?, ?, ?)", terms)
    more = text(
        "INSERT INTO task_term (principal, term, profiles) VALUES ('local', :term, :found) "
        "ON CONFLICT (principal, term) DO UPDATE SET profiles = task_term.profiles + excluded.profiles"
    )
    conn.execute(more, [{"term": term, "found": found} for term, found in counted])


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def latency(db: Database) -> list[list[object]]:
    """The same questions at every size; they are about the oldest profiles, which later ones bury."""
    maker = Maker(7)
    keeper = ProfileKeeper(db, system_ports(), MULTI_TENANT_DOMAINS)
    oldest = _first(db, maker, SIZES[0])
    asked = [(maker.question(one), one.domain) for one in (oldest * (LOOKUPS // len(oldest) + 1))[:LOOKUPS]]
    rows: list[list[object]] = []
    for before, size in pairwise((SIZES[0], *SIZES)):
        _grow(db, maker, before, size)
        queries = [keeper.query(text, domain, None, None) for text, domain in asked]
        match, search = (
            [_timed(partial(db.read_sync, keeper._matching, "local", one, most)) for one in queries]
            for most in (None, 10)
        )
        right = sum(
            (best := db.read_sync(keeper._matching, "local", query, None).best) is not None
            and best.candidate.profile_id == f"p{number % len(oldest):06}"
            for number, query in enumerate(queries)
        )
        kept = [quantile(match, 0.5), quantile(match, 0.95), quantile(search, 0.5), quantile(search, 0.95)]
        rows.append([f"{size:,}", *kept, f"{right} of {len(queries)}"])
    return rows


def _show_latency(where: str, rows: list[list[object]]) -> None:
    # As many profiles as a lookup takes up at most: where there are fewer, it has less to do.
    bounded = [row for row, size in zip(rows, SIZES, strict=True) if size >= PROFILES_FOUND]
    first, last = bounded[0], bounded[-1]
    ratio = [f"{float(str(b)) / float(str(a)):.1f}×" for a, b in zip(first[1:5], last[1:5], strict=True)]
    columns = ("profiles", "match ms p50", "p95", "search ms p50", "p95", "right one first")
    show(f"finding a profile, {where} · {machine()}", columns, [*rows, [f"last ÷ {first[0]}", *ratio, ""]])
    sizes = [size for size in SIZES if size >= PROFILES_FOUND]
    for column, what in ((1, "task_match"), (3, "task_search")):
        took = [float(str(row[column])) for row in bounded]
        tell(flat("S7", f"{what}, {where}, by profiles", took, sizes, SIZES[-1], LOOKUPS))


def main(*, long: bool = False) -> int:
    quality()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        db = stack.enter_context(Database.open(f"sqlite:///{folder}/nova.db"))
        _show_latency("SQLite", latency(db))
    if "--postgres" in sys.argv:
        with private_cluster() as cluster, Database.open(cluster.fresh_database()) as db:
            _show_latency("PostgreSQL", latency(db))
    return 0
