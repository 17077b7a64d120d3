"""The store: one engine for SQLite and PostgreSQL, its schema migrations, and recovery of damaged files."""
