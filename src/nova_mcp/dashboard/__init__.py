"""The dashboard: local web pages over the stores, for the person who runs the agents."""

__all__ = ["tickets"]
