"""What may be written down: arguments and texts bounded in size and free of secrets."""

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nova_mcp.core.urls import redact_query
from nova_mcp.core.values import Json

MAX_DEPTH: Final = 8
MAX_RESULT_BYTES: Final = 4096
MIN_SECRET_CHARS: Final = 4
REDACTED: Final = "«redacted»"
_MAX_KEY_CHARS: Final = 80
_MAX_NODES: Final = 2000
_MAX_SCANNED_CHARS: Final = 65_536
# The string limits tried in turn until the whole summary fits.
_STRING_STEPS: Final = ((400, 64), (160, 32), (60, 16), (24, 8))

_SENSITIVE_KEYS: Final = frozenset(
    {
        "accesskey",
        "accesstoken",
        "apikey",
        "authorization",
        "bearer",
        "clientsecret",
        "cookie",
        "cookies",
        "cvc",
        "cvv",
        "finalizationtoken",
        "otp",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "passwort",
        "pin",
        "privatekey",
        "prompttext",
        "pwd",
        "refreshtoken",
        "secret",
        "setcookie",
        "token",
    }
)
_SENSITIVE_ENDINGS: Final = ("password", "passwort", "secret", "token", "apikey", "privatekey", "passphrase")
# Ends like a secret's key but carries a position, which evidence needs.
_HARMLESS_KEYS: Final = frozenset({"continuationtoken"})
# Arguments under these names are addresses whatever they look like: a forgotten scheme must not keep a query's values.
_ADDRESS_KEYS: Final = frozenset({"url", "href", "uri"})
_NOT_KEY_LETTERS = re.compile(r"[^a-z0-9]")
# What proves an agent's claim; it may be pasted anywhere, so it is known by its shape.
CLAIM_TOKEN_PREFIX: Final = "fin_"  # noqa: S105 - a prefix
_CLAIM_TOKEN = re.compile(rf"{CLAIM_TOKEN_PREFIX}[0-9a-f]{{16,64}}")
_URL_IN_TEXT = re.compile(r"(?<![A-Za-z0-9+.-])(?:https?|wss?|ftp|file)://[^\s\"'<>]+", re.IGNORECASE)


@dataclass(slots=True)
class _Limits:
    """Bounds of one attempt; `nodes` counts down, because nested lists multiply."""

    string_chars: int
    items: int
    nodes: int = _MAX_NODES


def _base64_forms(raw: bytes) -> set[str]:
    """The base64 spellings of a value, alone or inside a longer encoded text.

    Inside a longer text a value starts at one of three bit offsets; the characters at its ends are
    shared with the neighbours and so are left out.
    """
    forms = {base64.b64encode(raw).decode("ascii")}
    for shift, head in enumerate((0, 2, 3)):
        encoded = base64.b64encode(b"\0" * shift + raw).decode("ascii")
        tail = (0, 3, 2)[(shift + len(raw)) % 3]
        forms.add(encoded[head : len(encoded) - tail])
    forms |= {form.replace("+", "-").replace("/", "_") for form in forms}
    return {form for form in forms if len(form) >= MIN_SECRET_CHARS}


def _one_character(character: str) -> str:
    """A pattern for one character as it is, percent-encoded or JSON-escaped, in any mixture."""
    raw = character.encode("utf-8", "surrogatepass")
    forms = [re.escape(character)]
    forms.append("(?i:" + "".join(f"%{byte:02x}" for byte in raw) + ")")
    escaped = json.dumps(character)[1:-1]
    if escaped != character:
        forms.append(f"(?i:{re.escape(escaped)})")
    if character == " ":
        forms.append(r"\+")
    if character == "/":
        forms.append(r"\\/")
    return "(?:" + "|".join(forms) + ")"


def _secret_pattern(value: str) -> str:
    spelled = "".join(map(_one_character, value))
    encoded = sorted(_base64_forms(value.encode("utf-8", "surrogatepass")), key=lambda form: (-len(form), form))
    return "|".join([spelled, *map(re.escape, encoded)])


# A shorter beginning is no secret yet, and too many innocent words would share it.
STUMP_CHARS = 5
ELLIPSIS: Final = "…"
# No answer is longer; what a page or a caller makes longer is cut before it is searched.
MAX_FILTERED_CHARS: Final = 2_000_000


def _shared_length(value: str, text: str, at: int) -> int:
    """How many characters of a value stand in a text at a place."""
    place = text[at : at + len(value)]
    return next((size for size, (one, other) in enumerate(zip(value, place, strict=False)) if one != other), len(place))


