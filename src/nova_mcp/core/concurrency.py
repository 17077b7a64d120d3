"""Results of tasks that run side by side."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Captured(Generic[T]):
    """Stores a task's result, or an exception of the given kinds, so that sibling tasks are not cancelled."""

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds = kinds
        self._results: list[T] = []
        self._error: Exception | None = None

    async def run(self, work: Callable[[], Awaitable[T]]) -> None:
        try:
            self._results.append(await work())
        except self._kinds as error:
            self._error = error

    @property
    def failed(self) -> bool:
        return self._error is not None

    def value(self) -> T:
        """The result; raises the exception that was captured instead."""
        if self._error is not None:
            raise self._error
        return self._results[0]
