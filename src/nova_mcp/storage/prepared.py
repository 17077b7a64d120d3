"""Statements of the hottest path, compiled once and sent straight to the driver."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Insert, Select, TextClause, Update


class Prepared:
    """A Core statement whose text is kept per dialect; a tenth of the cost of executing it through Core.

    Parameters must be plain values that the driver takes as they are. Rows come back as tuples. Driver errors arrive
    unwrapped; the engine translates both kinds.
    """

    def __init__(
        self, statement: Select[Any] | Insert | Update | Delete | TextClause, columns: tuple[str, ...] = ()
    ) -> None:
        self._statement = statement
        self._columns = list(columns) or None
        self._texts: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def run(self, conn: Connection, values: Mapping[str, Any]) -> Any:
        """Execute and return the driver's cursor."""
        sql, order = self._texts.get(conn.dialect.name) or self._compile(conn)
        cursor = conn.connection.cursor()
        cursor.execute(sql, values if order is None else [values[name] for name in order])
        return cursor

    def many(self, conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute once per row, in order; PostgreSQL gets all of them in one message."""
        sql, order = self._texts.get(conn.dialect.name) or self._compile(conn)
        cursor = conn.connection.cursor()
        cursor.executemany(sql, rows if order is None else [[values[name] for name in order] for values in rows])

    def _compile(self, conn: Connection) -> tuple[str, tuple[str, ...] | None]:
        compiled: Any = self._statement.compile(dialect=conn.dialect, column_keys=self._columns)
        order = tuple(compiled.positiontup) if compiled.positional else None
        text = (compiled.string, order)
        self._texts[conn.dialect.name] = text
        return text
