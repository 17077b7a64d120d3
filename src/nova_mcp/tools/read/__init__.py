"""Tools that look at a page, and the hints that accompany a look."""

__all__ = ["fact_hints", "hint", "knowledge_hints", "memory_hints", "note_hints"]
