"""Single key presses from a terminal, without waiting for Return."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NextKey = Callable[[float], str | None]


@contextmanager
def keys() -> Iterator[NextKey]:
    """A function that waits up to so many seconds for a key; the terminal is put back afterwards."""
    if sys.platform == "win32":
        yield _windows_key
        return
    import os
    import select
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def next_key(seconds: float) -> str | None:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        # Past Python's buffer: select would not see a second key that waits in it.
        return os.read(descriptor, 1).decode(errors="replace") if ready else None

    try:
        tty.setcbreak(descriptor)
        yield next_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _windows_key(seconds: float) -> str | None:
    import msvcrt
    import time

    until = time.monotonic() + seconds
    while not msvcrt.kbhit():  # type: ignore[attr-defined]
        if time.monotonic() > until:
            return None
        time.sleep(0.02)
    return str(msvcrt.getwch())  # type: ignore[attr-defined]
