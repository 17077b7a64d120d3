"""Applying what was learned: one playbook on the page that is open, checked before every step and proven afterwards."""

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from nova_mcp.browser.read.knowledge_check import signals
from nova_mcp.errors import NovaError, Precondition
from nova_mcp.memory.knowledge.apply_rules import DEFAULT_STEPS, NotApplied, Plan, Wish, plan
from nova_mcp.memory.knowledge.drift import after_sighting, moved
from nova_mcp.memory.knowledge.matching.entry_ranking import Request, context_fit
from nova_mcp.memory.knowledge.matching.fingerprints import match
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, wanted_of
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import ElementPrint, Phenomenon, PlaybookPolicy, Problem, ScopeName
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.page_check import harmless
from nova_mcp.memory.promotion.sightings import EntrySighting, Sightings
from nova_mcp.tools.browse.act_support import ACT_MS, ACTING_GATES, wish_of
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import ContractParams
from nova_mcp.tools.guarded.guard import CallGuard
from nova_mcp.tools.knowledge.apply_result import (
    ApplyResult,
    Sight,
    about,
    answer,
    declined,
    judged,
    note,
    note_changed,
    note_stopped,
    refused,
)
from nova_mcp.tools.knowledge.apply_steps import (
    Declined,
    Guards,
    Inputs,
    NotThisElement,
    Running,
    StepsOf,
    refuse_killed,
)
from nova_mcp.tools.knowledge.apply_verification import Proof, window_ms
from nova_mcp.tools.knowledge.params import EntryId, SiteText
from nova_mcp.tools.knowledge.scope_argument import scope_on, unknown_entry, unknown_scope
from nova_mcp.tools.spec import TargetParams, tool

BUNDLES: Final = ("pks_learning",)
MOST_VALUES: Final = 20

Value = Annotated[str, Field(max_length=100_000)]
ValueName = Annotated[str, Field(min_length=1, max_length=64)]


class ApplyParams(TargetParams, ContractParams):
    scope: SiteText | None = Field(None, description="host or URL; the tab's own")
    phenomenon_id: EntryId
    values: dict[ValueName, Value] = Field(
        default_factory=dict, max_length=MOST_VALUES, description="for inputs that you supply, by name"
    )
    trial: bool = Field(default=False, description="try an entry that is still in review")
    max_steps: int = Field(DEFAULT_STEPS, ge=1, le=20)
    timeout_ms: int = Field(15_000, ge=1000, le=60_000)


def deadline(p: ApplyParams) -> int:
    return p.timeout_ms + (p.verifying_ms() or 0) + ACT_MS


@tool(
    title="Apply what was learned",
    effect="act",
    bundles=BUNDLES,
    gates=ACTING_GATES,
    deadline_ms=deadline,
    guards=deadline,
    private_arguments=("values",),
)
async def phenomenon_apply(ctx: ToolContext, p: ApplyParams) -> ApplyResult:
    """Runs the playbook of an active entry on the page that is open, once: the situation must be there and every
    element still look as it was learned. Proves the result. Never accepts consent; steps that commit need expect."""
    tab = ctx.tab
    tab.require_ready()
    ctx.evidence.action_dispatched = False
    scope = scope_on(ctx.tab, p.scope)
    await refuse_killed(ctx)
    sight = await _sighted(ctx, await _entry(ctx, p, scope))
    wish = Wish(
        trial=p.trial, values=frozenset(p.values), max_steps=p.max_steps, drift_mode=ctx.settings.gates.apply_drift
    )
    planned = plan(sight.phenomenon, sight.found, wish, ctx.ports.clock.now_ms())
    match planned:
        case NotApplied(problem) if problem.code == "pks.drift_blocked":
            raise _drifted(problem, sight)
        case NotApplied(problem):
            return refused(ctx, sight, problem, wish)
        case Plan():
            return await _applied(ctx, p, sight, planned)


# -- what is to be applied


