"""When a server has to end: signals, a dead parent, and a limit for ending itself."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import anyio

log = logging.getLogger(__name__)

PARENT_POLL_S = 1.0
HARD_LIMIT_S = 20.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Ending:
    """The first reason to end. From then on the process has a limited time left."""

    def __init__(self, hard_limit_s: float = HARD_LIMIT_S) -> None:
        self.reason = ""
        self.event = anyio.Event()
        # A thread that hangs in a write must not keep a dead client's browser alive.
        self._timer = threading.Timer(hard_limit_s, _give_up)
        self._timer.daemon = True

    def because(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            self._timer.start()
            self.event.set()

    def finished(self) -> None:
        self._timer.cancel()


def _give_up() -> None:
    with suppress(OSError, ValueError):
        log.critical("ending took too long; leaving without waiting")
    os._exit(70)


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that end a server on this platform."""
    return tuple(signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__)


async def watch_signals(on_signal: Callable[[str], None]) -> None:
    """Report every ending signal; a second Ctrl-C leaves at once, for people who can't wait."""
    interrupts = 0
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for received in signals:
            # Only this one counts twice: clients often send several different signals in a row.
            interrupts += received == signal.SIGINT
            if interrupts > 1:
                os._exit(128 + signal.SIGINT)
            on_signal(f"signal {signal.Signals(received).name}")


def parent_is_gone(at_start: int, now: int) -> bool:
    """Whether the process that started us has ended; 0 and 1 are nobody's client."""
    return at_start > 1 and now != at_start


async def watch_parent(on_gone: Callable[[str], None], parent: int) -> None:
    """Wait for the parent's end: a client can be killed while somebody else still holds its end of the pipe."""
    if parent > 1:
        await _wait_for_end(parent)
        on_gone("parent process ended")


async def _wait_for_end(parent: int) -> None:
    # A descriptor of the process reports its end at once. PR_SET_PDEATHSIG would too, but it follows the thread that
    # forked, and clients fork from short-lived worker threads.
    if sys.platform == "linux":
        try:
            descriptor = os.pidfd_open(parent)
        except OSError:
            log.debug("no process descriptor for the parent; asking for its id instead")
        else:
            try:
                # Asked again: the number may have gone to somebody else before the descriptor was opened.
                if not parent_is_gone(parent, os.getppid()):
                    await anyio.wait_readable(descriptor)
                return
            finally:
                os.close(descriptor)
    while not parent_is_gone(parent, os.getppid()):  # noqa: ASYNC110 - no event tells this where descriptors don't
        await anyio.sleep(PARENT_POLL_S)
