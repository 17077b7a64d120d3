"""Task profiles: storing them and matching a described task to one."""

__all__ = ["confidence", "matching", "rules", "service", "store"]
