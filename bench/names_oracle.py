"""Nova's roles, names and states of every element of a page beside those of Chromium's own accessibility tree."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession, Page

from nova_mcp.browser.page import load_bundle

WORLD = "nova-names"
# Put at the end of the page script, where its functions can be reached.
_PROBE = """
questions.everyName = ({ marks }) => {
  const told = [];
  const places = makePlaces();
  const visit = (el) => {
    const role = roleOf(el);
    const given = marks.map((mark) => attr(el, mark));
    const inked = squash(alternative(el, SELF, { ...newWalk(el, { left: MOST_NODES }), faint: true }, role));
    const figures = elementAll(el, "figure").length > 0;
    // Dear, and there only if the browser was started with it: asked of marked elements alone.
    const computed = given.some((mark) => mark !== null) ? el.computedName ?? null : null;
    const flags = flagsOf(el, places.placeOf(el));
    told.push([localName(el), role, nameOf(el, role), cut(inked, MOST_NAME), figures, flags, given, computed]);
    const shadow = openShadow(el);
    if (shadow !== null) children(shadow);
    children(el);
  };
  const children = (node) => {
    for (let child = firstChild(node); child !== null; child = nextSibling(child)) if (isElement(child)) visit(child);
  };
  children(DOC);
  return JSON.stringify(told);
};
questions.nameControls = () => {
  let letters = 0;
  for (const el of queryAll(DOC, "button,input,select,textarea,a")) letters += nameOf(el, roleOf(el)).length;
  return letters;
};
"""
# Chromium's tree has finer kinds than ARIA has roles; on the right is what a screen reader is told.
_KINDS = {
    "image": "img",
    "RootWebArea": "generic",
    "LabelText": "label",
    "Iframe": "iframe",
    "IframePresentational": "iframe",
    "DisclosureTriangle": "button",
    "DisclosureTriangleGrouped": "button",
    "ColorWell": "button",
    "Date": "textbox",
    "DateTime": "textbox",
    "InputTime": "textbox",
    "PopUpButton": "button",
    "ToggleButton": "button",
    "MenuListPopup": "listbox",
    "SvgRoot": "img",
    "LayoutTable": "generic",
    "LayoutTableRow": "generic",
    "LayoutTableCell": "generic",
    "EmbeddedObject": "generic",
    "PluginObject": "generic",
    "Details": "group",
}
_GENERIC = {
    "none", "Abbr", "Legend", "Figcaption", "DescriptionList", "LineBreak", "Pre", "Canvas", "Audio", "Video", "Ruby",
    "RubyAnnotation", "ImageMap", "Section", "SectionWithoutName", "HeaderAsNonLandmark", "Unknown",
    "FooterAsNonLandmark", "ListMarker", "sectionheader", "sectionfooter",
}  # fmt: skip
# Where Nova differs from Chromium on purpose, and why.
REASONS = {
    "layout table": "HTML gives every table its role; which of them only arrange things is a guess",
    "listener on an anchor": "a script cannot see the listeners of another",
    "editable region": "what can be typed into is a text box to whoever types",
    "stray list item": "an item outside of any list belongs to none",
    "icon glyph": "signs of icon fonts are pictures without a meaning that can be read",
    "letters by style": "a name stays as it was written, whatever a style does to its letters",
    "text without ink": "what nobody can see must not speak to an agent",
    "secret value": "what stands in a password field belongs in no name",
    "long name": "a name is cut to 200 characters",
    "row named by content": "the rules name rows by their content; Chromium only those that take the focus",
    "label named by content": "a label can be pressed, so it needs a name to be found by",
    "list item named by its title": "a title is a name, also where it repeats the text",
    "figure named by its caption": "the HTML mapping says so; Chromium follows a proposal against it",
    "term without name": "ARIA forbids a name here",
    "hidden label": "the rules count a hidden label; Chromium does not",
    "empty source": "the rules go on to the next source where one is empty; Chromium stops",
    "title of a file field": "a title says more than the browser's own words",
    "counter": "what a counter shows is told to no script",
    "figure in a name": "the rules read all of the content; Chromium leaves figures out",
    "date in a label": "a date that was entered is a value like any other",
    "words of the browser": "what the browser says of its own parts is nobody's name for them",
    "inert part": "words in sight are words, also where they cannot be pressed",
    "place to break": "a word that may break is one word",
    "required choice": "a required list or box is required; Chromium calls it invalid or nothing",
    "not yet tried": "a field counts as wrong once somebody has tried to fill it, or the page says so",
}
_STATES = ("disabled", "checked", "expanded", "required", "invalid")


class PageMoved(Exception):
    """The two sides did not see the same document."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one side says of an element; `inked` is its name if text without ink counted too."""

    role: str
    name: str
    states: frozenset[str]
    inked: str = ""
    # Whether it holds a figure.
    figures: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """One element; Chromium keeps some from assistive technology and says nothing of them."""

    tag: str
    nova: Said
    chromium: Said | None
    marks: tuple[str | None, ...]
    # `Element.computedName`, where the browser has it and the element is marked.
    computed: str | None = None


def role_of_kind(kind: str) -> str:
    return "generic" if kind in _GENERIC else _KINDS.get(kind, kind)


def one_line(text: str) -> str:
    return " ".join(text.split())


def states_told(node: Mapping[str, Any]) -> frozenset[str]:
    """The states of Nova's flags; a pressed or selected element counts as checked."""
    told = {item["name"]: item["value"].get("value") for item in node.get("properties", ())}
    found = {name for name in ("disabled", "expanded", "required") if told.get(name) is True}
    if told.get("invalid") not in (None, False, "false"):
        found.add("invalid")
    if "true" in (told.get("checked"), told.get("pressed")) or told.get("selected") is True:
        found.add("checked")
    return frozenset(found)


