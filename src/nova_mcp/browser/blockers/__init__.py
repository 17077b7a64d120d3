"""Layers over a page: finding and dismissing them without consenting."""

__all__ = ["dismiss", "layers", "rules"]