async def _entry(ctx: ToolContext, p: ApplyParams, scope: ScopeName) -> Shelved:
    """The revision that counts, or for a trial the one that has still to earn its place."""
    known = await ctx.learning.knowledge.known(scope)
    revisions = {one.slot: one for one in known.find(p.phenomenon_id) if isinstance(one.kept, Phenomenon)}
    found = (revisions.get("pending") if p.trial else None) or revisions.get("current")
    if found is not None:
        return found
    if not known.shelved:
        raise unknown_scope(scope)
    raise unknown_entry(scope, p.phenomenon_id, [one.stable_id for one in known.phenomena])


async def _sighted(ctx: ToolContext, shelved: Shelved) -> Sight:
    """Read the entry's signs from the page; where the situation is there, that is noted in the entry's books."""
    entry = shelved.kept
    if not isinstance(entry, Phenomenon):
        raise LookupError("only phenomena are applied")
    seen = await signals(ctx.tab, wanted_of([entry], await ctx.learning.knowledge.platforms()))
    observed = observed_signals(seen)
    found = match(entry.content.fingerprint, observed, seen.locale)
    request = Request(locale=seen.locale, route=route_of(ctx.tab.url))
    if not context_fit(entry.content.context, request).fits:
        found = replace(found, confidence=0.0)
    if not found.reached:
        return Sight(shelved, found, Sightings(shelved.scope))
    far = moved(entry, observed, seen.locale)
    noted = Sightings(shelved.scope, (EntrySighting(shelved, far),))
    ctx.evidence.also.append(noted.also)
    debt = after_sighting(entry.drift_debt, far)
    return Sight(replace(shelved, kept=replace(entry, drift_debt=debt)), found, noted)


# -- not applied


def _drifted(problem: Problem, sight: Sight) -> Precondition:
    return Precondition(
        problem.code,
        problem.message,
        "Check it with nova.revalidate and correct it with nova.pks_patch.",
        stage="precondition",
        details={"driftGate": {"debt": sight.phenomenon.drift_debt, "decision": "refuse"}},
    )


# -- applied


async def _applied(ctx: ToolContext, p: ApplyParams, sight: Sight, planned: Plan) -> ApplyResult:
    entry = sight.phenomenon
    began = ctx.ports.clock.monotonic_ms()
    acting = [step.index for step in planned.steps if step.action.mutates]
    guards = Guards(ctx, CallGuard(ctx, wish_of(p)), acting[-1] if acting else -1)
    inputs = Inputs(p.values, began + p.timeout_ms)
    unseen = frozenset(entry.unseen) if planned.trial else frozenset[str]()
    run = Running(ctx, planned, StepsOf(entry.content.type, unseen), guards, inputs)
    policy: PlaybookPolicy = "custom" if entry.content.playbook is None else entry.content.playbook.policy
    (noted,) = sight.noted.entries
    async with ctx.tab.watch() as window:
        proof = Proof(ctx, planned.verify, window)
        before = await proof.read()
        proof.pressed()
        ctx.evidence.signals = about(entry, "none")
        try:
            await run.run()
        except NotThisElement:
            note_changed(ctx, entry, run)
            raise
        except NovaError:
            note_stopped(ctx, entry, run)
            raise
        except Declined as stopped:
            note_stopped(ctx, entry, run)
            return declined(ctx, sight, planned, run, stopped.problem)
        finally:
            noted.seen = {name: _kept(ctx, one) for name, one in run.met.items()}
        left = inputs.until_ms - ctx.ports.clock.monotonic_ms()
        after = await proof.settle(min(window_ms(policy), left)) if run.failed_at is None else ()
    ending = judged(run, planned, before, after)
    note(ctx, entry, run, ending)
    return answer(ctx, sight, planned, run, ending)


def _kept(ctx: ToolContext, seen: ElementPrint | None) -> ElementPrint | None:
    return None if seen is None else harmless(seen, ctx.secrets.redactor.text)
