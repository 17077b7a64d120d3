"""Commit points: controls that send, buy, delete or otherwise change something."""
