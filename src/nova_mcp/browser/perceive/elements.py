"""Elements: identity behind a ref, and fingerprint for the ledger."""

import functools
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.page.selectors import looks_generated

MAX_ROW_KEY_CHARS: Final = 80
_MAX_NAME_CHARS: Final = 200

_SPACES = re.compile(r"\s+")
_DIGITS = re.compile(r"\d+")


# Thousands are made at every look, and a frozen class takes several times as long to fill. Nobody changes one.
@dataclass(slots=True, unsafe_hash=True)
class ElementFacts:
    """What one look at the page says about an element; text is as the page showed it."""

    tag: str
    role: str = ""
    name: str = ""
    type: str = ""
    id: str = ""
    testid: str = ""
    name_attr: str = ""
    href_path: str = ""
    row_key: str = ""
    frame: str = ""
    classes: tuple[str, ...] = ()


# Looks at one page repeat their texts.
@functools.lru_cache(maxsize=8192)
def _text(value: str) -> str:
    # Most texts are plain already; looking is cheaper than making anew.
    if value.isascii() and value.isprintable() and "  " not in value and value[:1] != " " != value[-1:]:
        return value
    return _SPACES.sub(" ", unicodedata.normalize("NFC", value)).strip()


def _digest(parts: list[str]) -> str:
    # JSON keeps the borders between parts, so two different lists never hash alike.
    body = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def row_key(text: str) -> str:
    """The text of the nearest row, list item or article, shortened; digits stay, they tell rows apart."""
    return _text(text)[:MAX_ROW_KEY_CHARS].rstrip()


def _stable(token: str) -> str:
    return "" if not token or looks_generated(token) else token


def identity_key(facts: ElementFacts) -> tuple[str, ...]:
    """Everything that makes an element the one a ref stands for, in one spelling."""
    return (
        facts.frame,
        facts.tag.lower(),
        facts.role.lower(),
        _text(facts.name)[:_MAX_NAME_CHARS],
        facts.type.lower(),
        _stable(facts.id),
        facts.testid,
        facts.name_attr,
        facts.href_path,
        row_key(facts.row_key),
    )


def identity(facts: ElementFacts) -> str:
    """The hash that a ref stands for: another row, name or destination is another element."""
    return _digest(["identity-1", *identity_key(facts)])[:32]


def fingerprint_id(facts: ElementFacts) -> str:
    """A shorter-sighted hash for the ledger, equal for the same control on another day or in another row.

    Digits in the name, the row and the digits of the link count as content and are left out, and so are frame ids.
    A control with a stable id, test id or name attribute is known by that; only others fall back to their text.
    """
    anchors = [_stable(facts.id), facts.testid, facts.name_attr]
    name = "" if any(anchors) else _DIGITS.sub("#", _text(facts.name).casefold())[:_MAX_NAME_CHARS]
    href = "" if any(anchors) else _DIGITS.sub("#", facts.href_path)
    parts = ["fingerprint-1", facts.tag.lower(), facts.role.lower(), facts.type.lower(), *anchors, name, href]
    return "el_" + _digest(parts)[:24]
