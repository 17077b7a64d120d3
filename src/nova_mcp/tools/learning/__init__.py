"""Tools that turn evidence into knowledge and explain its level."""

__all__ = ["explain", "promote", "release_entry", "statistics"]
