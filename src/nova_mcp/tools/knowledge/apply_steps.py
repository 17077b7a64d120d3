"""Carries out the steps of a playbook: each finds its element, is checked at the last moment, and is sent once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from nova_mcp.browser.act.action import Acted, Guard, Manner, Scene, left_the_page
from nova_mcp.browser.act.action_report import ActionReport, Judgement, build_report
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.press_keys import Strokes, press_keys
from nova_mcp.browser.act.secret_entry import SecretGuard
from nova_mcp.browser.act.type_text import Text, type_text
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.read.knowledge_check import armed, look
from nova_mcp.core.page.keys import Stroke, parse_key
from nova_mcp.core.urls import page_host
from nova_mcp.core.values import Json
from nova_mcp.errors import Killed, NovaError, Precondition
from nova_mcp.memory.knowledge.apply_rules import (
    Go,
    LiveTarget,
    Plan,
    Step,
    Stop,
    another_element,
    before_step,
    choose,
    takes_text,
)
from nova_mcp.memory.knowledge.matching.page_facts import print_of
from nova_mcp.memory.knowledge.model import ElementPrint, PhenomenonType, Problem
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.guard import CallGuard, Preparing
from nova_mcp.tools.spec import Part
from nova_mcp.verification.kill_switches import apply_kill
from nova_mcp.verification.model import Verdict

# How long an element may take to show itself; a second choice is taken only after the first had its time.
PATIENCE_MS: Final = 3000
FIRST_CHOICE_MS: Final = 1000
_AGAIN_S: Final = 0.1
_ESCAPE: Final = "Escape"


_LOOK_AGAIN: Final = (
    "Look at the page with nova.perceive; nova.revalidate says what has changed and may propose a repair."
)


class NotThisElement(Precondition):
    """A learned selector finds nothing any more, or something that looks like another element."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code, problem.message, _LOOK_AGAIN, stage="precondition")


class Declined(Exception):
    """A control that Nova never presses, whatever was stored about it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


class StepResult(Part):
    index: int
    action: str
    selector: str | None
    used_fallback: bool
    ok: bool
    ms: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the caller brings along, and how long everything may take."""

    values: Mapping[str, str]
    until_ms: float


@dataclass(frozen=True, slots=True)
class StepsOf:
    """What the steps have to know of the entry they belong to; `unseen` are selectors that are tried for the first
    time."""

    kind: PhenomenonType
    unseen: frozenset[str] = frozenset()


class StepGuard:
    """Looks once more at the very element before input reaches it, then leaves it to the guard that fits the step."""

    def __init__(self, ctx: ToolContext, step: Step, entry: StepsOf, inner: "Guards") -> None:
        self._ctx = ctx
        self._step = step
        self._entry = entry
        self._guards = inner
        self._inner: Guard | None = None
        self.seen: ElementPrint | None = None

    async def admit(self, scene: Scene) -> None:
        await self._look(scene)
        self._inner = self._guards.for_scene(scene, self._step)
        await self._inner.admit(scene)

    async def touch(self, scene: Scene) -> None:
        await self._look(scene)
        await self._chosen.touch(scene)
        self._keep_values()

    async def commit(self, scene: Scene) -> None:
        await self._look(scene)
        await self._chosen.commit(scene)
        self._keep_values()

    def _keep_values(self) -> None:
        """What one field takes says nothing about the values for the others, so all of them stay out of the ledger."""
        self._ctx.evidence.input_is_harmless = False

    async def follow(self, scene: Scene) -> Verdict | None:
        return await self._chosen.follow(scene)

    async def end(self) -> None:
        if self._inner is not None:
            await self._inner.end()

    @property
    def _chosen(self) -> Guard:
        if self._inner is None:
            raise LookupError("a step is admitted before it is sent")
        return self._inner

    async def _look(self, scene: Scene) -> None:
        named = bool(self._step.selectors)
        if not named and not stroke_of(self._step).activates:
            return
        try:
            found = await armed(scene.tab, scene.prepared.frame_id)
        except DocumentChanged:
            raise navigating() from None
        if found is None:
            raise left_the_page(scene.prepared.ref)
        # Whether it commits is for the guard behind this one to judge, which can say what to do about it.
        self.seen = print_of(found.seen)
        if not named and takes_text(self.seen):
            return
        target = LiveTarget(self.seen, found.control, first=self._step.action.selector in self._entry.unseen)
        problem = before_step(self._step, target, self._entry.kind, has_contract=True)
        layer = scene.prepared.layer
        consents = layer is not None and (layer.kind, layer.label) == ("consent", "accept")
        if consents or found.consents:
            problem = Problem("pks.accept_refused", "This control gives consent; Nova never does.")
        if problem is None:
            return
        raise NotThisElement(problem) if problem.code == "pks.element_changed" else Declined(problem)


