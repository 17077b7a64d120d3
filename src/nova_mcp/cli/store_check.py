"""Looks at a store without changing it: a damaged file must not be moved aside by a command that only asks."""

import sqlite3
from pathlib import Path

from nova_mcp.cli.stored import store_file
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.filesystem import network_file_system

MAX_PROBLEMS = 20


def store_problems(settings: Settings) -> list[str]:
    """What is wrong with the store, nothing when it is sound."""
    path = store_file(settings)
    if path is not None:
        return file_problems(path)
    try:
        Database.open(settings.store_url).close_sync()
    except StoreUnavailable as error:
        return [f"{error.message} ({error.hint})"]
    return []


def file_problems(path: Path) -> list[str]:
    if not path.exists():
        return [f"there is no store at {path}"]
    if (kind := network_file_system(path)) is not None:
        return [f"{path} lies on {kind}, where SQLite locks cannot be trusted; use a local disk or PostgreSQL"]
    try:
        conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
    except sqlite3.Error as error:
        return [f"{path}: {error}"]
    try:
        found = [str(row[0]) for row in conn.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})")]
        problems = [] if found == ["ok"] else found
        problems += [
            f"row {row[1]} of {row[0]} names a missing row of {row[2]}"
            for row in conn.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
        ]
    except sqlite3.Error as error:
        return [f"{path}: {error}"]
    finally:
        conn.close()
    return problems
