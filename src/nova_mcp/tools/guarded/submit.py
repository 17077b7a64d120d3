"""Guarded macros for forms and messages: each finds what it needs, acts once and proves what came of it."""

import re
from dataclasses import replace
from typing import Final

from pydantic import Field

from nova_mcp.browser.act.action import Acted, Manner
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.type_text import Text, Typed, type_text
from nova_mcp.browser.commits.commit_points import CommitKind
from nova_mcp.browser.commits.discover import Composer, FoundControl, find_composer, find_send, find_submit
from nova_mcp.browser.observe.page_witness import route_of
from nova_mcp.errors import Precondition
from nova_mcp.tools.browse.act_support import (
    ACTING_GATES,
    Answering,
    ElementResult,
    act_deadline,
    manner_of,
    tell,
    wish_of,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import (
    REF_PATTERN,
    ActParams,
    ContractParams,
    DetailParams,
    DialogParams,
    MaybeElementParams,
)
from nova_mcp.tools.guarded.guard import CallGuard, Wish, css_of
from nova_mcp.tools.spec import TargetParams, tool, widened
from nova_mcp.verification.contracts import templates
from nova_mcp.verification.contracts.codec import tighten
from nova_mcp.verification.contracts.evaluate import watched_at_most_ms
from nova_mcp.verification.model import ActionKind, Contract
from nova_mcp.verification.witness import FactHints

BUNDLES: Final = ("core", "form_submission")
SENDING: Final[frozenset[CommitKind]] = frozenset({"send", "submit"})
_REF: Final = re.compile(REF_PATTERN)


class GuardedParams(TargetParams, MaybeElementParams, ActParams, ContractParams, DetailParams):
    """What every macro takes: an element where one must be named, and a contract that tightens the macro's own."""

    def window_ms(self, kind: ActionKind) -> int:
        """How long the outcome may be watched for, whatever the page turns out to be."""
        return watched_at_most_ms(self.tightening(Contract(action_kind=kind)))

    def tightening(self, own: Contract) -> Contract:
        given = self.contract()
        return own if given is None else tighten(own, given)

    def wish(self, own: Contract, kinds: frozenset[CommitKind] | None = None) -> Wish:
        """The macro's own contract, tightened by the caller's; `kinds` are the controls it may press."""
        return replace(wish_of(self), contract=self.tightening(own), commits=True, kinds=kinds)


class SubmitParams(GuardedParams, DialogParams):
    pass


@tool(
    title="Submit a form",
    effect="act",
    bundles=BUNDLES,
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + p.window_ms("submit_form"),
    guards=lambda p: p.window_ms("submit_form"),
)
async def guarded_submit_form(ctx: ToolContext, p: SubmitParams) -> ElementResult:
    """Submits one form, once, and says whether it was accepted, refused or unclear. Without selector or ref: the only
    form with a submit control."""
    tab = ctx.tab
    tab.require_ready()
    control = await find_submit(tab, p.locator())
    own = templates.submit_form(route_of(tab.url), tab.page_epoch, _css(ctx, control))
    guard = CallGuard(ctx, p.wish(own))
    acted = await click(tab, control.locator, Press(), manner_of(p, guard), ctx.ports)
    return await tell(ctx, guard, acted, Answering("submitted", detail=p.output_detail))


def _css(ctx: ToolContext, control: FoundControl) -> str | None:
    known = ctx.tab.perception.get(control.ref)
    return None if known is None or known.selector is None else css_of(known.selector.selector)


async def press_enter(ctx: ToolContext, field: FoundControl, manner: Manner) -> Acted:
    """Send by Enter in a field that already holds what is to be sent."""
    typed = await type_text(ctx.tab, field.locator, Text("", clear=False, press_enter=True), manner, ctx.ports)
    return typed.acted


def insist(typed: Typed, field: FoundControl) -> None:
    """Nothing may be sent with something else in the field."""
    if not typed.value_matches:
        raise Precondition(
            "type.not_editable",
            f"{field.ref} does not hold what was typed into it.",
            "Look at the page with nova.perceive; Nova pressed nothing, but the page may have sent it by itself.",
            stage="precondition",
        )


# -- sending a message


class SendParams(GuardedParams):
    text: str = Field(min_length=1, max_length=100_000)
    input_selector: str | None = Field(None, min_length=1, max_length=2000, description="selector or ref of the box")

    def box(self) -> Locator | None:
        given = self.input_selector
        if given is None:
            return None
        return Locator(ref=given) if _REF.fullmatch(given) else Locator(selector=given)


class SendResult(ElementResult):
    composer: str
    typed_chars: int


@tool(
    title="Send a message",
    effect="act",
    bundles=BUNDLES,
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + 2 * p.timeout_ms + len(p.text) // 4 + p.window_ms("send_message"),
    guards=lambda p: p.window_ms("send_message"),
    private_arguments=("text",),
)
async def guarded_send_message(ctx: ToolContext, p: SendParams) -> SendResult:
    """Writes a message into the page's message box, sends it once, and says whether it went out."""
    tab = ctx.tab
    tab.require_ready()
    composer = await find_composer(tab, p.box())
    wish = replace(p.wish(templates.send_message(), SENDING), hints=FactHints(text=p.text), sends=True)
    guard = CallGuard(ctx, wish)
    # The commit is judged before a word is written: one that must not be sent leaves the box as it was.
    writing = Manner(timeout_ms=p.timeout_ms, guard=guard.preparing())
    typed = await type_text(tab, composer.control.locator, Text(p.text), writing, ctx.ports)
    acted = typed.acted
    if acted.already_done is None:
        insist(typed, composer.control)
        acted = await _send(ctx, p, composer, manner_of(p, guard))
    told = await tell(ctx, guard, acted, Answering("sent with", supplies=True, detail=p.output_detail))
    return widened(told, SendResult, composer=composer.control.line, typed_chars=typed.typed_chars)


async def _send(ctx: ToolContext, p: SendParams, composer: Composer, manner: Manner) -> Acted:
    """Many pages show the control only once something is written, so it is looked for now."""
    if (given := p.locator()) is not None:
        return await click(ctx.tab, given, Press(), manner, ctx.ports)
    send = await find_send(ctx.tab, composer)
    if send.control is None:
        return await press_enter(ctx, composer.control, manner)
    return await click(ctx.tab, send.control.locator, Press(), manner, ctx.ports)
