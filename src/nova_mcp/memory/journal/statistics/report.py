"""What the journal's figures say: rates, runtime health and whether a rollout is justified; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.memory.journal.statistics import counting as names
from nova_mcp.memory.journal.statistics.counting import percentile

VERIFIED_NEEDED: Final = 50
CONTRADICTED_AT_MOST: Final = 0.01
OUTBOX_AT_LEAST: Final = 0.95

Blocker = Literal["too_few_verified_actions", "contradicted_successes", "outbox_unhealthy", "chain_break"]


@dataclass(frozen=True, slots=True)
class StatisticsQuery:
    """Which window, how long the lists may get, and whose labels they show; None asks for everybody's."""

    window_hours: int = 24
    top_components: int = 8
    max_skip_reasons: int = 8
    top_routes: int = 8
    top_hosts: int = 8
    top_selectors: int = 8
    component: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """One entry of a list: how often, and how often well."""

    label: str
    count: int
    good: int = 0


@dataclass(frozen=True, slots=True)
class OutboxState:
    """Jobs that are not done; `overdue` have been pending for too long."""

    pending: int = 0
    leased: int = 0
    failed: int = 0
    overdue: int = 0
    oldest_pending_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RuntimeReading:
    """What is kept about one runtime signal besides its count."""

    latencies: Mapping[int, int]
    routes: tuple[Labelled, ...] = ()
    hosts: tuple[Labelled, ...] = ()
    selectors: tuple[Labelled, ...] = ()
    reasons: tuple[Labelled, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures as the store holds them; `chosen` are the totals of candidates and curation that were asked for, all of
    them or those of one component."""

    window: Mapping[str, tuple[int, int]]
    totals: Mapping[str, int]
    chosen: Mapping[str, int]
    components: tuple[Labelled, ...]
    skip_reasons: tuple[Labelled, ...]
    outbox: OutboxState
    runtime: Mapping[str, RuntimeReading]
    chain_broken: bool = False


@dataclass(frozen=True, slots=True)
class Kpis:
    """Rates from 0 to 1, None without a base, and one count."""

    commit_rate: float | None
    verification_rate: float | None
    disproven_rate: float | None
    curation_rate: float | None
    outbox_health: float | None
    tool_success_rate: float | None
    verified_action_rate: float | None
    false_success_caught: int
    runtime_readiness: float


@dataclass(frozen=True, slots=True)
class Runtime:
    """How well one kind of call works, and where."""

    attempts: int
    successes: int
    success_rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    found: RuntimeReading


@dataclass(frozen=True, slots=True)
class Rollout:
    """Whether what was measured justifies relying on it more."""

    ready: bool
    blockers: tuple[Blocker, ...]
    sample_size: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything memory statistics tell."""

    kpis: Kpis
    reading: Reading
    jobs_done: int
    runtime: Mapping[str, Runtime]
    rollout: Rollout


CONDITIONS: Final = 4


def rate(part: int, base: int) -> float | None:
    """A share of the base, four digits; what has been refuted since may leave more parts than base."""
    return None if base <= 0 else round(min(1.0, max(0, part) / base), 4)


def outbox_health(outbox: OutboxState, done: int) -> float | None:
    jobs = done + outbox.pending + outbox.leased + outbox.failed
    return rate(jobs - outbox.failed - outbox.overdue, jobs)


def rollout(verified: int, contradicted: int, health: float | None, *, chain_broken: bool) -> Rollout:
    """An outbox that never had a job is not ill."""
    blockers: list[Blocker] = []
    if verified < VERIFIED_NEEDED:
        blockers.append("too_few_verified_actions")
    if contradicted > CONTRADICTED_AT_MOST * verified:
        blockers.append("contradicted_successes")
    if health is not None and health < OUTBOX_AT_LEAST:
        blockers.append("outbox_unhealthy")
    if chain_broken:
        blockers.append("chain_break")
    return Rollout(not blockers, tuple(blockers), verified)


def report(reading: Reading) -> Report:
    window, totals = reading.window, reading.totals
    decisions, commits = window[names.DECISION]
    runs, ran_well = window[names.RUN]
    contracts, proven = window[names.CONTRACT]
    health = outbox_health(reading.outbox, totals[names.JOB_DONE])
    verdict = rollout(
        window[names.VERIFIED][0], window[names.CONTRADICTED][0], health, chain_broken=reading.chain_broken
    )
    candidates, verified = totals[names.CANDIDATE], totals[f"{names.CANDIDATE}.verified"]
    return Report(
        Kpis(
            commit_rate=rate(commits, decisions),
            verification_rate=rate(verified, candidates),
            disproven_rate=rate(totals[f"{names.CANDIDATE}.disproven"], candidates),
            curation_rate=rate(totals[names.CURATED], verified),
            outbox_health=health,
            tool_success_rate=rate(ran_well, runs),
            verified_action_rate=rate(proven, contracts),
            false_success_caught=window[names.CAUGHT][0],
            runtime_readiness=(CONDITIONS - len(verdict.blockers)) / CONDITIONS,
        ),
        reading,
        totals[names.JOB_DONE],
        {name: _runtime(window[f"tool.{name}"], found) for name, found in reading.runtime.items()},
        verdict,
    )


def _runtime(counted: tuple[int, int], found: RuntimeReading) -> Runtime:
    attempts, successes = counted
    return Runtime(
        attempts,
        successes,
        rate(successes, attempts),
        percentile(found.latencies, 0.50),
        percentile(found.latencies, 0.95),
        found,
    )
