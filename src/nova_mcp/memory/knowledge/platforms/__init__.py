"""Platforms: consent tools and the like that many sites use, known by scripts and marks."""

__all__ = ["store", "templates"]
