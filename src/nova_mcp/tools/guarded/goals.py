"""The goal register: what an agent works towards, so that it can go on after losing its context."""

import json
from dataclasses import dataclass

from pydantic import Field, JsonValue

from nova_mcp.browser.observe.page_witness import PageWitness
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.tokens import fit_tokens, line_tokens
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.goal_params import GoalRegisterParams
from nova_mcp.tools.read.fact_hints import stored_facts
from nova_mcp.tools.read.hint import Look
from nova_mcp.tools.spec import Part, Result, maybe, tool
from nova_mcp.tools.times import utc
from nova_mcp.verification.goals.model import EventKind, Note, StoredGoal, StoredStep
from nova_mcp.verification.goals.register import GoalContext, not_found
from nova_mcp.verification.goals.rules import GoalMode, GoalState, StepStatus
from nova_mcp.verification.model import SetVerdict, VerificationStatus

SUMMARY_CHARS = 160
ACTION_CHARS = 120


def _absent(value: object) -> bool:
    return value is None


class GoalStepPart(Part):
    step: int
    action_desc: str
    status: StepStatus
    verification_status: VerificationStatus | None = maybe()
    contract: JsonValue = maybe()


class GoalEventPart(Part):
    event_id: str
    at_utc: str
    kind: EventKind
    source: str
    content: str


class GoalContextPart(Part):
    """The anchor to resume from, as page reads carry it."""

    goal_id: str
    summary: str
    mode: GoalMode
    state: GoalState
    current_step: int
    total_steps: int
    step_status: StepStatus | None
    step_action: str | None

    def line(self) -> str:
        """One short line; the whole text stands in the structured answer."""
        head = f'goal {self.goal_id} "{_cut(self.summary, SUMMARY_CHARS)}"'
        if self.total_steps == 0:
            return head
        action = _cut(self.step_action or "", ACTION_CHARS)
        return f"{head} · step {self.current_step}/{self.total_steps} {self.step_status}: {action}"


@dataclass(slots=True)
class GoalHint:
    """The caller's goal on the tab, as a look at its page says it."""

    ctx: ToolContext
    part: GoalContextPart | None = None
    lines: str = ""
    reserved: int = 0
    omitted: tuple[str, ...] = ()

    async def read(self) -> None:
        ctx = self.ctx
        context = await ctx.verifier.goals.context(ctx.caller, ctx.tab.target_id, ctx.call.session_id)
        self.part = None if context is None else goal_context_part(context)

    def take(self, room: int) -> int:
        self.lines = "" if self.part is None else fit_tokens(self.part.line(), room)
        return line_tokens(self.lines)

    async def settle(self, look: Look) -> None:
        """A goal belongs to the tab, whatever it shows."""

    def fields(self) -> dict[str, object]:
        return {"goal_context": self.part}


def goal_context_part(context: GoalContext) -> GoalContextPart:
    return GoalContextPart(
        goal_id=context.goal_id,
        summary=context.summary,
        mode=context.mode,
        state=context.state,
        current_step=context.current_step,
        total_steps=context.total_steps,
        step_status=context.step_status,
        step_action=context.step_action,
    )


class GoalPart(Part):
    goal_id: str
    summary: str
    mode: GoalMode
    state: GoalState
    target_id: str | None
    owner_agent_id: str | None
    sidecar_session_id: str | None
    current_step: int
    total_steps: int
    step_status: StepStatus | None
    step_action: str | None
    precondition_verdict: SetVerdict | None
    lease_ms: int
    lease_expires_at_utc: str
    created_at_utc: str
    steps: list[GoalStepPart] | None = Field(None, exclude_if=_absent)
    events: list[GoalEventPart] | None = Field(None, exclude_if=_absent)

    def lines(self) -> list[str]:
        where = self.target_id or "no tab"
        owner = f" · owner {self.owner_agent_id}" if self.owner_agent_id else ""
        first = f'{self.goal_id} {self.state} "{_cut(self.summary, SUMMARY_CHARS)}" · {where}{owner}'
        if self.state == "active":
            first += f" · lease until {self.lease_expires_at_utc}"
        if self.precondition_verdict is not None:
            first += f" · preconditions {self.precondition_verdict}"
        if self.steps is None and self.total_steps:
            first += f" · step {self.current_step}/{self.total_steps} {self.step_status}"
        rows = [
            f"{'>' if one.step == self.current_step else ' '} {one.step} {one.status} {one.action_desc}"
            for one in self.steps or []
        ]
        rows += [f"  {one.at_utc} {one.kind} {one.source}: {one.content}" for one in self.events or []]
        return [first, *rows]


