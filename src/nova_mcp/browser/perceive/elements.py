"""Elements: identity behind a ref, fingerprint for the ledger, and how long a selector will last."""

import functools
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

SelectorClass = Literal["stable", "risky", "fragile"]

MAX_ROW_KEY_CHARS: Final = 80
_MAX_NAME_CHARS: Final = 200

_GENERATED_PREFIX = re.compile(r"(?:css|sc|jsx|svelte|emotion)-|jss", re.IGNORECASE)
_REACT_ID = re.compile(r"[:«][rR][0-9a-zA-Z]*[:»]")
_HEX_RUN = re.compile(r"(?<![0-9a-z])(?=[0-9a-f]*[0-9])[0-9a-f]{6,}(?![0-9a-z])", re.IGNORECASE)
_SWITCH = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_DIGIT_RUN = re.compile(r"\d{2,}")
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


@functools.lru_cache(maxsize=8192)
def looks_generated(token: str) -> bool:
    """Whether an id or class was made by a build tool or at run time and will not survive the next release.

    A run of six hex characters counts only with a digit in it, because words such as "facade" are no hashes.
    """
    if _GENERATED_PREFIX.match(token) or _REACT_ID.search(token) or _HEX_RUN.search(token):
        return True
    return len(token) >= 5 and len(_SWITCH.findall(token)) >= 2


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


_QUOTED_OR_SPACE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s+""", re.DOTALL)
_COMBINATOR = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s*(>>>|[>~+,])\s*(?![=])""", re.DOTALL)
_TEXT_FORM = re.compile(r"(text|role)=")


def _outside_brackets(selector: str) -> list[tuple[bool, str]]:
    """The selector in pieces, each marked whether it lies outside brackets, parentheses and quotes."""
    pieces: list[tuple[bool, str]] = []
    depth, quote, start = 0, "", 0
    index = 0
    while index < len(selector):
        character = selector[index]
        if character == "\\":
            index += 2
            continue
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[(":
            if depth == 0:
                pieces.append((True, selector[start:index]))
                start = index
            depth += 1
        elif character in "])" and depth:
            depth -= 1
            if depth == 0:
                pieces.append((False, selector[start : index + 1]))
                start = index + 1
        index += 1
    pieces.append((depth == 0 and not quote, selector[start:]))
    return pieces


def _collapse(match: re.Match[str]) -> str:
    return match.group(1) or " "


def _space_combinator(match: re.Match[str]) -> str:
    if match.group(1):
        return match.group(1)
    sign = match.group(2)
    return ", " if sign == "," else f" {sign} "


def normalize_selector(selector: str) -> str:
    """One spelling per selector: blanks collapsed, one blank around combinators; meaning and case untouched."""
    text = unicodedata.normalize("NFC", selector).strip()
    if _TEXT_FORM.match(text):
        return _SPACES.sub(" ", text)
    text = _QUOTED_OR_SPACE.sub(_collapse, text)
    spaced = "".join(
        _COMBINATOR.sub(_space_combinator, piece) if outside else piece for outside, piece in _outside_brackets(text)
    )
    return _QUOTED_OR_SPACE.sub(_collapse, spaced).strip()


def selector_hash(selector: str) -> str:
    """SHA-256 of the normalised selector."""
    return hashlib.sha256(normalize_selector(selector).encode("utf-8", "surrogatepass")).hexdigest()


_POSITIONAL = re.compile(r":(?:nth-|first-|last-|only-)(?:child|of-type|last-child|last-of-type)|>>\s*nth=")
_ANCHOR_ATTRIBUTE = re.compile(r"\[\s*(data-testid|data-test|data-qa|name|aria-label|for)\s*(?:[*^$|~]?=|\])", re.I)
_TEXT_ANCHOR = re.compile(r"(?:role=\w+\[name[~^$*|]?=|text=)", re.IGNORECASE)
_ROLE_AND_NAME = re.compile(r"\[\s*role\s*=[^\]]*\]\s*\[\s*aria-label", re.IGNORECASE)
_ID_TOKEN = re.compile(r"#((?:[\w«»-]|\\.|[^\x00-\x7f])+)")
_CLASS_TOKEN = re.compile(r"\.(-?(?:[A-Za-z_]|\\.|[^\x00-\x7f])(?:[\w-]|\\.|[^\x00-\x7f])*)")
_QUOTED_VALUE = re.compile(
    r"""\[\s*(?:id|class|data-testid|data-test|data-qa|name|for)\s*[*^$|~]?=\s*["']?([^"'\]]*)""", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"""\[(?:[^\]"']|"[^"]*"|'[^']*')*\]""")


def _tokens(selector: str) -> tuple[list[str], list[str]]:
    """The ids and classes a selector names, escapes removed."""
    bare = _IN_BRACKETS.sub("", selector)
    ids = [re.sub(r"\\(.)", r"\1", token) for token in _ID_TOKEN.findall(bare)]
    classes = [re.sub(r"\\(.)", r"\1", token) for token in _CLASS_TOKEN.findall(_ID_TOKEN.sub("", bare))]
    for value in _QUOTED_VALUE.findall(selector):
        classes.extend(value.split())
    return ids, classes


def selector_class(selector: str) -> SelectorClass:
    """How long a selector will last.

    Fragile: names something generated. Stable: anchored in an id without a run of digits, a test id, a name,
    a label, or a role with its name, and not counting positions. Everything else is risky.
    """
    text = normalize_selector(selector)
    if _TEXT_ANCHOR.match(text):
        return "stable"
    ids, classes = _tokens(text)
    if any(map(looks_generated, (*ids, *classes))):
        return "fragile"
    if _POSITIONAL.search(text):
        return "risky"
    if _ANCHOR_ATTRIBUTE.search(text) or _ROLE_AND_NAME.search(text):
        return "stable"
    if ids and not any(_DIGIT_RUN.search(token) for token in ids):
        return "stable"
    return "risky"
