"""What an action answers: what reached the page, what was seen, and how sure Nova is."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from nova_mcp.browser.effects import MAX_REQUESTS, Observation
from nova_mcp.browser.host_window import DialogSeen, DownloadSeen, HostWindow
from nova_mcp.browser.locate import Prepared
from nova_mcp.browser.rules import (
    DispatchProof,
    channels_of,
    effect_word,
    observed,
    same_destination,
)
from nova_mcp.errors import RetryAdvice, Stage
from nova_mcp.verification.outcome import Dispatch, LearningLabel, Verdict, VerifyState, judge_outcome

ReportStatus: TypeAlias = Literal["ok", "partial", "failed", "blocked"]


@dataclass(frozen=True, slots=True)
class EffectRequest:
    method: str
    path: str
    status: int | Literal["pending", "failed"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What changed, as far as anybody could see."""

    observed: bool | None
    channels: tuple[str, ...] = ()
    new_text: tuple[str, ...] = ()
    requests: tuple[EffectRequest, ...] = ()
    window_ms: int = 0


@dataclass(frozen=True, slots=True)
class Navigation:
    """The document an action led to."""

    url: str
    http_status: int | None
    same_document: bool


@dataclass(frozen=True, slots=True)
class Typed:
    """What became of text that was typed."""

    value_matches: bool
    actual_value: str
    method_used: Literal["fill", "keys"]
    typed_chars: int


@dataclass(frozen=True, slots=True)
class ActionReport:
    """The answer of an action, for the agent and for the ledger."""

    status: ReportStatus
    reason_code: str | None
    stage: Stage
    action_dispatched: bool
    dispatch_proof: DispatchProof
    effect: Effect
    verify_state: VerifyState
    retry_advice: RetryAdvice
    learning_label: LearningLabel
    element: str
    ref: str
    selector: str | None
    fingerprint_id: str
    rev: int
    url: str
    ref_rebound: bool = False
    ref_drift: Literal["name"] | None = None
    dialogs: tuple[DialogSeen, ...] = ()
    new_tab_ids: tuple[str, ...] = ()
    popups_closed: int = 0
    downloads: tuple[DownloadSeen, ...] = ()
    navigation: Navigation | None = None
    typed: Typed | None = None
    details: dict[str, str] = field(default_factory=dict)

    @property
    def retryable(self) -> bool:
        return self.status != "ok" and self.retry_advice == "safe_to_retry"


def navigation_of(window: HostWindow, after: int) -> Navigation | None:
    """The last move of the main frame inside the window."""
    moves = window.navigations[after:]
    if not moves:
        return None
    move = moves[-1]
    statuses = [
        r.status for r in window.requests if r.resource_type == "document" and same_destination(r.url, move.url)
    ]
    return Navigation(move.url, statuses[-1] if statuses else None, move.same_document)


def _effect(observation: Observation) -> Effect:
    signs = observation.signs
    # Those that can be the action's doing come first: an answer has room for five.
    ranked = sorted(signs.requests, key=lambda request: (not request.strong, not request.counts))
    requests = tuple(
        EffectRequest(r.method, r.path[:200], "failed" if r.failed else (r.status or "pending"))
        for r in ranked
        if r.counts
    )
    return Effect(
        observed(signs), channels_of(signs), signs.new_text[:3], requests[:MAX_REQUESTS], observation.window_ms
    )


def _link_verdict(prepared: Prepared, navigation: Navigation | None) -> Verdict:
    """A link that led to its address is proof by itself, unless the address answered with an error."""
    if navigation is None or prepared.href is None or not same_destination(prepared.href, navigation.url):
        return "none"
    return "none" if (navigation.http_status or 0) >= 400 else "readback_match"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the caller of the report already knows."""

    verdict: Verdict | None = None
    repeat_safe: bool = False
    differs_reason: str | None = None
    waited_for_navigation: bool = False


def _dispatch(proof: DispatchProof) -> Dispatch:
    match proof:
        case "none":
            return "not_dispatched"
        case "assumed":
            return "assumed"
        case "event" | "host":
            return "dispatched"


def build_report(
    prepared: Prepared, observation: Observation, window: HostWindow, page: tuple[int, str], known: Judgement
) -> ActionReport:
    """Put the parts together; `page` is the tab's revision and address now."""
    rev, url = page
    navigation = navigation_of(window, observation.since.navigations)
    dispatch = _dispatch(observation.dispatch_proof)
    verdict = known.verdict or _link_verdict(prepared, navigation)
    outcome = judge_outcome(dispatch, effect_word(observation.signs), verdict, known.repeat_safe)
    status, reason = outcome.status, outcome.reason_code
    if verdict == "readback_differs" and reason is None:
        reason = known.differs_reason
    if dispatch != "not_dispatched" and status in ("ok", "partial"):
        if window.policy_denied is not None:
            status, reason = "partial", window.policy_denied.reason_code
        elif any(d.type == "confirm" and d.answer == "dismissed" for d in window.dialogs[observation.since.dialogs :]):
            status, reason = "partial", "dialog.confirm_dismissed"
        elif known.waited_for_navigation and navigation is None:
            status, reason = "partial", "navigation.not_started"
    stage: Stage = "dispatch" if dispatch == "not_dispatched" else "done" if status == "ok" else "verify"
    return ActionReport(
        status=status,
        reason_code=reason,
        stage=stage,
        action_dispatched=dispatch != "not_dispatched",
        dispatch_proof=observation.dispatch_proof,
        effect=_effect(observation),
        verify_state=outcome.verify_state,
        retry_advice=outcome.retry_advice,
        learning_label=outcome.learning_label,
        element=prepared.line,
        ref=prepared.ref,
        selector=prepared.selector,
        fingerprint_id=prepared.fingerprint,
        rev=rev,
        url=url,
        ref_rebound=prepared.rebound,
        ref_drift=prepared.drift,
        dialogs=tuple(window.dialogs),
        new_tab_ids=tuple(window.new_tabs),
        popups_closed=window.popups_closed,
        downloads=tuple(window.downloads),
        navigation=navigation,
    )
