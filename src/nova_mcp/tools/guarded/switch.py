"""Switching the model or the workspace a page works with, and Nova's own sandboxes; proven by the label shown."""

from dataclasses import replace
from typing import Annotated, Literal, Self

import anyio
from pydantic import Field, model_validator

from nova_mcp.browser.act.action import Acted, Manner, looked_at
from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.choose import Choice, choose
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.commits.commit_points import CommitKind
from nova_mcp.browser.commits.discover import Picker, PickerKind, PickerOption, find_option, find_picker
from nova_mcp.errors import NotFound, Precondition
from nova_mcp.tools.browse.act_support import ACTING_GATES, Answering, ElementResult, act_deadline, manner_of, tell
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.guard import CallGuard, Preparing
from nova_mcp.tools.guarded.submit import GuardedParams
from nova_mcp.tools.results import EffectSeen
from nova_mcp.tools.spec import tool, widened
from nova_mcp.verification.contracts import templates
from nova_mcp.verification.witness import FactHints

SWITCHING: frozenset[CommitKind] = frozenset({"switch_model", "switch_sandbox", "confirm", "submit"})
LIST_POLL_S = 0.1

Label = Annotated[str, Field(min_length=1, max_length=200)]


class SwitchResult(ElementResult):
    before: str | None
    after: str | None


class SwitchModelParams(GuardedParams):
    model: Label


@tool(
    title="Switch the model",
    effect="act",
    bundles=("form_submission",),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + 2 * p.timeout_ms + p.window_ms("select_option"),
    guards=lambda p: p.window_ms("select_option"),
)
async def guarded_switch_model(ctx: ToolContext, p: SwitchModelParams) -> SwitchResult:
    """Chooses a model in the page's own picker, by its visible label, and checks that the page shows it."""
    return await _switch(ctx, p, "model", p.model)


class SwitchSandboxParams(GuardedParams):
    workspace: Label | None = Field(None, description="label in the page's own workspace switcher")
    sandbox_id: str | None = Field(None, pattern=r"^[A-Z]{1,4}$", description="a Nova sandbox")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.workspace is None) == (self.sandbox_id is None):
            raise ValueError("give exactly one of workspace and sandboxId")
        if self.sandbox_id is not None and self.locator() is not None:
            raise ValueError("selector and ref go with workspace only")
        return self


@tool(
    title="Switch the workspace",
    effect="act",
    bundles=("form_submission", "sandboxes"),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + 2 * p.timeout_ms + p.window_ms("select_option"),
    guards=lambda p: None if p.workspace is None else p.window_ms("select_option"),
    target="optional",
)
async def guarded_switch_sandbox(ctx: ToolContext, p: SwitchSandboxParams) -> SwitchResult:
    """Chooses a workspace in the page's own switcher, or makes a Nova sandbox the current one."""
    if p.workspace is not None:
        if ctx.evidence.tab is None:
            # Says that there is no tab to look for the switcher in.
            await ctx.browser.targets.resolve(ctx.caller, p.target_id)
        return await _switch(ctx, p, "workspace", p.workspace)
    return await _switch_nova(ctx, p.sandbox_id or "")


async def _switch(ctx: ToolContext, p: GuardedParams, kind: PickerKind, label: str) -> SwitchResult:
    tab = ctx.tab
    tab.require_ready()
    picker = await find_picker(tab, kind, p.locator())
    already = _same_label(picker.label, label)
    option = None if already else await _option(ctx, p, picker, label)
    # As the page itself writes it: the label that will show is the option's own.
    shown = picker.label if option is None else option.label
    fact: Literal["model", "sandbox"] = "model" if kind == "model" else "sandbox"
    wish = replace(p.wish(templates.switch(fact, shown)), hints=FactHints(label=shown), kinds=SWITCHING)
    guard = CallGuard(ctx, wish)
    if option is None:
        acted = await looked_at(tab, picker.control.locator, p.timeout_ms)
    else:
        acted = await _choose(ctx, picker, option, manner_of(p, guard))
    known = Judgement(already_set=already, repeat_safe=True)
    told = await tell(ctx, guard, acted, Answering("switched with", known, detail=p.output_detail))
    after = shown if already or told.verify_state == "verified" else await _label_now(ctx, p, kind)
    return widened(told, SwitchResult, before=picker.label, after=after)


def _same_label(left: str, right: str) -> bool:
    return " ".join(left.split()).casefold() == " ".join(right.split()).casefold()


async def _option(ctx: ToolContext, p: GuardedParams, picker: Picker, label: str) -> PickerOption:
    """The entry in the picker's list, which is opened for that where it has to be."""
    if picker.native:
        return await find_option(ctx.tab, label, picker)
    if not picker.is_open:
        opening = Manner(timeout_ms=p.timeout_ms, guard=Preparing(ctx))
        await click(ctx.tab, picker.control.locator, Press(), opening, ctx.ports)
    option = await _appearing(ctx, p, picker, label)
    if option.disabled:
        raise Precondition(
            "option.disabled",
            f"{option.control.ref} can't be chosen now.",
            "Choose another one.",
            stage="actionability",
        )
    return option


async def _choose(ctx: ToolContext, picker: Picker, option: PickerOption, manner: Manner) -> Acted:
    if option.native:
        chosen = await choose(ctx.tab, picker.control.locator, Choice(index=option.index), manner, ctx.ports)
        return chosen.acted
    return await click(ctx.tab, option.control.locator, Press(), manner, ctx.ports)


async def _appearing(ctx: ToolContext, p: GuardedParams, picker: Picker, label: str) -> PickerOption:
    """The list may take a moment to open."""
    end = anyio.current_time() + p.timeout_ms / 1000
    while True:
        try:
            return await find_option(ctx.tab, label, picker)
        except NotFound:
            if anyio.current_time() >= end:
                raise
        await anyio.sleep(LIST_POLL_S)


async def _label_now(ctx: ToolContext, p: GuardedParams, kind: PickerKind) -> str | None:
    try:
        return (await find_picker(ctx.tab, kind, p.locator())).label
    except (NotFound, Precondition):
        return None


async def _switch_nova(ctx: ToolContext, sandbox_id: str) -> SwitchResult:
    """No page is touched: the caller's current tab becomes the newest one of that sandbox."""
    targets = ctx.browser.targets
    current = targets.active_of(ctx.caller.owner)
    tab = await targets.resolve(ctx.caller, sandbox_id)
    targets.activate(ctx.caller, tab)
    before = None if current is None else current.sandbox_id
    return SwitchResult(
        target_id=tab.target_id,
        url=tab.url,
        action_dispatched=False,
        dispatch_proof="none",
        effect=EffectSeen(observed=False, channels=[]),
        verify_state="verified",
        rev=tab.rev,
        element=f"sandbox {sandbox_id}",
        already_set=before == sandbox_id,
        verb="switched to",
        before=before,
        after=sandbox_id,
    )
