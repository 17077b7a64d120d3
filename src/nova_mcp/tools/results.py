"""Answers of tools that act: what was touched, what was seen to happen, how sure that is."""

from typing import Literal

from pydantic import JsonValue

from nova_mcp.errors import RetryAdvice, Stage
from nova_mcp.tools.spec import PageResult, Part, maybe

VerifyState = Literal["verified", "likely", "uncertain", "failed"]
DispatchProof = Literal["event", "host", "assumed", "none"]


class RequestSeen(Part):
    method: str
    path: str
    status: int | None = maybe()
    pending: bool = maybe(default=False)


class EffectSeen(Part):
    observed: bool | None
    channels: list[str]
    new_text: list[str] = maybe([])
    requests: list[RequestSeen] = maybe([])
    window_ms: int = 0


class DialogSeen(Part):
    type: str
    message: str
    answer: str


class ActResult(PageResult):
    """Every acting answer says whether the page was touched and what came of it."""

    reason_code: str | None = None
    stage: Stage = "done"
    retryable: bool = False
    retry_advice: RetryAdvice = "do_not_retry"
    action_dispatched: bool
    dispatch_proof: DispatchProof
    effect: EffectSeen
    verify_state: VerifyState
    rev: int
    dialogs: list[DialogSeen] = maybe([])
    new_tab_ids: list[str] = maybe([])
    popups_closed: int = maybe(0)
    guarded_commit: dict[str, JsonValue] | None = maybe()
    # One line of proof; nova receipt shows the rest.
    receipt: str | None = maybe()
    # A verdict against the action is an error like any other: number, sentence, next step.
    error_code: int | None = maybe()
    message: str | None = maybe()
    hint: str | None = maybe()
