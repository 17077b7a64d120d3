"""Tabs: their ids, their pages and who works in them."""

__all__ = ["registry", "tab", "tab_claims"]
