"""What may not be written into knowledge: broad selectors, undeclared consent, script, secrets; pure."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.page.control_labels import ControlFacts, Label, label_for
from nova_mcp.core.page.keys import UnknownKey, belongs_to_browser, parse_key
from nova_mcp.memory.facts.sensitive import sensitive_text
from nova_mcp.memory.knowledge import model
from nova_mcp.memory.knowledge.matching.routes import MAX_ROUTES, is_pattern
from nova_mcp.memory.knowledge.model import Action, Content, DomainHint, ElementPrint, PhenomenonType, Polarity, Problem
from nova_mcp.memory.knowledge.writes.stability import action_selectors, breadth

SELECTOR_CHARS: Final = 500
MATCH_CHARS: Final = 300
LABEL_CHARS: Final = 120
NEIGHBOUR_CHARS: Final = 60
MAX_NEIGHBOURS: Final = 4
MAX_CLASSES: Final = 12
SHAPE_CHARS: Final = 300

# Layers: what is pressed has to lie inside what is recognised.
SURFACES: Final[frozenset[PhenomenonType]] = frozenset(
    {"consent_cmp", "modal", "login_wall", "paywall", "popover_open"}
)
_PRESSES: Final = frozenset({"click", "dismiss"})
_INVISIBLE: Final = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)
# What breaks lines, turns the direction of reading round or writes without being seen: no page needs it to be known by,
# and whoever reads an entry would read something else than what is shown. Joiners and soft hyphens belong to words.
_HIDING: Final = re.compile(r"[\u0080-\u009f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]")
_ESCAPED: Final = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
_SCRIPT: Final = re.compile(
    r"(?:javascript|vbscript|livescript)\s*:"
    r"|data\s*:\s*(?:text/html|image/svg|application/(?:x-)?(?:java|ecma)script|text/javascript)"
    r"|<\s*/?\s*(?:script|iframe|object|embed|svg|style|template|meta|link|base)\b"
    r"|<[^>]{0,200}\bon[a-z]{3,24}\s*="
    r"|\b(?:eval|setTimeout|setInterval|importScripts|atob)\s*\(|\b(?:fetch|require|import)\("
    r"|(?-i:\bFunction)\(|\bnew\s+(?:Function|XMLHttpRequest|WebSocket|Worker)\s*\("
    r"|\b(?:document|window|globalThis)(?:\.[A-Za-z_$]\w*\s*(?:\(|=[^=]|\.)|\[\s*[\"'])"
    r"|\bdocument\s*\.\s*cookie\b"
    r"|=>\s*[{(]|\bfunction\s*[\w$]*\s*\([^)]*\)\s*\{",
    re.IGNORECASE,
)
# What a label may say without contradicting the choice that is claimed for it; what can't be read contradicts nothing.
_FITTING: Final[dict[Polarity, frozenset[Label]]] = {
    "reject": frozenset({"reject", "save", "unknown"}),
    "accept": frozenset({"accept", "save", "unknown"}),
    "manage": frozenset({"manage", "save", "unknown"}),
    "navigate": frozenset({"manage", "unknown"}),
    "noop": frozenset({"close", "unknown"}),
}
WHOLE_PAGE: Final = frozenset({"it is empty", "it holds a wildcard", "it names the whole page"})
# A selector may well hold a long random token: that makes it fragile, not secret.
_RANDOM: Final = "a long random string"
# A control that nobody has read says nothing.
UNREAD: Final = ControlFacts()


@dataclass(frozen=True, slots=True)
class LiveLook:
    """What one selector finds on the open page now; `inside` is None where no surface was asked about."""

    matches: int
    inside: bool | None = None
    control: ControlFacts = UNREAD


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """`looked` is False where no page was asked: an entry without selectors has nothing to be missed then. `unread` are
    controls whose label says nothing about the choice that is claimed for them."""

    problems: tuple[Problem, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    looked: bool = True
    unread: tuple[tuple[str, Polarity], ...] = ()

    @property
    def passed(self) -> bool:
        return self.looked and not self.problems and not self.unconfirmed


# -- texts


def holds_script(text: str) -> bool:
    """Whether a text could be run somewhere; invisible characters and look-alike forms don't hide it."""
    seen = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return any(_SCRIPT.search(one) is not None for one in (seen, _ESCAPED.sub(_plain, seen)))


