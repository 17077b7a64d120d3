"""Guidance of task profiles: counted, reviewed and promoted."""

__all__ = ["rules", "service", "store"]
