"""One line per element: page text in it is quoted, escaped and short, so that it can never pass for anything else."""

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from nova_mcp.browser.channel.frame_ids import shown_id
from nova_mcp.browser.perceive.scan_values import Found, SeenElement
from nova_mcp.core.page.selectors import selector_class

MAX_PAGE_TITLE: Final = 500
MAX_NAME: Final = 60
MAX_VALUE: Final = 30
MAX_SELECTOR: Final = 80
# A selector that was cut or escaped would match something else or nothing; the ref still works.
NO_SELECTOR: Final = "-"

_FLAG_ORDER: Final = (
    "disabled",
    "checked",
    "expanded",
    "required",
    "invalid",
    "commit",
    "fragile",
    "offscreen",
    "newtab",
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_FRAGILE_KINDS: Final = frozenset({"positional", "generated_id"})
# Marks that change the sign before them; heaped up, they spell words nobody sees.
_VARIANTS: Final = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_PLAIN_ROLE = re.compile(r"[a-z]{1,24}")


def _is_unsafe(character: str) -> bool:
    # Controls, format signs such as direction overrides, surrogates, and every kind of line or paragraph break.
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def escape(text: str) -> str:
    """Page text safe inside double quotes on one line."""
    # Whatever is unsafe is not printable either, and most text is printable.
    if text.isprintable():
        return text.replace("\\", "\\\\").replace('"', '\\"') if '"' in text or "\\" in text else text
    return "".join(_SHORT.get(c) or (_code(c) if _is_unsafe(c) else c) for c in text)


def quoted(text: str, limit: int) -> str:
    return f'"{escape(shorten(text, limit))}"'


def plain_title(text: str, limit: int = MAX_PAGE_TITLE) -> str:
    """A page's title as one line of characters that are seen: breaks become spaces, format signs are left out."""
    text = text[:limit]
    if text.isprintable():
        return text.strip()
    shown = ("" if unicodedata.category(c) in ("Cf", "Cs", "Co", "Cn") else c for c in text)
    return " ".join("".join(c if c.isprintable() else " " for c in shown if c).split())


def one_line(text: str, limit: int) -> str:
    """Text shown without quotes, such as a selector or an address: breaks and controls become codes."""
    text = text[: limit + 1]
    if text.isprintable():
        return shorten(text, limit)
    return shorten("".join(_code(c) if _is_unsafe(c) else c for c in text), limit)


@functools.lru_cache(maxsize=8192)
def _names_generated(selector: str) -> bool:
    return selector_class(selector) == "fragile"


def is_fragile(found: Found) -> bool:
    return found.kind in _FRAGILE_KINDS or _names_generated(found.selector)


def is_plain_role(role: str) -> bool:
    return _PLAIN_ROLE.fullmatch(role) is not None


def shown_selector(found: Found | None) -> str:
    """A selector that can be used as it stands; one that would have to be escaped or cut is left out."""
    if found is None or len(found.selector) > MAX_SELECTOR or not _is_usable(found.selector):
        return NO_SELECTOR
    return found.selector


def _is_usable(selector: str) -> bool:
    plain = selector.isascii() and selector.isprintable()
    return plain or not any(_is_unsafe(c) or c in _VARIANTS for c in selector)


def ordered_flags(flags: Iterable[str], frame: str = "") -> tuple[str, ...]:
    """Known flags in their fixed order; the frame last."""
    given = set(flags)
    return (*(flag for flag in _FLAG_ORDER if flag in given), *((f"frame:{shown_id(frame)}",) if frame else ()))


def element_line(
    ref: str, element: SeenElement, found: Found | None, extra_flags: Iterable[str] = (), reads: str = ""
) -> str:
    """`e12 button "Save" ="draft" #save [commit]`; `reads` is what it says against its name."""
    role = element.facts.role if is_plain_role(element.facts.role) else "generic"
    flags = {*element.flags, *extra_flags}
    if found is not None and is_fragile(found):
        flags.add("fragile")
    parts = [ref, role, quoted(element.facts.name, MAX_NAME)]
    if reads:
        parts.append(f"(reads {quoted(reads, MAX_NAME)})")
    if element.value:
        parts.append("=" + quoted(element.value, MAX_VALUE))
    parts.append(shown_selector(found))
    shown = ordered_flags(flags, element.facts.frame)
    if shown:
        parts.append(f"[{' '.join(shown)}]")
    return " ".join(parts)
