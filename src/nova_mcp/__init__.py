"""Nova: a real browser and an accountable memory for any MCP client."""

__version__ = "0.1.0"
