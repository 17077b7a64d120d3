"""Does a value look like something nobody should keep: a password, a token, a card number; pure."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from nova_mcp.core.redaction import is_card_number, is_sensitive_key
from nova_mcp.core.values import Json

# Names of things that are long but not secret: UUIDs, ULIDs of this century, and mail addresses given out by relays.
_NAMES_OF_THINGS: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b01[0-9a-hjkmnp-tv-z]{24}\b"
    r"|(?<![/\w.+:-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE,
)
# Shapes that issuers gave their tokens so that they are found.
_ISSUED: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|\b(?:sk|rk|pk)[-_](?:live|test|proj|ant|or|svcacct|admin)[-_][A-Za-z0-9_-]{12,}"
    r"|\bsk-[A-Za-z0-9]{20,}"
    r"|\bgh[opusr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bya29\.[A-Za-z0-9_-]{20,}|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-AgE[A-Za-z0-9_-]{16,}"
    r"|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bwhsec_[A-Za-z0-9+/=]{16,}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"
    r"|\bdo[opr]_v1_[0-9a-f]{32,}|\bshp(?:at|ca|pa|ss)_[0-9a-f]{32}|\b(?:gsk|r8)_[A-Za-z0-9]{20,}"
    r"|\b(?:pplx|xai)-[A-Za-z0-9]{20,}"
    r"|\bfin_[0-9a-f]{16,64}\b"
)
_HEADER: Final = re.compile(
    r"\b(?:bearer|basic)\s+(?=\S*[0-9+/=_-])[A-Za-z0-9+/=._-]{16,}"
    r"|\bauthorization\s*[:=]\s*(?:basic|bearer|digest|token)\s+\S{6,}",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"\b(?:pass(?:word|wd|phrase|code)|passwort|kennwort|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|otp)"
    r"\s*([:=]|\b(?:is|ist|lautet)\b)\s*[\"'`]?([^\s\"'`,;]{4,})",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"\b(?:(?:pin|[mt]?tan|otp|passcode)(?:[ -]?(?:code|number))?\s*(?:[:=]|\b(?:is|ist|lautet)\b)"
    r"|(?:cvv2?|cvc2?)(?:[ -]?code)?\s*(?:[:=]|\b(?:is|ist|lautet)\b)?)\s*\d{3,8}\b",
    re.IGNORECASE,
)
_IN_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]*:[^\s/@]{3,}@", re.IGNORECASE)
_BLANK: Final = " \u00a0\u2007\u2009\u202f\u2010-\u2015-"
# Not behind a plus, where a phone number stands, and no piece of a decimal fraction.
_DIGITS: Final = re.compile(rf"(?<![\d+])(?<!\d[.,])\d(?:[{_BLANK}]{{0,3}}\d){{12,}}(?!\d|[.,]\d)")
_CARD_GROUPS: Final = re.compile(r"4 4 4 [1-7]|4 6 [45]")
_PIECE: Final = re.compile(r"[A-Za-z0-9+/=_]{16,}")
_HEX: Final = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[A-Za-z0-9]+")
_RUN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SWITCH: Final = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
# Numbers that payment cards begin with; an order number passes the check digit once in ten.
_ISSUERS: Final = re.compile(
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
_IBAN: Final = re.compile(r"\b([A-Z]{2})\d{2}(?:[ \u00a0-]?[A-Z0-9]){11,}")
_IBAN_CHARS: Final = {
    **dict.fromkeys(("NO",), 15), **dict.fromkeys(("BE",), 16), **dict.fromkeys(("DK", "FI", "NL"), 18), "SI": 19,
    **dict.fromkeys(("AT", "EE", "LT", "LU"), 20), **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "DE", "GB", "IE", "RS"), 22), **dict.fromkeys(("AE", "IL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "RO", "SA", "SE", "SK"), 24), "PT": 25, **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("FR", "GR", "IT", "MC", "SM"), 27), **dict.fromkeys(("CY", "HU", "PL"), 28), "UA": 29, "MT": 31,
}  # fmt: skip
# What a page says about a password instead of showing it.
_ABOUT: Final = frozenset(
    {
        *("set", "unset", "hidden", "masked", "saved", "stored", "required", "optional", "expired", "configured"),
        *("changed", "weak", "medium", "strong", "missing", "present", "none", "null", "empty", "created"),
        *("shown", "visible", "needed", "reset", "valid", "invalid", "wrong", "correct", "incorrect"),
        *("forgotten", "unknown", "accepted", "rejected", "enabled", "disabled", "managed", "protected", "active"),
        *("revoked", "true", "false", "field", "login", "sign"),
        *("gesetzt", "erforderlich", "vergessen", "falsch", "richtig", "gespeichert", "abgelaufen", "leer"),
        *("schwach", "stark", "verborgen", "vorhanden", "geändert"),
    }
)
# And the little words around it.
_AROUND: Final = frozenset(
    {
        *("not", "no", "is", "was", "be", "been", "to", "too", "must", "yet", "ever", "never", "last", "ago", "by"),
        *("short", "long", "days", "day", "weeks", "months", "today", "yesterday", "characters", "digits", "at"),
        *("least", "and", "or", "the", "a", "here", "there", "nicht", "kein", "keine", "noch", "ist", "zu", "kurz"),
    }
)
_LENGTHS: Final = re.compile(
    r"\(?\d{1,3}(?:[-–]\d{1,3}|\+)?(?:-?(?:digits?|char(?:acter)?s?|stellige?|zeichen))?\)?", re.IGNORECASE
)
_MASK: Final = re.compile(r"[•*●.·x_\s-]+", re.IGNORECASE)
# Names that say nothing of their own: what stands above them counts.
_NEUTRAL: Final = frozenset(
    {"value", "val", "text", "plain", "plaintext", "raw", "current", "content", "data", "string"}
)
_NAMING: Final = ("name", "label", "field", "key", "id", "type")
_NUMERIC: Final = frozenset({"pin", "otp", "cvv", "cvc", "passcode"})
_SESSIONS: Final = frozenset({"sessionid", "jsessionid", "phpsessid"})
_COOKIE_VALUE: Final = re.compile(r"=(?=[^;\s]*\d)[^;\s]{6,}")
_SCHEME: Final = re.compile(r"(?:basic|bearer|digest|token)\s+\S{6,}", re.IGNORECASE)
_LONG_PIECE: Final = 16
_VERY_LONG_PIECE: Final = 24
# Between its strokes a random string has pieces of this length; a path and a name in parts have not.
_LEAST_UNBROKEN: Final = 10
# Letters drawn at random stay 1.8 characters in one class; the shortest names of things stay 2.7.
_RANDOM_RUN: Final = 2.4
_RANDOM_BITS: Final = 3.3
# In one case only, it is the change between letters and digits that tells: every third character or so.
_ONE_CASE_CHARS: Final = 20
_ONE_CASE_SWITCHES: Final = 0.25


def sensitive_reason(key: str, value: Json) -> str | None:
    """What a claim's value looks like, in words that don't repeat it; None when it may be kept."""
    for name, item in _leaves(_own_name(key.split(".")), value):
        if name and _is_telling(name) and _is_credential(name, item):
            return "a credential"
        if item is not None and not isinstance(item, bool) and (found := _looks_like(_spelled(item))) is not None:
            return found
    return next((found for name in _names(value) if (found := _looks_like(name)) is not None), None)


def sensitive_key(key: str) -> str | None:
    """The same for the key itself, part by part."""
    return next((found for part in key.split(".") if (found := _looks_like(part)) is not None), None)


def sensitive_text(text: str) -> str | None:
    """The same for a sentence: what in it must not be kept."""
    return _looks_like(text)


def _own_name(path: Sequence[str]) -> str:
    """The last name in a path that says something."""
    return next((name for name in reversed(path) if name.lower() not in _NEUTRAL), path[-1])


def _leaves(name: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Every single value with the name it stands under."""
    pending: list[tuple[str, Json]] = [(name, value)]
    while pending:
        under, item = pending.pop()
        match item:
            case dict():
                above = _said_beside(item) or under
                pending.extend((_own_name((above, key)), inner) for key, inner in item.items())
            case list():
                pending.extend((under, inner) for inner in item)
            case _:
                yield under, item


