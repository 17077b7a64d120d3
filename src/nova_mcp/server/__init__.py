"""The only place that knows MCP: protocol in, plain values out."""

__all__ = ["backend", "garbage", "http", "lifetime", "logs", "manifest", "stdio"]
