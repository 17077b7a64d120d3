"""Several steps in one call: checked before the first runs, gated and recorded one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from pydantic import Field, JsonValue

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, RetryAdvice, Stage, Status, UnknownTool
from nova_mcp.evidence.model import Signals
from nova_mcp.tools.arguments import parse_arguments, shown
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import Progress, StepAnswer, StepCall, ToolContext
from nova_mcp.tools.guarded.sequence_rules import Move, OnError, StepOutcome, judged, next_move, overall
from nova_mcp.tools.names import canonical_name
from nova_mcp.tools.results import VerifyState
from nova_mcp.tools.spec import AgentParams, Image, PageResult, Params, Part, TargetParams, ToolSpec, maybe, tool
from nova_mcp.tools.system.call import no_such_tool

MAX_STEPS = 50
SHOWN_PROBLEMS = 10
ACTIVE = "active"
# Steps work with pages. What ends or hands over the work, runs code or judges it stays a decision of its own.
PAGE_BUNDLES: Final = frozenset({"browser_automation", "page_reading", "form_submission", "sandboxes"})
BARRED: Final = frozenset(
    {"run_sequence", "call", "eval", "tab_claim", "tab_release", "sandbox_delete", "goal_register", "coverage_scan"}
)
# Text that the steps' own tools keep out of the ledger stays out of the sequence's record too.
PRIVATE: Final = ("text", "promptText", "username", "key", "paths", "expression")


class StepParams(Params):
    tool: str = Field(min_length=1, max_length=120)
    args: dict[str, JsonValue] = Field(default_factory=dict)
    on_error: OnError = "abort"


class SequenceParams(TargetParams):
    steps: list[StepParams] = Field(
        min_length=1, max_length=MAX_STEPS, description="{tool, args, onError: abort|continue|retry}"
    )
    total_timeout_ms: int = Field(120_000, ge=5000, le=300_000)


class StepTrace(Part):
    i: int
    tool: str
    status: str
    reason_code: str | None = maybe()
    verify_state: VerifyState | None = maybe()
    ms: int
    retried: bool = maybe(default=False)


class SequenceResult(PageResult):
    reason_code: str | None = None
    stage: Stage = "done"
    retryable: bool = False
    retry_advice: RetryAdvice = "do_not_retry"
    action_dispatched: bool
    effect: JsonValue = None
    verify_state: VerifyState
    completed_steps: int
    total_steps: int
    failed_at: int | None = maybe()
    duration_ms: int
    trace: list[StepTrace]
    last: dict[str, JsonValue]
    error_code: int | None = maybe()
    message: str | None = maybe()
    hint: str | None = maybe()
    last_text: str = Field("", exclude=True)
    pictures: tuple[Image, ...] = Field((), exclude=True)

    def text(self) -> str:
        """A line on the whole, one for each step that went wrong, and what the last step says."""
        head = f"{self.completed_steps} of {self.total_steps} steps done in {self.duration_ms} ms · {self.verify_state}"
        if self.failed_at is not None:
            head += f" · {'stopped at' if len(self.trace) < self.total_steps else 'trouble at'} step {self.failed_at}"
        if self.reason_code is not None:
            head += f": {self.reason_code} · {self.retry_advice}"
        wrong = [step for step in self.trace if step.status != "ok"]
        lines = [f"step {step.i} {step.tool} {step.status} {step.reason_code or ''}".rstrip() for step in wrong]
        more = [f"and {len(lines) - SHOWN_PROBLEMS} more steps"] if len(lines) > SHOWN_PROBLEMS else []
        last = [f"last: {self.last_text}"] if self.last_text else []
        return "\n".join([head, *lines[:SHOWN_PROBLEMS], *more, *last])

    def images(self) -> tuple[Image, ...]:
        return self.pictures


@dataclass(frozen=True, slots=True)
class Planned:
    """A step that passed every check that needs no page."""

    number: int
    spec: ToolSpec
    arguments: Mapping[str, Json]
    on_error: OnError
    # The call says what should come of it, so its outcome is verified.
    watched: bool


def plan(p: SequenceParams, catalogue: Catalogue) -> list[Planned]:
    """Every step understood, or an error that names the first one that can't be."""
    return [_planned(p, number, step, catalogue) for number, step in enumerate(p.steps, 1)]


