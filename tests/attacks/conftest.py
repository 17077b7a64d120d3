"""Attacks on what Nova promises, each through a real client on a real page. The whole folder runs in under two minutes.

A module names its `PAGES` and shares one browser and one site; slower proofs stand in the other folders.
"""

from place_fixtures import anyio_backend, pages, place, server, tab

__all__ = ["anyio_backend", "pages", "place", "server", "tab"]