def _said_beside(item: dict[str, Json]) -> str | None:
    """What a field is called, where an object describes one: {"label": "Password", "value": …}."""
    said = (item.get(naming) for naming in _NAMING)
    return next((one for one in said if isinstance(one, str) and _is_telling(one)), None)


def _names(value: Json) -> Iterator[str]:
    """Every name that an object in the value gives."""
    pending = [value]
    while pending:
        match pending.pop():
            case dict() as item:
                yield from item
                pending.extend(item.values())
            case list() as items:
                pending.extend(items)


def _spelled(item: Json) -> str:
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _folded(name: str) -> str:
    """A name without what it ends in when there are several, or when it says that it is the thing itself."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for ending in ("plaintext", "plain", "value", "text"):
        plain = plain.removesuffix(ending) or plain
    return plain.removesuffix("s") if not plain.endswith("ss") else plain


def _is_telling(name: str) -> bool:
    folded = _folded(name)
    return is_sensitive_key(name) or is_sensitive_key(folded) or folded in _SESSIONS or folded == "kennwort"


def _is_credential(name: str, item: Json) -> bool:
    """Under a name for credentials; whether one is set, shown or wrong may be said."""
    if item is None or isinstance(item, bool):
        return False
    text, folded = _spelled(item).strip(), _folded(name)
    if not text or _MASK.fullmatch(text) is not None or _speaks_about(text):
        return False
    if not isinstance(item, str):
        # A number of tokens or cookies is a count; a code is a number of a few digits.
        return (folded in _NUMERIC or "pass" in folded) and text.isdigit() and 3 <= len(text) <= 12
    if any(word in folded for word in ("pass", "pwd", "secret", "key", "kennwort")):
        return len(text) >= 3
    if _COOKIE_VALUE.search(text) or _SCHEME.match(text):
        return True
    return " " not in text and len(text) >= 3 and any(sign.isdigit() for sign in text)


def _speaks_about(text: str) -> bool:
    words = re.findall(r"[^\s,.;:!?()]+", text.lower())
    if len(words) < 2:
        return not words or words[0] in _ABOUT
    return all(word in _ABOUT or word in _AROUND or (word.isdigit() and len(word) < 4) for word in words)


def _looks_like(text: str) -> str | None:
    if _ISSUED.search(text) or _HEADER.search(text):
        return "an access token"
    if any(_holds_card(match.group()) for match in _DIGITS.finditer(text)):
        return "a card number"
    if any(_is_iban(match) for match in _IBAN.finditer(text)):
        return "a bank account number"
    if _CODE.search(text) or _IN_ADDRESS.search(text) or any(_tells(*one.groups()) for one in _NAMED.finditer(text)):
        return "a password"
    if any(_is_random(piece) for piece in _PIECE.findall(_NAMES_OF_THINGS.sub(" ", text))):
        return "a long random string"
    return None


def _tells(sign: str, word: str) -> bool:
    """Whether what follows the name of a credential is one; a plain word is, where it was assigned."""
    bare = word.strip(".!?()[]")
    if not bare or bare.lower() in _ABOUT or _MASK.fullmatch(bare) or _LENGTHS.fullmatch(bare):
        return False
    return sign == "=" or not bare.isalpha()


def _holds_card(text: str) -> bool:
    """A card's number is the whole of it, or four groups in the middle as cards are printed."""
    groups = re.findall(r"\d+", text)
    if _is_card("".join(groups)):
        return True
    for size in (1, 3, 4):
        for start in range(len(groups) - size + 1):
            some = groups[start : start + size]
            printed = size == 1 or _CARD_GROUPS.fullmatch(" ".join(str(len(one)) for one in some))
            if printed and _is_card("".join(some)):
                return True
    return False


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and is_card_number(digits)


