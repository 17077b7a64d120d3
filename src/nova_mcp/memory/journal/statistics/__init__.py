"""Figures of the journal: counted as events happen, read in constant time."""
