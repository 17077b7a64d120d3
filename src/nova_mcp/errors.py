"""Every failure Nova can answer with: reason code, number, one sentence and what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from nova_mcp.evidence.model import Json

Status = Literal["ok", "partial", "failed", "blocked", "not_found"]
Stage = Literal[
    "validate",
    "gate",
    "resolve",
    "actionability",
    "guarded_commit_check",
    "precondition",
    "dispatch",
    "observe",
    "verify",
    "done",
]
RetryAdvice = Literal["safe_to_retry", "do_not_retry", "check_postcondition_first"]


@dataclass(frozen=True, slots=True)
class Fix:
    """A call that would clear the way, ready to be sent."""

    tool: str
    args: Mapping[str, Json]


class NovaError(Exception):
    """A call that could not do what it was asked for; each family owns its number and its reasons."""

    error_code: ClassVar[int] = -32603
    status: ClassVar[Status] = "failed"
    reasons: ClassVar[frozenset[str]] = frozenset()
    untouched_advice: ClassVar[RetryAdvice] = "safe_to_retry"
    # The gate that speaks through this error, where a tool meets it while it runs.
    gate_id: ClassVar[str | None] = None

    def __init__(
        self,
        reason_code: str,
        message: str,
        hint: str = "",
        *,
        stage: Stage = "resolve",
        retry_after_ms: int | None = None,
        fix: Fix | None = None,
        details: Mapping[str, Json] | None = None,
        action_dispatched: bool | None = None,
    ) -> None:
        if reason_code not in self.reasons:
            raise ValueError(f"{reason_code} is not a reason of {type(self).__name__}")
        super().__init__(message)
        self.reason_code = reason_code
        self.message = message
        self.hint = hint
        self.stage = stage
        self.retry_after_ms = retry_after_ms
        self.fix = fix
        self.details: Mapping[str, Json] = details or {}
        # None leaves the question to the evidence of the call; False is proof that nothing arrived.
        self.action_dispatched = action_dispatched

    @property
    def retryable(self) -> bool:
        return self.retry_after_ms is not None

    def retry_advice(self, *, dispatched: bool) -> RetryAdvice:
        return "check_postcondition_first" if dispatched else self.untouched_advice

    def body(self, *, dispatched: bool) -> dict[str, Json]:
        """What every failed call answers, whoever has to answer it."""
        body: dict[str, Json] = {
            "ok": False,
            "status": self.status,
            "errorCode": self.error_code,
            "reasonCode": self.reason_code,
            "message": self.message,
            "hint": self.hint,
            "stage": self.stage,
            "retryable": self.retryable,
            "retryAdvice": self.retry_advice(dispatched=dispatched),
        }
        if self.retry_after_ms is not None:
            body["retryAfterMs"] = self.retry_after_ms
        return body


class InvalidParams(NovaError):
    """The arguments do not describe a call."""

    error_code = -32602
    untouched_advice = "do_not_retry"
    reasons = frozenset(
        {
            "invalid_params",
            "selector.invalid",
            "key.not_allowed",
            "tab.unknown",
            "sandbox.unknown",
            "conflicting_lookup",
            "ok.sensitive_value",
        }
        | {"unknown_bundle", "unknown_tool", "call.nested", "size_limit", "unknown_scan"}
        | {"claim.finalization_token_required", "learn.coverage_reason_required"}
        | {"pks.selector_too_broad", "pks.polarity_required", "pks.polarity_mismatch", "pks.outside_surface"}
        | {"pks.script_content", "pks.secret_like", "pks.scope_full", "pks.scope_mismatch", "signals_required"}
        | {"invalid_domain", "invalid_completion_condition", "expected_content_rev_required", "context_required"}
        | {"conflicting_arguments", "override_forbidden", "invalid_unit_source", "invalid_unit_locator"}
        | {"event_id_reused", "empty_update", "unknown_unit", "illegal_unit_transition", "reason_required"}
        | {"unknown_check", "note_required", "illegal_discovery_transition"}
        | {"invalid_domain", "notes.secret_like", "note_too_long", "host_mismatch", "no_target"}
        | {"notes.secret_like", "invalid_domain", "domain_required", "filter_required", "conflicting_arguments"}
        | {"unknown_bundle", "unknown_tool", "call.nested", "size_limit", "conflicting_alias"}
        | {"claim.finalization_token_required", "learn.coverage_reason_required"}
        | {"pks.selector_too_broad", "pks.polarity_required", "pks.polarity_mismatch", "pks.outside_surface"}
        | {"pks.script_content", "pks.secret_like", "pks.scope_full", "pks.scope_mismatch", "signals_required"}
        | {"invalid_domain", "notes.secret_like", "note_too_long", "host_mismatch", "no_target"}
        | {"domain_required", "filter_required"}
        | {"invalid_completion_condition", "expected_content_rev_required", "context_required"}
        | {"conflicting_arguments", "override_forbidden", "invalid_unit_source", "invalid_unit_locator"}
        | {"event_id_reused", "empty_update", "unknown_unit", "illegal_unit_transition", "reason_required"}
        | {"unknown_check", "note_required", "illegal_discovery_transition"}
    )

    def __init__(
        self, reason_code: str, message: str, hint: str = "", *, details: Mapping[str, Json] | None = None
    ) -> None:
        super().__init__(reason_code, message, hint, stage="validate", details=details)


class NotFound(NovaError):
    """What the call names is not there."""

    error_code = -32004
    status: ClassVar[Status] = "not_found"
    reasons = frozenset(
        {
            "tab.no_active_tab",
            "frame.unknown",
            "frame.detached",
            "selector.not_found",
            "ref.stale",
            "ref.stale_document",
        }
        | {"snapshot.expired", "screenshot.not_capturable", "secret.not_found", "goal.not_found"}
        | {"action.no_input_field", "action.no_send_control", "option.not_found"}
        | {"upload.not_found"}
        | {"scroll.container_not_found", "wait_for_selector.timeout"}
        | {"pks.scope_not_found", "pks.phenomenon_not_found", "learn.opportunity_not_found"}
        | {"task.profile_not_found", "task.instance_not_found", "task.guidance_not_found"}
        | {"domain_note.not_found"}
        | {"operator_notes.not_found"}
        | {"task.profile_not_found", "task.instance_not_found", "task.guidance_not_found"}
    )


class Missed(NotFound):
    """What was waited for did not come about in time, so the answer is `failed`."""

    status = "failed"


class Precondition(NovaError):
    """The page or the store is not in a state that allows the call."""

    error_code = -32003
    reasons = frozenset(
        {"tab.active_ambiguous", "selector.ambiguous", "ref.ambiguous", "ref.identity_changed", "action.obstructed"}
        | {"action.disabled", "action.unstable", "action.not_visible", "navigation.beforeunload_blocked"}
        | {"navigation.cannot_go_back", "navigation.cannot_go_forward", "reload.not_needed", "type.not_editable"}
        | {"read.source_changed", "loop.same_action", "tab.limit_reached", "sandbox.limit_reached"}
        | {"guarded_commit.precondition_failed", "guarded_commit.precondition_error", "guarded_commit.eval_error"}
        | {"guarded_commit.duplicate_suspected", "guarded_commit.dispatch_prepare_rejected"}
        | {"option.disabled", "option.not_applied", "upload.type_not_accepted", "upload.multiple_not_allowed"}
        | {"upload.not_file_input"}
        | {"search.regex_timeout", "wait_for_selector.still_changing", "scroll.not_scrollable"}
        | {"guarded_commit.postcondition_failed", "goal.terminal", "eval.script_threw"}
        | {"ok.no_service"}
        | {"pks.scope_not_open", "pks.drift_blocked", "pks.element_changed", "pks.playbook_timeout", "pks.alias_taken"}
        | {"domain_notes.full", "domain_note.not_delivered"}
        | {"browser_memory.full", "operator_notes.full"}
    )


class Stopped(Precondition):
    """The page itself holds the call back, so the answer is `blocked`, not `failed`."""

    status = "blocked"


class Repeated(Stopped):
    """Doing it again could do it twice, so the page has to be looked at first."""

    untouched_advice = "check_postcondition_first"


class Unavailable(NovaError):
    """A part Nova depends on is gone or busy."""

    error_code = -32002
    reasons = frozenset(
        {"browser.not_found", "browser.launch_failed", "browser.restart_limit", "sandbox.node_lost", "tab.crashed"}
        | {"tab.lost", "tab.busy", "cdp.renderer_stalled", "page.navigating", "dialog.storm", "navigation.failed"}
        | {"navigation.timeout", "call.deadline", "store.unavailable", "server.shutting_down"}
        | {"guarded_commit.coordinator_busy", "human.unavailable", "claim.finalize_failed"}
    )


class Blocked(NovaError):
    """A gate refused the call before it ran."""

    error_code = -32001
    status = "blocked"
    reasons = frozenset(
        {"safety.emergency_stop", "storage.low_free_space", "perceive.required", "agent.shared_id"}
        | {"bootstrap.required"}
        | {"blocking_overlay_active"}
        | {"guarded_commit.missing_contract"}
        | {"acknowledge_required"}
    )


class Unacknowledged(Blocked):
    """A note that has to be answered for first."""

    gate_id = "user.domain_note"


class CommitRefused(Blocked):
    """A control that commits, asked for without proof of what should come of it."""

    gate_id = "safety.guarded_commit"


class PolicyDenied(NovaError):
    """The operator's settings forbid it."""

    error_code = -32035
    status = "blocked"
    untouched_advice = "do_not_retry"
    reasons = frozenset(
        {
            "policy.host_denied",
            "policy.scheme_denied",
            "policy.private_network",
            "policy.file_denied",
            "policy.capability_missing",
            "feature.disabled",
            "secret.host_mismatch",
            "secret.insecure_origin",
            "upload.path_not_allowed",
            "blockers.needs_human",
            "blockers.repeat_suppressed",
            "pks.builtin_platform",
        }
        | {"browser_memory.disabled", "browser_memory.domain_excluded", "notes.user_owned"}
    )


