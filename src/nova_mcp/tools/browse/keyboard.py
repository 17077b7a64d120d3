"""Acting with the keyboard: type into one field, press keys."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.press_keys import Strokes, press_keys
from nova_mcp.browser.act.secret_entry import SecretGuard
from nova_mcp.browser.act.type_text import Text, type_text
from nova_mcp.core.page.keys import UnknownKey, belongs_to_browser, parse_key
from nova_mcp.core.tokens import fit_tokens
from nova_mcp.errors import InvalidParams
from nova_mcp.tools.browse.act_support import (
    ACTING_GATES,
    ELEMENT_TOKENS,
    Answering,
    ElementResult,
    act_deadline,
    manner_of,
    reserves,
    tell,
    wish_of,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import (
    ActParams,
    ContractParams,
    DetailParams,
    DialogParams,
    LeadingParams,
    MaybeElementParams,
    OneElementParams,
)
from nova_mcp.tools.guarded.guard import CallGuard
from nova_mcp.tools.spec import RARE, TargetParams, maybe, tool, widened

SHOWN_VALUE = 200
_SECRET_MS: Final = 2500


class TypeResult(ElementResult):
    value_matches: bool | None
    actual_value: str | None = maybe()
    method_used: str
    typed_chars: int


class TypeParams(TargetParams, OneElementParams, ActParams, LeadingParams, DialogParams, ContractParams, DetailParams):
    text: str = Field(max_length=100_000)
    clear: bool = True
    method: Literal["auto", "fill", "keys"] = Field("auto", json_schema_extra=RARE)
    press_enter: bool = False


@tool(
    title="Type",
    effect="act",
    bundles=("core", "browser_automation", "form_submission"),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + len(p.text) // 4,
    private_arguments=("text",),
    guards=reserves,
)
async def type_selector(ctx: ToolContext, p: TypeParams) -> TypeResult:
    """Types into one field and reads it back; Enter follows only if the field holds exactly that text."""
    ctx.tab.require_ready()
    guard = CallGuard(ctx, wish_of(p))
    text = Text(p.text, clear=p.clear, method=p.method, press_enter=p.press_enter)
    typed = await type_text(ctx.tab, p.element(), text, manner_of(p, guard), ctx.ports)
    known = Judgement(typed.verdict, repeat_safe=typed.repeat_safe, differs_reason="type.value_mismatch")
    verb = f"typed {typed.typed_chars} characters into"
    answering = Answering(verb, known, supplies=True, detail=p.output_detail)
    return widened(
        await tell(ctx, guard, typed.acted, answering),
        TypeResult,
        value_matches=typed.value_matches,
        actual_value=typed.actual_value[:SHOWN_VALUE] if typed.value_matches is False else None,
        method_used=typed.method_used,
        typed_chars=typed.typed_chars,
    )


class SecretParams(TargetParams, OneElementParams, ActParams, ContractParams):
    secret_name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    clear: bool = True
    press_enter: bool = False


class SecretResult(ElementResult):
    secret_name: str
    value_matches: bool | None


@tool(
    title="Type a secret",
    effect="act",
    bundles=("form_submission",),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + _SECRET_MS,
    guards=reserves,
)
async def type_selector_secret(ctx: ToolContext, p: SecretParams) -> SecretResult:
    """Types a secret by name into one field of a site it is meant for; its value is shown to nobody."""
    ctx.tab.require_ready()
    secret = await ctx.secrets.find(p.secret_name)
    guard = CallGuard(ctx, wish_of(p))
    manner = replace(manner_of(p, guard), guard=SecretGuard(guard, secret))
    text = Text(secret.value, clear=p.clear, press_enter=p.press_enter)
    typed = await type_text(ctx.tab, p.element(), text, manner, ctx.ports)
    known = Judgement(typed.verdict, repeat_safe=typed.repeat_safe, differs_reason="type.value_mismatch")
    return widened(
        await tell(ctx, guard, typed.acted, Answering(f"typed the secret {p.secret_name} into", known, supplies=True)),
        SecretResult,
        secret_name=p.secret_name,
        value_matches=typed.value_matches,
    )


class KeyParams(TargetParams, MaybeElementParams, ActParams, DialogParams, ContractParams):
    key: str = Field(pattern=r"^[^\x00-\x1f]{1,64}$", description="Enter, a, Control+Shift+K")
    repeat: int = Field(1, ge=1, le=20)

    @model_validator(mode="after")
    def _known_key(self) -> Self:
        try:
            parse_key(self.key)
        except UnknownKey as unknown:
            raise ValueError(f"key: {unknown}") from None
        return self


class KeyResult(ElementResult):
    focused_element: str | None

    def _details(self) -> Iterator[str]:
        yield f"focus on {fit_tokens(self.focused_element, ELEMENT_TOKENS)}" if self.focused_element else "no focus"
        yield from super()._details()


@tool(
    title="Press a key",
    effect="act",
    bundles=("browser_automation", "form_submission"),
    gates=ACTING_GATES,
    deadline_ms=lambda p: act_deadline(p) + 200 * p.repeat,
    private_arguments=("key",),
    guards=reserves,
)
async def input_key(ctx: ToolContext, p: KeyParams) -> KeyResult:
    """Presses a key on one element, or on whatever has the focus; focusedElement tells what has it afterwards.
    Enter in a form or message box is a commit point."""
    stroke = parse_key(p.key)
    if belongs_to_browser(stroke):
        raise InvalidParams("key.not_allowed", f"{stroke.spelled} belongs to the browser, not to the page.")
    ctx.tab.require_ready()
    guard = CallGuard(ctx, wish_of(p))
    keyed = await press_keys(ctx.tab, p.locator(), Strokes(stroke, p.repeat), manner_of(p, guard), ctx.ports)
    return widened(
        await tell(ctx, guard, keyed.acted, Answering("pressed a key on", supplies=True)),
        KeyResult,
        focused_element=keyed.focused_element,
    )
