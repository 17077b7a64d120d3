"""Revalidation: whether stored entries still fit the page that is open."""

__all__ = ["revalidator"]
