"""What an action answers: what reached the page, what was seen, and how sure Nova is."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from nova_mcp.browser.act.action import Acted
from nova_mcp.browser.act.locate import Prepared
from nova_mcp.browser.blockers.rules import closing_proves
from nova_mcp.browser.observe.effects import MAX_REQUESTS, Observation
from nova_mcp.browser.observe.host_window import DialogSeen, DownloadSeen, HostWindow
from nova_mcp.browser.perceive.rules import (
    DispatchProof,
    channels_of,
    differs_by_anchor,
    effect_word,
    observed,
    same_destination,
)
from nova_mcp.errors import RetryAdvice, Stage
from nova_mcp.evidence.model import LearningLabel
from nova_mcp.verification.model import GuardedCommit
from nova_mcp.verification.outcome import (
    Dispatch,
    Outcome,
    Verdict,
    VerifyState,
    already_done,
    already_set,
    judge_outcome,
)

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

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
    commit: GuardedCommit | None = None

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
    # The anchor of an address changes with any press on such a link, whatever the page makes of it.
    if differs_by_anchor(prepared.url, navigation.url):
        return "none"
    return "none" if (navigation.http_status or 0) >= 400 else "readback_match"


def _layer_verdict(acted: Acted) -> Verdict | None:
    """A layer that is gone is proof of the press that sent it away, unless something speaks against it."""
    layer, observation = acted.prepared.layer, acted.observation
    if not acted.layer_gone or layer is None or observation is None:
        return None
    if effect_word(observation.signs) in ("pending", "error_signal"):
        return None
    return "readback_match" if closing_proves(layer.kind, layer.label) else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the caller of the report already knows: a read-back, a contract's verdict, that nothing was to be done."""

    verdict: Verdict | None = None
    repeat_safe: bool = False
    differs_reason: str | None = None
    already_set: bool = False
    commit: GuardedCommit | None = None


def _dispatch(proof: DispatchProof) -> Dispatch:
    match proof:
        case "none":
            return "not_dispatched"
        case "assumed":
            return "assumed"
        case "event" | "host":
            return "dispatched"


def _verdict(acted: Acted, known: Judgement, navigation: Navigation | None) -> Verdict:
    # A value that is not there refutes everything a contract may have seen beside it.
    if known.verdict == "readback_differs":
        return "readback_differs"
    if acted.verdict is not None:
        return "likely" if acted.verdict.likely else acted.verdict.status
    return known.verdict or _layer_verdict(acted) or _link_verdict(acted.prepared, navigation)


def _judged(acted: Acted, observation: Observation, known: Judgement) -> tuple[Outcome, ReportStatus, str | None]:
    """The outcome, and what the events around it make of its status and reason."""
    window, since = acted.window, observation.since
    navigation = navigation_of(window, since.navigations)
    dispatch = _dispatch(observation.dispatch_proof)
    verdict = _verdict(acted, known, navigation)
    outcome = judge_outcome(dispatch, effect_word(observation.signs), verdict, known.repeat_safe)
    if acted.verdict is not None and known.commit is not None:
        outcome = replace(outcome, retry_advice=known.commit.retry_advice)
    status, reason = outcome.status, outcome.reason_code
    if verdict == "readback_differs" and reason is None:
        reason = known.differs_reason
    if verdict in ("indeterminate", "likely") and acted.verdict is not None:
        reason = f"guarded_commit.{acted.verdict.reason}"
    if dispatch == "not_dispatched" or status not in ("ok", "partial"):
        return outcome, status, reason
    if window.policy_denied is not None:
        return outcome, "partial", window.policy_denied.reason_code
    # What a contract has proven stands, whatever the page asked on the way.
    if verdict == "verified_success":
        return outcome, status, reason
    if any(d.type == "confirm" and d.answer == "dismissed" for d in window.dialogs[since.dialogs :]):
        return outcome, "partial", "dialog.confirm_dismissed"
    if acted.waited_for_navigation and navigation is None:
        return outcome, "partial", "navigation.not_started"
    return outcome, status, reason


def build_report(acted: Acted, tab: "Tab", known: Judgement) -> ActionReport:
    """Put the parts together."""
    prepared, window, observation = acted.prepared, acted.window, acted.observation
    report = ActionReport(
        status="ok",
        reason_code=None,
        stage="done",
        action_dispatched=False,
        dispatch_proof="none",
        effect=Effect(observed=False),
        verify_state="verified",
        retry_advice="do_not_retry",
        learning_label="none",
        element=prepared.line,
        ref=prepared.ref,
        selector=prepared.selector,
        fingerprint_id=prepared.fingerprint,
        rev=tab.rev,
        url=tab.url,
        ref_rebound=prepared.rebound,
        ref_drift=prepared.drift,
        dialogs=tuple(window.dialogs),
        new_tab_ids=tuple(window.new_tabs),
        popups_closed=window.popups_closed,
        downloads=tuple(window.downloads),
        commit=acted.already_done or known.commit,
    )
    if observation is None:
        outcome = already_done() if acted.already_done is not None else already_set(known.repeat_safe)
        return replace(report, reason_code=outcome.reason_code, retry_advice=outcome.retry_advice)
    outcome, status, reason = _judged(acted, observation, known)
    dispatched = observation.dispatch_proof != "none"
    return replace(
        report,
        status=status,
        reason_code=reason,
        stage="dispatch" if not dispatched else "done" if status == "ok" else "verify",
        action_dispatched=dispatched,
        dispatch_proof=observation.dispatch_proof,
        effect=_effect(observation),
        verify_state=outcome.verify_state,
        retry_advice=outcome.retry_advice,
        learning_label=outcome.learning_label,
        navigation=navigation_of(window, observation.since.navigations),
    )