_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_TABLE_PARTS = {"table", "tr", "td", "th", "tbody", "thead", "tfoot", "caption"}
_MOST_NAME = 200
_NAMED_BY_NOVA = {
    "row": "row named by content",
    "label": "label named by content",
    "figure": "figure named by its caption",
    "listitem": "list item named by its title",
}


def _folded(name: str) -> str:
    """Without pictures of icon fonts and without the letters' size, which are the style's and not the author's."""
    plain = one_line(_PRIVATE.sub("", name)).casefold()
    return plain if len(plain) < _MOST_NAME else plain[: _MOST_NAME - 1]


def role_difference(tag: str, nova: Said, chromium: Said) -> str | None:
    """The rule by which Nova's role differs on purpose; empty where it should not differ, None where it does not."""
    ours, theirs = nova.role, chromium.role
    if ours == theirs:
        return None
    if tag in _TABLE_PARTS and theirs == "generic":
        return "layout table"
    if tag == "li" and (ours, theirs) == ("generic", "listitem"):
        return "stray list item"
    if tag == "a" and (ours, theirs) == ("generic", "link"):
        return "listener on an anchor"
    if ours == "textbox" and theirs == "generic":
        return "editable region"
    return ""


def name_difference(tag: str, nova: Said, chromium: Said) -> str | None:
    """The same for names."""
    if nova.name == chromium.name:
        return None
    ours, theirs = _folded(nova.name), _folded(chromium.name)
    if ours == theirs:
        return "icon glyph" if _PRIVATE.search(chromium.name) else "letters by style"
    if theirs == "" and (why := _NAMED_BY_NOVA.get("figure" if tag == "figure" else nova.role)):
        return why
    if nova.figures and set(theirs.split()) < set(ours.split()):
        return "figure in a name"
    if chromium.role == "term" and ours == "":
        return "term without name"
    return "text without ink" if theirs and _folded(nova.inked) == theirs else ""


def state_difference(tag: str, nova: Said, chromium: Said) -> str | None:
    """The same for states."""
    if nova.states == chromium.states:
        return None
    missing, added = nova.states - chromium.states, chromium.states - nova.states
    if not added <= {"invalid"} or not missing <= {"required"} or tag not in ("select", "input"):
        return ""
    return "required choice" if missing else "not yet tried"


def _elements(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Elements in the order of the probe: an open shadow tree first, then the children."""
    if node["nodeType"] == 1:
        yield node
        for root in node.get("shadowRoots", ()):
            if root["shadowRootType"] == "open":
                yield from _elements(root)
    for child in node.get("children", ()):
        yield from _elements(child)


async def _world(cdp: CDPSession) -> int:
    """A world of its own with the page script and the probe in it."""
    tree = await cdp.send("Page.getFrameTree")
    world = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": WORLD}
    context = int((await cdp.send("Page.createIsolatedWorld", world))["executionContextId"])
    bundle = load_bundle()
    end = bundle.rindex("})();")
    await _evaluate(cdp, context, f"{bundle[:end]}{_PROBE}{bundle[end:]}")
    return context


async def _evaluate(cdp: CDPSession, context: int, expression: str) -> Any:
    answer = await cdp.send("Runtime.evaluate", {"expression": expression, "contextId": context, "returnByValue": True})
    if "exceptionDetails" in answer:
        raise RuntimeError(str(answer["exceptionDetails"].get("exception", {}).get("description")))
    return answer["result"].get("value")


async def _processor_seconds(cdp: CDPSession) -> float:
    metrics = (await cdp.send("Performance.getMetrics"))["metrics"]
    return float(next(item["value"] for item in metrics if item["name"] == "TaskDuration"))


async def seconds_of_names(page: Page, runs: int) -> list[float]:
    """Processor time of one role and name for every control, per run; waiting for the processor does not count."""
    cdp = await page.context.new_cdp_session(page)
    try:
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        context = await _world(cdp)
        taken = []
        for _ in range(runs):
            before = await _processor_seconds(cdp)
            await _evaluate(cdp, context, "globalThis.__nova.ask('nameControls')")
            taken.append(await _processor_seconds(cdp) - before)
        return taken
    finally:
        await cdp.detach()


def _chromium_side(node: Mapping[str, Any]) -> Said:
    name = one_line(node.get("name", {}).get("value", ""))
    return Said(role_of_kind(node["role"]["value"]), name, states_told(node))


async def compare(page: Page, marks: tuple[str, ...] = ()) -> list[Pair]:
    """Every element of the page in document order, with both sides' words for it."""
    cdp = await page.context.new_cdp_session(page)
    try:
        document = (await cdp.send("DOM.getDocument", {"depth": -1, "pierce": True}))["root"]
        nodes = list(_elements(document))
        asked = f"globalThis.__nova.ask('everyName', {json.dumps({'marks': marks})})"
        ours = json.loads(await _evaluate(cdp, await _world(cdp), asked))
        tree = (await cdp.send("Accessibility.getFullAXTree"))["nodes"]
    finally:
        await cdp.detach()
    if [node["localName"] for node in nodes] != [row[0] for row in ours]:
        raise PageMoved(page.url)
    shown = {item["backendDOMNodeId"]: item for item in tree if not item["ignored"] and "backendDOMNodeId" in item}
    pairs = []
    for node, (tag, role, name, inked, figures, flags, given, computed) in zip(nodes, ours, strict=True):
        theirs = shown.get(node["backendNodeId"])
        chromium = None if theirs is None or tag == "html" else _chromium_side(theirs)
        nova = Said(role, name, frozenset(flags) & frozenset(_STATES), inked, figures)
        pairs.append(Pair(tag, nova, chromium, tuple(given), None if computed is None else one_line(computed)))
    return pairs
