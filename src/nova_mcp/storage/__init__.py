"""The store: one engine for SQLite and PostgreSQL, its schema migrations, and recovery of damaged files."""

__all__ = ["engine", "errors", "filesystem", "prepared", "reading", "savepoints", "schema", "writer_lock"]
