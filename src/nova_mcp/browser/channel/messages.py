"""What pages tell unasked: versioned messages, limited in rate, handed to whoever listens."""

import json
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio

from nova_mcp.core.values import Json

Message: TypeAlias = dict[str, Json]
T = TypeVar("T")

BINDING: Final = "__novaSend"
MESSAGE_VERSION: Final = 1
MAX_MESSAGE_CHARS: Final = 64_000
# The page limits itself to 50 per second. Its windows and ours do not line up, and frames count apart, so the host
# allows twice that before it drops.
HOST_MESSAGES_PER_SECOND: Final = 100


def parse_message(payload: object) -> Message | None:
    """The message a page sent, or nothing when it is not one of ours in a version we speak."""
    if not isinstance(payload, str) or len(payload) > MAX_MESSAGE_CHARS:
        return None
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("v") != MESSAGE_VERSION or isinstance(message.get("v"), bool):
        return None
    return message if isinstance(message.get("kind"), str) else None


class Listeners(Generic[T]):
    """Callbacks that can be taken away again."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[T], None]] = []

    def add(self, callback: Callable[[T], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def end() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return end

    def tell(self, news: T) -> None:
        for callback in tuple(self._callbacks):
            callback(news)


class PageMessages:
    """The messages of one page and its frames; too many in a second and malformed ones are dropped."""

    def __init__(self) -> None:
        self.listeners: Listeners[Message] = Listeners()
        self.dropped = 0
        self._second = -1
        self._in_second = 0

    def take(self, event: dict[str, Any]) -> None:
        """A call of the binding, as the protocol reports it."""
        if event.get("name") != BINDING:
            return
        second = int(anyio.current_time())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        message = None if self._in_second > HOST_MESSAGES_PER_SECOND else parse_message(event.get("payload"))
        if message is None:
            self.dropped += 1
        else:
            self.listeners.tell(message)
