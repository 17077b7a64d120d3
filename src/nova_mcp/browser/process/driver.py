"""Playwright's driver: a process of its own, started with a clean environment, watched, and ended by its id."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
import psutil
from playwright._impl import transport as driver_transport
from playwright._impl.out_of_process import PlaywrightClient
from playwright.async_api import Error, Playwright

log = logging.getLogger(__name__)

STOP_S = 2.0


class DriverFailed(Exception):
    """The driver did not start, or not in time; the message says why."""


class Driver:
    """One run of the driver. `ended` is called once, when it is gone and nobody asked for that."""

    def __init__(self, playwright: Playwright, client: PlaywrightClient, ended: Callable[["Driver"], None]) -> None:
        self.playwright = playwright
        self._client = client
        self._process: asyncio.subprocess.Process = client._transport._proc
        self._ended = ended
        self._open = True
        # Told before the calls that wait for the driver fail, so that they can say why.
        client._connection.on("close", self._on_close)

    @classmethod
    async def start(cls, environment: Mapping[str, str], limit_s: float, ended: Callable[["Driver"], None]) -> "Driver":
        """A running driver that has answered; DriverFailed when it does not within the limit."""
        client = PlaywrightClient()
        _give_environment(client, environment)
        # What goes wrong is learned otherwise; a failure that is never fetched would be reported as a bug.
        client._transport.on_error_future.add_done_callback(_fetch)
        try:
            with anyio.fail_after(limit_s):
                # Shielded, because a cancelled start would leave a task behind whose failure nothing fetches.
                implementation = await asyncio.shield(client._playwright)
        except BaseException as error:
            _abandon(client)
            if isinstance(error, TimeoutError):
                raise DriverFailed(f"it did not answer within {limit_s:g} s") from error
            if isinstance(error, Exception):
                raise DriverFailed((str(error).splitlines() or [type(error).__name__])[0][:200]) from error
            raise
        return cls(Playwright(implementation), client, ended)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._open and self._process.returncode is None

    async def answer(self) -> None:
        """Return once the driver itself has answered; no browser is asked."""
        context = await self.playwright.request.new_context()
        await context.dispose()

    def end_browsers(self) -> None:
        """End every browser it has started, whether it answers or not."""
        _kill_all(_children(self._process))

    async def stop(self) -> None:
        """End it in order; one that does not end in time is killed."""
        self._open = False
        browsers = _children(self._process)
        try:
            with anyio.move_on_after(STOP_S), suppress(Error):
                await self._client.stop()
        finally:
            _kill(self._process)
            _kill_all(browsers)

    def kill(self) -> None:
        """End it at once with its browsers, whether they answer or not; every call that waits for it fails.

        A browser that is stopped or hangs as it is launched would not notice that its driver is gone.
        """
        self._open = False
        browsers = _children(self._process)
        _kill(self._process)
        _kill_all(browsers)

    def _on_close(self) -> None:
        if self._open:
            self.kill()
            self._ended(self)


def _abandon(client: PlaywrightClient) -> None:
    """End the process of a start that is no longer wanted, now or as soon as there is one."""

    def ended(start: "asyncio.Future[Any]") -> None:
        _fetch(start)
        _kill(getattr(client._transport, "_proc", None))

    _kill(getattr(client._transport, "_proc", None))
    client._playwright.add_done_callback(ended)


def _fetch(failure: "asyncio.Future[Any]") -> None:
    if not failure.cancelled():
        failure.exception()


def _kill(process: asyncio.subprocess.Process | None) -> None:
    if process is not None and process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _children(driver: asyncio.subprocess.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(driver.pid).children(recursive=True)
    return []


def _kill_all(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _give_environment(client: PlaywrightClient, environment: Mapping[str, str]) -> None:
    """The driver takes a copy of the server's whole environment and offers no other way to choose it."""
    connect = client._transport.connect
    module: Any = driver_transport

    async def connect_cleanly() -> None:
        usual = module.get_driver_env

        def chosen_once() -> dict[str, str]:
            module.get_driver_env = usual
            own = {name: value for name, value in usual().items() if name.startswith("PW_")}
            return {**own, **environment}

        # Asked for before `connect` waits for anything, so that no other driver can get it.
        module.get_driver_env = chosen_once
        try:
            await connect()
        finally:
            module.get_driver_env = usual

    client._transport.connect = connect_cleanly  # type: ignore[method-assign]
