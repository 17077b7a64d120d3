"""Schema history of the store, run by Alembic from inside the package."""

__all__ = ["runner"]
