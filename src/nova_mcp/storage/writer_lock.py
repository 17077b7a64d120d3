"""Lets the writers of one thing in one at a time, where rows alone can't keep them apart."""

from sqlalchemy import Connection, text

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def hold(conn: Connection, *names: str) -> None:
    """Keeps other writers of what is named away until the transaction ends. SQLite has one writer at a time anyway."""
    if conn.dialect.name == "postgresql":
        conn.execute(_HOLD, {"name": ":".join(("nova", *names))})
