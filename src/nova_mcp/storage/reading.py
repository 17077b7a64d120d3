"""Reads an SQLite store without writing a byte: no repair, no migration, no log or shared memory left beside it."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from nova_mcp.storage.errors import StoreUnavailable, unavailable
from nova_mcp.storage.filesystem import network_file_system

T = TypeVar("T")

ATTEMPTS: Final = 5
_IMMUTABLE: Final = "?immutable=1"


class LookingSession:
    """A thread's access for reading: every unit of work opens the file as it stands then, and closes it again.

    SQLite by itself creates a log and shared memory beside any file in WAL mode, even for a reader. Without a log the
    file is read as immutable. With a log and its shared memory, a server lives or was killed: both are opened for
    reading only. A log without shared memory, as in a copy of the two files, is read from a private copy.
    """

    def __init__(self, path: Path, patience_s: float) -> None:
        self._path = path
        self._patience_s = patience_s

    def run(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], queued_at: float) -> T:
        for _ in range(ATTEMPTS):
            try:
                before = self._path.stat()
                with self._address() as address:
                    result = self._run(address, fn, args, kwargs)
            except FileNotFoundError:
                raise StoreUnavailable("missing", str(self._path)) from None
            except OSError as error:
                raise StoreUnavailable("down", f"{self._path}: {error.strerror or error}") from error
            except StoreUnavailable:
                if not self._is_another_since(before):
                    raise
                continue
            if not address.endswith(_IMMUTABLE) or not self._is_another_since(before):
                return result
        # A server that has begun meanwhile keeps a log, and then the file is not read as immutable.
        raise StoreUnavailable("locked", f"{self._path} changed while it was read")

    def _is_another_since(self, before: os.stat_result) -> bool:
        """Whether the file was written into or moved, which nobody who reads it as immutable is protected from."""
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return True
        return (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns)

    @contextmanager
    def _address(self) -> Iterator[str]:
        if not self._path.is_file():
            raise StoreUnavailable("not_a_store", f"{self._path} is not a file")
        if self._path.stat().st_size == 0:
            raise StoreUnavailable("not_a_store", f"{self._path} is empty (0 bytes)")
        # SQLite keeps the log beside the file itself, not beside a link to it.
        path = self._path.resolve()
        log, memory = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
        logged = log.exists() and log.stat().st_size > 0
        if memory.exists() and log.exists():
            if (kind := network_file_system(path)) is not None:
                raise StoreUnavailable("network_fs", f"{self._path} is on {kind}")
            yield f"{path.as_uri()}?mode=ro&readonly_shm=1"
        elif logged:
            with tempfile.TemporaryDirectory(prefix="nova-read-") as folder:
                copy = Path(shutil.copy(path, folder))
                shutil.copy(log, copy.with_name(copy.name + "-wal"))
                yield copy.as_uri()
        else:
            yield f"{path.as_uri()}{_IMMUTABLE}"

    def _run(self, address: str, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        engine = create_engine(
            "sqlite+pysqlite://",
            creator=lambda: sqlite3.connect(address, uri=True, timeout=self._patience_s, isolation_level=None),
            poolclass=NullPool,
        )

        @event.listens_for(engine, "begin")
        def start(conn: Connection) -> None:
            raw: Any = conn.connection.dbapi_connection
            raw.execute("PRAGMA query_only=ON")
            raw.execute("BEGIN")

        try:
            with engine.begin() as conn:
                return fn(conn, *args, **kwargs)
        except (DBAPIError, sqlite3.Error) as error:
            translated = unavailable(error)
            if translated is None:
                raise
            if translated.reason == "corrupt":
                # A server's hint does not fit a command that only looks: a restart would move the file aside.
                hint = "keep a copy of the file; `nova db check` names what is broken"
                raise StoreUnavailable("corrupt", f"{self._path}: {translated.detail}", hint) from error
            raise translated from error
        finally:
            engine.dispose()

    def close(self) -> None:
        return None
