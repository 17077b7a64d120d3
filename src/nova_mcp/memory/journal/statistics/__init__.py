"""Figures of the journal: counted as events happen, read in constant time."""

__all__ = ["counters", "counting", "report", "service", "tables"]
