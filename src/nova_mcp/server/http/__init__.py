"""MCP over Streamable HTTP: authentication, request checks, health and the dashboard mount."""

__all__ = ["bearer_tokens", "dashboard_home", "health", "origins", "serve"]
