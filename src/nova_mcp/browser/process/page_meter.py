"""How much a page makes its driver carry: console lines, errors, addresses; pure but for the clock it is given.

The driver keeps the last 200 console lines, 200 errors and 100 requests of every page, each as long as the page likes.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

WINDOW_MS: Final = 10_000
# Far above what pages do that log, move and load a lot; a storm is above it within a second or two.
FLOOD_CHARS: Final = 64_000_000
FLOOD_EVENTS: Final = 100_000
# What has come since the driver was last told to forget a page's lines.
FORGET_CHARS: Final = 4_000_000
# Within the second in which all pages are looked at because the driver has grown.
SUSPECT_CHARS: Final = 2_000_000

METERED: Final = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.navigatedWithinDocument")
SAMPLED: Final = ("Network.requestWillBeSent", "Network.webSocketFrameSent", "Network.webSocketFrameReceived")


class PageMeter:
    """Counts the events of one page and their length, by seconds."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        # Second, events, characters.
        self._seconds: deque[list[float]] = deque(maxlen=WINDOW_MS // 1000)
        self.unforgotten = 0
        self.total = 0

    def take(self, event: dict[str, Any]) -> None:
        """An event of the page's session."""
        size = size_of(event)
        second = self._monotonic_ms() // 1000
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0, 0])
        self._seconds[-1][1] += 1
        self._seconds[-1][2] += size
        self.unforgotten += size
        self.total += size

    def forget(self) -> None:
        self.unforgotten = 0

    @property
    def flooded(self) -> bool:
        """More within ten seconds than any page has use for."""
        oldest = self._monotonic_ms() // 1000 - WINDOW_MS // 1000
        recent = [one for one in self._seconds if one[0] > oldest]
        return sum(one[1] for one in recent) > FLOOD_EVENTS or sum(one[2] for one in recent) > FLOOD_CHARS


def size_of(event: dict[str, Any]) -> int:
    """The length of what a page put into an event; only where pages can make it long, so that it costs little."""
    size = len(event.get("url", ""))
    for argument in event.get("args", ()):
        size += _text(argument, "value") + _text(argument, "description")
    if (thrown := event.get("exceptionDetails")) is not None:
        size += _text(thrown, "text") + _text(thrown.get("exception") or {}, "description")
        size += _text(thrown.get("exception") or {}, "value")
    if (request := event.get("request")) is not None:
        size += _text(request, "url") + _text(request, "postData")
    if (frame := event.get("response")) is not None:
        size += _text(frame, "payloadData")
    return size


def _text(part: dict[str, Any], name: str) -> int:
    value = part.get(name)
    return len(value) if isinstance(value, str) else 0
