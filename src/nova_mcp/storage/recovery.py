"""Moves a damaged SQLite file aside, only after proof and only when nobody else uses it."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nova_mcp.storage.errors import StoreUnavailable

MAX_RECOVERIES = 3
EMPTY = "the file is empty (0 bytes)"
_log = logging.getLogger(__name__)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# Bytes that SQLite locks in the database file itself: whoever has it open in WAL mode holds a part of this range.
_SHARED_FIRST = 0x40000000 + 2
_SHARED_SIZE = 510


@dataclass(frozen=True, slots=True)
class Healthy:
    """The integrity check passed."""


@dataclass(frozen=True, slots=True)
class InUse:
    """Another process holds the file, so nothing can be said about it."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The check failed under an exclusive lock and the file now lies elsewhere."""

    aside: Path
    detail: str


def aside_name(path: Path, now_ms: int) -> Path:
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return path.with_name(f"{path.name}.corrupt-{stamp}Z")


def past_recoveries(path: Path) -> list[Path]:
    """Files moved aside earlier; they are the memory of how often it happened."""
    found = path.parent.glob(f"{path.name}.corrupt-*Z")
    return sorted(found)


def recover(path: Path, now_ms: int) -> str | None:
    """Move a damaged file aside and say so; None when the file turned out sound, as after another's recovery.

    StoreUnavailable when moving would be wrong (`locked`: others use the file) or has happened too often.
    """
    past = past_recoveries(path)
    if len(past) >= MAX_RECOVERIES:
        raise StoreUnavailable(
            "corrupt",
            f"{path}; {len(past)} damaged files were already moved aside here",
            hint=f"check the disk, then look after {past[0].name} and the others and remove them from {path.parent}",
        )
    match move_if_broken(path, aside_name(path, now_ms)):
        case Healthy():
            return None
        case InUse():
            raise StoreUnavailable(
                "locked",
                f"{path} seems damaged, and other processes are using it",
                hint="stop every Nova that uses this data folder, then start one; it will move the file aside",
            )
        case Moved(aside, detail):
            notice = (
                f"The database {path} was damaged ({detail}). It was moved to {aside} and a new, empty one took its "
                f"place: what Nova remembered is in the moved file. Recovery {len(past) + 1} of {MAX_RECOVERIES}."
            )
            _log.error("%s", notice)
            return notice


def move_if_broken(path: Path, aside: Path) -> Healthy | InUse | Moved:
    if path.stat().st_size == 0:
        # SQLite would take an empty file for a new database, and delete a log beside it that may hold everything.
        return _move_unreadable(path, aside, EMPTY)
    conn = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        conn.execute("PRAGMA locking_mode=EXCLUSIVE")
        conn.execute("BEGIN EXCLUSIVE")
        problems = [str(row[0]) for row in conn.execute("PRAGMA integrity_check(5)")]
        if problems == ["ok"]:
            return Healthy()
        _move(path, aside)
        return Moved(aside, "; ".join(problems))
    except sqlite3.DatabaseError as error:
        code = error.sqlite_errorcode & 0xFF
        if code in _BUSY:
            return InUse()
        if code not in _DAMAGE:
            raise
        detail = str(error)
    finally:
        conn.close()
    return _move_unreadable(path, aside, detail)


def _move_unreadable(path: Path, aside: Path, detail: str) -> InUse | Moved:
    """SQLite cannot even lock a file whose header is broken, so its lock bytes are taken by hand."""
    with _exclusive(path) as alone:
        if not alone:
            return InUse()
        _move(path, aside)
        return Moved(aside, detail)


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[bool]:
    try:
        import fcntl  # absent on Windows, where moving a file that another process has open fails by itself
    except ImportError:
        yield True
        return
    handle = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def _move(path: Path, aside: Path) -> None:
    # The database goes last: until then its lock keeps newcomers out, so none can meet a foreign log.
    for suffix in ("-shm", "-wal", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(aside.with_name(aside.name + suffix))
