"""Chromium through Playwright: the only package that knows the driver."""

__all__ = [
    "act",
    "blockers",
    "channel",
    "commits",
    "egress",
    "files",
    "observe",
    "page",
    "perceive",
    "process",
    "read",
    "state",
    "targets",
]
