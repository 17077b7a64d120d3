"""Setting controls: choose an option, switch something on or off."""

from collections.abc import Iterator
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from nova_mcp.browser.act.action_report import Judgement
from nova_mcp.browser.act.choose import Choice, choose
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.tools.browse.act_support import (
    ACTING_GATES,
    SHOWN_TEXT,
    Answering,
    ElementResult,
    act_deadline,
    manner_of,
    reserves,
    tell,
    wish_of,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import ActParams, ContractParams, OneElementParams
from nova_mcp.tools.guarded.guard import CallGuard
from nova_mcp.tools.spec import TargetParams, tool, widened

_LABEL: Final = 1000
_OPENING_MS: Final = 10_000
_WISHES: Final = ("text", "value", "index", "texts", "values", "checked")


class ChooseParams(TargetParams, OneElementParams, ActParams, ContractParams):
    text: str | None = Field(None, min_length=1, max_length=_LABEL, description="label of the option")
    value: str | None = Field(None, max_length=_LABEL)
    index: int | None = Field(None, ge=0)
    texts: list[Annotated[str, Field(min_length=1, max_length=_LABEL)]] | None = Field(None, max_length=50)
    values: list[Annotated[str, Field(max_length=_LABEL)]] | None = Field(None, max_length=50)
    checked: bool | None = Field(None, description="for checkbox, switch, radio")

    @model_validator(mode="after")
    def _one_wish(self) -> Self:
        if sum(getattr(self, name) is not None for name in _WISHES) != 1:
            raise ValueError(f"give exactly one of {', '.join(_WISHES)}")
        return self

    def choice(self) -> Choice:
        return Choice(
            self.text,
            self.value,
            self.index,
            None if self.texts is None else tuple(self.texts),
            None if self.values is None else tuple(self.values),
            self.checked,
        )


class ChooseResult(ElementResult):
    control_kind: str
    before: bool | str | list[str] | None
    after: bool | str | list[str] | None
    option_count: int

    def _details(self) -> Iterator[str]:
        yield f"{_shown(self.before)} → {_shown(self.after)}"
        yield from super()._details()


def _shown(state: bool | str | list[str] | None) -> str:
    if isinstance(state, bool):
        return "on" if state else "off"
    if isinstance(state, list):
        return quoted(", ".join(state), SHOWN_TEXT)
    return "nothing" if state is None else quoted(state, SHOWN_TEXT)


@tool(
    title="Choose an option",
    effect="act",
    bundles=("core", "browser_automation", "form_submission"),
    gates=ACTING_GATES,
    repeat_safe=True,
    # A list is found, opened and pressed; each may wait.
    deadline_ms=lambda p: act_deadline(p) + 2 * p.timeout_ms + _OPENING_MS,
    guards=reserves,
)
async def choose_option(ctx: ToolContext, p: ChooseParams) -> ChooseResult:
    """Sets a select, list, radio button, checkbox or switch and reads it back; what is set already is left alone.
    Lists made by script are opened first."""
    ctx.tab.require_ready()
    guard = CallGuard(ctx, wish_of(p))
    chosen = await choose(ctx.tab, p.element(), p.choice(), manner_of(p, guard), ctx.ports)
    known = Judgement(
        chosen.verdict, repeat_safe=True, differs_reason="option.not_applied", already_set=chosen.already_set
    )
    return widened(
        await tell(ctx, guard, chosen.acted, Answering("set", known, supplies=True)),
        ChooseResult,
        control_kind=chosen.kind,
        before=chosen.before,
        after=chosen.after,
        option_count=chosen.option_count,
    )
