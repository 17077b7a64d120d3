"""Worker threads that run whole units of work; nobody who stops waiting can stop the work."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Session(Protocol):
    """What one thread keeps between units of work: usually a connection."""

    def run(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any: ...

    def close(self) -> None: ...


_Job = tuple[Callable[..., Any], tuple[Any, ...], "Future[Any]"]


class Lane:
    """A queue served by a fixed number of threads, each with its own session."""

    def __init__(self, name: str, threads: int, open_session: Callable[[], Session]) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._open_session = open_session
        self._closed = False
        self._guard = threading.Lock()
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., T], args: tuple[Any, ...]) -> "Future[T]":
        future: Future[T] = Future()
        # Marked as running at once: a queued unit of work must not be cancelled either.
        future.set_running_or_notify_cancel()
        with self._guard:
            if self._closed:
                raise RuntimeError("the database is closed")
            self._jobs.put((fn, args, future))
        return future

    async def call(self, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        self.submit(fn, args).add_done_callback(lambda done: _wake(loop, waiter, done))
        return await waiter

    def close(self) -> None:
        """Finish what was queued, then end the threads."""
        with self._guard:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        session: Session | None = None
        try:
            while (job := self._jobs.get()) is not None:
                fn, args, future = job
                try:
                    session = session or self._open_session()
                    result = session.run(fn, args)
                except BaseException as error:  # noqa: BLE001 - handed to whoever waits; the thread must live on
                    future.set_exception(error)
                else:
                    future.set_result(result)
                del job, fn, args, future
        finally:
            if session is not None:
                session.close()


def _wake(loop: asyncio.AbstractEventLoop, waiter: "asyncio.Future[T]", done: "Future[T]") -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, waiter, done)


def _settle(waiter: "asyncio.Future[T]", done: "Future[T]") -> None:
    if waiter.done():
        return
    error = done.exception()
    if error is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(done.result())
