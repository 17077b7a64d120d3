"""MCP over standard input and output."""

__all__ = ["framing", "serve"]
