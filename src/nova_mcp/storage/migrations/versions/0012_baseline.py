"""The whole schema at once. A store of the schema before it has the same tables and is taken over as it stands."""

from importlib.resources import files

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = None
branch_labels = None
depends_on = None

# What PostgreSQL calls otherwise; the order matters, because one of these words contains another.
_POSTGRES = {
    "SERIAL NOT NULL PRIMARY KEY AUTOINCREMENT": "BIGSERIAL NOT NULL CONSTRAINT pk_browser_memory PRIMARY KEY",
    " SERIAL ": " BIGSERIAL ",
    " ROW_NUMBER ": " BIGINT ",
    " BLOB": " BYTEA",
    " WITHOUT ROWID": "",
}
_SQLITE = {" SERIAL ": " INTEGER ", " ROW_NUMBER ": " INTEGER "}


def upgrade() -> None:
    conn = op.get_bind()
    if not sa.inspect(conn).has_table("ledger_server"):
        for statement in _statements(_POSTGRES if conn.dialect.name == "postgresql" else _SQLITE):
            conn.exec_driver_sql(statement)
    elif conn.dialect.name == "postgresql":
        # Numbered by itself by mistake; every row has the number of its entry.
        conn.exec_driver_sql("ALTER TABLE learning_snapshot ALTER COLUMN entry_id DROP DEFAULT")
        conn.exec_driver_sql("DROP SEQUENCE IF EXISTS learning_snapshot_entry_id_seq")


def _statements(words: dict[str, str]) -> list[str]:
    text = files("nova_mcp.storage.migrations").joinpath("baseline.sql").read_text("utf-8")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for ours, theirs in words.items():
        text = text.replace(ours, theirs)
    return [statement.strip() for statement in text.split(";\n") if statement.strip()]
