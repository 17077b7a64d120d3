"""The only place that knows MCP: protocol in, plain values out."""
