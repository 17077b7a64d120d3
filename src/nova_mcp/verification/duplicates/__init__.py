"""The duplicate guard: one commit is never sent twice by accident."""

__all__ = ["check"]
