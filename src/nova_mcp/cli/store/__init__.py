"""Commands that read or maintain the store."""

__all__ = ["call_lines", "open_store", "store_check"]
