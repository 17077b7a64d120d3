"""Commit points: controls that send, buy, delete or otherwise change something."""

__all__ = ["check", "commit_points", "discover"]
