"""Commands that start, watch, stop and control servers."""

__all__ = ["dashboard", "key_presses", "serve"]