def _planned(p: SequenceParams, number: int, step: StepParams, catalogue: Catalogue) -> Planned:
    name = canonical_name(step.tool)
    try:
        spec = catalogue.find(name)
    except UnknownTool as unknown:
        raise _at(number, step.tool, no_such_tool(step.tool, unknown.closest)) from None
    if spec.name in BARRED or spec.bundles.isdisjoint(PAGE_BUNDLES):
        barred = InvalidParams(
            "invalid_params",
            f"tool must be one that works with pages and can be a step (received {shown(spec.canonical)})",
            "Nothing ran. Call that tool on its own.",
            details={"argument": "tool"},
        )
        raise _at(number, name, barred)
    try:
        arguments = _addressed(p, spec, step.args)
        params = parse_arguments(spec.params, arguments)
        spec.check(params, catalogue)
    except InvalidParams as wrong:
        raise _at(number, name, wrong) from None
    return Planned(number, spec, arguments, step.on_error, spec.guards(params) is not None)


def _addressed(p: SequenceParams, spec: ToolSpec, args: Mapping[str, Json]) -> dict[str, Json]:
    """The step's arguments with the sequence's agent and tab; a step can't name others."""
    arguments = dict(args)
    if issubclass(spec.params, AgentParams):
        _agree("agentId", arguments.setdefault("agentId", p.agent_id), p.agent_id)
    if spec.target != "none" and issubclass(spec.params, TargetParams):
        # Which tab that is, and whether a step names another, is known once it is resolved.
        arguments.setdefault("targetId", p.target_id)
    return arguments


def _agree(name: str, given: Json, wanted: str) -> None:
    if given != wanted:
        raise InvalidParams(
            "invalid_params",
            f"{name} must be {shown(wanted)}, as for the whole sequence (received {shown(given)})",
            "Nothing ran. Leave it out, or start a sequence of its own.",
            details={"argument": name},
        )


def _on_tab(step: Planned, p: SequenceParams, target_id: str) -> Planned:
    given = step.arguments.get("targetId")
    if given is None or step.spec.target == "none":
        return step
    if given not in (ACTIVE, p.target_id):
        try:
            _agree("targetId", given, target_id)
        except InvalidParams as wrong:
            raise _at(step.number, step.spec.canonical, wrong) from None
    return replace(step, arguments={**step.arguments, "targetId": target_id})


def _at(number: int, name: str, wrong: InvalidParams) -> InvalidParams:
    return InvalidParams(
        wrong.reason_code,
        f"steps: step {number} ({name[:80]}): {wrong.message}",
        wrong.hint,
        details={"step": number, **wrong.details},
    )


@dataclass(slots=True)
class _Run:
    """A sequence under way: what ran so far and how it ended."""

    ctx: ToolContext
    total: int
    until_ms: float
    outcomes: list[StepOutcome]
    trace: list[StepTrace]
    last: StepAnswer | None = None
    stopped_at: int | None = None
    out_of_time: bool = False
    effect: Json = None
    # How sure each act is that reached the page.
    acts: list[VerifyState | None] = field(default_factory=list)

    def left_ms(self) -> int:
        return int(self.until_ms - self.ctx.ports.clock.monotonic_ms())

    async def take(self, step: Planned) -> bool:
        """Run a step; False when the sequence ends with it."""
        if self.left_ms() < 1:
            self.stopped_at, self.out_of_time = step.number, True
            return False
        began = self.ctx.ports.clock.monotonic_ms()
        progress = _within(self.ctx.call.progress, step, self.total)
        answer, outcome, move = await self._attempt(step, progress, tried_again=False)
        if tried_again := move == "again" and self.left_ms() >= 1:
            answer, outcome, move = await self._attempt(step, progress, tried_again=True)
        ms = max(0, round(self.ctx.ports.clock.monotonic_ms() - began))
        self._note(step, answer, outcome, ms, retried=tried_again)
        if move != "next":
            self.stopped_at = step.number
        await self.ctx.call.progress(step.number, self.total, f"{step.number}/{self.total} {step.spec.canonical}")
        return move == "next"

    async def _attempt(
        self, step: Planned, progress: Progress, *, tried_again: bool
    ) -> tuple[StepAnswer, StepOutcome, Move]:
        call = StepCall(step.spec.canonical, step.arguments, max(1, self.left_ms()), progress)
        answer = await self.ctx.call.step(call)
        outcome = judged(answer, watched=step.watched)
        return answer, outcome, next_move(outcome, step.on_error, tried_again=tried_again)

    def _note(self, step: Planned, answer: StepAnswer, outcome: StepOutcome, ms: int, *, retried: bool) -> None:
        self.last = answer
        self.outcomes.append(outcome)
        if step.spec.effect in ("act", "commit") and outcome.dispatched:
            self.acts.append(outcome.verify_state)
        self.effect = answer.structured.get("effect", self.effect)
        entry = StepTrace(
            i=step.number,
            tool=step.spec.canonical,
            status=outcome.status,
            reason_code=outcome.reason_code,
            verify_state=outcome.verify_state,
            ms=ms,
            retried=retried,
        )
        self.trace.append(entry)