def _plain(escaped: re.Match[str]) -> str:
    """A selector may spell any character by its number."""
    number = int(escaped[1], 16)
    return chr(number) if number < 0x110000 else ""


def hides_something(text: str) -> bool:
    return _HIDING.search(text) is not None


def holds_secret(text: str, *, selector: bool = False) -> str | None:
    """What a text looks like that nobody should keep, without repeating it."""
    found = sensitive_text(text)
    return None if selector and found == _RANDOM else found


def _prints(action: Action) -> Iterator[str]:
    if action.element is not None:
        seen = action.element
        yield from (
            seen.text,
            seen.aria_label,
            seen.href,
            seen.name,
            seen.id,
            seen.testid,
            seen.picture,
            *seen.neighbours,
        )


def _texts(content: Content) -> Iterator[tuple[str, str, bool]]:
    """Every stored text with its place, and whether it is a selector."""
    for index, signal in enumerate(content.fingerprint.signals):
        yield f"fingerprint.signals[{index}]", signal.match, signal.kind == "dom"
    playbook = content.playbook
    for index, action in enumerate(() if playbook is None else playbook.actions):
        where = f"playbook.actions[{index}]"
        for selector in (action.selector, *action.fallbacks):
            yield where, selector or "", True
        for text in (action.key, action.value_name, *_prints(action)):
            yield where, text, False
    for index, step in enumerate(() if playbook is None else playbook.verify):
        yield f"playbook.verify[{index}]", step.selector or "", True
        if step.assertion is not None:
            yield f"playbook.verify[{index}]", step.assertion.fact_key, True
            for text in _within(step.assertion.expected):
                yield f"playbook.verify[{index}]", text, False
    context = content.context
    for told in (context.device, context.locale, context.auth):
        yield "context", told or "", False
    for route in context.routes:
        yield "context.routes", route, False


