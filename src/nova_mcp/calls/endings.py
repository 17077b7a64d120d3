"""How a call can end, and what the ledger says about each way; pure."""

from dataclasses import dataclass

from nova_mcp.calls.admission.gates import Notice
from nova_mcp.errors import Internal, InvalidParams, NovaError, Unavailable
from nova_mcp.evidence.model import CallOutcome, OutcomeKind
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import Evidence
from nova_mcp.tools.spec import Result


@dataclass(frozen=True, slots=True)
class Done:
    """The tool answered."""

    result: Result
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The call ended in an error, before, in or after the tool; `gate_id` when a gate decided."""

    error: NovaError
    gate_id: str | None = None


Ending = Done | Failed

CANCELLED_REASON = "call.cancelled"
STORE_REASON = "store.unavailable"


def outcome_of(ending: Ending, evidence: Evidence) -> CallOutcome:
    match ending:
        case Done(result):
            kind: OutcomeKind = "ok" if result.status == "ok" else "partial" if result.status == "partial" else "failed"
            return _outcome(kind, evidence, reason_code=result.reason_code)
        case Failed(error, gate_id):
            kind = _kind(error, gate_id, dispatched=bool(evidence.action_dispatched))
            return _outcome(kind, evidence, error.error_code, error.reason_code, gate_id)


def is_refusal(ending: Ending) -> bool:
    """Whether Nova said no, for whatever reason, rather than the page."""
    match ending:
        case Done(result):
            return result.status == "blocked"
        case Failed(error):
            return error.status == "blocked"


def committed(evidence: Evidence, reason_code: str | None = None) -> CallOutcome:
    """A call that its tool commits went well, whatever reason its answer may give for writing nothing."""
    return _outcome("ok", evidence, reason_code=reason_code)


def cancelled(evidence: Evidence) -> CallOutcome:
    return _outcome("cancelled", evidence, reason_code=CANCELLED_REASON)


def ended_for(why: NovaError) -> Failed:
    """A call that was ended from our side, for a reason of ours."""
    return Failed(why, why.reason_code if why.reason_code == "safety.emergency_stop" else None)


def unknown_tool() -> CallOutcome:
    return CallOutcome("invalid", InvalidParams.error_code, "unknown_tool")


def _outcome(
    kind: OutcomeKind,
    evidence: Evidence,
    error_code: int | None = None,
    reason_code: str | None = None,
    gate_id: str | None = None,
) -> CallOutcome:
    return CallOutcome(kind, error_code, reason_code, gate_id, evidence.action_dispatched, evidence.verification)


def _kind(error: NovaError, gate_id: str | None, *, dispatched: bool) -> OutcomeKind:
    if gate_id is not None and not dispatched:
        return "blocked_preflight"
    if isinstance(error, InvalidParams):
        return "invalid"
    return "crashed" if isinstance(error, Internal) else "failed"


def defect(call_id: str) -> NovaError:
    return Internal(
        "internal",
        hint=f"The server's log has the details under call {call_id}.",
        stage="dispatch",
    )


class AnswerLost(Internal):
    """The call was carried out, so a repeat may do it twice."""

    untouched_advice = "check_postcondition_first"


class CommitUnclear(Unavailable):
    """The store went away while a call was committed, so a repeat may do it twice."""

    untouched_advice = "check_postcondition_first"


def answer_lost(call_id: str) -> NovaError:
    """The call was committed, and then broke or was cut off before its answer was made."""
    return AnswerLost(
        "internal",
        "The call was carried out and recorded, but its answer could not be made.",
        f"Read what it changed before repeating it. The server's log has the details under call {call_id}.",
        stage="done",
    )


def overdue(budget_ms: int) -> NovaError:
    return Unavailable(
        "call.deadline",
        f"The call did not end within {budget_ms} ms.",
        stage="observe",
        retry_after_ms=1_000,
    )


def not_done(failure: StoreUnavailable) -> NovaError:
    """A call that was refused before it did anything, because no record could be written of it."""
    return Unavailable(
        STORE_REASON,
        f"Nothing was done, because it could not be recorded: {failure.message}.",
        f"{failure.hint}. Tools that only read still work; their answers say that they were not recorded.",
        stage="gate",
        retry_after_ms=1_000,
        action_dispatched=False,
    )


def commit_failed(failure: StoreUnavailable) -> NovaError:
    """The store did not take what a tool committed; one that went away may have taken it all the same."""
    if failure.reason != "down":
        return store_failed(failure)
    return CommitUnclear(
        STORE_REASON,
        f"The store went away while this was written, so it may or may not be done: {failure.message}",
        f"Look whether it is there before repeating it. {failure.hint}",
        stage="dispatch",
        retry_after_ms=1_000,
    )


def store_failed(failure: StoreUnavailable) -> NovaError:
    return Unavailable(
        STORE_REASON,
        f"The evidence store can't be used: {failure.message}",
        failure.hint,
        stage="dispatch",
        retry_after_ms=1_000,
    )
