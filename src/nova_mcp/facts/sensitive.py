"""Does a value look like something nobody should keep: a password, a token, a card number; pure."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from nova_mcp.observation.model import Json
from nova_mcp.redaction import is_card_number, is_sensitive_key

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
# Shapes that issuers gave their tokens so that they are found.
_ISSUED: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|\b(?:sk|rk|pk)[-_](?:live|test|proj|ant|or)[-_][A-Za-z0-9_-]{12,}"
    r"|\bsk-[A-Za-z0-9]{20,}"
    r"|\bgh[opusr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|\bfin_[0-9a-f]{16,64}\b"
)
_HEADER: Final = re.compile(r"\b(?:bearer|basic)\s+(?=\S*[0-9+/=_-])[A-Za-z0-9+/=._-]{16,}", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"\b(?:pass(?:word|wd|phrase|code)|passwort|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|otp)"
    r"\s*(?:[:=]|\bis\b)\s*[\"'`]?([^\s\"'`,;]{4,})",
    re.IGNORECASE,
)
_DIGITS: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_PIECE: Final = re.compile(r"[A-Za-z0-9+/=_]{16,}")
_HEX: Final = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
_RUN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
# Numbers that payment cards begin with; an order number passes the check digit once in ten.
_ISSUERS: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
# What a page says about a password instead of showing it.
_ABOUT: Final = frozenset(
    {
        *("set", "unset", "hidden", "masked", "saved", "stored", "required", "optional", "expired"),
        *("changed", "weak", "medium", "strong", "missing", "present", "none", "null", "empty"),
        *("shown", "visible", "needed", "reset", "valid", "invalid", "wrong", "correct", "incorrect"),
        *("forgotten", "unknown", "accepted", "rejected", "enabled", "disabled", "managed", "protected", "active"),
        *("revoked", "true", "false", "field", "login", "sign"),
    }
)
_MASK: Final = re.compile(r"[•*●.·x_\s-]+", re.IGNORECASE)
_LONG_PIECE: Final = 16
_VERY_LONG_PIECE: Final = 24
# Letters drawn at random stay 1.8 characters in one class; the shortest names of things stay 2.7.
_RANDOM_RUN: Final = 2.4
_RANDOM_BITS: Final = 3.3


def sensitive_reason(key: str, value: Json) -> str | None:
    """What a claim's value looks like, in words that don't repeat it; None when it may be kept."""
    for name, item in _leaves(key.rpartition(".")[2], value):
        if name and is_sensitive_key(name) and _is_credential(name, item):
            return "a credential"
        if item is not None and not isinstance(item, bool) and (found := _looks_like(str(item))) is not None:
            return found
        if name and not isinstance(item, str) and (found := _looks_like(name)) is not None:
            return found
    return None


def sensitive_text(text: str) -> str | None:
    """The same for a sentence: what in it must not be kept."""
    return _looks_like(text)


def _leaves(name: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Every single value with the name it stands under."""
    pending: list[tuple[str, Json]] = [(name, value)]
    while pending:
        under, item = pending.pop()
        match item:
            case dict():
                pending.extend((key, inner) for key, inner in item.items())
            case list():
                pending.extend((under, inner) for inner in item)
            case _:
                yield under, item


def _is_credential(name: str, item: Json) -> bool:
    """Under a name for credentials; whether one is set, shown or wrong may be said."""
    if item is None or isinstance(item, bool | float):
        return False
    text = str(item).strip()
    if not text or text.lower() in _ABOUT or _MASK.fullmatch(text) is not None:
        return False
    folded = name.lower()
    if "pass" in folded or "pwd" in folded or "secret" in folded or "key" in folded:
        return len(text) >= 3
    return " " not in text and len(text) >= 3 and any(sign.isdigit() for sign in text)


def _looks_like(text: str) -> str | None:
    if _ISSUED.search(text) or _HEADER.search(text):
        return "an access token"
    if any(_is_card(match.group()) for match in _DIGITS.finditer(text)):
        return "a card number"
    if any(_tells(match.group(1)) for match in _NAMED.finditer(text)):
        return "a password"
    if any(_is_random(piece) for piece in _PIECE.findall(_UUID.sub(" ", text))):
        return "a long random string"
    return None


def _tells(word: str) -> bool:
    bare = word.strip(".!?()[]")
    return bool(bare) and bare.lower() not in _ABOUT and _MASK.fullmatch(bare) is None and not bare.isalpha()


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return _ISSUERS.fullmatch(digits) is not None and is_card_number(digits)


def _is_random(piece: str) -> bool:
    """No word and no name of a thing: letters and digits that change places faster than anybody would write them."""
    if _HEX.fullmatch(piece):
        return len(set(piece.lower())) > 6
    core = piece.strip("=_/")
    if len(core) < _LONG_PIECE or core.isdigit() or _bits(core) < _RANDOM_BITS:
        return False
    if core.isalpha() and len(core) < _VERY_LONG_PIECE:
        return False
    return len(core) / len(_RUN.findall(core)) < _RANDOM_RUN


def _bits(text: str) -> float:
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
