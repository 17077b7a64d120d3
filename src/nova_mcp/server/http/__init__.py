"""MCP over Streamable HTTP: authentication, request checks, health and the dashboard mount."""
