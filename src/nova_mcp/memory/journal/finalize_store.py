"""Remembers what was decided about each work context, and the jobs that follow; the worker's queue."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, Table, Text, insert, select

from nova_mcp.core.values import Json
from nova_mcp.memory.journal.candidate_store import candidates_of, curate
from nova_mcp.memory.journal.candidates import weighed
from nova_mcp.memory.journal.model import (
    ClaimedStats,
    Conclusion,
    Decision,
    EvidenceStrength,
    FinalizeOrder,
    FinalizeStats,
    FinalizeSummary,
    OutboxJob,
    WorkContext,
)
from nova_mcp.memory.journal.rules import mismatches, promotable
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import DECISION, Tally, of_curated, of_decision
from nova_mcp.storage.schema import metadata

STRENGTH = "evidenceStrength"

finalize_decision = Table(
    "finalize_decision",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("decision", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("reason_code", Text),
    Column("claimed_reason_code", Text),
    Column("claimed_reason_text", Text),
    Column("stats", Text, nullable=False),
    Column("claimed_stats", Text, nullable=False),
    Column("decided_at_ms", BigInteger, nullable=False),
    Index(None, "decided_at_ms"),
)

outbox_job = Table(
    "outbox_job",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("job_key", Text, nullable=False),
    Column("job_type", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at_ms", BigInteger, nullable=False),
    Column("leased_by", Text),
    Column("lease_until_ms", BigInteger),
    Column("last_error", Text),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("settled_at_ms", BigInteger),
    Index(None, "job_key", unique=True),
    Index(None, "state", "due_at_ms"),
)


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as it stands, with the figures of both sides."""

    decision: Decision
    stats: FinalizeStats
    claimed: ClaimedStats
    decided_at_ms: int


def summary_of(conn: Connection, task_id: str) -> FinalizeSummary:
    """What a work context has gathered, locked until it is finalized."""
    return FinalizeSummary(tuple(weighed(found) for found in candidates_of(conn, task_id)))


def gathered(conn: Connection, task_id: str) -> FinalizeSummary:
    """The same to look at only: whoever ends several contexts at once must not hold the candidates of one while it
    waits for those of the next, which a call may have locked in the other order."""
    return FinalizeSummary(tuple(weighed(found) for found in candidates_of(conn, task_id, lock=False)))


def write_conclusion(
    conn: Connection, context: WorkContext, order: FinalizeOrder, conclusion: Conclusion, now_ms: int
) -> Conclusion:
    """The decision, what it promotes and its job, in the transaction that ends the claim; as it was written, with the
    number of curated entries that were."""
    decision = conclusion.decision
    tally, stored = _promoted(conn, context, now_ms) if decision.kind == "commit" else (Tally(), 0)
    stats = replace(conclusion.stats, curated_upserts=stored)
    conclusion = replace(conclusion, stats=stats, mismatches=mismatches(order.claimed, stats))
    conn.execute(
        insert(finalize_decision),
        {
            "task_id": context.task_id,
            "decision": decision.kind,
            "source": decision.source,
            "reason_code": decision.reason_code,
            "claimed_reason_code": order.reason_code,
            "claimed_reason_text": order.reason_text,
            "stats": _text({**conclusion.stats.named(), STRENGTH: asdict(conclusion.stats.strength)}),
            "claimed_stats": _text(order.claimed),
            "decided_at_ms": now_ms,
        },
    )
    if conclusion.job is not None:
        conn.execute(insert(outbox_job), _job_row(context, conclusion.job, now_ms))
    # All decisions count in one place: a server that ends several claims at once would otherwise touch several places
    # in their order, and another one in the opposite order.
    # Reasons of Nova's own are the same for everybody; a caller's are its words, and so are components.
    own = decision.kind == "skip" and decision.source == "auto"
    bump(conn, DECISION, tally + of_decision(decision, now_ms), principal="" if own else context.principal)
    return conclusion


def _promoted(conn: Connection, context: WorkContext, now_ms: int) -> tuple[Tally, int]:
    """Curate what may be promoted, and nothing else, whoever decided; with the number of entries that were written."""
    ready = [(found, weighed(found)) for found in candidates_of(conn, context.task_id)]
    chosen = [(found, worth.evidence_score) for found, worth in ready if promotable(worth)]
    tally = Tally()
    written = curate(conn, chosen, now_ms)
    for one in written:
        if one.is_new:
            tally += of_curated(one.component, now_ms)
    return tally, len(written)


def _job_row(context: WorkContext, job: OutboxJob, now_ms: int) -> dict[str, str | int]:
    return {
        "job_id": job.job_id,
        "job_key": job.job_key,
        "job_type": job.job_type,
        "task_id": context.task_id,
        "target_id": context.target_id,
        "principal": context.principal,
        "agent_id": context.agent_id,
        "payload": _text(job.payload),
        "state": job.state,
        "attempts": 0,
        "due_at_ms": now_ms,
        "created_at_ms": now_ms,
    }


def _text(value: Mapping[Any, Json]) -> str:
    # Escaped to ASCII, so that neither database meets a character that it can't keep.
    return json.dumps(dict(value), separators=(",", ":"), sort_keys=True)


def decision_of(conn: Connection, task_id: str) -> StoredDecision | None:
    row = conn.execute(select(finalize_decision).where(finalize_decision.c.task_id == task_id)).one_or_none()
    if row is None:
        return None
    stored = json.loads(row.stats)
    stats = FinalizeStats(*(stored[name] for name in FinalizeStats().named()))
    return StoredDecision(
        Decision(row.decision, row.source, row.reason_code),
        replace(stats, strength=EvidenceStrength(**stored.get(STRENGTH, {}))),
        json.loads(row.claimed_stats),
        row.decided_at_ms,
    )


def job_of(conn: Connection, task_id: str) -> OutboxJob | None:
    row = conn.execute(select(outbox_job).where(outbox_job.c.job_key == f"finalize:{task_id}")).one_or_none()
    if row is None:
        return None
    return OutboxJob(row.job_id, row.job_key, row.job_type, json.loads(row.payload), row.state)


def conclusion_of(conn: Connection, task_id: str) -> Conclusion | None:
    """The outcome of a release that was committed before, told again."""
    stored = decision_of(conn, task_id)
    if stored is None:
        return None
    return Conclusion(stored.decision, stored.stats, mismatches(stored.claimed, stored.stats), job_of(conn, task_id))
