"""The nouns of closed-loop acting: assertions, contracts, facts, readings and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from nova_mcp.core.values import Json
from nova_mcp.errors import RetryAdvice

Operator = Literal["eq", "not_eq", "neq", "exists", "not_exists", "contains", "gt", "lt", "gte", "lte"]
ActionKind = Literal["dismiss_overlay", "send_message", "submit_form", "select_option", "custom"]
RetryPolicy = Literal["idempotent", "non_idempotent", "no_retry"]
AmbiguityPolicy = Literal["signal", "retry_once", "abort"]
TraceError = Literal["fact_not_found", "stale_fact", "fact_unreadable", "frame_mismatch", "type_mismatch"]
SetVerdict = Literal["satisfied", "failed", "unknown"]
DispatchStatus = Literal["dispatched", "blocked_precondition", "blocked_goal", "blocked_coordinator"]
VerificationStatus = Literal["verified_success", "verified_fail", "indeterminate", "skipped", "pending"]
IndeterminateReason = Literal[
    "no_signal_yet", "ambiguous_signal", "page_navigated", "frame_destroyed", "timeout", "eval_error"
]
Bucket = Literal["success", "forbidden", "ambiguous"]


class Omitted(Enum):
    """An expected value that was left out is not the same as one that is null."""

    OMITTED = "omitted"


OMITTED: Final = Omitted.OMITTED


@dataclass(frozen=True, slots=True)
class FactAddress:
    """Which fact, and in which frame; None is the frame the action happens in."""

    key: str
    frame_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assertion:
    """One machine-checkable condition."""

    fact_key: str
    operator: Operator
    expected: "Json | Omitted" = OMITTED
    frame_id: str | None = None

    @property
    def address(self) -> FactAddress:
        return FactAddress(self.fact_key, self.frame_id)


@dataclass(frozen=True, slots=True)
class AssertionSet:
    """Up to three lists; what is given must hold together.

    `also` and `either` come from joining contracts and never from a caller: every set of `also` must hold as well, and
    at least one of `either`.
    """

    all: tuple[Assertion, ...] = ()
    any: tuple[Assertion, ...] = ()
    forbidden: tuple[Assertion, ...] = ()
    also: "tuple[AssertionSet, ...]" = ()
    either: "tuple[AssertionSet, ...]" = ()

    @property
    def members(self) -> tuple[Assertion, ...]:
        nested = (member for joined in (*self.also, *self.either) for member in joined.members)
        return (*self.all, *self.any, *self.forbidden, *nested)

    def __bool__(self) -> bool:
        return bool(self.members)


@dataclass(frozen=True, slots=True)
class Contract:
    """What must hold before one action, and what its outcome looks like afterwards.

    `window_ms` and `hold_ms` are None where the action kind's own defaults apply. `fresh_only` is set by Nova's own
    macros: a success that already stood before the action counts for nothing there. `likely` is theirs as well: what
    makes an outcome without any proof likely; it never makes a success.
    """

    action_kind: ActionKind = "custom"
    preconditions: AssertionSet = AssertionSet()
    success: AssertionSet = AssertionSet()
    forbidden: AssertionSet = AssertionSet()
    ambiguous: AssertionSet = AssertionSet()
    retry_policy: RetryPolicy = "non_idempotent"
    # Whether the caller said so itself; a default says nothing about the control.
    retry_policy_given: bool = False
    ambiguity_policy: AmbiguityPolicy = "signal"
    window_ms: int | None = None
    hold_ms: int | None = None
    fresh_only: bool = False
    likely: AssertionSet = AssertionSet()

    @property
    def has_outcome(self) -> bool:
        """A contract without any outcome to look for proves nothing and counts as missing."""
        return bool(self.success or self.forbidden or self.ambiguous)

    @property
    def outcome_members(self) -> tuple[Assertion, ...]:
        buckets = (self.success, self.forbidden, self.ambiguous, self.likely)
        return tuple(member for bucket in buckets for member in bucket.members)


@dataclass(frozen=True, slots=True)
class Seen:
    """A fact that could be read. `stamp` tells one instance from the next: another alert, another row, same value."""

    value: Json
    stamp: str = ""
    # For a value that never leaves the page: which of the expected values it was compared with there are the same.
    masked: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A fact that could not be read; it is unknown, never false."""

    error: TraceError


