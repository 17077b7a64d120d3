"""Why a guarded action was not sent, in words and with the commit as the answer reports it; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.errors import Killed, NovaError, Repeated, Stopped, Unavailable
from nova_mcp.verification.model import DispatchStatus, Earlier, GuardedCommit, Trace
from nova_mcp.verification.request import Unreadable
from nova_mcp.verification.wire import commit_json

BUSY_AGAIN_MS: Final = 1000


def precondition(commit: GuardedCommit, traces: tuple[Trace, ...]) -> NovaError:
    """The page is not as the action needs it, or nobody can tell; either way nothing is sent."""
    commit = replace(commit, dispatch_status="blocked_precondition", failed_assertions=traces)
    if commit.precondition_verdict == "failed":
        return _stopped(
            commit,
            "precondition_failed",
            "The page is not in the state that this action needs.",
            "failedAssertions says what is missing; put that right, then call again.",
        )
    return _stopped(
        commit,
        "precondition_error",
        "Whether the page is in the state that this action needs can't be told.",
        "failedAssertions says what could not be read; use a simpler condition or look at the page again.",
    )


def not_evaluable(commit: GuardedCommit, unreadable: Sequence[Unreadable], *, before: bool) -> NovaError:
    """A contract that can never be judged: what it would let through could not be told from a failure afterwards."""
    commit = replace(commit, dispatch_status="blocked_precondition")
    named = "; ".join(f'"{one.fact_key[:120]}" {one.why}' for one in unreadable[:3])
    return _stopped(
        commit,
        "precondition_error" if before else "eval_error",
        f"Nothing was sent: the contract can't be evaluated. {named}.",
        "Correct that part of the contract, then call again.",
    )


def _stopped(commit: GuardedCommit, reason: str, message: str, hint: str) -> NovaError:
    commit = replace(commit, retry_advice=Stopped.untouched_advice)
    details = {"guardedCommit": commit_json(commit)}
    return Stopped(f"guarded_commit.{reason}", message, hint, stage="precondition", details=details)


def not_the_goals_turn(commit: GuardedCommit, words: tuple[str, str]) -> NovaError:
    """The goal that is active on the target does not let this act run now."""
    return _repeated(commit, "dispatch_prepare_rejected", words)


def nothing_to_retry(commit: GuardedCommit, retry_of: str) -> NovaError:
    words = (f"There is no transition {retry_of} to retry.", "Use the transitionId of the earlier answer.")
    return _repeated(commit, "dispatch_prepare_rejected", words)


def suspected(commit: GuardedCommit, earlier: Earlier) -> NovaError:
    """It may be the same commit a second time; the hint says how to mean it."""
    if earlier.state == "verified_success":
        words = (
            "This commit was just sent and worked.",
            "Look at the page; if it is really meant again, call with another intentKey.",
        )
    else:
        words = (
            "This commit was sent before and what became of it is not known.",
            f'Look at the page; if it was not done, call again with retryOf "{earlier.transition_id}".',
        )
    return _repeated(commit, "duplicate_suspected", words, {"earlierTransitionId": earlier.transition_id})


def _repeated(
    commit: GuardedCommit, reason: str, words: tuple[str, str], more: Mapping[str, Json] | None = None
) -> NovaError:
    status: DispatchStatus = "blocked_goal"
    commit = replace(commit, dispatch_status=status, retry_advice=Repeated.untouched_advice)
    details = {"guardedCommit": commit_json(commit), **(more or {})}
    return Repeated(f"guarded_commit.{reason}", *words, stage="guarded_commit_check", details=details)


def in_flight(commit: GuardedCommit) -> NovaError:
    """The same commit is being sent by another call right now."""
    return busy(
        "The same commit is being sent by another call.", replace(commit, dispatch_status="blocked_coordinator")
    )


def busy(message: str, commit: GuardedCommit) -> NovaError:
    return Unavailable(
        "guarded_commit.coordinator_busy",
        message,
        stage="guarded_commit_check",
        retry_after_ms=BUSY_AGAIN_MS,
        details={"guardedCommit": commit_json(commit)},
    )


def page_changed() -> NovaError:
    return Unavailable(
        "page.navigating",
        "The page was replaced while the action was being prepared.",
        "Look at the page again, then act on what is there.",
        stage="precondition",
        retry_after_ms=BUSY_AGAIN_MS,
    )


def killed(kill: Literal["global", "domain"], host: str | None) -> NovaError:
    where = "everywhere" if kill == "global" else f"on {host}"
    return Killed(
        f"guarded_commit.kill_switch_{kill}",
        f"The operator has switched commits off {where}.",
        "Only a person can lift it, with nova kill clear.",
        stage="gate",
    )
