"""Targets the store has named: ids that are never reused, and where each was last seen."""

__all__ = ["journal", "store", "stored_journal"]
