"""Looks at a store without changing it: a damaged file must not be moved aside by a command that only asks."""

from pathlib import Path

from sqlalchemy import Connection

from nova_mcp.cli.store.open_store import store_file
from nova_mcp.settings import Settings
from nova_mcp.storage import schema
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.filesystem import network_file_system
from nova_mcp.storage.reading import LookingSession

MAX_PROBLEMS = 20
PATIENCE_S = 10.0


def store_problems(settings: Settings) -> list[str]:
    """What is wrong with the store, nothing when it is sound."""
    path = store_file(settings)
    if path is not None:
        return file_problems(path)
    try:
        Database.open_for_reading(settings.store_url, older=True).close_sync()
    except StoreUnavailable as error:
        return [f"{error.message} ({error.hint})"]
    return []


def file_problems(path: Path) -> list[str]:
    if not path.exists():
        return [f"there is no store at {path}"]
    if (kind := network_file_system(path)) is not None:
        return [f"{path} lies on {kind}, where SQLite locks cannot be trusted; use a local disk or PostgreSQL"]
    try:
        # The file itself, whatever its schema is.
        return LookingSession(path, PATIENCE_S).run(_problems, (), {}, 0.0)
    except StoreUnavailable as error:
        return [error.message]


def _problems(conn: Connection) -> list[str]:
    found = [str(row[0]) for row in conn.exec_driver_sql(f"PRAGMA integrity_check({MAX_PROBLEMS})")]
    problems = [] if found == ["ok"] else found
    problems += [
        f"row {row[1]} of {row[0]} names a missing row of {row[2]}"
        for row in conn.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
    ]
    try:
        schema.require_readable(conn, older=True)
    except StoreUnavailable as error:
        problems.append(error.message)
    return problems
