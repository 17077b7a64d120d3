"""How long a stored selector will last, and how much of a page it would take hold of; pure."""

import re
from collections.abc import Iterator
from typing import Final

from nova_mcp.core.page.selectors import SelectorClass, normalize_selector, selector_class
from nova_mcp.memory.knowledge.model import Content, Playbook

__all__ = ["SelectorClass", "action_selectors", "breadth", "fragile_selectors", "is_fragile", "stability"]

_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_PARTIAL_CLASS: Final = re.compile(r"\[\s*class\s*[*^$|]=", re.IGNORECASE)
_ROLE_ALONE: Final = re.compile(r"\[\s*role\s*(?:[~|^$*]?=[^\]]*)?\]", re.IGNORECASE)
_PSEUDO: Final = re.compile(r"::?[\w-]+(?:\((?:[^()]|\([^()]*\))*\))?")
_TAG: Final = re.compile(r"(?:[A-Za-z][\w-]*|\*)?")
_WHOLE_PAGE: Final = frozenset({"html", "body", "main", ":root"})
_UNNAMED_ROLE: Final = re.compile(r"role=[\w-]*(?:\[(?!name)[^\]]*\])*")
_SHORT_TEXT: Final = re.compile(r"text=[\"']?.?[\"']?")


def stability(selector: str) -> SelectorClass:
    """`stable` has an anchor that people wrote, `risky` counts positions or leans on classes, `fragile` is made up."""
    return selector_class(selector)


def is_fragile(selector: str) -> bool:
    return stability(selector) == "fragile"


def _split(selector: str, at: str) -> Iterator[str]:
    """The selector cut at a sign, but not inside brackets, parentheses or quotes."""
    depth, quote, start, index = 0, "", 0, 0
    while index < len(selector):
        sign = selector[index]
        if sign == "\\":
            index += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif depth == 0 and selector.startswith(at, index):
            yield selector[start:index]
            start = index + len(at)
            index = start - 1
        index += 1
    yield selector[start:]


def _subject(step: str) -> str:
    """The part of a selector that names the element itself."""
    spaced = step
    for sign in (">", "+", "~"):
        spaced = " ".join(_split(spaced, sign))
    parts = [part for part in _split(spaced, " ") if part.strip()]
    return parts[-1] if parts else ""


def _is_bare(compound: str) -> bool:
    """Nothing but a tag, a role or a state: no id, class, attribute or text that singles an element out."""
    rest = _PSEUDO.sub("", _ROLE_ALONE.sub("", compound))
    return _TAG.fullmatch(rest.strip()) is not None


def _names_one_place(step: str) -> bool:
    """Whether anything before the element narrows the page down."""
    lead = step.strip().removesuffix(_subject(step))
    return re.search(r"[#.\[]", _ROLE_ALONE.sub("", _PSEUDO.sub("", lead))) is not None


def breadth(selector: str) -> str | None:
    """Why a selector takes hold of too much of a page to act on; None when it names something."""
    text = normalize_selector(selector)
    if not text:
        return "it is empty"
    if text.startswith("role="):
        return "it names a role without a name" if _UNNAMED_ROLE.fullmatch(text) else None
    if text.startswith("text="):
        return "it names hardly any text" if _SHORT_TEXT.fullmatch(text) else None
    if _PARTIAL_CLASS.search(_QUOTED.sub('""', text)):
        return "it matches parts of class names"
    for alternative in _split(text, ","):
        step = list(_split(alternative, ">>>"))[-1]
        subject = _subject(step)
        if subject.startswith("*") or "*" in _PSEUDO.sub("", _QUOTED.sub("", re.sub(r"\[[^\]]*\]", "", step))):
            return "it holds a wildcard"
        if {subject.lower(), _PSEUDO.sub("", subject).lower()} & _WHOLE_PAGE or subject.lower().startswith(":root"):
            return "it names the whole page"
        if _is_bare(subject) and not _names_one_place(step):
            return "it names a kind of element, not one"
    return None


def action_selectors(playbook: Playbook | None) -> tuple[str, ...]:
    """First choices and fallbacks of every step, in order."""
    if playbook is None:
        return ()
    found = (one for step in playbook.actions for one in (step.selector, *step.fallbacks) if one is not None)
    return tuple(dict.fromkeys(found))


def fragile_selectors(content: Content) -> tuple[str, ...]:
    dom = (signal.match for signal in content.fingerprint.signals if signal.kind == "dom")
    return tuple(one for one in dict.fromkeys((*dom, *action_selectors(content.playbook))) if is_fragile(one))
