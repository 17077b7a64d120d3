"""Keys: what each is called, and which of them belong to the browser; pure."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Modifier: TypeAlias = Literal["Control", "Shift", "Alt", "Meta"]

MODIFIERS: Final[dict[str, Modifier]] = {
    "control": "Control",
    "ctrl": "Control",
    "shift": "Shift",
    "alt": "Alt",
    "option": "Alt",
    "meta": "Meta",
    "command": "Meta",
    "cmd": "Meta",
    "super": "Meta",
}
_ORDER: Final[tuple[Modifier, ...]] = ("Control", "Alt", "Meta", "Shift")
_NAMED: Final = (
    "Enter",
    "Tab",
    "Escape",
    "Space",
    "Backspace",
    "Delete",
    "Insert",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "ContextMenu",
    "Control",
    "Shift",
    "Alt",
    "Meta",
    *(f"F{number}" for number in range(1, 13)),
)
_ALIASES: Final = {
    "return": "Enter",
    "esc": "Escape",
    "spacebar": "Space",
    "del": "Delete",
    "ins": "Insert",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "ctrl": "Control",
    "plus": "+",
}
NAMES: Final[dict[str, str]] = {name.lower(): name for name in _NAMED} | _ALIASES

# Keys that mean something to the browser's own window. What editors use (a, b, c, i, k, u, v, x, y, z) stays free.
_SCALES: Final = frozenset("0123456789+-=")
_WINDOW_LETTERS: Final = frozenset("twnqrlpsofghjd") | _SCALES
_WINDOW_KEYS: Final = frozenset({"Tab", "PageUp", "PageDown", "F4", "F5"})
_SHIFTED_LETTERS: Final = frozenset("twnqrpsogjicdbme") | _SCALES | {"Delete", "Escape"}
_ALT_KEYS: Final = frozenset({"ArrowLeft", "ArrowRight", "Home", "F4", "Space", "Tab", "d", "e", "f"})
_BARE: Final = frozenset({"F1", "F3", "F5", "F6", "F7", "F10", "F11", "F12", "Alt", "Meta"})


@dataclass(frozen=True, slots=True)
class Stroke:
    """One key with the modifiers held around it."""

    key: str
    modifiers: tuple[Modifier, ...] = ()

    @property
    def spelled(self) -> str:
        return "+".join((*self.modifiers, self.key))

    @property
    def on_keyboard(self) -> bool:
        """Whether a key of the plain layout makes it; other characters are entered as text."""
        return len(self.key) > 1 or " " <= self.key <= "~"

    @property
    def activates(self) -> bool:
        """Whether it does to a focused control what a click does."""
        return self.key in ("Enter", "Space", " ")

    @property
    def access(self) -> str:
        """What an element has to name as its `accesskey` to be pressed by this, wherever the focus is."""
        return self.key.lower() if "Alt" in self.modifiers and len(self.key) == 1 else ""


def copies(stroke: Stroke) -> bool:
    """Whether it puts what is selected on the clipboard."""
    held = {"Control", "Meta"} & set(stroke.modifiers)
    return (bool(held) and stroke.key.lower() in ("c", "x", "insert")) or (
        "Shift" in stroke.modifiers and stroke.key == "Delete"
    )


class UnknownKey(ValueError):
    """The text names no key."""


def parse_key(text: str) -> Stroke:
    """`Enter`, `a`, `ctrl+shift+k`; names in any case, one character as it is."""
    parts = _parts(text)
    *held, last = parts
    modifiers: set[Modifier] = set()
    for part in held:
        modifier = MODIFIERS.get(part.lower())
        if modifier is None:
            raise UnknownKey(f"{part[:40]!r} is no modifier; use Control, Shift, Alt or Meta")
        if modifier in modifiers:
            raise UnknownKey(f"{modifier} is named twice")
        modifiers.add(modifier)
    key = last if len(last) == 1 else NAMES.get(last.lower())
    if key is None or not key.isprintable():
        raise UnknownKey(f"{last[:40]!r} is no key; use a name such as Enter or ArrowDown, or one character")
    if key in modifiers:
        raise UnknownKey(f"{key} is named twice")
    stroke = Stroke(key, tuple(name for name in _ORDER if name in modifiers))
    if not stroke.on_keyboard and modifiers:
        raise UnknownKey(f"{key!r} is on no plain keyboard, so nothing can be held with it")
    return stroke


def _parts(text: str) -> list[str]:
    if text == "+":
        return ["+"]
    if text.endswith("++"):
        return [*text[:-2].split("+"), "+"]
    parts = text.split("+")
    if not all(parts):
        raise UnknownKey("an empty name stands beside a +")
    return parts


def belongs_to_browser(stroke: Stroke) -> bool:
    """Whether the key would reach past the page: tabs, windows, history, printing, developer tools."""
    key = stroke.key.lower() if len(stroke.key) == 1 else stroke.key
    held = set(stroke.modifiers)
    if not held or held == {"Shift"}:
        return key in _BARE or (key == "Escape" and held == {"Shift"})
    main = held & {"Control", "Meta"}
    if main and "Shift" in held:
        return key in _SHIFTED_LETTERS or key in _WINDOW_KEYS or key in _BARE
    if main:
        return key in _WINDOW_LETTERS or key in _WINDOW_KEYS or key in _BARE or held == {"Control", "Alt"}
    return key in _ALT_KEYS or key in _BARE
