"""What a sequence makes of the answer of each of its steps; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from nova_mcp.core.values import Json
from nova_mcp.errors import RetryAdvice, Stage, Status
from nova_mcp.tools.context import StepAnswer
from nova_mcp.tools.results import VerifyState

OnError = Literal["abort", "continue", "retry"]
Move = Literal["next", "again", "stop"]

_COMMIT_REASONS: Final = "guarded_commit."
# Nothing a later step could do any better: the operator or the server has ended the work.
_FINAL: Final = frozenset({"safety.emergency_stop", "server.shutting_down"})
_STRENGTH: Final[Mapping[str, int]] = {"failed": 0, "uncertain": 1, "likely": 2, "verified": 3}


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step as the sequence judges it."""

    status: Status
    reason_code: str | None
    verify_state: VerifyState | None
    dispatched: bool
    # A commit whose success was not verified: nothing may be built on it.
    unsettled: bool
    recorded: bool
    stage: Stage
    retryable: bool
    advice: RetryAdvice

    @property
    def passed(self) -> bool:
        return self.status == "ok" and not self.unsettled and self.recorded


def judged(answer: StepAnswer, *, watched: bool) -> StepOutcome:
    """The outcome of a step; `watched` when the call named what should come of it."""
    told = answer.structured
    status = cast(Status, told.get("status", "ok" if told.get("ok", True) else "failed"))
    reason = told.get("reasonCode")
    advice: RetryAdvice = "check_postcondition_first" if answer.dispatched else "safe_to_retry"
    return StepOutcome(
        status=status,
        reason_code=reason if isinstance(reason, str) else None,
        verify_state=cast(VerifyState | None, told.get("verifyState")),
        dispatched=answer.dispatched,
        unsettled=_unsettled(told, status, watched=watched),
        recorded=told.get("evidenceRecorded") is not False,
        stage=cast(Stage, told.get("stage", "done")),
        retryable=told.get("retryable") is True,
        advice=cast(RetryAdvice, told.get("retryAdvice", advice)),
    )


def _unsettled(told: Mapping[str, Json], status: Status, *, watched: bool) -> bool:
    commit = told.get("guardedCommit")
    if isinstance(commit, Mapping):
        # A contract of preconditions alone promises no outcome, so an action that went well has kept it.
        kept = "skipped" if status == "ok" else "verified_success"
        return commit.get("verificationStatus") not in ("verified_success", kept)
    return status != "ok" and (watched or str(told.get("reasonCode") or "").startswith(_COMMIT_REASONS))


def next_move(outcome: StepOutcome, on_error: OnError, *, tried_again: bool) -> Move:
    """Whether to go on, try once more what touched nothing, or stop."""
    if outcome.passed:
        return "next"
    if outcome.reason_code in _FINAL or not outcome.recorded:
        return "stop"
    if on_error == "retry" and not tried_again and not outcome.dispatched:
        return "again"
    return "next" if on_error == "continue" and not outcome.unsettled else "stop"


@dataclass(frozen=True, slots=True)
class Overall:
    """The sequence as one action."""

    status: Status
    verify_state: VerifyState
    retry_advice: RetryAdvice


def overall(outcomes: Sequence[StepOutcome], total: int) -> Overall:
    """`ok` only when every step was; an error only while nothing at all has happened."""
    complete = len(outcomes) == total and all(one.passed for one in outcomes)
    touched = any(one.dispatched for one in outcomes)
    if complete:
        return Overall("ok", weakest(outcomes, "verified"), "do_not_retry" if touched else "safe_to_retry")
    problem = next((one for one in outcomes if not one.passed), None)
    happened = touched or any(one.status in ("ok", "partial") for one in outcomes)
    status: Status = "partial" if happened else problem.status if problem is not None else "failed"
    advice: RetryAdvice = (
        "check_postcondition_first" if touched else problem.advice if problem is not None else "safe_to_retry"
    )
    return Overall(status, weakest(outcomes, "failed" if problem is not None else "uncertain"), advice)


def weakest(outcomes: Sequence[StepOutcome], at_best: VerifyState) -> VerifyState:
    """A chain is as sure as its least sure link."""
    states = [one.verify_state for one in outcomes if one.verify_state is not None]
    return min([*states, at_best], key=lambda state: _STRENGTH[state])
