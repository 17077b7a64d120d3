"""What pages read from the store."""

__all__ = ["call_lines", "chain", "feed", "figures", "principals"]