Fact: TypeAlias = Seen | Unseen
Reading: TypeAlias = Mapping[FactAddress, Fact]


@dataclass(frozen=True, slots=True)
class Trace:
    """What one assertion came to, as an answer shows it."""

    fact_key: str
    op: Operator
    expected: "Json | Omitted"
    observed: Json
    passed: bool | None
    error: TraceError | None = None


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that began after dispatch and may be the action's doing.

    `reports` is false for those whose answer nobody will ever see. `leads` marks the load of the page's own document:
    it changes nothing by itself, but an error there is what the action led to.
    """

    method: str
    url: str
    status: int | None = None
    failed: bool = False
    reports: bool = True
    leads: bool = False

    @property
    def mutating(self) -> bool:
        return self.method.upper() not in ("GET", "HEAD", "OPTIONS")

    @property
    def pending(self) -> bool:
        return self.status is None and not self.failed


Loss = Literal["page_navigated", "frame_destroyed", "eval_error"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything known at one moment after dispatch.

    `document` counts documents of the main frame; `changed` says that the effect observer or the host saw the action
    do something. `lost` says why facts can't be read any more; a sample with a loss carries no new reading.
    """

    at_ms: float
    reading: Reading
    document: int
    requests: tuple[SentRequest, ...] = ()
    changed: bool = False
    lost: Loss | None = None
    # The address differs from the one before the action by its anchor alone, which any script and any link can set.
    anchor_only: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What was seen when nothing decided: for the agent to look further."""

    readable: int = 0
    unreadable: int = 0
    changed: bool = False
    pending_requests: tuple[str, ...] = ()
    lost_requests: tuple[str, ...] = ()
    success: SetVerdict | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of one observation."""

    status: Literal["verified_success", "verified_fail", "indeterminate"]
    reason: IndeterminateReason | None = None
    outcome_verdict: SetVerdict | None = None
    failed_assertions: tuple[Trace, ...] = ()
    diagnostics: Diagnostics = Diagnostics()
    # A mutating request of the action went out and no answer will come: the server may have done it.
    lost_request: bool = False
    # A mutating request of the action went out at all: whatever the control looked like, it committed something.
    mutated: bool = False
    # Not decided, but what little was seen speaks for success.
    likely: bool = False


@dataclass(frozen=True, slots=True)
class GuardedCommit:
    """What closed-loop acting did for one action, as every answer reports it."""

    transition_id: str
    dispatch_status: DispatchStatus
    verification_status: VerificationStatus
    retry_advice: RetryAdvice
    indeterminate_reason: IndeterminateReason | None = None
    precondition_verdict: SetVerdict | None = None
    outcome_verdict: SetVerdict | None = None
    failed_assertions: tuple[Trace, ...] = ()
    started_at: int = 0
    completed_at: int = 0
    resolved_from: str | None = None
    diagnostics: Diagnostics | None = None

    @property
    def duration_ms(self) -> int:
        return max(0, self.completed_at - self.started_at)


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """What makes two commits the same one: who, where, which control, and what was filled in."""

    principal: str
    origin: str
    control: str
    fields: str
    intent_key: str | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The last dispatch of an identity, as the store knows it."""

    transition_id: str
    state: Literal["in_flight", "verified_success", "verified_fail", "indeterminate"]
    completed_at_ms: int
    contract: Contract
    lost_request: bool = False
    mutated: bool = False
    # By another server than the one that is asked now; whoever asks may never have had its answer.
    elsewhere: bool = False
