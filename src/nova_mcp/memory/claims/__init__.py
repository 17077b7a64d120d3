"""Claims: which agent works on which tab, and what is decided when it lets go."""

__all__ = ["book", "retention", "rules", "store"]
