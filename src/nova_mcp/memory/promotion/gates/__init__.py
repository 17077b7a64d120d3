"""Levels of entries: evidence folded into counts, and the gates between levels."""
