"""Tools for instructions, claims, questions to a person and finding other tools."""

__all__ = ["call", "claims"]