class GoalRegisterResult(Result):
    goal: GoalPart | None = Field(None, exclude_if=_absent)
    goals: list[GoalPart] | None = Field(None, exclude_if=_absent)
    previous_state: GoalState | None = maybe()
    event_id: str | None = maybe()

    def text(self) -> str:
        shown = [self.goal] if self.goal is not None else self.goals or []
        lines = [line for one in shown for line in one.lines()] or ["no goals"]
        if self.previous_state is not None:
            lines[0] += f" · was {self.previous_state}"
        if self.event_id is not None:
            lines[0] += f" · noted as {self.event_id}"
        return "\n".join(lines)


@tool(
    title="Register a goal",
    effect="write",
    bundles=("form_submission", "task_memory"),
    target="none",
)
async def goal_register(ctx: ToolContext, p: GoalRegisterParams) -> GoalRegisterResult:
    """Keeps a goal with its steps for work that spans several actions: create (summary, steps), query, close (goalId,
    state), annotate (goalId, content). While it is active, perceive shows it as goalContext and each act of yours on
    its tab runs as the current step."""
    goals = ctx.verifier.goals
    match p.op:
        case "create":
            return GoalRegisterResult(goal=_shown(await _create(ctx, p)))
        case "query" if p.goal_id is not None:
            return GoalRegisterResult(goal=_shown(await _one(ctx, p, p.goal_id), p))
        case "query":
            found = await goals.listed(ctx.caller, await _filter(ctx, p), p.events)
            return GoalRegisterResult(goals=[_shown(one, p) for one in found])
        case "close" if p.goal_id is not None and p.state is not None:
            closed, previous = await goals.close(ctx.caller, p.goal_id, p.state)
            return GoalRegisterResult(goal=_shown(closed), previous_state=previous)
        case "annotate" if p.goal_id is not None and p.content is not None:
            noted, event_id = await goals.annotate(ctx.caller, p.goal_id, Note(p.content, p.source))
            return GoalRegisterResult(goal=_shown(noted), event_id=event_id)
        case _:
            raise InvalidParams("invalid_params", f"op {p.op} lacks an argument", "Name goalId and what op needs.")


async def _create(ctx: ToolContext, p: GoalRegisterParams) -> StoredGoal:
    tab = await _tab(ctx, p.target_id or "active")
    plan = p.plan(None if tab is None else tab.target_id)
    if tab is None or not plan.preconditions or tab.state not in ("ready", "loading"):
        return await ctx.verifier.goals.create(ctx.caller, plan)
    async with tab.lock.shared(), tab.watch() as window:
        witness = PageWitness(tab, window, store=stored_facts(ctx))
        return await ctx.verifier.goals.create(ctx.caller, plan, witness)


async def _tab(ctx: ToolContext, target_id: str) -> Tab | None:
    """The tab a goal is about; a goal may come before the first tab."""
    try:
        tab = await ctx.browser.targets.resolve(ctx.caller, target_id)
    except NotFound as missing:
        if missing.reason_code != "tab.no_active_tab":
            raise
        return None
    ctx.evidence.tab = tab
    return tab


async def _filter(ctx: ToolContext, p: GoalRegisterParams) -> str | None:
    """Which target's goals are asked for; a tab that is gone may still have some."""
    if p.target_id != "active":
        return p.target_id
    tab = await _tab(ctx, p.target_id)
    # A filter that nothing matches: without a tab there is no goal on it.
    return "" if tab is None else tab.target_id


async def _one(ctx: ToolContext, p: GoalRegisterParams, goal_id: str) -> StoredGoal:
    found = await ctx.verifier.goals.query(ctx.caller, goal_id, p.events)
    if p.target_id is not None and found.target_id != await _filter(ctx, p):
        raise not_found(goal_id)
    return found


def _shown(found: StoredGoal, p: GoalRegisterParams | None = None) -> GoalPart:
    step = found.step
    return GoalPart(
        goal_id=found.goal_id,
        summary=found.summary,
        mode=found.mode,
        state=found.state,
        target_id=found.target_id,
        owner_agent_id=found.owner.agent_id,
        sidecar_session_id=found.owner.session_id,
        current_step=found.current_step,
        total_steps=len(found.steps),
        step_status=None if step is None else step.status,
        step_action=None if step is None else step.action_desc,
        precondition_verdict=found.precondition_verdict,
        lease_ms=found.lease.lease_ms,
        lease_expires_at_utc=utc(found.lease.expires_at_ms),
        created_at_utc=utc(found.created_at_ms),
        steps=[_step(one) for one in found.steps] if p is None or p.include_steps else None,
        events=[
            GoalEventPart(
                event_id=one.event_id, at_utc=utc(one.at_ms), kind=one.kind, source=one.source, content=one.content
            )
            for one in found.events
        ]
        if p is not None and p.include_events
        else None,
    )


def _step(step: StoredStep) -> GoalStepPart:
    contract: Json = None if step.contract is None else json.loads(step.contract)
    return GoalStepPart(
        step=step.step_no,
        action_desc=step.action_desc,
        status=step.status,
        verification_status=step.verification_status,
        contract=contract,
    )


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
