"""A guarded dispatch as values: what is about to be sent, what is stored of it, and how it ended."""

from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.verification.model import OMITTED, Contract, Earlier, Omitted, VerificationStatus
from nova_mcp.verification.receipts import Receipt

TransitionState = Literal["open", "verified_success", "verified_fail", "indeterminate", "not_dispatched"]
SettledState = Literal["verified_success", "verified_fail", "indeterminate", "not_dispatched"]
ResolvedState = Literal["verified_success", "verified_fail"]
PROOF: Final[dict[TransitionState, VerificationStatus]] = {
    "open": "pending",
    "verified_success": "verified_success",
    "verified_fail": "verified_fail",
    "indeterminate": "indeterminate",
    "not_dispatched": "skipped",
}


@dataclass(frozen=True, slots=True)
class NewTransition:
    """A guarded act that is about to be dispatched; its id is the call id of its intent record.

    `identity` is None unless the act is a commit. `follows` is the earlier dispatch of that identity, None for none,
    on which the decision to send was made: if another one has come since, nothing may be sent.
    """

    transition_id: str
    caller: Caller
    call_id: str
    tool_name: str
    target_id: str | None
    origin: str
    contract: Contract
    started_at_ms: int
    element: str = ""
    identity: str | None = None
    # Whether no other dispatch of the identity may be under way at the same time.
    exclusive: bool = True
    intent_key: str | None = None
    goal_id: str | None = None
    step_no: int | None = None
    follows: str | Omitted | None = OMITTED


@dataclass(frozen=True, slots=True)
class StoredTransition:
    """A transition as it stands."""

    transition_id: str
    caller: Caller
    call_id: str
    tool_name: str
    target_id: str | None
    origin: str
    identity: str | None
    intent_key: str | None
    contract: Contract
    goal_id: str | None
    step_no: int | None
    element: str
    started_at_ms: int
    state: TransitionState
    reason: str | None
    lost_request: bool
    mutated: bool
    completed_at_ms: int | None
    resolved_by: str | None
    receipt: Receipt | None

    def as_earlier(self, here: ServerId | None = None) -> Earlier:
        """As the rules about repeating see it; `here` is the server that asks."""
        if self.state == "not_dispatched":
            raise ValueError("what sent nothing is no earlier dispatch")
        return Earlier(
            transition_id=self.transition_id,
            state="in_flight" if self.state == "open" else self.state,
            completed_at_ms=self.started_at_ms if self.completed_at_ms is None else self.completed_at_ms,
            contract=self.contract,
            lost_request=self.lost_request,
            mutated=self.mutated,
            elsewhere=here is not None and self.caller.server_id != here,
        )

    def as_receipt(self) -> Receipt:
        """The receipt, or what the transition itself can tell when nobody lived to write one."""
        if self.receipt is not None:
            return self.receipt
        return Receipt(
            transition_id=self.transition_id,
            tool=self.tool_name,
            element=self.element,
            url_before=self.origin,
            verdict=PROOF[self.state],
            reason=self.reason,
            started_at_ms=self.started_at_ms,
            completed_at_ms=self.completed_at_ms,
        )


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a transition ended."""

    state: SettledState
    reason: str | None = None
    lost_request: bool = False
    mutated: bool = False
    completed_at_ms: int = 0
    receipt: Receipt | None = None
