"""Holding something for one process at a time; the system lets go when the process dies, however it dies."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Beyond the text in the file: Windows keeps others from reading what is locked.
_LOCKED_BYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Somebody else has it; `pid` is None when they could not be told apart from a broken file."""

    pid: int | None


class Hold:
    """An exclusive hold; released by `release` or with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def take_hold(path: Path) -> Hold | HeldBy:
    """Hold a file, made if need be. It stays when released: removing it would let two processes hold two files."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Python keeps the descriptor from programs it starts, so that a browser can't outlive us holding it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
    except OSError:
        holder = _pid(os.read(descriptor, 32))
        os.close(descriptor)
        return HeldBy(holder)
    os.truncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return Hold(descriptor)


def held_now(path: Path) -> bool:
    """Whether a process holds the file; found out by trying, so whoever takes it this very moment has to try again."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _pid(text: bytes) -> int | None:
    word = text.strip()
    return int(word) if word.isdigit() else None


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
