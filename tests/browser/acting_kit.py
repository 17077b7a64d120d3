"""Acting without a tool around it: the same code the tools call, with the report they build."""

from dataclasses import dataclass, replace

from nova_mcp.browser.act.action import REFUSES_COMMITS, Guard, Manner
from nova_mcp.browser.act.action_report import ActionReport, Judgement, build_report
from nova_mcp.browser.act.click import Button, Modifier, Press
from nova_mcp.browser.act.click import click as click_element
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.type_text import Method, Text, Typed
from nova_mcp.browser.act.type_text import type_text as type_into
from nova_mcp.browser.observe.host_window import OnDialog
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.clock import Ports


@dataclass(frozen=True)
class ClickOptions:
    button: Button = "left"
    click_count: int = 1
    modifiers: tuple[Modifier, ...] = ()
    timeout_ms: int = 3000
    wait_for_navigation: bool = False
    navigation_timeout_ms: int = 10_000
    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None
    guard: Guard = REFUSES_COMMITS


@dataclass(frozen=True)
class TypeOptions:
    text: str
    clear: bool = True
    method: Method = "auto"
    press_enter: bool = False
    timeout_ms: int = 3000
    wait_for_navigation: bool = False
    navigation_timeout_ms: int = 10_000
    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None
    guard: Guard = REFUSES_COMMITS


@dataclass(frozen=True)
class TypeReport:
    """The report of an action and what became of the text."""

    report: ActionReport
    typed: Typed

    def __getattr__(self, name: str) -> object:
        return getattr(self.report, name)


def _manner(options: ClickOptions | TypeOptions) -> Manner:
    return Manner(
        options.timeout_ms,
        options.wait_for_navigation,
        options.navigation_timeout_ms,
        options.on_dialog,
        options.prompt_text,
        options.guard,
    )


async def click(tab: Tab, locator: Locator, options: ClickOptions, ports: Ports) -> ActionReport:
    press = Press(options.button, options.click_count, options.modifiers)
    acted = await click_element(tab, locator, press, _manner(options), ports)
    return build_report(acted, tab, Judgement())


async def type_text(tab: Tab, locator: Locator, options: TypeOptions, ports: Ports) -> TypeReport:
    text = Text(options.text, clear=options.clear, method=options.method, press_enter=options.press_enter)
    typed = await type_into(tab, locator, text, _manner(options), ports)
    known = Judgement(typed.verdict, repeat_safe=typed.repeat_safe, differs_reason="type.value_mismatch")
    return TypeReport(build_report(typed.acted, tab, known), replace(typed))
