"""Alembic's entry point: migrates the connection handed over by the runner."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
