"""Calls Alembic on a connection whose transaction belongs to the caller."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from nova_mcp.storage.schema import PREVIOUS, current_revision


def config(conn: Connection | None = None) -> Config:
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    if conn is not None:
        settings.attributes["connection"] = conn
    return settings


def run(conn: Connection) -> None:
    """Bring the schema to the newest revision; the baseline takes over a store of the one before it."""
    if current_revision(conn) == PREVIOUS:
        conn.execute(text("DELETE FROM alembic_version"))
    command.upgrade(config(conn), "head")
