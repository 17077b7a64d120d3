"""An answer that is awaited beside others: its failure is kept until somebody asks for it."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.errors import NovaError

T = TypeVar("T")


class Held(Generic[T]):
    """Filled by one task of a group; a failure must not cancel the others, whose pages are still being asked."""

    def __init__(self) -> None:
        self._answers: list[T] = []
        self._error: Exception | None = None

    async def hold(self, read: Callable[[], Awaitable[T]]) -> None:
        try:
            self._answers.append(await read())
        except (NovaError, DocumentChanged, PageScriptError) as error:
            self._error = error

    @property
    def failed(self) -> bool:
        return self._error is not None

    def value(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answers[0]
