"""How much work a reading is for SQLite, and along which plans: what a page costs is counted, never timed."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, event

Reading = Callable[[Connection], object]


def work(conn: Connection, reading: Reading, size: int = 10) -> int:
    """How many times `size` instructions the database's own machine takes for a reading."""
    raw: sqlite3.Connection = conn.connection.dbapi_connection  # type: ignore[assignment]
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    raw.set_progress_handler(tick, size)
    try:
        reading(conn)
    finally:
        raw.set_progress_handler(None, 0)
    return count


@contextmanager
def spied() -> Iterator[list[tuple[str, object]]]:
    """Every statement that is run meanwhile, with what is bound to it."""
    seen: list[tuple[str, object]] = []

    def note(_conn: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        seen.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def plans(conn: Connection, reading: Reading) -> list[tuple[str, str]]:
    """Each step of each plan, with the statement it belongs to."""
    with spied() as seen:
        reading(conn)
    raw: sqlite3.Connection = conn.connection.dbapi_connection  # type: ignore[assignment]
    return [
        (str(row[3]), statement)
        for statement, parameters in seen
        if statement.lstrip().upper().startswith("SELECT")
        for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()  # type: ignore[arg-type]
    ]
