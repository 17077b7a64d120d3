"""How figures and moments are put into words on pages; pure."""

import json
import unicodedata
from datetime import UTC, datetime
from typing import Final

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
_STEPS: Final = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
# Classes of characters that hide text or turn its direction: a page may put them into what is shown here.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})
_FARTHEST_MS: Final = 253_402_300_799_000


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(min(max(at_ms, 0), _FARTHEST_MS) / 1000, UTC)


def moment(at_ms: int) -> str:
    """Date and time, UTC."""
    return f"{_at(at_ms):%Y-%m-%d %H:%M:%S}"


def iso(at_ms: int) -> str:
    return _at(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(at_ms: int, now_ms: int) -> str:
    """The time of day, with the date unless it is today."""
    at, now = _at(at_ms), _at(now_ms)
    if at.date() == now.date():
        return f"{at:%H:%M:%S}"
    return f"{at:%b} {at.day}, {at:%H:%M}" if at.year == now.year else f"{at:%Y-%m-%d %H:%M}"


def ago(at_ms: int, now_ms: int) -> str:
    """How long ago or how far ahead, in the largest unit that fits."""
    apart = abs(now_ms - at_ms)
    if apart < 2 * SECOND:
        return "just now"
    size, unit = next((step for step in _STEPS if apart >= step[0]), _STEPS[-1])
    return f"{apart // size} {unit} ago" if at_ms <= now_ms else f"in {apart // size} {unit}"


def lasting(duration_ms: int | float) -> str:
    """A duration as people say it."""
    whole = max(0, round(duration_ms))
    if whole < SECOND:
        return f"{whole} ms"
    if whole < MINUTE:
        return f"{whole / SECOND:.1f} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE // SECOND} s"
    if whole < 2 * DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d"


def number(value: int) -> str:
    """With thin gaps between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def brief(value: float) -> str:
    """A number on an axis or a tile, at most four figures long."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if abs(value) >= size:
            scaled = value / (1_000 if letter == "k" else size)
            return f"{scaled:.0f}{letter}" if abs(scaled) >= 100 or letter == "k" else f"{scaled:.1f}{letter}"
    return number(int(value)) if float(value).is_integer() else f"{value:.1f}"


def share(rate: float | None) -> str:
    return "–" if rate is None else f"{rate * 100:.1f} %"


def plain(value: object) -> str:
    """Text in which every character that would hide or turn it can be seen."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if unicodedata.category(char) in _UNSEEN else char for char in text)


def _spelled(char: str) -> str:
    return "\n" if char == "\n" else f"\\u{ord(char):04x}"


def tool_name(name: str) -> str:
    """A tool without the prefix that all of them share."""
    return plain(name.removeprefix("nova."))


def pretty(value: object) -> str:
    """A JSON value on several lines."""
    return plain(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))
