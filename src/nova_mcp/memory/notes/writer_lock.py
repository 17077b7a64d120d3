"""Lets writers of one principal's notes in one at a time, so that limits hold."""

from sqlalchemy import Connection, text

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def hold(conn: Connection, store: str, principal: str) -> None:
    """Keeps other writers of one principal's notes away until the transaction ends.

    SQLite has one writer at a time anyway.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(_HOLD, {"name": f"nova:{store}:{principal}"})
