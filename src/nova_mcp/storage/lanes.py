"""Worker threads that run whole units of work; nobody who stops waiting can stop the work."""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Session(Protocol):
    """What one thread keeps between units of work: usually a connection."""

    def run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], queued_at: float) -> Any:
        """Run one unit that was asked for at `queued_at` on the monotonic clock."""
        ...

    def close(self) -> None: ...


Deliver = Callable[[Any, BaseException | None], None]
_Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], float, Deliver]


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

    async def call(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        """Queue a unit of work and wait for it; it runs to its end even if the wait is cancelled."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()

        def settle(result: T, error: BaseException | None) -> None:
            if waiter.done():
                return
            if error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(result)

        def deliver(result: T, error: BaseException | None) -> None:
            # A loop that closed in the meantime has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, error)

        self._put((fn, args, kwargs, time.monotonic(), deliver))
        return await waiter

    def call_sync(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        done: Future[T] = Future()

        def deliver(result: T, error: BaseException | None) -> None:
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)

        self._put((fn, args, kwargs, time.monotonic(), deliver))
        return done.result()

    def _put(self, job: _Job) -> None:
        with self._guard:
            if self._closed:
                raise RuntimeError("the database is closed")
            self._jobs.put(job)

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
                fn, args, kwargs, queued_at, deliver = job
                result, failure = None, None
                try:
                    session = session or self._open_session()
                    result = session.run(fn, args, kwargs, queued_at)
                except BaseException as error:  # noqa: BLE001 - handed to whoever waits; the thread must live on
                    failure = error
                deliver(result, failure)
                del job, fn, args, kwargs, deliver, result, failure
        finally:
            if session is not None:
                session.close()
