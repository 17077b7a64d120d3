"""Which signals there are: the core keys with their types, and what a key of any namespace looks like."""

import difflib
import re
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.values import Json

ValueType = Literal["string", "boolean", "string[]"]

MAX_KEY_CHARS: Final = 128
CORE: Final = "core"
KEY: Final = re.compile(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9_]*)+")
_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


@dataclass(frozen=True, slots=True)
class Signal:
    """One core key. `on_route` marks what a page of another address may show differently."""

    key: str
    value_type: ValueType
    description: str
    example: Json
    on_route: bool = False
    deprecated: bool = False

    @property
    def namespace(self) -> str:
        return namespace_of(self.key)


_ALL: Final = (
    Signal("core.login_state", "string", "Whether somebody is signed in: logged_in or logged_out.", "logged_in"),
    Signal(
        "core.model.active", "string", "The model that answers now, as the page names it.", "Sonnet 5", on_route=True
    ),
    Signal("core.model.family", "string", "The family that model belongs to.", "Sonnet", on_route=True),
    Signal("core.model.routing_mode", "string", "How a model is chosen: auto, manual, fast …", "auto", on_route=True),
    Signal("core.models.available", "string[]", "Models the page offers to choose from.", ["Sonnet 5", "Haiku 5"]),
    Signal("core.plan.label", "string", "The plan's name as the page shows it.", "Pro (yearly)"),
    Signal("core.plan.tier", "string", "The plan's tier in one word: free, plus, pro, team, enterprise …", "pro"),
    Signal("core.account.display_name", "string", "The account's visible name.", "Ada L."),
    Signal("core.account.email", "string", "The account's visible mail address.", "ada@example.org"),
    Signal("core.session.state", "string", "The session's state: active, expired, locked …", "active", on_route=True),
    Signal(
        "core.page.type", "string", "What kind of page this is: login, chat, search, settings …", "chat", on_route=True
    ),
    Signal("core.ui.language", "string", "The language of the interface, as a BCP 47 tag.", "en"),
    Signal("core.ui.theme", "string", "The colour theme: light or dark.", "dark"),
    Signal("core.subscription.active", "boolean", "Whether a paid subscription runs.", example=True),
    Signal("core.feature.available", "string[]", "Features the page visibly offers.", ["file_upload"], on_route=True),
)
SIGNALS: Final[dict[str, Signal]] = {signal.key: signal for signal in _ALL}
ON_ROUTE: Final = frozenset(signal.key for signal in _ALL if signal.on_route)


def namespace_of(key: str) -> str:
    return key.partition(".")[0]


def is_core(key: str) -> bool:
    # However it is written: no custom signal may pass for a core one.
    return namespace_of(key).lower() == CORE


def near(key: str, count: int = 3) -> tuple[str, ...]:
    """The core keys most like a misspelt one; the first of them is always given."""
    found = difflib.get_close_matches(key, SIGNALS, count, 0.6)
    return tuple(found) or tuple(difflib.get_close_matches(key, SIGNALS, 1, 0.0))


def key_problem(key: str) -> str | None:
    """Why a text is no signal key, in words that may be answered; None when it is one."""
    if len(key) > MAX_KEY_CHARS:
        return f"a signal key has at most {MAX_KEY_CHARS} characters (got {len(key)})"
    if KEY.fullmatch(key) is None:
        return "a signal key is written namespace.path, such as core.login_state, shop.cart.items or myApp.cartCount"
    if is_core(key) and key not in SIGNALS:
        return f'"{key}" is no core signal; nearest: {", ".join(near(key))}'
    return None


def value_problem(key: str, value: Json) -> str | None:
    """Why a core signal can't have that value; custom signals take any."""
    signal = SIGNALS.get(key)
    if signal is None or _fits(signal.value_type, value):
        return None
    wanted = {"string": "a string", "boolean": "true or false", "string[]": "an array of strings"}[signal.value_type]
    return f"{key} takes {wanted}"


def _fits(value_type: ValueType, value: Json) -> bool:
    match value_type:
        case "string":
            return isinstance(value, str) and bool(value.strip())
        case "boolean":
            return isinstance(value, bool)
        case "string[]":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)


def value_warning(key: str, value: Json, signals: dict[str, Signal] | None = None) -> str | None:
    """What is odd about a claim that is taken all the same."""
    known = (SIGNALS if signals is None else signals).get(key)
    if known is not None and known.deprecated:
        return f"{key} is deprecated; nova.ok_signal_schema lists what replaces it."
    if key == "core.account.email" and isinstance(value, str) and _ADDRESS.fullmatch(value.strip()) is None:
        return f"{key} does not look like a mail address."
    return None
