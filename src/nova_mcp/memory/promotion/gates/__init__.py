"""Levels of entries: evidence folded into counts, and the gates between levels."""

__all__ = ["counting", "entries", "evidence_rules", "explanations", "folding", "gates"]
