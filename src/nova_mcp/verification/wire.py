"""A guarded commit as answers carry it; the one place where its JSON shape is written."""

from nova_mcp.core.values import Json
from nova_mcp.verification.model import Diagnostics, GuardedCommit, Omitted, Trace


def commit_json(commit: GuardedCommit) -> dict[str, Json]:
    body: dict[str, Json] = {
        "transitionId": commit.transition_id,
        "dispatchStatus": commit.dispatch_status,
        "verificationStatus": commit.verification_status,
        "indeterminateReason": commit.indeterminate_reason,
        "retryAdvice": commit.retry_advice,
        "preconditionVerdict": commit.precondition_verdict,
        "outcomeVerdict": commit.outcome_verdict,
        "startedAt": commit.started_at,
        "completedAt": commit.completed_at,
        "durationMs": commit.duration_ms,
    }
    if commit.failed_assertions:
        body["failedAssertions"] = [_trace(trace) for trace in commit.failed_assertions]
    if commit.resolved_from is not None:
        body["resolvedFrom"] = commit.resolved_from
    if commit.diagnostics is not None:
        body["postconditionDiagnostics"] = _diagnostics(commit.diagnostics)
    return body


def _trace(trace: Trace) -> dict[str, Json]:
    return {
        "factKey": trace.fact_key,
        "op": trace.op,
        "expected": None if isinstance(trace.expected, Omitted) else trace.expected,
        "observed": trace.observed,
        "passed": trace.passed,
        "error": trace.error,
    }


def _diagnostics(seen: Diagnostics) -> dict[str, Json]:
    return {
        "readable": seen.readable,
        "unreadable": seen.unreadable,
        "changed": seen.changed,
        "pendingRequests": list(seen.pending_requests),
        "lostRequests": list(seen.lost_requests),
        "success": seen.success,
    }
