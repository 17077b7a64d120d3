"""Finding the form, the login, the message box or the picker that a guarded action is about; never by guessing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nova_mcp.browser.act.locate import Locator, described, find
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.commits.check import form_facts
from nova_mcp.browser.commits.commit_points import is_search_form
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.browser.perceive.scan_values import Answer, SeenElement, answer, read_element, read_form
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

PickerKind: TypeAlias = Literal["model", "workspace"]

_CANDIDATES: Final = 5
_LABELS: Final = 20


@dataclass(frozen=True, slots=True)
class FoundControl:
    """One element, with a ref to act on it by."""

    ref: str
    line: str
    element: SeenElement

    @property
    def name(self) -> str:
        return self.element.facts.name

    @property
    def frame_id(self) -> str | None:
        return self.element.facts.frame or None

    @property
    def locator(self) -> Locator:
        return Locator(ref=self.ref)


@dataclass(frozen=True, slots=True)
class LoginForm:
    """The parts of one sign-in step that are on the page now.

    An identity step has no password field. Without a submit control the form is sent by Enter.
    """

    kind: Literal["password", "identity"]
    username: FoundControl | None
    password: FoundControl | None
    submit: FoundControl | None

    @property
    def by_enter(self) -> bool:
        return self.submit is None

    @property
    def last_field(self) -> FoundControl | None:
        """The field to press Enter in where there is no control to press."""
        return self.password or self.username


@dataclass(frozen=True, slots=True)
class Composer:
    """The box a message is written in; `has_text` when something stands in it already."""

    control: FoundControl
    has_text: bool


@dataclass(frozen=True, slots=True)
class SendControl:
    """What sends a message: a control beside the box, or Enter in it."""

    control: FoundControl | None
    by_enter: bool


@dataclass(frozen=True, slots=True)
class Picker:
    """A control that opens a list of models or workspaces; a native one opens nothing a page could show."""

    kind: PickerKind
    control: FoundControl
    label: str
    native: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class PickerOption:
    """One entry of a list. A native one is chosen by its index in `control`, which is then the list itself."""

    control: FoundControl
    label: str
    native: bool
    index: int | None
    disabled: bool


@dataclass(frozen=True, slots=True)
class _Told:
    """An answer of the page and the frame it came from."""

    said: Answer
    frame: str

    def elements(self, key: str) -> list[SeenElement]:
        return [read_element(raw, self.frame) for raw in self.said[key]]


async def find_submit(tab: "Tab", locator: Locator | None = None) -> FoundControl:
    """The submit control of the form that is named, or of the only form there is."""
    told = await _ask(tab, "findSubmit", locator)
    if told.said["given"] is not None:
        return await _one(tab, read_element(told.said["given"], told.frame))
    forms = told.said["forms"]
    # A search box stands on nearly every page; it is meant only where nothing else can be.
    weighty = [entry for entry in forms if not _searches(entry)]
    submits = [read_element(raw, told.frame) for entry in weighty or forms for raw in entry["submits"]]
    where = "page" if locator is None else "form"
    return await _only(
        tab,
        submits,
        NotFound(
            "selector.not_found",
            f"The {where} shows no form with a submit control.",
            "Name the control with selector or ref; nova.perceive lists what is there.",
        ),
        "controls could submit a form",
    )


def _searches(entry: Answer) -> bool:
    facts = form_facts(read_form(entry["form"]))
    return facts is not None and is_search_form(facts)


async def find_login(tab: "Tab", locator: Locator | None = None) -> LoginForm:
    """The sign-in form: both fields, or the first step that asks for the account alone."""
    told = await _ask(tab, "findLogin", locator)
    forms = told.said["forms"]
    if not forms:
        raise NotFound(
            "selector.not_found",
            "The page shows no form to sign in with." if locator is None else f"{locator.spoken} is no login form.",
            "Open the sign-in page first, or name the form with selector or ref.",
        )
    if len(forms) > 1:
        shown = [raw for form in forms if (raw := _stands_for(form)) is not None]
        raise await _ambiguous(tab, [read_element(raw, told.frame) for raw in shown], "forms could sign in")
    (form,) = forms
    given = told.said["control"]
    submits = [given] if given is not None else form["submits"]
    if len(submits) > 1:
        raise await _ambiguous(
            tab, [read_element(raw, told.frame) for raw in submits], "controls could send the login form"
        )
    parts = {key: form[key] for key in ("username", "password") if form[key] is not None}
    if submits:
        parts["submit"] = submits[0]
    found = await _named(tab, {key: read_element(raw, told.frame) for key, raw in parts.items()})
    return LoginForm(form["kind"], found.get("username"), found.get("password"), found.get("submit"))


def _stands_for(form: Answer) -> Answer | None:
    """What is named when several forms could be meant: the control that sends it, else its field."""
    first: Answer | None = form["submits"][0] if form["submits"] else form["password"] or form["username"]
    return first


async def find_composer(tab: "Tab", input_locator: Locator | None = None) -> Composer:
    """The message box."""
    told = await _ask(tab, "findComposer", input_locator)
    missing = "The page shows no message box." if input_locator is None else f"{input_locator.spoken} takes no message."
    control = await _only(
        tab,
        told.elements("boxes"),
        NotFound("action.no_input_field", missing),
        "boxes could take a message",
    )
    return Composer(control, told.said["text"])


async def find_send(tab: "Tab", composer: Composer) -> SendControl:
    """The control that sends what is in the box; many appear only once something is written."""
    box = composer.control
    told = await _ask(tab, "findSend", box.locator)
    sends = told.elements("sends")
    if not sends and told.said["byEnter"]:
        return SendControl(None, by_enter=True)
    control = await _only(
        tab,
        sends,
        NotFound("action.no_send_control"),
        "controls could send the message",
    )
    return SendControl(control, by_enter=False)


async def find_picker(tab: "Tab", kind: PickerKind, locator: Locator | None = None) -> Picker:
    """The control that shows which model or workspace is chosen and opens the list of them."""
    told = await _ask(tab, "findPicker", locator, {"kind": kind})
    control = await _only(
        tab,
        told.elements("pickers"),
        NotFound(
            "selector.not_found",
            f"The page shows no control to choose a {kind}.",
            "Name it with selector or ref; nova.perceive lists what is there.",
        ),
        f"controls could choose a {kind}",
    )
    (raw,) = told.said["pickers"]
    return Picker(kind, control, raw["label"], raw["native"], raw["open"])


async def find_option(tab: "Tab", label: str, picker: Picker | None = None) -> PickerOption:
    """The entry with that label in the list that is open, or in the native picker."""
    where = None if picker is None else picker.control.locator
    told = await _ask(tab, "findOption", where, {"label": label, "kind": "model" if picker is None else picker.kind})
    found = told.said["found"]
    if not found:
        labels: list[Json] = list(told.said["labels"][:_LABELS])
        raise NotFound(
            "option.not_found",
            f"No option is called {quoted(label, 80)}.",
            "Use one of the labels in options." if labels else "Open the list first, or look with nova.perceive.",
            details={"options": labels, "optionCount": told.said["total"]},
        )
    if told.said["native"]:
        return _native_option(picker, found)
    control = await _only(
        tab,
        told.elements("found"),
        NotFound("option.not_found", f"No option is called {quoted(label, 80)}.", ""),
        f"options are called {quoted(label, 80)}",
    )
    return PickerOption(control, found[0]["labels"][0], native=False, index=None, disabled=found[0]["off"])


def _native_option(picker: Picker | None, found: Sequence[Answer]) -> PickerOption:
    if picker is None:
        raise TypeError("a native list is only known by its picker")
    if len(found) > 1:
        raise Precondition(
            "selector.ambiguous",
            f"{len(found)} options are called {quoted(found[0]['label'], 80)}.",
            "Choose one by its index or value.",
            details={"candidates": [{"index": entry["index"]} for entry in found[:_CANDIDATES]]},
        )
    (entry,) = found
    return PickerOption(picker.control, entry["label"], native=True, index=entry["index"], disabled=entry["off"])


async def _ask(tab: "Tab", question: str, locator: Locator | None, args: Mapping[str, Json] | None = None) -> _Told:
    """One question to the document that a locator belongs to, about the element it names."""

    async def read() -> _Told:
        node: int | None = None
        frame_id = None
        if locator is not None:
            element, frame_id = await find(tab, locator)
            node = element.node
        asked: dict[str, Json] = {"node": node, **(args or {})}
        return _Told(answer(await tab.channel.ask(question, asked, frame_id=frame_id)), frame_id or "")

    told, _ = await on_one_document(tab, read)
    if told.said.get("gone"):
        spoken = "The element" if locator is None else locator.spoken
        raise NotFound("selector.not_found", f"{spoken} left the page.", "Call nova.perceive again.")
    return told


async def _one(tab: "Tab", element: SeenElement) -> FoundControl:
    return (await _named(tab, {"": element}))[""]


async def _named(tab: "Tab", elements: Mapping[str, SeenElement]) -> dict[str, FoundControl]:
    lines = await described(tab, list(elements.values()))
    return {
        key: FoundControl(str(line["ref"]), str(line["line"]), element)
        for (key, element), line in zip(elements.items(), lines, strict=True)
        if isinstance(line, dict)
    }


async def _only(tab: "Tab", elements: Sequence[SeenElement], missing: NotFound, what: str) -> FoundControl:
    if not elements:
        raise missing
    if len(elements) > 1:
        raise await _ambiguous(tab, elements, what)
    return await _one(tab, elements[0])


async def _ambiguous(tab: "Tab", elements: Sequence[SeenElement], what: str) -> Precondition:
    """Every candidate gets a ref, so that the next call can name one."""
    candidates = await described(tab, elements[:_CANDIDATES])
    return Precondition(
        "selector.ambiguous",
        f"{len(elements)} {what}.",
        details={"candidates": candidates, "matchCount": len(elements)},
    )
