"""What other parts of Nova say beside a look at a page: each of them is a hint of this one shape."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from nova_mcp.core.page.looks import SignalsSeen
from nova_mcp.core.values import Json
from nova_mcp.storage.errors import StoreUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """What the look came to: whether the tab has moved on, what Nova read of the page, which signs knowledge found."""

    moved: bool
    sighted: Mapping[str, Json]
    held: SignalsSeen | None


class Hint(Protocol):
    """Reads the store before the page is looked at, takes its share of the text, and is settled after the look."""

    async def read(self) -> None:
        """What the store knows about the page that the tab shows now."""

    def take(self, room: int) -> int:
        """Write the text within so many tokens; how many of them are taken, those that stay `reserved` included."""

    async def settle(self, look: Look) -> None:
        """Drop what was about a page that the tab has left, add what the look shows, and count the rest as told."""

    def fields(self) -> dict[str, object]:
        """The typed form, by the names of the answer's fields; whoever asks for it puts it into an answer."""

    @property
    def lines(self) -> str: ...

    @property
    def reserved(self) -> int:
        """Tokens to be kept free for what only the look can show."""

    @property
    def omitted(self) -> Sequence[str]:
        """What found no room in the text, by the names of its blocks."""


async def unless_down(asked: Awaitable[T], otherwise: T) -> T:
    """What the store knows, or `otherwise` while it can't be asked: a look at a page does not depend on it."""
    try:
        return await asked
    except StoreUnavailable:
        return otherwise
