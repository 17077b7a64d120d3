"""How claims end: what is decided about their learning, written at once or as soon as the store allows."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.core.leases import ClaimEnd, Place
from nova_mcp.core.values import Owner
from nova_mcp.errors import CoverageNotMet, InvalidParams, Unavailable
from nova_mcp.memory.claims import store
from nova_mcp.memory.claims.rules import Claim
from nova_mcp.memory.claims.store import Closing, EndedClaim, LearnMode
from nova_mcp.memory.journal.model import Conclusion, Coverage, FinalizeOrder
from nova_mcp.memory.journal.rules import NOTHING_LEARNED, conclude, judge_coverage
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

AGAIN_MS = 1_000


@dataclass(frozen=True, slots=True)
class Ended:
    """What was decided at the end of a claim, and how far Learn Mode had come in it."""

    conclusion: Conclusion
    coverage: Coverage | None = None


class ClaimEndings:
    """Ends that somebody asked for are written before they hold; those that happened wait here for the store."""

    def __init__(self, ports: Ports, db: Database | None, learn: LearnMode) -> None:
        self._ports = ports
        self._db = db
        self._learn = learn
        self._expired: list[Claim] = []
        self._closings: list[Closing] = []

    # -- ends that happened

    def lapsed(self, claim: Claim) -> None:
        self._expired.append(claim)

    def gone(self, claim: Claim, reason: ClaimEnd) -> None:
        self._closings.append(self.closing(claim, reason, FinalizeOrder()))

    async def settle(self) -> None:
        """Write down every end that is not on record yet."""
        expired, closings = tuple(self._expired), tuple(self._closings)
        if self._db is not None:
            if expired:
                await self._db.write(store.claims_expired, expired, self._learn)
            for closing in closings:
                await self._written(closing)
        # Kept until written: a store that is away for a while must not make a claim's end unknown.
        self._expired = [claim for claim in self._expired if claim not in expired]
        self._closings = [closing for closing in self._closings if closing not in closings]

    # -- ends that were asked for

    def closing(self, claim: Claim, reason: ClaimEnd, order: FinalizeOrder) -> Closing:
        return Closing(claim, reason, order, f"job_{self._ports.ids.token(8)}", self._ports.clock.now_ms())

    async def write(self, closing: Closing) -> Ended:
        """The end on record, or a refusal after which the claim stands."""
        try:
            return await self._written(closing)
        except StoreUnavailable as failure:
            raise Unavailable(
                "claim.finalize_failed",
                f"The claim could not be finalized and stays yours: {failure.message}",
                stage="dispatch",
                retry_after_ms=AGAIN_MS,
                details={"taskId": closing.claim.task_id, "targetId": closing.claim.target_id},
            ) from failure

    async def _written(self, closing: Closing) -> Ended:
        if self._db is None:
            return Ended(conclude(closing.context, closing.order, NOTHING_LEARNED, closing.job_id))
        return await self._db.write(self._closed, closing)

    def _closed(self, conn: Connection, closing: Closing) -> Ended:
        """Learn Mode holds back a release, and nothing else: an end nobody asked for only says what was missing."""
        task_id = closing.claim.task_id
        coverage = self._learn.coverage(conn, task_id)
        met = coverage is None or coverage.floors_met
        if closing.reason == "released":
            require_coverage(coverage, closing)
        elif not met:
            closing = replace(closing, floors_met=False)

        def before_commit() -> None:
            self._learn.ended(conn, task_id, closing.at_ms, None if met else closing.order.coverage_reason)
            self._ports.faults.hit("claim.before_commit")

        return Ended(store.claim_closed(conn, closing, before_commit), coverage)

    async def last(self, owner: Owner, place: Place) -> EndedClaim | None:
        """How an owner's newest claim on a place ended."""
        if self._db is None:
            return None
        return await self._db.read(store.last_ended, owner, (place.target_id, place.sandbox_id))


def require_coverage(coverage: Coverage | None, closing: Closing) -> None:
    """Refuses to let a claim go before Learn Mode has come far enough, or its owner says why it can't."""
    match judge_coverage(coverage, closing.order):
        case "reason_required":
            raise InvalidParams("learn.coverage_reason_required")
        case "not_met" if coverage is not None:
            raise CoverageNotMet(
                "learn.coverage_not_met",
                f"Learn Mode has not covered what it asked for, so the claim stays: {_missing(coverage)}.",
                stage="precondition",
                details={
                    "taskId": closing.claim.task_id,
                    "releaseState": "blocked",
                    "required": dict(coverage.required),
                    "current": dict(coverage.current),
                },
            )


def _missing(coverage: Coverage) -> str:
    found = ((name, coverage.current.get(name, 0), floor) for name, floor in coverage.required.items())
    return ", ".join(f"{name} {now} of {floor}" for name, now, floor in found if now < floor)
