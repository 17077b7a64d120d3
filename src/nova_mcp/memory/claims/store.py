"""Remembers every claim: who held which target from when to when, and how it ended."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from sqlalchemy import BigInteger, Column, Connection, Index, Table, Text, bindparam, insert, select, update

from nova_mcp.core.leases import ClaimEnd
from nova_mcp.core.values import Json, Owner
from nova_mcp.evidence.store import ledger_server
from nova_mcp.memory.claims.rules import Claim, owner_key
from nova_mcp.memory.journal.finalize_store import conclusion_of, decision_of, gathered, summary_of, write_conclusion
from nova_mcp.memory.journal.model import Conclusion, Coverage, DecisionKind, FinalizeOrder, WorkContext
from nova_mcp.memory.journal.rules import abandoned, conclude, figures
from nova_mcp.storage.schema import metadata

claim_journal = Table(
    "claim_journal",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("target_id", Text, nullable=False),
    Column("sandbox_id", Text, nullable=False),
    Column("owner_agent_id", Text, nullable=False),
    Column("owner_key_hash", Text, nullable=False),
    Column("token_hash", Text, nullable=False),
    Column("server_instance", Text, nullable=False),
    Column("agent_role", Text, nullable=False),
    Column("debug_label", Text),
    Column("acquired_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("reclaim_reason", Text),
    Column("ended_at_ms", BigInteger),
    Column("end_reason", Text),
    Column("successor", Text),
    Column("finalize_decision", Text),
    Index(None, "owner_key_hash", "target_id", "acquired_at_ms"),
    Index(None, "server_instance", "ended_at_ms"),
)


class LearnMode(Protocol):
    """What Learn Mode asks of a claim; it is asked and told in the transaction that ends the claim."""

    def coverage(self, conn: Connection, task_id: str) -> Coverage | None:
        """How far a claim came; None where nothing is being learned."""

    def ended(self, conn: Connection, task_id: str, at_ms: int, exhausted: str | None = None) -> None:
        """The claim is over; `exhausted` is why its owner could not reach what was asked for."""


class _NothingToLearn:
    def coverage(self, conn: Connection, task_id: str) -> Coverage | None:
        return None

    def ended(self, conn: Connection, task_id: str, at_ms: int, exhausted: str | None = None) -> None:
        return None


NO_LEARN_MODE: Final[LearnMode] = _NothingToLearn()


@dataclass(frozen=True, slots=True)
class Taking:
    """A claim that is taken: on which server, for what stated reason, and from whom."""

    claim: Claim
    server_id: str
    reclaim_reason: str | None = None
    displaced: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """A claim that ends by somebody's doing, and what shall become of its learning."""

    claim: Claim
    reason: ClaimEnd
    order: FinalizeOrder
    job_id: str
    at_ms: int
    floors_met: bool = True

    @property
    def context(self) -> WorkContext:
        return context_of(self.claim)


@dataclass(frozen=True, slots=True)
class EndedClaim:
    """What is left of a claim that is over."""

    task_id: str
    target_id: str
    ended_at_ms: int
    end_reason: ClaimEnd
    finalize_decision: DecisionKind | None

    def describe(self) -> dict[str, Json]:
        """As answers show it."""
        ended = datetime.fromtimestamp(self.ended_at_ms / 1000, UTC)
        return {
            "taskId": self.task_id,
            "endedAtUtc": ended.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "endReason": self.end_reason,
            "finalizeDecision": self.finalize_decision,
        }


def context_of(claim: Claim) -> WorkContext:
    return WorkContext(claim.task_id, claim.target_id, claim.sandbox_id, *claim.owner, claim.acquired_at_ms)


def claim_taken(conn: Connection, taking: Taking, now_ms: int, learn: LearnMode = NO_LEARN_MODE) -> None:
    """Write a claim down, and the end of those it displaces."""
    claim = taking.claim
    _end_unfinished(conn, taking.displaced, "reclaimed", (now_ms, claim.task_id), learn)
    conn.execute(
        insert(claim_journal),
        {
            "task_id": claim.task_id,
            "target_id": claim.target_id,
            "sandbox_id": claim.sandbox_id,
            "owner_agent_id": claim.owner[1],
            "owner_key_hash": owner_key(claim.owner),
            "token_hash": claim.token_hash,
            "server_instance": taking.server_id,
            "agent_role": claim.agent_role,
            "debug_label": claim.debug_label,
            "acquired_at_ms": claim.acquired_at_ms,
            "expires_at_ms": claim.expires_at_ms,
            "reclaim_reason": taking.reclaim_reason,
        },
    )