class _Stumps:
    """What is left of secrets where a text was cut: before an ellipsis, or at the very end; found in one pass."""

    def __init__(self, named: Iterable[tuple[str, str]]) -> None:
        self._by_head: dict[str, list[tuple[str, str]]] = {}
        for name, value in named:
            if len(value) > STUMP_CHARS:
                self._by_head.setdefault(value[:STUMP_CHARS], []).append((name, value))
        heads = "|".join(map(re.escape, self._by_head))
        # Looked ahead for, so that one beginning does not hide another that overlaps it.
        self._head = re.compile(f"(?=({heads}))") if heads else None

    def __call__(self, text: str) -> str:
        if self._head is None:
            return text
        parts: list[str] = []
        done = 0
        for match in self._head.finditer(text):
            start = match.start()
            if start < done:
                continue
            name, end = self._longest(text, start, match.group(1))
            if end > start:
                parts += text[done:start], f"«secret:{name}»"
                done = end
        return "".join([*parts, text[done:]]) if parts else text

    def _longest(self, text: str, start: int, head: str) -> tuple[str, int]:
        """The secret whose stump reaches farthest from a place, and where it ends; nowhere if none is cut off."""
        found = ("", start)
        for name, value in self._by_head[head]:
            size = _shared_length(value, text, start)
            reached = start + size
            cut_off = reached == len(text) and size < len(value)
            end = reached if cut_off else text.rfind(ELLIPSIS, start + STUMP_CHARS, reached + 1)
            if end > found[1]:
                found = (name, end)
        return found


def _page_forms(value: str) -> set[str]:
    """How a page may show a value: as it is, without line breaks, with its blanks collapsed, trimmed."""
    lines = value.replace("\r", "").replace("\n", "")
    return {value, value.strip(), lines, " ".join(value.split())}


