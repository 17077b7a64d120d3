"""What a playbook came to: what its verify steps prove, the evidence it leaves, the answer it gives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import Field

from nova_mcp.browser.act.action_report import ActionReport
from nova_mcp.core.keywords import some
from nova_mcp.core.values import Json
from nova_mcp.errors import Precondition
from nova_mcp.evidence.model import LearningLabel, Signals
from nova_mcp.memory.knowledge.apply_rules import Plan, Wish, all_proven, worked
from nova_mcp.memory.knowledge.drift import ALWAYS_THERE, GateDecision, gate
from nova_mcp.memory.knowledge.matching.fingerprints import Match
from nova_mcp.memory.knowledge.model import Phenomenon, PhenomenonType, PlaybookPolicy, Problem
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion.sightings import Sightings
from nova_mcp.tools.browse.combined_effect import DISPATCH_PROOFS, merged_effect
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.apply_steps import Running, StepResult
from nova_mcp.tools.knowledge.apply_verification import Truths
from nova_mcp.tools.results import ActResult, DialogSeen, EffectSeen, VerifyState
from nova_mcp.tools.spec import Part, maybe
from nova_mcp.verification.wire import commit_json

_SURENESS: Final[tuple[VerifyState, ...]] = ("failed", "uncertain", "likely", "verified")
_CLOSING: Final[frozenset[PlaybookPolicy]] = frozenset({"dismiss", "reject_preferred"})


class VerifyResult(Part):
    type: str
    passed: bool | None


class DriftGate(Part):
    debt: float
    decision: GateDecision


class ApplyResult(ActResult):
    phenomenon_id: str
    phenomenon_type: PhenomenonType
    policy: PlaybookPolicy | None
    steps_executed: int
    failed_step_index: int | None
    step_results: list[StepResult]
    verify_results: list[VerifyResult]
    drift_gate: DriftGate
    telemetry_reported: bool
    trial: bool = maybe(default=False)
    # What the transaction of the call's record tells; asked for when the answer is written, which is after it.
    noted: Any = Field(default=None, exclude=True)

    def structured(self) -> dict[str, Json]:
        """Whether the journal took it down: the same within half a minute counts once, and a tampered page never."""
        told = isinstance(self.noted, Sightings) and self.phenomenon_id in self.noted.recorded
        return super().structured() | {"telemetryReported": told}

    def text(self) -> str:
        """One line: how far it came, how sure it is, and what to do otherwise."""
        done = f"{self.phenomenon_id}: {some(self.steps_executed, 'step')} done"
        passed, checks = sum(one.passed is True for one in self.verify_results), len(self.verify_results)
        proven = f"{passed} of {some(checks, 'check holds', 'checks hold')}"
        verdict = self.verify_state if self.reason_code is None else f"{self.verify_state}: {self.reason_code}"
        parts = [done, proven, verdict, *([self.message] if self.message else []), *([self.hint] if self.hint else [])]
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class Sight:
    """An entry as the page shows it now."""

    shelved: Shelved
    found: Match
    noted: Sightings

    @property
    def phenomenon(self) -> Phenomenon:
        if not isinstance(self.shelved.kept, Phenomenon):
            raise LookupError("only phenomena are applied")
        return self.shelved.kept


@dataclass(frozen=True, slots=True)
class Ending:
    """What a playbook came to."""

    truths: Truths
    verify_state: VerifyState
    status: str
    reason_code: str | None
    label: LearningLabel

    @property
    def refuted(self) -> bool:
        return self.reason_code == "guarded_commit.postcondition_failed"


def judged(run: Running, planned: Plan, before: Truths, after: Truths) -> Ending:
    """The verify steps decide; without any, or where a step failed, the last report has the last word."""
    last = run.reports[-1] if run.reports else None
    state: VerifyState = "uncertain" if last is None else last.verify_state
    status, reason = ("partial", "action.no_effect_observed") if last is None else (last.status, last.reason_code)
    if run.failed_at is not None:
        return Ending(after, state, status, reason, _label(run, "sighting"))
    if worked(before, after):
        return Ending(after, "verified", "ok", None, "success")
    if False in after and not planned.cut:
        return Ending(after, "failed", "failed", "guarded_commit.postcondition_failed", "failure")
    if after and not all_proven(after):
        return Ending(after, "uncertain", "partial", "guarded_commit.no_signal_yet", "sighting")
    if last is not None and last.commit is not None:
        proven = last.learning_label == "success"
    else:
        # Without checks of its own a playbook is as sure as the least sure of its steps.
        proven = bool(run.reports) and all(one.learning_label == "success" for one in run.reports)
        state = weakest_state(run.reports, state)
    return Ending(after, state, status, reason, "success" if proven else _label(run, "sighting"))


def weakest_state(reports: Sequence[ActionReport], otherwise: VerifyState) -> VerifyState:
    states = [one.verify_state for one in reports]
    return min(states, key=_SURENESS.index) if states else otherwise


def _label(run: Running, otherwise: LearningLabel) -> LearningLabel:
    """What was proven against a step counts against the entry."""
    refuted = any(report.learning_label == "failure" for report in run.reports)
    return "failure" if refuted else otherwise if run.dispatched else "none"


# -- evidence


def about(entry: Phenomenon, label: LearningLabel) -> Signals:
    return Signals(label=label, target_stable_id=entry.stable_id)


def note_changed(ctx: ToolContext, entry: Phenomenon, run: Running) -> None:
    """A learned element is gone or another one. Before anything was touched that is light drift, which takes no level:
    a refusal proves nothing against an entry, and nova.revalidate does. Afterwards the page is as the playbook made it,
    and it has failed."""
    evidence = ctx.evidence
    if run.dispatched:
        evidence.signals = replace(about(entry, "failure"), layers=_layers(entry))
        evidence.verification = "failed"
        return
    step = run.plan.steps[run.failed_at or 0]
    evidence.selector = step.action.selector
    known = step.action.element is not None or not step.selectors
    evidence.signals = replace(about(entry, "none"), drift="light" if known else None)


def note_stopped(ctx: ToolContext, entry: Phenomenon, run: Running) -> None:
    """Something else came in between; the situation was there, and more is not known."""
    ctx.evidence.signals = about(entry, _label(run, "sighting"))
    ctx.evidence.verification = "uncertain" if run.dispatched else None


def _layers(entry: Phenomenon) -> tuple[str, ...]:
    playbook = entry.content.playbook
    return (entry.content.type,) if playbook is not None and playbook.policy in _CLOSING else ()


def note(ctx: ToolContext, entry: Phenomenon, run: Running, ending: Ending) -> None:
    evidence = ctx.evidence
    commits = [report.commit for report in run.reports if report.commit is not None]
    verdict = commits[-1].verification_status if commits else None
    evidence.settle_touch(run.dispatched)
    evidence.verification = ending.verify_state
    evidence.signals = replace(
        about(entry, ending.label),
        effect_observed=merged_effect(run.reports).observed,
        contract=verdict,
        high_signal=run.guards.contract.is_commit and ending.label == "success" and verdict == "verified_success",
        layers=_layers(entry),
        drift="light" if run.used_fallback and ending.label == "success" else None,
        failed_selector=run.replaced,
    )
    if any(report.action_dispatched and report.effect.observed for report in run.reports):
        evidence.flags.add("mutation_committed")
    if any(report.navigation is not None for report in run.reports):
        evidence.flags.add("navigation_committed")


# -- the answer


def answer(ctx: ToolContext, sight: Sight, planned: Plan, run: Running, ending: Ending) -> ApplyResult:
    entry, reports = sight.phenomenon, run.reports
    playbook = entry.content.playbook
    commit = next((one.commit for one in reversed(reports) if one.commit is not None), None)
    ok = ending.status == "ok"
    return ApplyResult.model_validate(
        {
            "ok": ok,
            "status": ending.status,
            "target_id": ctx.tab.target_id,
            "url": ctx.tab.url,
            "reason_code": ending.reason_code,
            "stage": "done" if ok else "verify",
            "retry_advice": "do_not_retry"
            if ok
            else "check_postcondition_first"
            if run.dispatched
            else "safe_to_retry",
            "action_dispatched": bool(ctx.evidence.action_dispatched),
            "dispatch_proof": min((one.dispatch_proof for one in reports), key=DISPATCH_PROOFS.index, default="none"),
            "effect": merged_effect(reports),
            "verify_state": ending.verify_state,
            "rev": ctx.tab.rev,
            "dialogs": [
                DialogSeen(type=d.type, message=d.message, answer=d.answer) for r in reports for d in r.dialogs
            ],
            "new_tab_ids": [tab_id for report in reports for tab_id in report.new_tab_ids],
            "popups_closed": sum(report.popups_closed for report in reports),
            "guarded_commit": None if commit is None else commit_json(commit),
            "receipt": run.guards.contract.receipt_line,
            "error_code": Precondition.error_code if ending.refuted else None,
            "message": "The page shows that it did not work." if ending.refuted else None,
            "hint": None if ok else "Look at the page with nova.perceive before going on.",
            "phenomenon_id": entry.stable_id,
            "phenomenon_type": entry.content.type,
            "policy": None if playbook is None else playbook.policy,
            "steps_executed": sum(one.ok for one in run.results),
            "failed_step_index": run.failed_at,
            "step_results": run.results,
            "verify_results": _verified(planned, ending.truths),
            "drift_gate": DriftGate(debt=entry.drift_debt, decision=planned.drift),
            "telemetry_reported": False,
            "noted": sight.noted,
            "trial": planned.trial,
        }
    )


def _verified(planned: Plan, truths: Truths) -> list[VerifyResult]:
    return [
        VerifyResult(type=step.kind, passed=passed) for step, passed in zip(planned.verify, truths, strict=bool(truths))
    ]


def declined(ctx: ToolContext, sight: Sight, planned: Plan, run: Running, problem: Problem) -> ApplyResult:
    """Stopped before a control that Nova never presses; what was done before it stays done."""
    label = _label(run, "sighting")
    ctx.evidence.settle_touch(run.dispatched)
    told = answer(ctx, sight, planned, run, Ending((), "failed", "partial", problem.code, label))
    return told.model_copy(
        update={"message": problem.message, "hint": _HINTS.get(problem.code), "stage": "precondition"}
    )


# -- not applied


_HINTS: Final = {
    "pks.not_present": "Nothing to do here; look at the page with nova.perceive.",
    "pks.not_active": "nova.explain says what it lacks.",
    "pks.quarantined": "Check it with nova.revalidate, or work by hand.",
    "pks.accept_refused": "Decide yourself, or ask your user.",
    "pks.trial_not_allowed": "It becomes active by verified use only.",
    "pks.value_required": "Call again with them in values.",
    "pks.empty_playbook": "nova.pks_get shows what the entry says.",
}


def _hint(entry: Phenomenon, problem: Problem) -> str | None:
    """What is always there where it holds should not be missing; anything else may merely not be shown."""
    if problem.code == "pks.not_present" and entry.content.type in ALWAYS_THERE:
        return "If it should be on this page, check it with nova.revalidate; else go where it is."
    return _HINTS.get(problem.code)


def refused(ctx: ToolContext, sight: Sight, problem: Problem, wish: Wish) -> ApplyResult:
    entry = sight.phenomenon
    playbook = entry.content.playbook
    return ApplyResult(
        ok=False,
        status="partial",
        target_id=ctx.tab.target_id,
        url=ctx.tab.url,
        reason_code=problem.code,
        stage="precondition",
        retry_advice="safe_to_retry",
        action_dispatched=False,
        dispatch_proof="none",
        effect=EffectSeen(observed=False, channels=[]),
        verify_state="failed",
        rev=ctx.tab.rev,
        message=problem.message,
        hint=_hint(entry, problem),
        phenomenon_id=entry.stable_id,
        phenomenon_type=entry.content.type,
        policy=None if playbook is None else playbook.policy,
        steps_executed=0,
        failed_step_index=None,
        step_results=[],
        verify_results=[],
        drift_gate=DriftGate(debt=entry.drift_debt, decision=gate(entry.drift_debt, wish.drift_mode)),
        telemetry_reported=False,
    )
