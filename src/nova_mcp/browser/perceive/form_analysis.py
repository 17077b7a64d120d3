"""Forms as something to fill in: each control with its label, its rules and the tool that sets it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.browser.perceive.composition import COUNTS_TOKENS, View, head, within
from nova_mcp.browser.perceive.element_lines import is_plain_role, quoted
from nova_mcp.browser.perceive.element_ranking import line_cost, longest_that_fits
from nova_mcp.browser.perceive.report import PerceiveReport, ShownControl, ShownForm
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, SeenForm, Spot

MAX_OPTIONS: Final = 20
_SHOWN_OPTIONS: Final = 6
_CHOSEN_ROLES: Final = frozenset({"checkbox", "radio", "switch", "combobox", "listbox"})
_PRESSED: Final = frozenset({"submit", "image", "button", "reset"})


@dataclass(frozen=True, slots=True)
class ControlDetails:
    """What only a closer look at a control tells."""

    autocomplete: str = ""
    options: tuple[str, ...] = ()
    secret: bool = False
    typable: bool = False
    option_count: int = 0


def read_details(raw: Answer) -> ControlDetails:
    return ControlDetails(raw["autocomplete"], tuple(raw["options"]), raw["secret"], raw["typable"], raw["optionCount"])


def fields_of(view_elements: Sequence[SeenElement]) -> list[SeenElement]:
    """Controls that hold a value, and the buttons that submit them; dialogs first, else in document order."""
    return sorted(filter(_is_field, view_elements), key=lambda element: not element.in_dialog)


def _is_field(element: SeenElement) -> bool:
    return not element.behind and (element.is_control or element.submits or element.facts.type == "file")


def compose_forms(view: View, details: Mapping[Spot, ControlDetails], max_tokens: int) -> PerceiveReport:
    """Forms in order with their controls in order, as many as the budget holds."""
    bare = within(head(view, "form_analysis", max_tokens))
    fields = [element for element in fields_of(view.scan.elements) if element.spot in details]
    controls = [(element, _control(view, element, details[element.spot])) for element in fields]
    room = max(0, max_tokens - bare.est_tokens - COUNTS_TOKENS)
    count, spent = 0, 0
    for _, control in controls:
        spent += line_cost(control.line)
        if spent > room:
            break
        count += 1
    total = sum(map(_is_field, view.scan.elements))

    def build(shown: int) -> PerceiveReport:
        completeness = replace(bare.completeness, shown=shown, total=total) if bare.completeness else None
        return replace(bare, forms=_grouped(view, controls[:shown]), completeness=completeness)

    return build(longest_that_fits(count, lambda shown: build(shown).est_tokens <= max_tokens))


def _grouped(view: View, controls: Sequence[tuple[SeenElement, ShownControl]]) -> tuple[ShownForm, ...]:
    groups: dict[Spot, list[ShownControl]] = {}
    for element, control in controls:
        groups.setdefault((element.facts.frame, element.form), []).append(control)
    return tuple(_form(view.scan.forms.get(spot), tuple(members)) for spot, members in groups.items())


def _form(form: SeenForm | None, controls: tuple[ShownControl, ...]) -> ShownForm:
    if form is None:
        return ShownForm("", "", controls, "controls outside a form")
    kind = "form" if form.is_form else "region"
    name = f" {quoted(form.name, 60)}" if form.name else ""
    method = form.method if form.method in ("get", "post", "dialog") else ""
    return ShownForm(form.name, method, controls, f"{kind}{name}{f' {method}' if method else ''}")


def _control(view: View, element: SeenElement, details: ControlDetails) -> ShownControl:
    ref, flags = view.names[element.spot], element.flags
    kind = element.facts.type or (
        element.facts.tag if element.facts.tag in ("select", "textarea") else element.facts.role
    )
    control = ShownControl(
        ref=ref,
        label=element.facts.name,
        type=kind if is_plain_role(kind.replace("-", "")) else "text",
        required="required" in flags,
        invalid="invalid" in flags,
        value=element.value,
        options=details.options[:MAX_OPTIONS],
        option_count=details.option_count,
        preferred_tool=preferred_tool(view, element, details),
        autocomplete=details.autocomplete[:60],
        line="",
    )
    return replace(control, line=_line(control, element))


def preferred_tool(view: View, element: SeenElement, details: ControlDetails) -> str:
    """The one tool that sets this control and checks that it is set."""
    facts = element.facts
    if facts.type == "file":
        return "nova.file_upload"
    if details.secret:
        return "nova.type_selector_secret"
    if facts.tag == "select" or (facts.role in _CHOSEN_ROLES and not details.typable):
        return "nova.choose_option"
    if facts.type in _PRESSED or element.submits:
        point = view.ranking.commits.get(element.spot)
        return point.suggested_tool if point is not None else "nova.click_selector"
    return "nova.type_selector"


def _line(control: ShownControl, element: SeenElement) -> str:
    parts = [control.ref, control.type, quoted(control.label, 60)]
    if control.value:
        parts.append("=" + quoted(control.value, 30))
    flags = [flag for flag in ("disabled", "checked", "required", "invalid") if flag in element.flags]
    if flags:
        parts.append(f"[{' '.join(flags)}]")
    if control.options:
        shown = ", ".join(quoted(option, 20) for option in control.options[:_SHOWN_OPTIONS])
        rest = max(control.option_count, len(control.options)) - _SHOWN_OPTIONS
        parts.append(f"options {shown}{f' and {rest} more' if rest > 0 else ''}")
    if control.autocomplete:
        parts.append(f"autocomplete {quoted(control.autocomplete, 30)}")
    parts.append(control.preferred_tool.removeprefix("nova."))
    return " ".join(parts)