class Killed(PolicyDenied):
    """The operator has switched commits, or applying what was learned, off: everywhere or on this site."""

    gate_id = "safety.kill_switch"
    reasons = frozenset({"guarded_commit.kill_switch_global", "guarded_commit.kill_switch_domain", "pks.kill_switch"})


class CapabilityMissing(PolicyDenied):
    """The operator demands something of a service that no current fact shows."""

    gate_id = "policy.capability"
    reasons = frozenset({"policy.capability_missing"})


class ClaimMismatch(NovaError):
    """Somebody else is working on that tab."""

    error_code = -32040
    status = "blocked"
    reasons = frozenset({"claim.owner_mismatch", "claim.finalization_token_mismatch", "lcj.context_missing"})


class ClaimHeld(ClaimMismatch):
    """A call that would change what another agent holds."""

    gate_id = "claim.owner"


class CoverageNotMet(NovaError):
    """Learn Mode keeps its work context until what it asked for is done."""

    error_code = -32041
    status = "blocked"
    reasons = frozenset({"learn.coverage_not_met"})


class TooManyClaims(NovaError):
    """One owner holds as many claims as it may."""

    error_code = -32044
    reasons = frozenset({"claim.too_many"})


class BudgetExhausted(NovaError):
    """A rate or a budget is spent."""

    error_code = -32029
    status = "blocked"
    reasons = frozenset({"budget.exhausted", "rate.limited"})


class Internal(NovaError):
    """A defect of Nova; the log holds the details under the call id."""

    error_code = -32603
    reasons = frozenset({"internal"})


class UnknownTool(Exception):
    """No tool has that name; answered as a protocol error with near matches."""

    def __init__(self, name: str, closest: tuple[str, ...]) -> None:
        near = f" Did you mean {', '.join(closest)}?" if closest else ""
        super().__init__(f'Unknown tool "{name[:80]}".{near} nova.tools_bundle lists every tool.')
        self.name = name
        self.closest = closest


FAMILIES: tuple[type[NovaError], ...] = (
    InvalidParams,
    NotFound,
    Precondition,
    Unavailable,
    Blocked,
    PolicyDenied,
    ClaimMismatch,
    CoverageNotMet,
    TooManyClaims,
    BudgetExhausted,
    Internal,
)