def _within(value: object) -> Iterator[str]:
    """Every text of a JSON value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, held in value.items():
                yield from (str(key), *_within(held))
        case list() | tuple():
            for one in value:
                yield from _within(one)


def _text_problems(content: Content) -> Iterator[Problem]:
    for where, text, selector in _texts(content):
        if holds_script(text):
            yield Problem("pks.script_content", "Script is never stored, in any field.", where)
        elif (found := holds_secret(text, selector=selector)) is not None:
            yield Problem("pks.secret_like", f"It looks like {found}; name a value source instead.", where)
        elif hides_something(text):
            yield Problem("invalid_params", "It holds characters that nobody would see.", where)
        elif len(text) > (SELECTOR_CHARS if selector else MATCH_CHARS):
            yield Problem("invalid_params", "This text is too long to be kept.", where)


# -- shape


def _shape_problems(content: Content) -> Iterator[Problem]:
    print_ = content.fingerprint
    if not 1 <= len(print_.signals) <= model.MAX_SIGNALS:
        yield Problem("invalid_params", f"A fingerprint has 1 to {model.MAX_SIGNALS} signals.", "fingerprint.signals")
    if not 0 <= print_.min_confidence <= 1:
        yield Problem("invalid_params", "minConfidence lies between 0 and 1.", "fingerprint.minConfidence")
    if any(not one.match.strip() for one in print_.signals):
        yield Problem("invalid_params", "A signal without anything to match is none.", "fingerprint.signals")
    routes = content.context.routes
    if len(routes) > MAX_ROUTES or not all(map(is_pattern, routes)):
        yield Problem(
            "invalid_params", "A route is a first segment, a prefix such as in/*, _root or *.", "context.routes"
        )
    playbook = content.playbook
    if playbook is None:
        return
    if len(playbook.actions) > model.MAX_ACTIONS or len(playbook.verify) > model.MAX_VERIFY_STEPS:
        yield Problem("invalid_params", "A playbook has at most 10 actions and 10 verify steps.", "playbook")
    for index, action in enumerate(playbook.actions):
        if (problem := _action_shape(action)) is not None:
            yield Problem("invalid_params", problem, f"playbook.actions[{index}]")


def _action_shape(action: Action) -> str | None:
    if len(action.fallbacks) > model.MAX_FALLBACKS:
        return f"An action has at most {model.MAX_FALLBACKS} fallback selectors."
    if action.kind in ("click", "type") and not action.selector:
        return f"A {action.kind} action needs a selector."
    if action.kind == "type" and action.value_source is None:
        return "An input says where its value comes from; a value is never stored."
    if action.kind == "type" and not action.value_name:
        return "An input says by which name its value is given."
    if action.kind == "press_key" and not action.key:
        return "press_key needs a key."
    return _key_problem(action.key) if action.key else None


def _key_problem(key: str) -> str | None:
    try:
        stroke = parse_key(key)
    except UnknownKey:
        return "This is no key; use a name such as Escape or Enter, or one character."
    return "This key reaches past the page." if belongs_to_browser(stroke) else None


def _decides(action: Action) -> bool:
    """Whether it presses something: by pointer, or with a key that does to a control what a click does."""
    if action.kind != "press_key" or _key_problem(action.key) is not None:
        return action.kind in _PRESSES
    return parse_key(action.key).activates


def _polarity_problems(content: Content) -> Iterator[Problem]:
    if content.type != "consent_cmp" or content.playbook is None:
        return
    for index, action in enumerate(content.playbook.actions):
        if action.polarity is None and _decides(action):
            message = "Say with declaredPolarity what pressing it decides: reject, accept, manage, navigate or noop."
            yield Problem("pks.polarity_required", message, f"playbook.actions[{index}]")


def _breadth_problems(content: Content) -> Iterator[Problem]:
    for surface in surface_of(content):
        if breadth(surface) in WHOLE_PAGE:
            message = f'"{surface[:80]}" is most of a page, and everything would lie inside it.'
            yield Problem("pks.selector_too_broad", message, "fingerprint.signals")
    for index, action in enumerate(() if content.playbook is None else content.playbook.actions):
        if not action.mutates:
            continue
        for selector in (action.selector, *action.fallbacks):
            if selector is not None and (why := breadth(selector)) is not None:
                where = f"playbook.actions[{index}]"
                yield Problem("pks.selector_too_broad", f'"{selector[:80]}" can\'t be acted on: {why}.', where)


def check_content(content: Content) -> tuple[Problem, ...]:
    """Everything that can be refused without a page."""
    return (
        *_shape_problems(content),
        *_text_problems(content),
        *_breadth_problems(content),
        *_polarity_problems(content),
    )


# -- live


def surface_of(content: Content) -> tuple[str, ...]:
    """Selectors of the layer that an action has to lie in; empty where an entry has no layer."""
    if content.type not in SURFACES:
        return ()
    return tuple(dict.fromkeys(one.match for one in content.fingerprint.signals if one.kind == "dom"))


def selectors_of(content: Content) -> tuple[str, ...]:
    """Every selector that has to be seen before an entry may be promoted."""
    dom = (one.match for one in content.fingerprint.signals if one.kind == "dom")
    return tuple(dict.fromkeys((*dom, *action_selectors(content.playbook))))


def contradicts(polarity: Polarity, control: ControlFacts) -> bool:
    """Whether a control's visible label says something else than what is claimed for it."""
    return label_for(control, "consent") not in _FITTING[polarity]


def _live_problem(action: Action, selector: str, look: LiveLook, kind: PhenomenonType) -> Problem | None:
    named = selector[:80]
    if look.matches > 1 and action.mutates:
        return Problem("pks.selector_too_broad", f'"{named}" matches {look.matches} elements; name one.')
    if look.inside is False and kind in SURFACES:
        return Problem("pks.outside_surface", f'"{named}" lies outside the layer that the entry describes.')
    if action.polarity is not None and contradicts(action.polarity, look.control):
        message = f'"{named}" is declared {action.polarity}, but its label says otherwise.'
        return Problem("pks.polarity_mismatch", message)
    # Calling it something else does not make a known request for consent anything else.
    if action.polarity is None and _decides(action) and look.control.platform is not None:
        return Problem("pks.polarity_required", f'"{named}" belongs to a request for consent; say what it decides.')
    return None