class SecretFilter:
    """Known secret values compiled once, to be replaced wherever they turn up; a name may have had several values."""

    def __init__(self, secrets: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        pairs = secrets.items() if isinstance(secrets, Mapping) else secrets
        shown = {(name, form) for name, value in pairs for form in _page_forms(value)}
        usable = [(name, value) for name, value in shown if len(value) >= MIN_SECRET_CHARS]
        usable.sort(key=lambda pair: (-len(pair[1]), pair))
        self._names = [name for name, _ in usable]
        self._stumps = _Stumps(usable)
        self._values = frozenset(value for _, value in usable)
        self._pattern = re.compile("|".join(f"({_secret_pattern(value)})" for _, value in usable)) if usable else None
        encoded = (_base64_forms(value.encode("utf-8", "surrogatepass")) for value in self._values)
        self._plain = tuple(self._values.union(*encoded))
        # An escaped character takes at most twelve characters: a JSON surrogate pair or four encoded bytes.
        self.longest = 12 * max((len(value) for _, value in usable), default=0)

    @property
    def active(self) -> bool:
        return self._pattern is not None

    def is_secret(self, text: str) -> bool:
        """Whether a text is a secret value as it stands, not merely holds one."""
        return text in self._values

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        if len(text) <= MAX_FILTERED_CHARS:
            return self._stumps(self._without_values(text))
        # What might be the beginning of a secret in any spelling goes with the rest.
        head = self._without_values(text[:MAX_FILTERED_CHARS])
        return self._stumps(f"{head[: max(0, len(head) - self.longest)]}{ELLIPSIS} ({len(text)} chars)")

    def _without_values(self, text: str) -> str:
        pattern = self._pattern
        return text if pattern is None or not self._may_hold(text) else pattern.sub(self._label, text)

    def _may_hold(self, text: str) -> bool:
        """A cheap look ahead of the slow one: without a character that escapes, only plain spellings can match."""
        return any(mark in text for mark in "%\\+") or any(form in text for form in self._plain)

    def _label(self, match: re.Match[str]) -> str:
        return f"«secret:{self._names[(match.lastindex or 1) - 1]}»"


def redact_text(text: str, secrets: Mapping[str, str] | SecretFilter) -> str:
    """The text with every known secret value replaced by its name."""
    replace = secrets if isinstance(secrets, SecretFilter) else SecretFilter(secrets)
    return replace(text)


_LONG_NUMBER: Final = re.compile(r"\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}")


def is_card_number(text: str) -> bool:
    """A payment card's number by its length and check digit; forms do not always say that they ask for one."""
    if _LONG_NUMBER.fullmatch(text.strip()) is None:
        return False
    digits = [int(sign) for sign in reversed(text) if sign.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[1::2]]
    return (sum(digits[0::2]) + sum(doubled)) % 10 == 0


# Looked for at every number, so that one in front of it does not hide a card's.
_CARD_PLACES: Final = re.compile(rf"(?<!\d)(?=({_LONG_NUMBER.pattern})(?!\d))")


def holds_card_number(text: str) -> bool:
    """Whether a sentence has a payment card's number in it."""
    return any(is_card_number(match.group(1)) for match in _CARD_PLACES.finditer(text))


def hide_claim_tokens(text: str) -> str:
    return _CLAIM_TOKEN.sub(REDACTED, text)


def is_sensitive_key(key: str) -> bool:
    """Whether a key names a credential, whatever its spelling."""
    folded = _NOT_KEY_LETTERS.sub("", key.lower())
    if folded in _HARMLESS_KEYS:
        return False
    return folded in _SENSITIVE_KEYS or folded.endswith(_SENSITIVE_ENDINGS)


def _reduce_urls(text: str) -> str:
    return _URL_IN_TEXT.sub(lambda match: redact_query(match.group()), text)


def redact_selector(selector: str, *, keep_raw_urls: bool = False) -> str:
    """A selector as evidence keeps it; addresses in it lose their query values like everywhere else."""
    return selector if keep_raw_urls else _reduce_urls(selector)


def _names_address(key: str) -> bool:
    folded = _NOT_KEY_LETTERS.sub("", key.lower())
    return folded in _ADDRESS_KEYS or folded.endswith("url")


def cut_text(text: str, limit: int) -> str:
    """The text within a limit; what was cut is told by its full length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} chars)"


@dataclass(frozen=True, slots=True)
class _Redactor:
    secrets: SecretFilter
    sensitive_fields: frozenset[str]
    keep_raw_urls: bool
    limits: _Limits
    known_fields: frozenset[str] | None = None

    def text(self, value: str, *, address: bool = False) -> str:
        # Secrets go first: reducing or cutting might leave a piece that no longer matches.
        head = value
        if len(value) > _MAX_SCANNED_CHARS:
            clean = self.secrets(value[:_MAX_SCANNED_CHARS])
            head = clean[: max(0, len(clean) - self.secrets.longest)]
        clean = hide_claim_tokens(_encodable(self.secrets(head)))
        if not self.keep_raw_urls:
            clean = redact_query(clean) if address else _reduce_urls(clean)
        if head is not value:
            return f"{clean[: self.limits.string_chars]}… ({len(value)} chars)"
        return cut_text(clean, self.limits.string_chars)

    def number(self, value: float | str) -> float | str:
        spelled = str(value)
        clean = self.secrets(spelled)
        return value if clean == spelled else clean

    def sensitive(self, key: str, value: object) -> Json:
        if value is None or isinstance(value, bool):
            return value
        return f"«redacted {len(value)} chars»" if key in self.sensitive_fields and isinstance(value, str) else REDACTED

    def value(self, value: object, depth: int) -> Json:
        self.limits.nodes -= 1
        if self.limits.nodes < 0:
            return "…"
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value)
            case int():
                return self.number(int(value)) if abs(value) < 2**64 else f"int of {value.bit_length()} bits"
            case float():
                return self.number(_finite(value))
            case dict() | list() | tuple() if depth >= MAX_DEPTH:
                return f"… ({type(value).__name__} of {len(value)})"
            case dict():
                return self.mapping(value, depth)
            case list() | tuple():
                items = [self.value(item, depth + 1) for item in value[: self.limits.items]]
                dropped = len(value) - self.limits.items
                return [*items, f"… ({dropped} more)"] if dropped > 0 else items
            case _:
                return f"<{type(value).__name__}>"

    def mapping(self, value: Mapping[Any, object], depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for index, (raw_key, item) in enumerate(value.items()):
            if index >= self.limits.items:
                result["…"] = f"{len(value) - index} more"
                break
            key = raw_key if isinstance(raw_key, str) else f"<{type(raw_key).__name__}>"
            clean = hide_claim_tokens(_encodable(self.secrets(key[:_MAX_SCANNED_CHARS])))
            name = cut_text(clean, _MAX_KEY_CHARS)
            if key in self.sensitive_fields or is_sensitive_key(key):
                result[name] = self.sensitive(key, item)
            elif self.known_fields is not None and key not in self.known_fields and isinstance(item, str | list):
                result[name] = f"«redacted {len(item)} chars»" if isinstance(item, str) else REDACTED
            elif isinstance(item, str) and _names_address(key):
                result[name] = self.text(item, address=True)
            else:
                result[name] = self.value(item, depth + 1)
        return result


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no encoding can store."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _finite(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def _size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def redact_arguments(
    args: Mapping[str, object],
    *,
    secrets: Mapping[str, str] | SecretFilter,
    sensitive_fields: frozenset[str] = frozenset(),
    known_fields: frozenset[str] | None = None,
    keep_raw_urls: bool = False,
) -> dict[str, Json]:
    """A summary of a call's arguments that is safe to keep: at most 4 KB, no secrets, no query values.

    Text in `sensitive_fields`, and outside `known_fields` if those are given, is kept only as its length. Whatever the
    arguments hold, there is a summary.
    """
    replace = secrets if isinstance(secrets, SecretFilter) else SecretFilter(secrets)
    for chars, items in _STRING_STEPS:
        redactor = _Redactor(replace, sensitive_fields, keep_raw_urls, _Limits(chars, items), known_fields)
        summary = redactor.mapping(args, 0)
        if _size(summary) <= MAX_RESULT_BYTES:
            return summary
    flat: dict[str, Json] = {}
    for key, item in summary.items():
        entry: Json = item if not isinstance(item, (dict, list)) else f"… ({type(item).__name__} of {len(item)})"
        if _size({**flat, key: entry}) > MAX_RESULT_BYTES - 64:
            flat["…"] = f"{len(args) - len(flat)} more"
            break
        flat[key] = entry
    return flat
