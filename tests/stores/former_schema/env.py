"""Alembic's entry point for the migrations that the baseline replaced."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
