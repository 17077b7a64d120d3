"""Selectors: one spelling for each, and how long one will last; pure."""

import functools
import hashlib
import re
import unicodedata
from typing import Literal

SelectorClass = Literal["stable", "risky", "fragile"]

_GENERATED_PREFIX = re.compile(r"(?:css|sc|jsx|svelte|emotion)-|jss", re.IGNORECASE)
_REACT_ID = re.compile(r"[:«][rR][0-9a-zA-Z]*[:»]")
_HEX_RUN = re.compile(r"(?<![0-9a-z])(?=[0-9a-f]*[0-9])[0-9a-f]{6,}(?![0-9a-z])", re.IGNORECASE)
_SWITCH = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_DIGIT_RUN = re.compile(r"\d{2,}")
_SPACES = re.compile(r"\s+")
_QUOTED_OR_SPACE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s+""", re.DOTALL)
_COMBINATOR = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s*(>>>|[>~+,])\s*(?![=])""", re.DOTALL)
_TEXT_FORM = re.compile(r"(text|role)=")


@functools.lru_cache(maxsize=8192)
def looks_generated(token: str) -> bool:
    """Whether an id or class was made by a build tool or at run time and will not survive the next release.

    A run of six hex characters counts only with a digit in it, because words such as "facade" are no hashes.
    """
    if _GENERATED_PREFIX.match(token) or _REACT_ID.search(token) or _HEX_RUN.search(token):
        return True
    return len(token) >= 5 and len(_SWITCH.findall(token)) >= 2


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
