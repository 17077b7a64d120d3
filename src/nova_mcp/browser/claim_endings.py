"""How claims end: what is decided about their learning, written at once or as soon as the store allows."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nova_mcp.browser import claim_store
from nova_mcp.browser.claim_store import ClaimEnd, Closing, EndedClaim, context_of
from nova_mcp.browser.claims import Claim, Owner, Place
from nova_mcp.clock import Ports
from nova_mcp.errors import CoverageNotMet, InvalidParams, Unavailable
from nova_mcp.journal.model import Conclusion, Coverage, FinalizeOrder, WorkContext
from nova_mcp.journal.rules import NOTHING_LEARNED, conclude, judge_coverage
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

AGAIN_MS = 1_000

Learning = Callable[[WorkContext], Coverage | None]


def no_learn_mode(context: WorkContext) -> Coverage | None:
    return None


class ClaimEndings:
    """Ends that somebody asked for are written before they hold; those that happened wait here for the store."""

    def __init__(self, ports: Ports, db: Database | None, learning: Learning) -> None:
        self._ports = ports
        self._db = db
        self._learning = learning
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
                await self._db.write(claim_store.claims_expired, expired)
            for closing in closings:
                await self._written(closing)
        # Kept until written: a store that is away for a while must not make a claim's end unknown.
        self._expired = [claim for claim in self._expired if claim not in expired]
        self._closings = [closing for closing in self._closings if closing not in closings]

    # -- ends that were asked for

    def closing(self, claim: Claim, reason: ClaimEnd, order: FinalizeOrder) -> Closing:
        """What ends a claim; where nobody released it, nobody has answered for the floors of Learn Mode."""
        coverage = None if reason == "released" else self._learning(context_of(claim))
        closing = Closing(claim, reason, order, f"job_{self._ports.ids.token(8)}", self._ports.clock.now_ms())
        return closing if coverage is None or coverage.floors_met else replace(closing, floors_met=False)

    def require_coverage(self, claim: Claim, order: FinalizeOrder) -> Coverage | None:
        """How far Learn Mode came in a claim; refuses to let it go before that is far enough."""
        coverage = self._learning(context_of(claim))
        match judge_coverage(coverage, order):
            case "reason_required":
                raise InvalidParams(
                    "learn.coverage_reason_required",
                    "coverageExhausted needs coverageExhaustedReason while Learn Mode is unfinished.",
                    "Say in 20 to 500 characters why the rest can't be covered.",
                )
            case "not_met" if coverage is not None:
                raise CoverageNotMet(
                    "learn.coverage_not_met",
                    "Learn Mode has not covered what it asked for, so the claim stays.",
                    "Cover the rest, or release with coverageExhausted and a reason.",
                    stage="precondition",
                    details={
                        "taskId": claim.task_id,
                        "releaseState": "blocked",
                        "required": dict(coverage.required),
                        "current": dict(coverage.current),
                    },
                )
        return coverage

    async def write(self, closing: Closing) -> Conclusion:
        """The end on record, or a refusal after which the claim stands."""
        try:
            return await self._written(closing)
        except StoreUnavailable as failure:
            raise Unavailable(
                "claim.finalize_failed",
                f"The claim could not be finalized and stays yours: {failure.message}",
                "Release it again in a moment.",
                stage="dispatch",
                retry_after_ms=AGAIN_MS,
                details={"taskId": closing.claim.task_id, "targetId": closing.claim.target_id},
            ) from failure

    async def _written(self, closing: Closing) -> Conclusion:
        if self._db is None:
            return conclude(
                closing.context, closing.order, NOTHING_LEARNED, closing.job_id, floors_met=closing.floors_met
            )
        before_commit = partial(self._ports.faults.hit, "claim.before_commit")
        return await self._db.write(claim_store.claim_closed, closing, before_commit)

    async def last(self, owner: Owner, place: Place) -> EndedClaim | None:
        """How an owner's newest claim on a place ended."""
        if self._db is None:
            return None
        return await self._db.read(claim_store.last_ended, owner, (place.target_id, place.sandbox_id))
