"""Real stores of schemas from before the baseline, made by the migrations of that time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Boolean, Connection, Float, Integer, LargeBinary, create_engine, insert, inspect, select, text

from nova_mcp.evidence import store
from nova_mcp.storage.schema import PREVIOUS, metadata

CHAIN = Path(__file__).with_name("former_schema")
ROWS = 5
# The evidence ledger is written by its own functions; Alembic keeps its own table.
LEDGER = {"ledger_server", "ledger_link", "ledger_body", "ledger_open_intent"}


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A transaction past Nova's own ways of opening a store, none of which would take a former one."""
    engine = create_engine(url)
    try:
        with engine.begin() as conn:
            yield conn
    finally:
        engine.dispose()


def migrate(conn: Connection, revision: str = PREVIOUS) -> None:
    """Run the former migrations up to a revision."""
    settings = Config()
    settings.set_main_option("script_location", str(CHAIN))
    settings.set_main_option("path_separator", "os")
    settings.attributes["connection"] = conn
    command.upgrade(settings, revision)


def make_former(url: str, build: Any, revision: str = PREVIOUS) -> None:
    """A store of that schema with two chains of calls; at the newest one every other table has a row as well."""
    with connected(url) as conn:
        migrate(conn, revision)
        for server_id in ("alpha", "beta"):
            store.register_server(conn, build.server(server_id))
            for number in range(1, ROWS + 1):
                store.append_call(conn, build.call(server_id, f"{server_id}-{number}"))
        if revision == PREVIOUS:
            for table in metadata.sorted_tables:
                if table.name not in LEDGER:
                    conn.execute(insert(table).values({column.name: _value(column) for column in table.columns}))


def _value(column: Any) -> Any:
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, Integer | Float):
        return 1
    return b"x" if isinstance(column.type, LargeBinary) else "x"


def rows(conn: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that is stored, by table."""
    return {
        table.name: sorted((tuple(row) for row in conn.execute(select(table))), key=repr)
        for table in metadata.sorted_tables
    }


def shape(conn: Connection) -> list[str]:
    """Every table, column, index, constraint and sequence in the words of the database, without the version."""
    if conn.dialect.name == "sqlite":
        found = conn.execute(text("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")).scalars()
        return sorted("".join(sql.split()) for sql in found)
    return sorted(
        conn.execute(
            text(
                "SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable,"
                " column_default)"
                " FROM information_schema.columns WHERE table_schema = 'public'"
                " UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
                " UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))"
                " FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
                " UNION ALL SELECT concat_ws(' ', sequencename, data_type, start_value)"
                " FROM pg_sequences WHERE schemaname = 'public'"
            )
        ).scalars()
    )


def revision_of(conn: Connection) -> str | None:
    if not inspect(conn).has_table("alembic_version"):
        return None
    return conn.execute(text("SELECT version_num FROM alembic_version")).scalar()
