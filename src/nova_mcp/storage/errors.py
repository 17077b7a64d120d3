"""Driver errors translated into the few things a caller can act on."""

import sqlite3
from typing import Literal

from sqlalchemy.exc import DBAPIError

Reason = Literal[
    "locked",
    "full",
    "readonly",
    "corrupt",
    "network_fs",
    "down",
    "schema_newer",
    "schema_older",
    "schema_retired",
    "missing",
    "not_a_store",
]

_MESSAGES: dict[Reason, tuple[str, str]] = {
    "locked": (
        "the store is locked by another process",
        "try again; if it lasts, look for a program that keeps a transaction open",
    ),
    "full": ("the disk under the store is full", "free some space, then try again; nothing was written"),
    "readonly": (
        "the store cannot be written",
        "check the owner and permissions of the database file and of its folder, and that the disk is not read-only",
    ),
    "corrupt": ("the database is damaged", "restart Nova: it checks the file and moves it aside if it is broken"),
    "network_fs": (
        "the database file lies on a network file system, where SQLite locks cannot be trusted",
        "choose a data folder on a local disk, or use PostgreSQL",
    ),
    "down": ("the store does not answer", "check that the database is running and reachable"),
    "schema_newer": ("the store was written by a newer Nova", "upgrade this installation, or use another data folder"),
    "schema_older": (
        "the store has the schema of an older Nova",
        "bring it up to date with `nova db upgrade`, or start a server on it; commands that only read change nothing",
    ),
    "schema_retired": (
        "the store is too old for this Nova",
        "bring it to that schema with the Nova that wrote it last, or use another data folder; nothing was changed",
    ),
    "missing": ("there is no store", "a server creates it when it starts; check --data-dir and --store"),
    "not_a_store": ("no Nova store was found there", "check --data-dir and --store, or restore a copy"),
}


class StoreUnavailable(Exception):
    """The store cannot serve a unit of work; the unit was rolled back unless `down` struck during its commit."""

    def __init__(self, reason: Reason, detail: str = "", hint: str = "") -> None:
        message, default_hint = _MESSAGES[reason]
        self.reason: Reason = reason
        self.detail = detail
        self.message = f"{message}: {detail}" if detail else message
        self.hint = hint or default_hint
        super().__init__(self.message)


_SQLITE_REASONS: dict[int, Reason] = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "readonly",
    sqlite3.SQLITE_PERM: "readonly",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
    sqlite3.SQLITE_CANTOPEN: "down",
    sqlite3.SQLITE_IOERR: "down",
    sqlite3.SQLITE_PROTOCOL: "locked",
}

_POSTGRES_REASONS: dict[str, Reason] = {
    "53100": "full",
    "25006": "readonly",
    "55P03": "locked",
    "40P01": "locked",
    "40001": "locked",
    "57014": "locked",
    "XX001": "corrupt",
    "XX002": "corrupt",
    "53300": "down",
    "57P01": "down",
    "57P02": "down",
    "57P03": "down",
}


def unavailable(error: BaseException) -> StoreUnavailable | None:
    """What a driver error means, or None when it is a defect of the statement rather than a state of the store."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    reason = _reason(cause)
    if reason is None and isinstance(error, DBAPIError) and error.connection_invalidated:
        reason = "down"
    return None if reason is None else StoreUnavailable(reason, str(cause).strip().split("\n")[0])


def _reason(cause: BaseException) -> Reason | None:
    if isinstance(cause, sqlite3.Error):
        if str(cause).startswith("Could not decode to UTF-8"):
            return "corrupt"
        code: int | None = getattr(cause, "sqlite_errorcode", None)
        return None if code is None else _SQLITE_REASONS.get(code & 0xFF)
    state: object = getattr(cause, "sqlstate", None)
    if isinstance(state, str):
        return "down" if state.startswith("08") else _POSTGRES_REASONS.get(state)
    # psycopg reports a refused or broken connection without a state.
    return "down" if type(cause).__name__ == "OperationalError" else None
