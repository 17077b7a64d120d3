"""Getting rid of what lies over a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from pydantic import Field

from nova_mcp.browser.act.action import Scene
from nova_mcp.browser.act.locate import described
from nova_mcp.browser.blockers.dismiss import PASS_MS, Dismissal, Order, dismiss
from nova_mcp.browser.blockers.rules import Attempt, Blocker, ConsentChoice, Method, Verdict, judge
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.browser.perceive.rules import origin_path
from nova_mcp.core.page.control_labels import BlockerKind
from nova_mcp.core.values import Json
from nova_mcp.errors import Fix, PolicyDenied
from nova_mcp.evidence.model import LearningLabel, Signals
from nova_mcp.tools.browse.combined_effect import DISPATCH_PROOFS, changes_page, merged_effect
from nova_mcp.tools.browse.learning_signals import lasting_selector
from nova_mcp.tools.browse.unseen_controls import note_unseen
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.guard import refuse_unheard, touched
from nova_mcp.tools.results import ActResult, DialogSeen
from nova_mcp.tools.spec import Part, TargetParams, tool

_LOOK_MS: Final = 8000
_ASKED_OF_PEOPLE: Final[Mapping[BlockerKind, str]] = {"challenge": "captcha", "login_wall": "login"}
_SHOWN: Final = 3


class DismissBlockersParams(TargetParams):
    mode: Literal["conservative", "aggressive"] = Field(
        "conservative", description="aggressive also hides what can't be closed"
    )
    max_passes: int = Field(2, ge=1, le=5)


class BlockerLeft(Part):
    kind: BlockerKind
    ref: str
    blocking: bool | None


class BlockerAction(Part):
    method: Method
    name: str


class DismissBlockersResult(ActResult):
    found: int
    dismissed: int
    remaining: list[BlockerLeft]
    actions: list[BlockerAction]
    consent_choice: ConsentChoice

    def text(self) -> str:
        if self.found == 0:
            return "no layer lies over the page"
        return " · ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        yield f"{self.dismissed} of {self.found} gone"
        yield from (f"{one.method} {quoted(one.name, 40)}" for one in self.actions[:_SHOWN])
        yield f"consent {self.consent_choice}"
        for one in self.remaining[:_SHOWN]:
            yield f"left {one.kind} {one.ref}{'' if one.blocking is False else ' blocking'}"
        if self.reason_code is not None:
            yield f"{self.verify_state}: {self.reason_code}"
        if self.hint:
            yield self.hint


@tool(
    title="Dismiss blockers",
    effect="act",
    bundles=("core", "browser_automation"),
    gates=("claim.owner", "setup.bootstrap", "setup.shared_agent_id"),
    repeat_safe=True,
    deadline_ms=lambda p: p.max_passes * PASS_MS + _LOOK_MS,
)
async def dismiss_blockers(ctx: ToolContext, p: DismissBlockersParams) -> DismissBlockersResult:
    """Rejects or closes cookie banners, pop-ups and other covering layers; never accepts. Log-ins, paywalls and bot
    checks are left to a person."""
    tab = ctx.tab
    tab.require_ready()
    attempt: Attempt = (origin_path(tab.url), tab.page_epoch, p.mode)
    if tab.blockers.given_up(attempt):
        raise _suppressed()
    done = await dismiss(tab, Order(p.mode, p.max_passes), partial(_touch, ctx), ctx.ports)
    verdict = judge(done.tally)
    _leave_evidence(ctx, done, verdict)
    left = await _left(ctx, done.tally.remaining)
    if verdict.status == "blocked":
        raise _needs_person(ctx, done, left)
    if verdict.reason_code != "action.no_effect_observed":
        tab.blockers.succeeded(attempt)
    elif tab.blockers.failed(attempt) > 1:
        raise _suppressed()
    return _answer(ctx, done, verdict, left)


async def _touch(ctx: ToolContext, scene: Scene | None) -> None:
    """Getting rid of a layer may have led elsewhere, where something else has to be read first."""
    await refuse_unheard(ctx, ctx.tab)
    if scene is not None:
        await note_unseen(ctx, scene)
        touched(ctx, scene)


def _leave_evidence(ctx: ToolContext, done: Dismissal, verdict: Verdict) -> None:
    evidence = ctx.evidence
    evidence.prepared_page = done.tally.dispatched
    evidence.settle_touch(done.tally.dispatched)
    evidence.verification = "verified" if verdict.verified else "uncertain"
    evidence.signals = _signals(evidence.signals, done, verdict)
    for one in done.met:
        evidence.layers.setdefault(one.kind, lasting_selector(one.element))
    if any(report.action_dispatched and report.effect.observed for report in done.reports) or done.tally.hidden:
        evidence.flags.add("mutation_committed")
    if any(report.navigation is not None for report in done.reports):
        evidence.flags.add("navigation_committed")


def _signals(noted: Signals, done: Dismissal, verdict: Verdict) -> Signals:
    """What the page showed afterwards: the layers are gone, nothing moved them, or the rest is for somebody else."""
    if not done.tally.dispatched:
        return Signals()
    failed = verdict.reason_code == "action.no_effect_observed" and not done.tally.dismissed
    label: LearningLabel = "success" if verdict.verified else "failure" if failed else "sighting"
    # Only what went away by one press can be repeated by one.
    method = done.actions[0].method if len(done.actions) == 1 and len(done.reports) == 1 else None
    observed = merged_effect(done.reports).observed
    changed = bool(done.tally.hidden) or any(changes_page(report.effect) for report in done.reports)
    return replace(noted, label=label, effect_observed=observed, layers=done.kinds, method=method, page_changed=changed)


async def _left(ctx: ToolContext, remaining: Sequence[Blocker]) -> list[BlockerLeft]:
    shown = await described(ctx.tab, [blocker.element for blocker in remaining])
    refs = [str(one["ref"]) for one in shown if isinstance(one, dict)]
    return [
        BlockerLeft(kind=one.kind, ref=ref, blocking=one.blocking) for one, ref in zip(remaining, refs, strict=True)
    ]


def _suppressed() -> PolicyDenied:
    return PolicyDenied("blockers.repeat_suppressed", stage="verify")


def _needs_person(ctx: ToolContext, done: Dismissal, left: Sequence[BlockerLeft]) -> PolicyDenied:
    kinds = list(dict.fromkeys(one.kind for one in left))
    asked = next((_ASKED_OF_PEOPLE[kind] for kind in kinds if kind in _ASKED_OF_PEOPLE), "other")
    args: dict[str, Json] = {
        "why": f"A layer of the kind {kinds[0]} covers the page and Nova may not answer it.",
        "kind": asked,
        "targetId": ctx.tab.target_id,
        "agentId": ctx.caller.agent_id,
    }
    return PolicyDenied(
        "blockers.needs_human",
        f"What lies over the page ({', '.join(kinds)}) has no control that refuses or closes it.",
        stage="actionability",
        fix=Fix("nova.ask_human", args),
        details={
            "found": done.tally.found,
            "dismissed": done.tally.dismissed,
            "remaining": [one.model_dump(mode="json", by_alias=True) for one in left],
            "actions": [{"method": one.method, "name": one.name} for one in done.actions],
            "consentChoice": done.tally.choice,
        },
    )


def _answer(ctx: ToolContext, done: Dismissal, verdict: Verdict, left: Sequence[BlockerLeft]) -> DismissBlockersResult:
    tab, reports, tally = ctx.tab, done.reports, done.tally
    sent = [report.dispatch_proof for report in reports]
    return DismissBlockersResult(
        ok=verdict.status == "ok",
        status=verdict.status,
        target_id=tab.target_id,
        url=tab.url,
        reason_code=verdict.reason_code,
        stage="done" if verdict.status == "ok" else "verify",
        retryable=verdict.status != "ok" and verdict.retry_advice == "safe_to_retry",
        retry_advice=verdict.retry_advice,
        action_dispatched=bool(ctx.evidence.action_dispatched),
        dispatch_proof=min(sent, key=DISPATCH_PROOFS.index, default="none"),
        effect=merged_effect(reports),
        verify_state="verified" if verdict.verified else "uncertain",
        rev=tab.rev,
        dialogs=[DialogSeen(type=d.type, message=d.message, answer=d.answer) for r in reports for d in r.dialogs],
        new_tab_ids=[tab_id for report in reports for tab_id in report.new_tab_ids],
        popups_closed=sum(report.popups_closed for report in reports),
        hint=_hint(verdict),
        found=tally.found,
        dismissed=tally.dismissed,
        remaining=list(left),
        actions=[BlockerAction(method=one.method, name=one.name) for one in done.actions],
        consent_choice=tally.choice,
    )


def _hint(verdict: Verdict) -> str | None:
    match verdict.reason_code:
        case "blockers.hidden_only":
            return "Hidden, not answered: the site has stored no choice."
        case "blockers.needs_human":
            return "What is left only takes a yes, or a person: decide yourself or call nova.ask_human."
        case "action.no_effect_observed":
            return "Try mode aggressive, or work around the layer."
        case _:
            return None