def _is_iban(match: re.Match[str]) -> bool:
    signs, size = re.sub(r"[^A-Z0-9]", "", match.group()), _IBAN_CHARS.get(match.group(1), 0)
    if not size or len(signs) < size:
        return False
    turned = signs[4:size] + signs[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


def _is_random(piece: str) -> bool:
    """No word and no name of a thing: letters and digits that change places faster than anybody would write them."""
    if piece.isdigit():
        return False
    if _HEX.fullmatch(piece):
        return len(set(piece.lower())) > 6
    parts = _PLAIN.findall(piece)
    longest, core = max(parts, key=len, default=""), "".join(parts)
    if _draws_from_one_case(longest):
        return True
    if len(core) < _LONG_PIECE or len(longest) < _LEAST_UNBROKEN or core.isdigit() or _bits(core) < _RANDOM_BITS:
        return False
    if core.isalpha() and len(core) < _VERY_LONG_PIECE:
        return False
    return len(core) / sum(len(_RUN.findall(part)) for part in parts) < _RANDOM_RUN


def _draws_from_one_case(text: str) -> bool:
    if len(text) < _ONE_CASE_CHARS or text not in (text.lower(), text.upper()) or _bits(text) < _RANDOM_BITS:
        return False
    return len(_SWITCH.findall(text)) / len(text) >= _ONE_CASE_SWITCHES


def _bits(text: str) -> float:
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
