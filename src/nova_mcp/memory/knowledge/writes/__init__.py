"""Writing entries: what may be stored, how a write is merged, and its transaction."""

__all__ = ["content_rules", "entry_write", "hint_rules", "page_check", "rules", "stability", "store"]
