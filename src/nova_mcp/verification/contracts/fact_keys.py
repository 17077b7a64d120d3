"""Which facts there are: the names a contract may use, where each one is read, and what the page is asked for."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from nova_mcp.core.signal_vocabulary import SIGNALS, is_core, near
from nova_mcp.core.values import Json
from nova_mcp.verification.model import Fact, Seen, SentRequest

Source = Literal["page", "host", "store"]
# What a fact is compared as; an element as a whole is compared by its existence or its parts.
FactKind = Literal["truth", "number", "text", "element"]

# `gone` is Nova's own: true when nothing matches or nothing that matches can be seen.
DOM_FIELDS: Final = ("exists", "visible", "count", "text", "value", "checked", "enabled", "gone")

PAGE_NAMES: Final = frozenset(
    {"page.title", "page.readyState"}
    | {"form.fields.valid", "form.successIndicator.visible", "form.errorBanner.visible", "form.submitted"}
    | {"form.warningBanner.visible", "form.noticeUnclear.visible", "form.gone", "form.isQuery"}
    | {"overlay.blocking", "overlay.primary.visible"}
    | {"auth.loggedIn", "auth.loginWallVisible", "auth.authError", "auth.mfaChallenge", "auth.stage"}
    | {"composer.hasText", "composer.textEmpty", "composer.sendButton.clickable"}
    | {"chat.streamActive", "chat.streamActive.started", "chat.assistantTurnCreated"}
    | {"chat.outboundMessageAppeared", "chat.sentTextAppeared"}
    | {"model.selected", "model.dropdown.visible"}
    | {"sandbox.selected", "sandbox.selected.changed", "sandbox.target.exists"}
)
HOST_NAMES: Final = frozenset(
    {"page.url", "page.route", "page.urlChanged", "runtime.domEpoch", "runtime.rendererHealthy"}
)
# These say nothing without what follows their @; it is url-encoded except for responseOk, which takes a bare glob.
ARGUMENT_NAMES: Final[dict[str, Source]] = {
    "page.shows": "page",
    "page.urlMatches": "host",
    "network.responseOk": "host",
    "network.response": "host",
}
_TEXTS: Final = frozenset(
    {"page.title", "page.readyState", "page.url", "page.route", "auth.stage", "model.selected", "sandbox.selected"}
)
_NUMBERS: Final = frozenset({"runtime.domEpoch", "network.responseOk", "network.response"})
_FIELD_KINDS: Final[dict[str | None, FactKind]] = {None: "element", "count": "number", "text": "text", "value": "text"}
NAMES: Final = PAGE_NAMES | HOST_NAMES | frozenset(ARGUMENT_NAMES)
PREFIXES: Final = frozenset(name.split(".", 1)[0] for name in NAMES) | {"dom"}

_STORE_KEY: Final = re.compile(r"[A-Za-z][\w-]*(\.[^\s.]+)+")


class UnknownFact(ValueError):
    """No fact has that name; `near` are the closest ones."""

    def __init__(self, key: str, why: str, near: tuple[str, ...] = ()) -> None:
        meant = f" Did you mean {', '.join(near)}?" if near else ""
        super().__init__(f'"{key[:120]}" is no known fact: {why}.{meant}')
        self.key = key
        self.near = near


@dataclass(frozen=True, slots=True)
class FactRef:
    """A fact key, taken apart. `name` is "dom" for elements; `argument` is the text or glob a fact is about."""

    key: str
    source: Source
    name: str
    css: str | None = None
    field: str | None = None
    argument: str | None = None

    @property
    def is_dom(self) -> bool:
        return self.name == "dom"

    @property
    def kind(self) -> FactKind | None:
        """What it is compared as; None for stored facts, which may be anything."""
        if self.source == "store":
            return None
        if self.is_dom:
            return _FIELD_KINDS.get(self.field, "truth")
        return "text" if self.name in _TEXTS else "number" if self.name in _NUMBERS else "truth"

    @property
    def is_network(self) -> bool:
        return self.name in ("network.response", "network.responseOk")


def parse_fact(key: str) -> FactRef:
    """The fact a key names; raises UnknownFact for a name that a known prefix does not have."""
    prefix, dot, rest = key.partition(".")
    if not dot:
        raise UnknownFact(key, "a fact key has a namespace, a dot and a name", _near(key))
    if prefix == "dom":
        return _dom(key, rest)
    if prefix in PREFIXES:
        return _named(key)
    if not _STORE_KEY.fullmatch(key):
        raise UnknownFact(key, "a stored fact is named by words with dots between them", _near(key))
    signal = key.removeprefix("ok.")
    if is_core(signal) and signal not in SIGNALS:
        raise UnknownFact(key, "there is no such core signal", near(signal))
    return FactRef(key, "store", key)


def _dom(key: str, rest: str) -> FactRef:
    css, field = _split_field(key, rest)
    if not css.strip():
        raise UnknownFact(key, "dom. needs a CSS selector")
    return FactRef(key, "page", "dom", css=css.strip(), field=field)


def _split_field(key: str, rest: str) -> tuple[str, str | None]:
    at = rest.rfind("@")
    if at < 0 or _escaped(rest, at):
        return rest, None
    field = rest[at + 1 :]
    if field in DOM_FIELDS:
        return rest[:at], field
    # Outside brackets and quotes CSS has no use for an @, so this was meant to be a field.
    if bare_positions(rest, "@")[-1:] == [at]:
        near = tuple(difflib.get_close_matches(field, DOM_FIELDS, 3, 0.5))
        raise UnknownFact(key, f"an element has the fields {', '.join(DOM_FIELDS)}", tuple(f"@{name}" for name in near))
    return rest, None


def _escaped(text: str, at: int) -> bool:
    before = text[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def bare_positions(css: str, sign: str) -> list[int]:
    """Where a sign stands in a selector outside brackets and quotes and without a backslash before it."""
    found: list[int] = []
    closing: list[str] = []
    quote = ""
    escaped = False
    for at, char in enumerate(css):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[(":
            closing.append("]" if char == "[" else ")")
        elif closing and char == closing[-1]:
            closing.pop()
        elif char == sign and not closing:
            found.append(at)
    return found


def _named(key: str) -> FactRef:
    name, at, suffix = key.partition("@")
    if name in ARGUMENT_NAMES:
        argument = suffix if name == "network.responseOk" else unquote(suffix)
        if not argument.strip():
            raise UnknownFact(key, f"{name} needs what it is about behind an @")
        return FactRef(key, ARGUMENT_NAMES[name], name, argument=argument)
    if name not in NAMES:
        raise UnknownFact(key, "no fact of that prefix has this name", _near(name))
    if not at:
        return FactRef(key, "page" if name in PAGE_NAMES else "host", name)
    css = unquote(suffix.removeprefix("css=")).strip()
    if name not in PAGE_NAMES or not suffix.startswith("css=") or not css:
        raise UnknownFact(key, "only facts read in the page take a scope, written @css=<url-encoded selector>", (name,))
    return FactRef(key, "page", name, css=css)


def _near(name: str) -> tuple[str, ...]:
    close = difflib.get_close_matches(name, sorted(NAMES), 3, 0.5)
    if close:
        return tuple(close)
    prefix = name.split(".", 1)[0]
    return tuple(sorted(known for known in NAMES if known.startswith(f"{prefix}."))[:3])


def to_page(ref: FactRef) -> dict[str, Json]:
    """What the page is asked for one fact; only for facts that are read there."""
    if ref.source != "page":
        raise ValueError(f"{ref.key} is not read in the page")
    if ref.is_dom:
        return {"kind": "dom", "css": ref.css, "field": ref.field}
    question: dict[str, Json] = {"kind": "named", "name": ref.name, "css": ref.css}
    if ref.argument is not None:
        question["text"] = ref.argument
    return question


def glob_matches(glob: str, url: str) -> bool:
    """Whether a URL fits a glob in which * stands for any run of characters and nothing else is special.

    A glob that begins with a slash speaks of the path; query and fragment only count where the glob has a ? or a #.
    """
    parts = urlsplit(url)
    if glob.startswith("#"):
        return _runs_match(glob, f"#{parts.fragment}")
    fragment = f"#{parts.fragment}" if "#" in glob else ""
    if glob.startswith("/"):
        query = f"?{parts.query}" if "?" in glob else ""
        return _runs_match(glob, (parts.path or "/") + query + fragment)
    whole = url.partition("#")[0] + fragment
    if "://" in glob:
        return _runs_match(glob, whole)
    return _runs_match(glob, whole) or _runs_match(glob, whole.partition("://")[2])


def _runs_match(glob: str, text: str) -> bool:
    # Piece by piece and not as a regular expression, so that no glob takes more than linear passes over the text.
    first, *rest = glob.split("*")
    if not rest:
        return glob == text
    *middle, last = rest
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def concerns(ref: FactRef, request: SentRequest) -> bool:
    """Whether a network fact is about that request."""
    method, glob = split_request(ref.argument or "") if ref.name == "network.response" else (None, ref.argument or "")
    return (method is None or request.method.upper() == method) and glob_matches(glob, request.url)


def response_fact(ref: FactRef, requests: Iterable[SentRequest]) -> Fact:
    """A network fact: the newest matching answer's status, null while there is none. Requests come oldest first."""
    status: int | None = None
    for request in requests:
        if request.status is not None and concerns(ref, request):
            status = request.status
    return Seen(status)


def split_request(argument: str) -> tuple[str | None, str]:
    """ "POST /api/*" as method and glob; without a method any will do."""
    method, space, glob = argument.strip().partition(" ")
    if not space:
        return None, method
    return method.upper(), glob.strip()
