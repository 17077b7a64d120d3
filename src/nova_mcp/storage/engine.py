"""The database: units of work on worker threads, one transaction each, on SQLite or PostgreSQL."""

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio.to_thread
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from nova_mcp.storage import recovery, schema
from nova_mcp.storage.errors import StoreUnavailable, unavailable
from nova_mcp.storage.filesystem import network_file_system
from nova_mcp.storage.lanes import Lane
from nova_mcp.storage.reading import LookingSession

# One transaction of a call takes a few pages of the log.
LEAST_FREE_BYTES = 256 * 1024

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and patience of the engine."""

    busy_timeout_ms: int = 10_000
    sqlite_readers: int = 3
    postgres_threads: int = 4
    connect_timeout_s: int = 10


class Database:
    """`write` and `read` run a function with a Connection, in one thread hop and one transaction."""

    def __init__(self, url: URL, writer: Lane, reader: Lane, notices: tuple[str, ...], engines: list[Engine]) -> None:
        self.url = url
        self.notices = notices
        self._writer = writer
        self._reader = reader
        self._engines = engines

    @property
    def dialect(self) -> str:
        return self.url.get_backend_name()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        tuning: Tuning | None = None,
        now_ms: Callable[[], int] | None = None,
        create: bool = True,
        recover: bool = True,
    ) -> "Database":
        """Open the store and bring its schema up to date; StoreUnavailable says why it cannot be used.

        `create` makes a store that is missing, `recover` moves a damaged file aside and begins a new one.
        """
        sizes = tuning or Tuning()
        target = make_url(url)
        if target.get_backend_name() == "sqlite":
            return _open_sqlite(target, sizes, _Opening(create, recover, now_ms or _wall_ms))
        if target.get_backend_name() == "postgresql":
            return _open_postgres(target.set(drivername="postgresql+psycopg"), sizes, create=create)
        raise ValueError(f"unknown kind of store: {target.drivername}; use sqlite:///path or postgresql://…")

    @classmethod
    def open_for_reading(cls, url: str, *, tuning: Tuning | None = None, older: bool = False) -> "Database":
        """Open the store as it stands; nothing in it or beside it is created, repaired, moved or migrated.

        `older` takes a store that an earlier version left, for those who read only what no migration has changed.
        """
        sizes = tuning or Tuning()
        target = make_url(url)
        if target.get_backend_name() == "sqlite":
            database = _look_at_sqlite(target, sizes)
        elif target.get_backend_name() == "postgresql":
            database = _look_at_postgres(target.set(drivername="postgresql+psycopg"), sizes)
        else:
            raise ValueError(f"unknown kind of store: {target.drivername}; use sqlite:///path or postgresql://…")
        try:
            database.read_sync(schema.require_readable, older=older)
        except BaseException:
            database.close_sync()
            raise
        return database

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, …)` in a write transaction; a cancelled caller loses the result, never the transaction."""
        return await self._writer.call(fn, args, kwargs)

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(conn, …)` in a read-only transaction."""
        return await self._reader.call(fn, args, kwargs)

    def write_sync(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._writer.call_sync(fn, args, kwargs)

    def read_sync(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._reader.call_sync(fn, args, kwargs)

    async def trouble(self, limit_s: float) -> StoreUnavailable | None:
        """Why the store could not take a record right now, or None: a write transaction that writes nothing.

        It finds a store that is gone, replaced, locked, upgraded or unreachable, and a file on a full disk. A quota, or
        a full disk of a database server, shows only when something is written.
        """
        with anyio.move_on_after(limit_s):
            try:
                await self.write(_nothing)
                _require_room(self.url)
            except StoreUnavailable as failure:
                return failure
            return None
        return StoreUnavailable("locked", f"no answer within {limit_s:g} s")

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self.close_sync)

    def close_sync(self) -> None:
        self._reader.close()
        self._writer.close()
        for engine in self._engines:
            engine.dispose()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _nothing(_: Connection) -> None:
    """The work of a transaction that only shows that there can be one."""


def _require_room(url: URL) -> None:
    """A disk without room for one more page of the log is full, before a write finds that out."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    with contextlib.suppress(OSError):
        if (free := shutil.disk_usage(Path(url.database).parent).free) < LEAST_FREE_BYTES:
            raise StoreUnavailable("full", f"{free} bytes free")


@dataclass(frozen=True, slots=True)
class _Opening:
    """What opening may do to an SQLite file."""

    create: bool
    recover: bool
    now_ms: Callable[[], int]


class _HeldSession:
    """A thread that keeps one connection: SQLite, where opening costs more than a unit of work."""

    def __init__(self, engine: Engine, file: "_DatabaseFile", patience_s: float, *, writes: bool) -> None:
        self._engine = engine
        self._writes = writes
        self._file = file
        self._patience_s = patience_s
        self._conn: Connection | None = None
        self._locked: StoreUnavailable | None = None
        self._locked_at = 0.0

    def run(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], queued_at: float) -> T:
        # What waited in line while its predecessor waited for the lock has waited too: a hundred calls behind a locked
        # file must not wait one after the other.
        if self._locked is not None and self._locked_at - queued_at > self._patience_s / 2:
            raise StoreUnavailable(self._locked.reason, self._locked.detail)
        self._file.require_same()
        try:
            if self._conn is None:
                self._conn = self._engine.connect()
            with self._conn.begin():
                if self._writes:
                    schema.refuse_newer(self._conn)
                return fn(self._conn, *args, **kwargs)
        except StoreUnavailable:
            self.close()
            raise
        except (DBAPIError, sqlite3.Error) as error:
            translated = unavailable(error)
            if translated is None:
                raise
            self.close()
            if translated.reason == "locked":
                self._locked, self._locked_at = translated, time.monotonic()
            raise translated from error

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None


class _PooledSession:
    """A thread that borrows a connection per unit of work: PostgreSQL, which may restart in between."""

    def __init__(self, engine: Engine, *, writes: bool) -> None:
        self._engine = engine
        self._writes = writes

    def run(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], queued_at: float) -> T:
        try:
            with self._engine.begin() as conn:
                if self._writes:
                    schema.refuse_newer(conn)
                return fn(conn, *args, **kwargs)
        except Exception as error:  # driver errors come wrapped and bare, and the driver is an optional import
            _raise(error)
            raise

    def close(self) -> None:
        return None


class _NoWriting:
    """The writer of a store that was opened for reading."""

    def run(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], queued_at: float) -> T:
        raise RuntimeError("the database was opened for reading")

    def close(self) -> None:
        return None


def _raise(error: BaseException) -> None:
    translated = unavailable(error)
    if translated is not None:
        raise translated from error


# -- SQLite ----------------------------------------------------------------------------------------------------------


class _DatabaseFile:
    """The file that was opened; SQLite goes on writing into one that was deleted, where nobody will find it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = self._look()

    def require_same(self) -> None:
        if self._look() != self._identity:
            raise StoreUnavailable(
                "down",
                f"{self._path} was removed or replaced while it was in use",
                hint="put the file back, or restart Nova to begin a new one",
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _sqlite_file(url: URL) -> Path:
    if not url.database or url.database == ":memory:":
        raise ValueError("the store needs a file: several threads share it")
    return Path(url.database)


def _open_sqlite(url: URL, tuning: Tuning, opening: _Opening) -> Database:
    path = _sqlite_file(url)
    kind = network_file_system(path)
    if kind is not None:
        raise StoreUnavailable("network_fs", f"{path} is on {kind}")
    notice = _prepare_or_recover(path, tuning.busy_timeout_ms, opening)
    file, patience_s = _DatabaseFile(path), tuning.busy_timeout_ms / 1000
    writing = _sqlite_engine(path, tuning.busy_timeout_ms, writable=True)
    reading = _sqlite_engine(path, tuning.busy_timeout_ms, writable=False)
    return Database(
        url,
        Lane("nova-writer", 1, lambda: _HeldSession(writing, file, patience_s, writes=True)),
        Lane("nova-reader", tuning.sqlite_readers, lambda: _HeldSession(reading, file, patience_s, writes=False)),
        () if notice is None else (notice,),
        [writing, reading],
    )


def _look_at_sqlite(url: URL, tuning: Tuning) -> Database:
    path = _sqlite_file(url)
    reader = Lane("nova-reader", 1, lambda: LookingSession(path, tuning.busy_timeout_ms / 1000))
    return Database(url, Lane("nova-writer", 1, _NoWriting), reader, (), [])


def _prepare_or_recover(path: Path, busy_timeout_ms: int, opening: _Opening) -> str | None:
    deadline = time.monotonic() + busy_timeout_ms / 1000
    notice: str | None = None
    while True:
        try:
            prepare_sqlite(path, busy_timeout_ms, create=opening.create)
            return notice
        except StoreUnavailable as damaged:
            if damaged.reason == "missing" and opening.create and time.monotonic() < deadline:
                continue
            if damaged.reason != "corrupt" or not opening.recover:
                raise
        try:
            notice = recovery.recover(path, opening.now_ms()) or notice
        except FileNotFoundError:
            # Another server has just moved it.
            continue
        except StoreUnavailable as refused:
            # Servers that start together on a damaged file: one moves it, the others wait for the new one.
            if refused.reason != "locked" or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def prepare_sqlite(path: Path, busy_timeout_ms: int, *, create: bool = True) -> None:
    """Create the file if need be, switch it to WAL and migrate it; safe while other processes do the same."""
    if not path.exists():
        if not create:
            raise StoreUnavailable("missing", str(path))
        _create(path, busy_timeout_ms)
    elif path.is_file() and path.stat().st_size == 0:
        # No store of ours is ever that: what was in it is gone, and that must not pass for a beginning.
        raise StoreUnavailable("corrupt", f"{path}: {recovery.EMPTY}")
    _migrate(path, busy_timeout_ms)


def _create(path: Path, busy_timeout_ms: int) -> None:
    """A whole store under its name at once: a process that dies meanwhile leaves no empty file there."""
    fresh = path.with_name(f"{path.name}.new-{os.getpid()}-{time.monotonic_ns()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Evidence is private.
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            _migrate(fresh, busy_timeout_ms)
            _give_name(fresh, path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnavailable("full" if error.errno == errno.ENOSPC else "readonly", str(error)) from error


def _give_name(fresh: Path, path: Path) -> None:
    """The name goes to the first of several servers that start together; the others use its file."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links.
        if not path.exists():
            fresh.rename(path)


def _migrate(path: Path, busy_timeout_ms: int) -> None:
    _refuse_other_schemas(path, busy_timeout_ms / 1000)
    if not path.exists():
        # Opening it would leave an empty file where another server has just moved a damaged one aside.
        raise StoreUnavailable("missing", str(path))
    engine = _sqlite_engine(path, busy_timeout_ms, writable=True)
    try:
        _ensure_wal(path, busy_timeout_ms)
        with engine.begin() as conn:
            schema.upgrade(conn)
    except (DBAPIError, sqlite3.Error) as error:
        if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
            raise StoreUnavailable("readonly", str(path)) from error
        _raise(error)
        raise
    finally:
        engine.dispose()


def _refuse_other_schemas(path: Path, patience_s: float) -> None:
    """A store that this Nova can't upgrade is refused before anything opens it for writing and merges its log."""
    try:
        LookingSession(path, patience_s).run(schema.current_revision, (), {}, 0.0)
    except StoreUnavailable as refused:
        if refused.reason in ("schema_newer", "schema_retired"):
            raise
        # Everything else is found, and told apart, by opening it.


def _ensure_wal(path: Path, busy_timeout_ms: int) -> None:
    deadline = time.monotonic() + busy_timeout_ms / 1000
    conn = sqlite3.connect(path, timeout=busy_timeout_ms / 1000, isolation_level=None)
    try:
        while True:
            try:
                mode = conn.execute("PRAGMA journal_mode").fetchone()[0]
                if mode != "wal":
                    mode = conn.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                # The switch to WAL does not use the busy handler, so four servers on a fresh file collide here.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        if mode != "wal":
            raise StoreUnavailable("down", f"{path} cannot use a write-ahead log (mode {mode})")
    finally:
        conn.close()


def _sqlite_engine(path: Path, busy_timeout_ms: int, *, writable: bool) -> Engine:
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"timeout": busy_timeout_ms / 1000, "isolation_level": None, "check_same_thread": False},
    )
    begin = "BEGIN IMMEDIATE" if writable else "BEGIN"

    @event.listens_for(engine, "connect")
    def configure(dbapi: sqlite3.Connection, _record: object) -> None:
        dbapi.execute("PRAGMA synchronous=FULL")
        dbapi.execute("PRAGMA foreign_keys=ON")
        dbapi.execute("PRAGMA secure_delete=ON")
        if not writable:
            dbapi.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def start(conn: Connection) -> None:
        # Straight to the driver: the statement is sent once per unit of work and needs no compiling.
        raw: Any = conn.connection.dbapi_connection
        raw.execute(begin)

    return engine


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


def _postgres_engine(url: URL, tuning: Tuning) -> Engine:
    try:
        return create_engine(
            url,
            pool_size=2 * tuning.postgres_threads,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": tuning.connect_timeout_s,
                "application_name": "nova",
                "options": f"-c lock_timeout={tuning.busy_timeout_ms}",
            },
        )
    except (ImportError, NoSuchModuleError) as error:
        raise StoreUnavailable(
            "down", "the PostgreSQL driver is not installed", hint="install it with: pip install 'nova-mcp[postgres]'"
        ) from error


def _open_postgres(url: URL, tuning: Tuning, *, create: bool) -> Database:
    engine = _postgres_engine(url, tuning)
    reading = engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    try:
        with engine.begin() as conn:
            if not create and schema.current_revision(conn) is None:
                raise StoreUnavailable("missing", "the database holds no schema of Nova's")
            schema.upgrade(conn)
    except DBAPIError as error:
        engine.dispose()
        _raise(error)
        raise
    except StoreUnavailable:
        engine.dispose()
        raise
    return Database(
        url,
        Lane("nova-writer", tuning.postgres_threads, lambda: _PooledSession(engine, writes=True)),
        Lane("nova-reader", tuning.postgres_threads, lambda: _PooledSession(reading, writes=False)),
        (),
        [engine],
    )


def _look_at_postgres(url: URL, tuning: Tuning) -> Database:
    engine = _postgres_engine(url, tuning)
    reading = engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    reader = Lane("nova-reader", 1, lambda: _PooledSession(reading, writes=False))
    return Database(url, Lane("nova-writer", 1, _NoWriting), reader, (), [engine])