_RENEW = (
    update(claim_journal)
    .where(claim_journal.c.task_id == bindparam("task"), claim_journal.c.ended_at_ms.is_(None))
    .values(expires_at_ms=bindparam("until"), agent_role=bindparam("role"), debug_label=bindparam("label"))
)


def claims_renewed(conn: Connection, claims: Iterable[Claim]) -> None:
    # Always in the same order, so that two writers never wait for each other.
    for claim in sorted(claims, key=lambda claim: claim.task_id):
        values = {"until": claim.expires_at_ms, "role": claim.agent_role, "label": claim.debug_label}
        conn.execute(_RENEW, {"task": claim.task_id, **values})


def claims_expired(conn: Connection, claims: Sequence[Claim], learn: LearnMode = NO_LEARN_MODE) -> None:
    """Each ended when its time ran out, however much later that is written down."""
    for claim in sorted(claims, key=lambda claim: claim.task_id):
        _end_unfinished(conn, [claim], "expired", (claim.expires_at_ms, None), learn)


_END = (
    update(claim_journal)
    .where(claim_journal.c.task_id == bindparam("task"), claim_journal.c.ended_at_ms.is_(None))
    .values(
        ended_at_ms=bindparam("at"),
        end_reason=bindparam("reason"),
        finalize_decision=bindparam("decision"),
        successor=bindparam("next"),
    )
)


def _end(conn: Connection, claim: Claim, reason: ClaimEnd, decision: DecisionKind, at: tuple[int, str | None]) -> bool:
    row = {"task": claim.task_id, "at": at[0], "reason": reason, "decision": decision, "next": at[1]}
    return conn.execute(_END, row).rowcount == 1


def _end_unfinished(
    conn: Connection, claims: Iterable[Claim], reason: ClaimEnd, at: tuple[int, str | None], learn: LearnMode
) -> None:
    """End claims that nobody released: nothing is learned from them, nothing they gathered changes."""
    decision, at_ms = abandoned(), at[0]
    for claim in sorted(claims, key=lambda claim: claim.task_id):
        ended = _end(conn, claim, reason, decision.kind, at)
        if ended and decision_of(conn, claim.task_id) is None:
            conclusion = Conclusion(decision, figures(gathered(conn, claim.task_id), decision))
            write_conclusion(conn, context_of(claim), FinalizeOrder(), conclusion, at_ms)
        learn.ended(conn, claim.task_id, at_ms)


def claim_closed(conn: Connection, closing: Closing, before_commit: Callable[[], None]) -> Conclusion:
    """Decide, write the job and end the claim: all of it or nothing.

    A release whose commit was reported as failed but took place after all finds its own outcome again.
    """
    claim = closing.claim
    if (earlier := conclusion_of(conn, claim.task_id)) is not None:
        return earlier
    summary = summary_of(conn, claim.task_id)
    conclusion = conclude(closing.context, closing.order, summary, closing.job_id, floors_met=closing.floors_met)
    conclusion = write_conclusion(conn, closing.context, closing.order, conclusion, closing.at_ms)
    _end(conn, claim, closing.reason, conclusion.decision.kind, (closing.at_ms, None))
    before_commit()
    return conclusion


def claims_of_ended_servers(conn: Connection, now_ms: int, learn: LearnMode = NO_LEARN_MODE) -> int:
    """End what servers left claimed that are known to be gone; says how many claims that were."""
    gone = select(ledger_server.c.server_id).where(ledger_server.c.ended_at_ms.is_not(None))
    left = conn.execute(
        select(claim_journal)
        .where(claim_journal.c.ended_at_ms.is_(None), claim_journal.c.server_instance.in_(gone))
        .order_by(claim_journal.c.task_id)
        .with_for_update()
    ).all()
    claims = [
        # Whose it was matters no more: neither the end of a claim nor a decision of Nova's own to skip names anybody.
        Claim(row.task_id, row.target_id, row.sandbox_id, ("", row.owner_agent_id), "", row.acquired_at_ms, 0)
        for row in left
    ]
    _end_unfinished(conn, claims, "server_restart", (now_ms, None), learn)
    return len(claims)


def last_ended(conn: Connection, owner: Owner, targets: Sequence[str]) -> EndedClaim | None:
    """How an owner's newest claim on any of these targets ended; nothing while it stands or if there was none."""
    row = conn.execute(
        select(claim_journal)
        .where(claim_journal.c.owner_key_hash == owner_key(owner), claim_journal.c.target_id.in_(targets))
        .order_by(claim_journal.c.acquired_at_ms.desc(), claim_journal.c.task_id)
        .limit(1)
    ).one_or_none()
    if row is None or row.ended_at_ms is None:
        return None
    return EndedClaim(row.task_id, row.target_id, row.ended_at_ms, row.end_reason, row.finalize_decision)