class Guards:
    """One contract for the whole playbook: it goes with the first step that commits something, else with the last."""

    def __init__(self, ctx: ToolContext, contract: CallGuard, last: int) -> None:
        self._ctx = ctx
        self._last = last
        self.contract = contract
        self.used_by: int | None = None

    def for_scene(self, scene: Scene, step: Step) -> Guard:
        if self.used_by is None and (scene.commit_point() is not None or step.index == self._last):
            self.used_by = step.index
            return self.contract
        return Preparing(self._ctx)


@dataclass(slots=True)
class Running:
    """A playbook under way: what was done so far, and where it stopped."""

    ctx: ToolContext
    plan: Plan
    entry: StepsOf
    guards: Guards
    inputs: Inputs
    results: list[StepResult] = field(default_factory=list)
    reports: list[ActionReport] = field(default_factory=list)
    failed_at: int | None = None
    used_fallback: bool = False
    # What the selectors of finished steps have found.
    met: dict[str, ElementPrint | None] = field(default_factory=dict)

    @property
    def dispatched(self) -> bool:
        return any(report.action_dispatched for report in self.reports)

    @property
    def replaced(self) -> str | None:
        """The first choice of the last step, where another one had to do."""
        last = self.results[-1] if self.results else None
        if last is None or not last.used_fallback:
            return None
        return next(step.action.selector for step in self.plan.steps if step.index == last.index)

    async def run(self) -> None:
        """Every step in order; the first that fails ends it, with an error where nothing can be said of the page."""
        for step in self.plan.steps:
            began = self.ctx.ports.clock.monotonic_ms()
            chosen: Go | None = None
            try:
                await refuse_killed(self.ctx)
                chosen = await self._found(step)
                report = await self._done(step, chosen)
            except NovaError as error:
                self._note(step, chosen, began, ok=False)
                error.details = {**error.details, **self.told()}
                raise
            except Declined:
                self._note(step, chosen, began, ok=False)
                raise
            passed = report is None or _passed(report)
            self._note(step, chosen, began, ok=passed)
            if report is not None:
                self.reports.append(report)
                self.used_fallback |= chosen.used_fallback
            if not passed:
                return

    def told(self) -> dict[str, Json]:
        """How far it came, for an answer that is an error."""
        return {
            "stepsExecuted": sum(one.ok for one in self.results),
            "failedStepIndex": self.failed_at,
            "stepResults": [one.model_dump(mode="json", by_alias=True) for one in self.results],
        }

    def _left_ms(self) -> int:
        return int(self.inputs.until_ms - self.ctx.ports.clock.monotonic_ms())

    def _require_time(self, step: Step) -> int:
        if (left := self._left_ms()) < 1:
            raise Precondition(
                "pks.playbook_timeout",
                f"The time was up before step {step.index + 1} could be done.",
                stage="dispatch",
            )
        return left

    def _note(self, step: Step, chosen: Go | None, began: float, *, ok: bool) -> None:
        if not ok:
            self.failed_at = step.index
        self.results.append(
            StepResult(
                index=step.index,
                action=step.action.kind,
                selector=step.action.selector if chosen is None else chosen.selector,
                used_fallback=chosen is not None and chosen.used_fallback,
                ok=ok,
                ms=max(0, round(self.ctx.ports.clock.monotonic_ms() - began)),
            )
        )

    async def _found(self, step: Step) -> Go:
        """The selector that names one element, once it does and looks as it was learned. What can't be pressed or typed
        into because it is another thing altogether is told as that, and counts as that."""
        self._require_time(step)
        clock, began = self.ctx.ports.clock, self.ctx.ports.clock.monotonic_ms()
        patience = max(PATIENCE_MS, step.action.wait_ms) if step.action.kind == "wait" else PATIENCE_MS
        while True:
            seen = await look(self.ctx.tab, step.selectors) if step.selectors else {}
            found = choose(step, {selector: one.matches for selector, one in seen.items() if not one.unread})
            waited = clock.monotonic_ms() - began
            shown = seen[found.selector].seen if isinstance(found, Go) and found.selector is not None else None
            if shown is not None and (problem := another_element(step, print_of(shown))) is not None:
                found, patience = Stop(problem), FIRST_CHOICE_MS
            if isinstance(found, Go) and (not found.used_fallback or waited >= FIRST_CHOICE_MS):
                return found
            if isinstance(found, Stop) and waited >= patience:
                raise NotThisElement(found.problem)
            self._require_time(step)
            await anyio.sleep(_AGAIN_S)

    async def _done(self, step: Step, chosen: Go) -> ActionReport | None:
        """The report of a step that acts; a wait leaves none."""
        if step.action.kind == "wait":
            if chosen.selector is None:
                await anyio.sleep(max(0, min(step.action.wait_ms, self._left_ms())) / 1000)
            else:
                self.met.setdefault(chosen.selector)
            return None
        guard = StepGuard(self.ctx, step, self.entry, self.guards)
        acted, known = await self._sent(step, chosen, guard)
        if chosen.selector is not None:
            self.met[chosen.selector] = guard.seen
        if self.guards.used_by == step.index:
            return await self.guards.contract.reported(acted, known)
        return build_report(acted, self.ctx.tab, known)

    async def _sent(self, step: Step, chosen: Go, guard: Guard) -> tuple[Acted, Judgement]:
        tab, ports = self.ctx.tab, self.ctx.ports
        manner = Manner(timeout_ms=min(PATIENCE_MS, self._require_time(step)), guard=guard)
        locator = None if chosen.selector is None else Locator(selector=chosen.selector)
        if step.action.kind == "type" and locator is not None:
            return await self._typed(step, locator, manner)
        if step.action.kind in ("click", "dismiss") and locator is not None:
            return await click(tab, locator, Press(), manner, ports), Judgement()
        keyed = await press_keys(tab, locator, Strokes(stroke_of(step)), manner, ports)
        return keyed.acted, Judgement()

    async def _typed(self, step: Step, locator: Locator, manner: Manner) -> tuple[Acted, Judgement]:
        action, ctx = step.action, self.ctx
        if action.value_source == "secret":
            secret = await ctx.secrets.find(action.value_name)
            manner = replace(manner, guard=SecretGuard(manner.guard, secret))
            text = secret.value
        else:
            text = self.inputs.values[action.value_name]
        typed = await type_text(ctx.tab, locator, Text(text), manner, ctx.ports)
        if typed.acted.observation is not None:
            ctx.evidence.flags.add("input_supplied")
        known = Judgement(typed.verdict, repeat_safe=typed.repeat_safe, differs_reason="type.value_mismatch")
        return typed.acted, known


def stroke_of(step: Step) -> Stroke:
    return parse_key(step.action.key or _ESCAPE)


def _passed(report: ActionReport) -> bool:
    """Whether to go on: nothing was proven against the step, and what it commits is settled."""
    if report.verify_state == "failed" or report.status in ("failed", "blocked"):
        return False
    if report.commit is None:
        return True
    kept = "skipped" if report.status == "ok" else "verified_success"
    return report.commit.verification_status in ("verified_success", kept)


async def refuse_killed(ctx: ToolContext) -> None:
    """Asked before every step: an operator who has just pulled the switch must not see one more go out."""
    scope = await ctx.verifier.db.read(apply_kill, page_host(ctx.tab.url))
    if scope is None:
        return
    where = "everywhere" if scope == "global" else "on this site"
    raise Killed(
        "pks.kill_switch",
        f"The operator has switched applying what was learned off {where}.",
        stage="gate",
    )