def _within(progress: Progress, step: Planned, total: int) -> Progress:
    """A long step shows signs of life between its own number and the next, always a little further."""
    told = 0

    async def tell(done: float, of: float | None, message: str) -> None:
        nonlocal told
        told += 1
        await progress(step.number - 1 / (told + 1), total, f"{step.number}/{total} {message}")

    return tell


@tool(
    title="Run several steps",
    effect="act",
    bundles=("browser_automation",),
    gates=("claim.owner", "setup.bootstrap", "setup.shared_agent_id"),
    lock="turn",
    deadline_ms=lambda p: p.total_timeout_ms,
    private_arguments=PRIVATE,
    check=plan,
)
async def run_sequence(ctx: ToolContext, p: SequenceParams) -> SequenceResult:
    """Runs up to 50 steps on one tab, each gated and recorded like a call of its own. Every step is checked before the
    first runs. Stops at the first problem unless a step says otherwise, and always behind an unverified commit."""
    steps = [_on_tab(step, p, ctx.tab.target_id) for step in plan(p, ctx.catalogue)]
    began = ctx.ports.clock.monotonic_ms()
    ctx.evidence.action_dispatched = False
    run = _Run(ctx, len(steps), began + p.total_timeout_ms, [], [])
    for step in steps:
        if not await run.take(step):
            break
    return _told(run, max(0, round(ctx.ports.clock.monotonic_ms() - began)))


def _all_proven(run: _Run, status: Status) -> bool:
    """Whether everything was done and every act of it was verified."""
    return status == "ok" and bool(run.acts) and all(state == "verified" for state in run.acts)


def _told(run: _Run, duration_ms: int) -> SequenceResult:
    whole = overall(run.outcomes, run.total)
    run.ctx.evidence.verification = whole.verify_state
    run.ctx.evidence.signals = Signals(high_signal=_all_proven(run, whole.status))
    first = next((entry.i for entry, one in zip(run.trace, run.outcomes, strict=True) if not one.passed), None)
    failed_at = run.stopped_at or first
    problem = None if failed_at is None or run.out_of_time else run.outcomes[failed_at - 1]
    last: Mapping[str, Json] = {} if run.last is None else run.last.structured
    if run.last is not None:
        run.ctx.evidence.told.extend(run.last.told)
    # Only an answer that counts as an error speaks like one; otherwise the trace and `last` tell.
    error = last if whole.status in ("failed", "blocked", "not_found") else {}
    return SequenceResult(
        ok=whole.status == "ok",
        status=whole.status,
        target_id=run.ctx.tab.target_id,
        url=run.ctx.tab.url[:2000],
        reason_code="call.deadline" if run.out_of_time else problem.reason_code if problem else None,
        stage="dispatch" if run.out_of_time else problem.stage if problem else "done",
        retryable=problem.retryable if problem else False,
        retry_advice=whole.retry_advice,
        action_dispatched=any(one.dispatched for one in run.outcomes),
        effect=run.effect,
        verify_state=whole.verify_state,
        completed_steps=sum(one.passed for one in run.outcomes),
        total_steps=run.total,
        failed_at=failed_at,
        duration_ms=duration_ms,
        trace=run.trace,
        last=cast(dict[str, JsonValue], dict(last)),
        error_code=cast(int | None, error.get("errorCode")),
        message=cast(str | None, error.get("message")),
        hint=cast(str | None, error.get("hint")),
        last_text="" if run.last is None else run.last.text,
        pictures=() if run.last is None else run.last.images,
    )