def check_live(content: Content, looks: Mapping[str, LiveLook]) -> LiveVerdict:
    """What the open page says to it; a selector that nobody looked for counts as not found."""
    unconfirmed = tuple(one for one in selectors_of(content) if one not in looks or looks[one].matches == 0)
    problems: list[Problem] = []
    unread: dict[str, Polarity] = {}
    for action in () if content.playbook is None else content.playbook.actions:
        for selector in (action.selector, *action.fallbacks):
            look = None if selector is None else looks.get(selector)
            if selector is None or look is None or look.matches == 0:
                continue
            if (problem := _live_problem(action, selector, look, content.type)) is not None:
                problems.append(problem)
            elif (claimed := _unproven(action, look.control)) is not None:
                unread[selector] = claimed
    return LiveVerdict(tuple(problems), unconfirmed, unread=tuple(unread.items()))


def _unproven(action: Action, control: ControlFacts) -> Polarity | None:
    """What is claimed for a control whose label nobody can read. An acceptance is never pressed, whoever claims it."""
    if action.polarity in (None, "accept") or label_for(control, "consent") != "unknown":
        return None
    return action.polarity


def unread_in(content: Content) -> tuple[tuple[str, Polarity], ...]:
    """The same by what is kept of the elements, without a page."""
    actions = () if content.playbook is None else content.playbook.actions
    found = (
        (one.selector or "", _unproven(one, ControlFacts((one.element.text, one.element.aria_label))))
        for one in actions
        if one.element is not None
    )
    return tuple((selector, claimed) for selector, claimed in found if claimed is not None)


def unread_words(selector: str, claimed: Polarity) -> str:
    named = f'"{selector[:80]}"'
    return f"The label of {named} can't be read, so that it is {claimed} is only claimed: read it, or ask your user."


# -- what is kept of a page


def shown(text: str, chars: int) -> str:
    """What people would see of a text, on one line."""
    return " ".join(_INVISIBLE.sub(" ", text).split())[:chars].rstrip()


def bounded(seen: ElementPrint) -> ElementPrint:
    """A print within its bounds: a page decides what it says, not how much of it is kept."""
    return ElementPrint(
        tag=shown(seen.tag, 40).lower(),
        type=shown(seen.type, 40).lower(),
        name=shown(seen.name, LABEL_CHARS),
        text=shown(seen.text, LABEL_CHARS),
        href=shown(seen.href, SHAPE_CHARS),
        id=shown(seen.id, LABEL_CHARS),
        testid=shown(seen.testid, LABEL_CHARS),
        role=shown(seen.role, 40).lower(),
        aria_label=shown(seen.aria_label, LABEL_CHARS),
        classes=tuple(shown(one, NEIGHBOUR_CHARS) for one in seen.classes[:MAX_CLASSES]),
        neighbours=tuple(shown(one, NEIGHBOUR_CHARS) for one in seen.neighbours[:MAX_NEIGHBOURS]),
        shape=shown(seen.shape, SHAPE_CHARS),
        place=seen.place,
        picture=shown(seen.picture, NEIGHBOUR_CHARS),
    )


def check_hint(hint: DomainHint) -> tuple[Problem, ...]:
    """A hint touches nothing, so only what would hide a whole page or carry something else is refused."""
    problems: list[Problem] = []
    if not 1 <= len(hint.selectors) <= model.MAX_HINT_SELECTORS:
        problems.append(Problem("invalid_params", "A hint has 1 to 10 selectors.", "domainHint.selectors"))
    if hint.extract and hint.kind != "result_item":
        problems.append(Problem("invalid_params", "Only result items are extracted from.", "domainHint.extract"))
    for selector in (*hint.selectors, *(value for _, value in hint.extract)):
        if holds_script(selector):
            problems.append(Problem("pks.script_content", "Script is never stored, in any field.", "domainHint"))
        elif hides_something(selector):
            problems.append(Problem("invalid_params", "It holds characters that nobody would see.", "domainHint"))
        elif holds_secret(selector, selector=True) is not None or len(selector) > SELECTOR_CHARS:
            problems.append(Problem("pks.secret_like", "This is no selector to keep.", "domainHint"))
    for selector in hint.selectors:
        if breadth(selector) in WHOLE_PAGE:
            problems.append(Problem("pks.selector_too_broad", f'"{selector[:80]}" is most of a page.', "domainHint"))
    return tuple(problems)
